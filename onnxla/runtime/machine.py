"""What this machine is: how many CPUs a process may use, and whether code made for another machine may run on it."""

import itertools
import math
import os
import sys
from collections.abc import Iterable
from functools import cache

from onnxla.errors import ArtifactError

_CPUINFO = "/proc/cpuinfo"
_CACHES = "/sys/devices/system/cpu/cpu0/cache"
_CGROUPS, _CGROUP_FILES = "/proc/self/cgroup", "/sys/fs/cgroup"
_LLVM_NAMES = {
    "3dnowprefetch": "prfchw",
    "abm": "lzcnt",
    "bmi1": "bmi",
    "lahf_lm": "sahf",
    "lm": "64bit",
    "pclmulqdq": "pclmul",
    "pni": "sse3",
    "rdrand": "rdrnd",
    "sha_ni": "sha",
    "asimd": "neon",
    "fp": "fp-armv8",
}
"""Linux's names of CPU features where LLVM's are others by more than punctuation."""

_KIND = {"vendor_id", "cpu family", "model", "model name", "stepping", "flags"} | {
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
}
"""The lines of /proc/cpuinfo that are the same for every CPU of a kind."""


def check_machine(triple: str, features: Iterable[str]) -> None:
    """Raise ArtifactError unless code for `triple` that uses `features` may run in this process."""
    if _platform(triple) != _host():
        raise ArtifactError(f"compiled for {triple}, this is {'-'.join(_host())}; compile the model for this machine")
    needed = {name for name in features if _plain(name) not in _features_by_linux()}
    missing = sorted(needed - host_features()) if needed else []
    if missing:
        raise ArtifactError(
            f"compiled for a CPU with {', '.join(missing)}, which this one ({os.uname().machine}) lacks; "
            "compile the model on this machine, or with target_cpu set to an older CPU"
        )


@cache
def host_features() -> frozenset[str]:
    """The CPU features of this machine, by LLVM's names, as LLVM finds them."""
    import llvmlite.binding as llvm

    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)


@cache
def _features_by_linux() -> frozenset[str]:
    """Features that the kernel lists, by LLVM's names without punctuation. Asked first: LLVM takes 30 ms to load."""
    try:
        with open(_CPUINFO) as file:
            flags = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        return frozenset()
    names = flags.partition(":")[2].split()
    found = {_plain(_LLVM_NAMES.get(name, name)) for name in names}
    return frozenset(found | ({"crc32"} if "sse42" in found else set()))


@cache
def cpu_identity() -> str | None:
    """The kind of CPU and its caches, as the kernel tells them: equal text, equal code. None where it does not tell."""
    first = itertools.takewhile(str.strip, _lines(_CPUINFO))
    facts = [line for line in first if line.partition(":")[0].strip() in _KIND]
    sizes = [f"{name} {' '.join(_lines(f'{_CACHES}/{name}/size'))}" for name in _names(_CACHES)]
    return "\n".join([os.uname().machine, *facts, *sizes]) if facts else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace(".", "").replace("-", "")


@cache
def _host() -> tuple[str, str]:
    return _architecture(os.uname().machine), sys.platform


def _platform(triple: str) -> tuple[str, str]:
    """Architecture and system of a triple: `x86_64-unknown-linux-gnu` -> (`x86_64`, `linux`)."""
    architecture, *rest = triple.split("-")
    system = next((s for s in ("linux", "darwin", "windows") if any(part.startswith(s) for part in rest)), "")
    return _architecture(architecture), system


def _architecture(name: str) -> str:
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


@cache
def usable_cpus() -> int:
    """CPUs this process may use: its affinity, bounded by the quota of its control groups, at least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota(_CGROUPS, _CGROUP_FILES)
    return max(1, affinity if quota is None else min(affinity, math.ceil(quota)))


def cgroup_quota(membership: str | os.PathLike[str], root: str | os.PathLike[str]) -> float | None:
    """The smallest CPU quota on the way from this process's control groups to the root, in CPUs; None without one."""
    quotas = []
    for line in _lines(membership):
        _, controllers, path = line.split(":", 2)
        group = os.path.join(root, controllers)
        names = [name for name in path.split("/") if name]
        for depth in range(len(names) + 1):
            quotas += _quota_of(os.path.join(group, *names[:depth]))
    return min(quotas, default=None)


def _quota_of(folder: str) -> list[float]:
    """The quota that one control group sets: `cpu.max` (version 2) or the pair of `cpu.cfs_*` (version 1)."""
    words = " ".join(_lines(os.path.join(folder, "cpu.max"))).split() or [
        word for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us") for word in _lines(os.path.join(folder, name))
    ]
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return []
    return [int(words[0]) / int(words[1])]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _lines(path: str | os.PathLike[str]) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []
