"""What is known about the CPU that code is made for: LLVM's names, vector width, cache sizes.

A schedule reads a `Target` and nothing else about the machine, so code for another CPU (ahead-of-time, or a lower
common level) is made in the same way as code for this one. The text form is one line and reads back to an equal
`Target`.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import llvmlite.binding as llvm

from onnxla.errors import DeviceError

_CACHE_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")

LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64": ("cx8", "fxsr", "mmx", "sse", "sse2"),
}
LEVELS["x86-64-v2"] = (*LEVELS["x86-64"], "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
LEVELS["x86-64-v3"] = (*LEVELS["x86-64-v2"], "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS["x86-64-v4"] = (*LEVELS["x86-64-v3"], "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
LEVELS["generic-aarch64"] = ("fp-armv8", "neon")
LEVELS["generic-riscv64"] = ("64bit", "a", "c", "d", "f", "m")
LEVELS["wasm32"] = ("bulk-memory", "simd128")
"""Named baselines and the features that code for them may use."""
_ARCHITECTURES = ("x86_64", "aarch64", "arm64", "riscv64", "wasm32")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_MOST_FEATURES = 512
_OF_NO_KERNEL = frozenset({"enqcmd", "hreset", "invpcid", "pconfig", "shstk", "uintr", "wbnoinvd", "xsaves"}) | {
    "rdrnd",
    "rdseed",
}
"""Features of instructions that no kernel has: the operating system's, and random numbers. Linux often does not list
them (`rdseed` not where the CPU's is faulty), and an artifact that asked for one would have to load LLVM to find it."""


@dataclass(frozen=True)
class Target:
    """A CPU: `triple`, `cpu` and `features` are LLVM's; sizes are bytes for one core (`l3_bytes`: shared)."""

    triple: str
    cpu: str
    features: tuple[str, ...]
    """Features that are present, sorted, without a sign."""
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 16 << 20
    kind: ClassVar[str] = "cpu"
    """Which passes and backend it takes."""

    @property
    def name(self) -> str:
        """A short name for files and messages: `x86_64-sapphirerapids`."""
        return f"{self.architecture}-{self.cpu}"

    @property
    def architecture(self) -> str:
        return self.triple.partition("-")[0]

    @property
    def is_x86(self) -> bool:
        return self.architecture in ("x86_64", "amd64", "i686")

    @property
    def is_arm64(self) -> bool:
        return self.architecture in ("aarch64", "arm64")

    @property
    def abi(self) -> str:
        """LLVM's name of the calling convention, where the triple leaves it open."""
        return "lp64d" if self.architecture == "riscv64" else ""

    @property
    def vector_bytes(self) -> int:
        """Width of the widest vector register to use."""
        return 64 if self.has("avx512f") else 32 if self.has("avx2") else 16

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.has("avx512f") or self.is_arm64 else 16

    @property
    def looks_up(self) -> bool:
        """Whether an instruction takes, for each lane, one of eight numbers that are in a register."""
        return self.is_x86 and self.has("avx2")

    @property
    def converts_half(self) -> bool:
        """Whether there are instructions that convert f16 to f32 and back."""
        return self.is_arm64 or (self.is_x86 and self.has("f16c"))

    def has(self, feature: str) -> bool:
        """Whether code may use an LLVM feature such as `fma` or `avx512vnni`."""
        return feature in self.features

    def __str__(self) -> str:
        caches = f"l1={self.l1_bytes} l2={self.l2_bytes} l3={self.l3_bytes}"
        return f"{self.triple} cpu={self.cpu} {caches} features={','.join(self.features)}"


def parse_target(text: str) -> Target:
    """The inverse of `str(target)`. Raises DeviceError for text of another form, and for what no CPU is."""
    try:
        triple, *rest = text.split()
        fields = dict(part.partition("=")[::2] for part in rest)
        features = tuple(f for f in fields["features"].split(",") if f)
        sizes = [int(fields[cache]) for cache in ("l1", "l2", "l3")]
        if not all(map(_WORD.fullmatch, (triple, fields["cpu"], *features))) or len(features) > _MOST_FEATURES:
            raise ValueError("a name is none")
        if triple.partition("-")[0] not in _ARCHITECTURES or not all(0 <= n <= 1 << 40 for n in sizes):
            raise ValueError("no such CPU")
        return Target(triple, fields["cpu"], features, *sizes)
    except (KeyError, ValueError) as error:
        raise DeviceError(f"not the text of a target: {text[:1000]!r}") from error


@cache
def host_target() -> Target:
    """The CPU this process runs on."""
    found = {name for name, present in llvm.get_host_cpu_features().items() if present}
    features = tuple(sorted(found - _OF_NO_KERNEL))
    sizes = {**{1: 32 << 10, 2: 1 << 20, 3: 16 << 20}, **_cache_sizes()}
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, sizes[1], sizes[2], sizes[3])


def named_target(name: str) -> Target:
    """`host`, one of the baselines in `LEVELS`, or a CPU by its text (`str(target)`). Raises DeviceError for others."""
    if name == "host":
        return host_target()
    if " " in name:
        return parse_target(name)
    if name not in LEVELS:
        raise DeviceError(f"no CPU target {name!r}; known are host, {', '.join(LEVELS)}")
    system = llvm.get_process_triple().partition("-")[2]
    if name == "generic-aarch64":
        return Target(f"aarch64-{system}", "generic", LEVELS[name])
    if name == "generic-riscv64":
        return Target(f"riscv64-{system}", "generic-rv64", LEVELS[name])
    if name == "wasm32":
        return Target("wasm32-unknown-unknown", "generic", LEVELS[name])
    host = host_target()
    return Target(f"x86_64-{system}", name, LEVELS[name], host.l1_bytes, host.l2_bytes, host.l3_bytes)


def _cache_sizes() -> dict[int, int]:
    """Level -> bytes of the data caches, as far as the system tells."""
    sizes = {}
    for folder in sorted(_CACHE_FOLDER.glob("index*")):
        try:
            level, kind, size = ((folder / n).read_text().strip() for n in ("level", "type", "size"))
            if kind != "Instruction":
                sizes[int(level)] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
        except (OSError, ValueError):
            continue
    return sizes
