"""What compiling did: sizes and the time of each stage."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class PassReport:
    """What one pass over the program did."""

    name: str
    seconds: float
    memory_bytes: int
    """By how much it raised the most memory that the process has had at once."""
    changed: bool
    instructions: int
    """In all computations, after the pass."""


@dataclass(frozen=True)
class CompileReport:
    """Numbers of one program. `seconds` maps each stage to its time, in the order they ran."""

    nodes: int
    """Operators of the model."""
    instructions: int
    """HLO instructions of the entry after the passes."""
    kernels: int
    """Different kernels that were compiled."""
    steps: int
    """Steps of the plan: kernel calls, copies, loops and branches."""
    arena_bytes: int
    intermediate_bytes: int
    """What all intermediate values would take without sharing memory."""
    weights_bytes: int
    code_bytes: int
    seconds: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False
    memory_bytes: dict[str, int] = field(default_factory=dict)
    """By how much each stage raised the most memory that the process has had at once."""
    peak_memory_bytes: int = 0
    """The most memory that the process has had at once; processes that it started have theirs beside it."""
    passes: tuple[PassReport, ...] = ()
    """In the order they ran; empty for code from the cache."""

    choices: int = 0
    """Kernels for which there were several ways to compute them."""
    measured: int = 0
    """Those whose ways were measured on this machine."""
    changed: int = 0
    """Those that are computed in another way than the model of costs would have chosen."""
    is_final: bool = True
    """Whether tuning had the time to measure all that matters; compiling again goes on with it."""

    @property
    def total_seconds(self) -> float:
        return sum(self.seconds.values())

    @property
    def tuning(self) -> str:
        """What tuning did, in a line."""
        more = "" if self.is_final else "; the time was over: compiling again goes on"
        return f"{self.measured} of {self.choices} choices measured, {self.changed} changed{more}"

    def __str__(self) -> str:
        stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in self.seconds.items())
        return "\n".join(
            [
                f"{self.nodes} nodes -> {self.instructions} instructions -> {self.steps} steps, {self.kernels} kernels",
                f"arena {_size(self.arena_bytes)} (all intermediates {_size(self.intermediate_bytes)}), "
                f"weights {_size(self.weights_bytes)}, code {_size(self.code_bytes)}",
                f"{self.total_seconds:.2f} s: {stages}" + (" (from the cache)" if self.from_cache else ""),
                *([self.tuning] if self.measured else []),
            ]
        )


def _size(count: int) -> str:
    return f"{count / (1 << 20):.1f} MB" if count >= 1 << 20 else f"{count / 1024:.1f} KB"
