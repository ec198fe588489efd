"""Who broke a value: what the search says, and what it says it by."""

from dataclasses import dataclass
from enum import Enum

from onnxla.debugging.comparison import Comparison


class Blame(Enum):
    """What a difference comes from."""

    IMPORT = "import"
    """The rule of the frontend: HLO as imported gives another value than onnxruntime."""
    PASS = "pass"
    """HLO gives another value after this pass than before it."""
    KERNEL = "kernel"
    """The compiled kernel gives another value than its instruction does, on the same operands."""
    PLAN = "plan"
    """Every kernel is right by itself: memory, order, or the program around them."""
    CODEGEN = "code generation"
    """Making code for it ends in an error."""
    UNKNOWN = "unknown"
    """What is left is too large to be evaluated in the time."""
    ROUNDING = "rounding"
    """No step alone moves the value beyond the tolerance."""
    WITNESS = "onnxruntime"
    """ONNX's reference implementation sides with onnxla."""


@dataclass(frozen=True)
class Culprit:
    """The one who broke a value."""

    blame: Blame
    name: str = ""
    """Of the pass, the kernel or the operator."""
    instruction: str = ""
    """HLO of what went wrong, where it is one instruction."""
    details: tuple[str, ...] = ()
    """Further findings, a sentence each."""
    comparison: Comparison | None = None
    """The value before against the value after."""

    @property
    def is_ours(self) -> bool:
        return self.blame not in (Blame.ROUNDING, Blame.WITNESS)

    def __str__(self) -> str:
        match self.blame:
            case Blame.IMPORT:
                return f"import of {self.name}"
            case Blame.PASS:
                return f"the pass {self.name}"
            case Blame.KERNEL:
                return f"the kernel {self.name}"
            case Blame.PLAN:
                return "the plan: memory, or the order of steps"
            case Blame.CODEGEN:
                return f"code generation: {self.name}"
            case Blame.UNKNOWN:
                return "nobody knows: what is left is too large for the time; --seconds gives more"
            case Blame.ROUNDING:
                return "rounding, which adds up"
            case Blame.WITNESS:
                return "onnxruntime: ONNX's reference implementation gives what onnxla gives"
