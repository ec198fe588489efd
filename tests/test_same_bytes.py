"""Equal input gives equal artifacts: in other processes, under other hash seeds, with any number of workers."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import onnxla
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


def test_other_hash_seeds_and_numbers_of_workers(tmp_path: Path) -> None:
    """In this process, in one with a worker beside it, and in one whose workers do all."""
    digests = set()
    for seed, processes in (("1", "2"), ("4242", "0")):
        out = tmp_path / f"{processes}.onnxla"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", PROGRAM, DIGITS, str(out), processes], env=environment, check=True)
        digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
    onnxla.compile(DIGITS, dims={"batch": [1, 3]}).save(tmp_path / "here.onnxla")
    digests.add(hashlib.sha256((tmp_path / "here.onnxla").read_bytes()).hexdigest())
    assert len(digests) == 1
