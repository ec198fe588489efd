"""Digests of sections, computed on every CPU: a hash of the hashes of blocks of 4 MiB.

`digest_of` is SHA-256, for identity; 100 MB take about 40 ms on two cores. `checksum_of` is CRC-32, which finds damage
and takes a third of that; artifacts check their weights with it when they are loaded.
"""

import hashlib
import threading
import zlib
from collections.abc import Callable, Iterable

from onnxla.runtime.thread_pool import usable_cpus

_BLOCK = 4 << 20


def digest_of(data: bytes | memoryview) -> str:
    """The SHA-256 digest of the SHA-256 digests of the blocks, in hexadecimal."""
    return hashlib.sha256(_hash_blocks(data, lambda block: hashlib.sha256(block).digest())).hexdigest()


def checksum_of(data: bytes | memoryview) -> str:
    """The CRC-32 of each block, all hashed to one, in hexadecimal."""
    return hashlib.sha256(_hash_blocks(data, lambda block: zlib.crc32(block).to_bytes(4, "little"))).hexdigest()


def digest_of_all(parts: Iterable[bytes | memoryview | str]) -> str:
    """The digest of a sequence of parts; where one ends and the next begins counts."""
    return digest_of("".join(digest_of(p.encode() if isinstance(p, str) else p) for p in parts).encode())


def _hash_blocks(data: bytes | memoryview, block_hash: Callable[[memoryview], bytes]) -> bytes:
    """The hashes of the blocks of `data`, joined. The hash functions let other threads run meanwhile."""
    view = memoryview(data).cast("B")
    blocks = [view[start : start + _BLOCK] for start in range(0, len(view), _BLOCK)]
    hashes = [b""] * len(blocks)
    step = min(usable_cpus(), len(blocks))

    def work(first: int) -> None:
        for k in range(first, len(blocks), step):
            hashes[k] = block_hash(blocks[k])

    helpers = [threading.Thread(target=work, args=(first,)) for first in range(1, step)]
    for helper in helpers:
        helper.start()
    if blocks:
        work(0)
    for helper in helpers:
        helper.join()
    return b"".join(hashes)
