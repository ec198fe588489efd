"""Digests of bytes in memory and in files are the same, whatever the size."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from onnxla.runtime.digest import digest_of, digest_of_file

BLOCK = 4 << 20


@pytest.mark.parametrize("size", [0, 1, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_a_file_has_the_digest_of_its_bytes(size: int, tmp_path: Path) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    (tmp_path / "file").write_bytes(data)
    blocks = [data[start : start + BLOCK] for start in range(0, size, BLOCK)]
    expected = hashlib.sha256(b"".join(hashlib.sha256(block).digest() for block in blocks)).hexdigest()
    with open(tmp_path / "file", "rb") as file:
        assert digest_of_file(file.fileno()) == digest_of(data) == expected
