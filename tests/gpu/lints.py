"""What would make a kernel slow on any GPU, measured without one: sectors, bank conflicts, occupancy."""

from dataclasses import dataclass

from tests.gpu.ptx_memory import Reports


@dataclass(frozen=True)
class Multiprocessor:
    """The limits of one, from the CUDA programming guide's table of compute capabilities."""

    threads: int
    blocks: int
    shared_bytes: int
    registers: int = 65536


MULTIPROCESSORS = {
    "sm_75": Multiprocessor(1024, 16, 64 << 10),
    "sm_80": Multiprocessor(2048, 32, 164 << 10),
    "sm_90": Multiprocessor(2048, 32, 228 << 10),
    "sm_120": Multiprocessor(1536, 24, 100 << 10),
}
RESERVED_SHARED = 1 << 10
"""Bytes of shared memory that the system takes of each block, from sm_80 on."""
REGISTERS_AT_ONCE = 256
"""Registers of a warp are given in multiples of this."""


def occupancy(architecture: str, threads: int, registers: int, shared: int) -> float:
    """Threads that are resident on a multiprocessor, as a part of those that may be."""
    limits = MULTIPROCESSORS[architecture]
    warps = -(-threads // 32)
    of_warp = -(-registers * 32 // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
    blocks = min(
        limits.blocks,
        limits.threads // threads,
        limits.registers // (of_warp * warps),
        limits.shared_bytes // (shared + RESERVED_SHARED),
    )
    return blocks * threads / limits.threads


def sector_efficiency(reports: Reports) -> float:
    """Sectors that would hold what warps asked for, as a part of those they touched."""
    touched = sum(reports.sectors.values())
    return sum(reports.full_sectors.values()) / touched if touched else 1.0
