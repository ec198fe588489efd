"""Run a target under Atheris (coverage-guided, libFuzzer), until it finds something or for as long as it is told."""

import gc
import hashlib
import random
import sys
import tempfile
import traceback
import types
from pathlib import Path

from tests.hostile.fuzzers.target import MEGABYTES, SECONDS, Target, is_accepted

_GRACE = 10
"""libFuzzer measures by the clock, not processor time: it ends what never returns."""


def main(target: Target) -> None:
    """`python -m tests.hostile.fuzzers.NAME [--keep-going FOLDER] [libFuzzer options and corpora]`."""
    try:
        import atheris
    except ImportError:
        sys.exit("fuzzing needs atheris: pip install atheris")
    arguments = sys.argv[1:]
    folder = None
    if "--keep-going" in arguments:
        place = arguments.index("--keep-going")
        folder = Path(arguments[place + 1])
        folder.mkdir(parents=True, exist_ok=True)
        del arguments[place : place + 2]
    for function in [f for f in gc.get_objects() if isinstance(f, types.FunctionType)]:
        if function.__module__ and function.__module__.startswith("onnxla"):
            atheris.instrument_func(function)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.3:
            return bytes(atheris.Mutate(data, max_size))
        return target.mutate(data, rng)[:max_size]

    def one(data: bytes) -> None:
        try:
            is_accepted(target, data)
        except Exception as error:
            if folder is None:
                raise
            _note(folder, target, data, error)

    with tempfile.TemporaryDirectory() as corpus:
        seeds = [*target.seeds(), *target.more_seeds()]
        for seed in seeds:
            (Path(corpus) / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
        longest = max(4096, 2 * max(map(len, seeds), default=0))
        limits = [f"-timeout={_GRACE * SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-max_len={longest}"]
        atheris.Setup([sys.argv[0], *limits, *arguments, corpus], one, custom_mutator=mutate)
        atheris.Fuzz()


def _note(folder: Path, target: Target, data: bytes, error: Exception) -> None:
    """Keep the first input of each different place of failure, and its traceback."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "onnxla" in f.filename or "/frontends/" in f.filename
    ]
    where = f"{type(error).__name__} at " + (f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?")
    name = f"{target.name}-{hashlib.sha1(where.encode()).hexdigest()[:10]}"
    if not (folder / name).exists():
        (folder / name).write_bytes(data)
        (folder / f"{name}.txt").write_text(f"{where}\n{''.join(traceback.format_exception(error))}")
        print(f"finding: {name} {where} {error}", file=sys.stderr)
