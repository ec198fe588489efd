"""Pages of mapped files that have been read once and will not be soon: the process need not hold them.

Writing an artifact reads weights that lie in a file as large as the model. Without this they would count as memory of
the process from then on, beside the model itself.
"""

import mmap
from typing import Any

import numpy as np

_CAN_LET_GO = hasattr(mmap, "MADV_DONTNEED")


def let_go(part: memoryview) -> None:
    """Take the pages of `part` out of this process, where it is part of a read-only mapping; its bytes stay what they
    are. Pages that it shares with a neighbour stay."""
    owner: Any = part
    while isinstance(owner, (memoryview, np.ndarray)):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    # Nobody can have written through a read-only mapping, so what is dropped is what is read again.
    if not _CAN_LET_GO or not isinstance(owner, mmap.mmap) or not memoryview(owner).readonly:
        return
    first = _address(part) - _address(memoryview(owner))
    begin, end = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, (first + part.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if begin < end:
        owner.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _address(view: memoryview) -> int:
    return int(np.frombuffer(view, np.uint8).ctypes.data)
