"""Object code: two objects are linked to an image, which is not run, or refused."""

from functools import cache

from onnxla.runtime.linker import PAGE, Image
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.target import Target
from tests.runtime.hand_written import SCALE_AND_ADD, object_code, thread_pool_object


def run(data: bytes) -> None:
    image = Image([data, thread_pool_object()])
    assert len(image.bytes_at(PAGE, lambda name: PAGE)) == image.size


@cache
def seeds() -> list[bytes]:
    return [object_code(SCALE_AND_ADD.replace("TASKS", "4"))]


TARGET = Target("objects", seeds, run)

if __name__ == "__main__":
    main(TARGET)
