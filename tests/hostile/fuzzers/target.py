"""What a fuzzing target is, and what counts as a finding."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxla.config import CompileOptions, Limits
from onnxla.errors import InternalError, OnnxlaError
from tests.hostile.fuzzers.mutation import mutate_bytes

LIMITS = Limits(nodes=5000, nesting=40, elements=1 << 18, text_bytes=1 << 20)
OPTIONS = CompileOptions(folding_bytes=8 << 20, folding_seconds=1.0)
SECONDS = 25
"""Of processor time; more is a hang. Folding may take one second of it."""
MEGABYTES = 2048
"""More is a finding."""

Mutator = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Target:
    """One entry point for bytes from strangers."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    run: Callable[[bytes], None]
    """Raises OnnxlaError for bytes that are refused."""
    mutate: Mutator = mutate_bytes
    more_seeds: Callable[[], Sequence[bytes]] = list
    """For hours by hand, where making them takes its time."""


def is_accepted(target: Target, data: bytes) -> bool:
    """Run the target: True where it took the bytes, False where it refused them by a typed error.

    Everything else is a finding and is raised; so is an InternalError, which says that onnxla is at fault.
    """
    start = time.process_time()
    try:
        target.run(data)
    except InternalError:
        raise
    except OnnxlaError:
        return False
    finally:
        if time.process_time() - start > SECONDS:
            raise TimeoutError(f"{target.name} took {time.process_time() - start:.0f} s")
    return True
