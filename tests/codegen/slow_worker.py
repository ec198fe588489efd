"""A compile worker that answers a number by its square, 0 never, and a negative number by failing."""

import sys
import time
from collections.abc import Iterator

from onnxla.codegen.workers import serve
from onnxla.errors import InternalError


def _work(request: list[int]) -> Iterator[bytes]:
    for number in request:
        if number < 0:
            raise InternalError(f"no square of {number}")
        if number == 0:
            time.sleep(600)
        yield str(number * number).encode()


if __name__ == "__main__":
    sys.exit(serve(_work))
