"""Where arrays lie."""

import numpy as np

from onnxla.runtime.buffers import address_of, addresses_of, aligned_bytes
from onnxla.runtime.tensors import Array


def test_addresses_are_those_of_the_first_elements() -> None:
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    frozen = whole.copy()
    frozen.flags.writeable = False
    arrays: list[Array] = [
        whole,
        whole[1:],
        whole[::-1],
        whole[:, 3:],
        frozen,
        np.array(1.0),
        np.frombuffer(b"abc", np.uint8),
    ]
    assert addresses_of(arrays) == [array.ctypes.data for array in arrays]
    assert addresses_of([]) == []


def test_blocks_are_aligned() -> None:
    for size in (0, 1, 100, 2 << 20):
        block = aligned_bytes(size)
        assert block.size == size
        assert size == 0 or address_of(block) % 64 == 0
