"""Digests of sections, computed on every CPU: a hash of the hashes of blocks of 4 MiB.

`digest_of` is SHA-256, for identity; 100 MB take about 40 ms on two cores. `checksum_of` adds up the words of each
page, which finds damage (a flipped bit, pages lost or in another order) as fast as memory is read; artifacts check
their weights with it when they are loaded.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from onnxla.runtime.machine import usable_cpus

_BLOCK = 4 << 20
_PAGE = 4096


Then: TypeAlias = Callable[[memoryview], None]
"""What to do with a block when it has been read."""


def digest_of(data: bytes | memoryview, then: Then | None = None) -> str:
    """The SHA-256 digest of the SHA-256 digests of the blocks, in hexadecimal."""
    return hashlib.sha256(_hash_blocks(data, lambda block: hashlib.sha256(block).digest(), then)).hexdigest()


def checksum_of(data: bytes | memoryview, then: Then | None = None) -> str:
    """The SHA-256 digest of the sums of each 4096 bytes as 64-bit words, in hexadecimal."""
    return hashlib.sha256(_hash_blocks(data, _page_sums, then)).hexdigest()


def digest_of_all(parts: Iterable[bytes | memoryview | str]) -> str:
    """The digest of a sequence of parts; where one ends and the next begins counts."""
    return digest_of("".join(digest_of(p.encode() if isinstance(p, str) else p) for p in parts).encode())


def _page_sums(block: memoryview) -> bytes:
    if len(block) % _PAGE:
        block = memoryview(bytes(block) + bytes(-len(block) % _PAGE))
    words = np.frombuffer(block, "<u8").reshape(-1, _PAGE // 8)
    sums: bytes = np.add.reduce(words, axis=1, dtype="<u8").tobytes()
    return sums


def digest_of_file(descriptor: int) -> str:
    """As `digest_of`, of the bytes of an open file, of which no more than a few blocks are in memory at once."""

    def reader() -> Callable[[int], bytes]:
        room = memoryview(bytearray(_BLOCK))
        return lambda k: hashlib.sha256(room[: os.preadv(descriptor, [room], k * _BLOCK)]).digest()

    count = -(-os.fstat(descriptor).st_size // _BLOCK)
    return hashlib.sha256(_hashes(count, reader)).hexdigest()


def _hash_blocks(data: bytes | memoryview, block_hash: Callable[[memoryview], bytes], then: Then | None) -> bytes:
    """The hashes of the blocks of `data`, joined."""
    view = memoryview(data).cast("B")

    def hash_and_go_on(k: int) -> bytes:
        block = view[k * _BLOCK : (k + 1) * _BLOCK]
        found = block_hash(block)
        if then is not None:
            then(block)
        return found

    return _hashes(-(-len(view) // _BLOCK), lambda: hash_and_go_on)


def _hashes(count: int, hasher: Callable[[], Callable[[int], bytes]]) -> bytes:
    """The hashes of `count` blocks, joined. Hash functions, one for each thread, let other threads run meanwhile."""
    hashes = [b""] * count
    step = min(usable_cpus(), count)

    def work(first: int) -> None:
        hash_of = hasher()
        for k in range(first, count, step):
            hashes[k] = hash_of(k)

    helpers = [threading.Thread(target=work, args=(first,)) for first in range(1, step)]
    for helper in helpers:
        helper.start()
    if count:
        work(0)
    for helper in helpers:
        helper.join()
    return b"".join(hashes)
