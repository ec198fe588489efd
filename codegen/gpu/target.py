"""What is known about the GPUs that code is made for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from onnxla.errors import DeviceError
from onnxla.hlo.module import Instruction, sources_of
from onnxla.hlo.types import BF16, F16, F32, S8, U8, ElementType


@dataclass(frozen=True)
class GpuTarget:
    """The compute capabilities that code is made for, the lowest first, and the limits a schedule has to respect."""

    architecture: str = "sm_80"
    """Code and PTX for this one; PTX also serves every later GPU."""
    others: tuple[str, ...] = ()
    """Machine code for these as well."""
    shared_bytes: int = 48 << 10
    """Shared memory of a block that needs no opt-in, in bytes."""
    warp: int = 32
    tf32: bool = False
    """Whether factors of f32 may be rounded to TF32's 10 bits, for tensor cores."""
    keep_f32: frozenset[str] = frozenset()
    """Names of nodes whose products are not rounded to TF32."""
    kind: str = "gpu"

    @staticmethod
    def named(text: str, tf32: bool = False, keep_f32: Iterable[str] = ()) -> "GpuTarget":
        """From names separated by commas: `sm_80,sm_90`. Raises DeviceError for what is no architecture."""
        names = [name.strip() for name in text.split(",")]
        wrong = [name for name in names if not re.fullmatch(r"sm_\d{2,3}[a-z]?", name)]
        if wrong:
            raise DeviceError(f"no GPU architecture {wrong[0]!r}; they are named as sm_80 is")
        first, *others = sorted(set(names), key=_capability)
        return GpuTarget(first, tuple(others), tf32=tf32, keep_f32=frozenset(keep_f32) if tf32 else frozenset())

    def multiplies(self, element: ElementType) -> bool:
        """Whether every architecture has tensor cores, which may be used, for products of these: with f32 sums, and of
        8-bit integers with s32 sums."""
        return (element in (F16, BF16, S8, U8) or (element is F32 and self.tf32)) and self.capability >= 80

    @property
    def capability(self) -> int:
        """Of the lowest architecture."""
        return _capability(self.architecture)[0]

    def of(self, instruction: Instruction) -> "GpuTarget":
        """The target for one instruction: without TF32 where that is kept away from a node that it computes."""
        kept = bool(self.keep_f32) and any(node.name in self.keep_f32 for node in sources_of(instruction))
        return replace(self, tf32=False) if kept else self

    @property
    def architectures(self) -> tuple[str, ...]:
        return (self.architecture, *self.others)

    @property
    def name(self) -> str:
        return self.architecture

    def __str__(self) -> str:
        return ",".join(self.architectures)


def _capability(name: str) -> tuple[int, str]:
    digits = re.sub(r"\D", "", name)
    return int(digits), name
