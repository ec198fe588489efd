"""Equal input gives equal artifacts: in other processes, under other hash seeds, with any number of workers."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import DIGITS

PROGRAM = """
import sys
from onnxla.codegen.cpu import compile_parallel
from onnxla.codegen import workers

path, out, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
compile_parallel.process_count = lambda size, start: processes
import onnxla
options = {"compile_timeout": 300} if processes == 0 else {}
onnxla.compile(path, dims={"batch": [1, 3]}, options=options).save(out)
"""


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_other_hash_seeds_and_numbers_of_workers(seed: str, tmp_path: Path) -> None:
    """The first with one process, the others with several; 0 stands for all work in workers."""
    digests = set()
    for processes in ("1", "3") if seed == "0" else ("0",) if seed == "1" else ("2",):
        out = tmp_path / f"{processes}.onnxla"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", PROGRAM, DIGITS, str(out), processes], env=environment, check=True)
        digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
    import onnxla

    onnxla.compile(DIGITS, dims={"batch": [1, 3]}).save(tmp_path / "here.onnxla")
    digests.add(hashlib.sha256((tmp_path / "here.onnxla").read_bytes()).hexdigest())
    assert len(digests) == 1
