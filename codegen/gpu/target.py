"""What is known about the GPU that code is made for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GpuTarget:
    """A compute capability, as `sm_80`, and the limits a schedule has to respect."""

    architecture: str = "sm_80"
    shared_bytes: int = 48 << 10
    """Shared memory of a block that needs no opt-in, in bytes."""
    warp: int = 32
    kind: str = "gpu"

    @property
    def name(self) -> str:
        return self.architecture
