"""The exception tree, and how a node of the user's model is named in a message.

OnnxlaError
├── ModelFormatError      the bytes are not a model we can read
├── CompileError          one report that lists every problem found in a model
│   ├── UnsupportedOpError    an operator, version or attribute without an import rule
│   ├── ShapeError            shapes or dtypes do not fit together, or are not known
│   │   └── UnboundDimensionsError    symbolic dimensions of the inputs have no size yet
│   └── DynamicShapeError     a shape depends on data
├── HloError              an HLO module breaks a rule of the language (text, types, structure)
├── ArtifactError         a compiled file is corrupt, foreign, or for another machine
│   └── FileError             a file cannot be read or written at all
├── InputError            run() was given the wrong arrays
├── ResourceLimitError    a documented limit was met (folding budget, elements, nesting, bytes)
├── DeviceError           a device, driver or compiler for it is missing
├── ServiceError          a server of onnxla cannot be reached, or fails
└── InternalError         a fault of onnxla itself: a pass or a kernel broke an invariant
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

# Control characters but newline and tab, and those that reverse or hide text.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def harmless(text: str) -> str:
    """`text` without characters that a terminal would act on: they are written as `\\x1b`."""
    return _UNSAFE.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


def harmless_line(text: str) -> str:
    """The same in one line."""
    return harmless(text.replace("\n", "\\n").replace("\t", "\\t"))


@dataclass(frozen=True)
class SourceNode:
    """The node of the user's model that an instruction comes from; kept through every pass."""

    name: str
    """The node's own name, or a path made from its output where it has none."""
    op_type: str
    """`Conv`, `com.microsoft.FusedMatMul`, ..."""
    index: int = -1
    """Position in the graph it stands in; -1 where it has none."""
    opset: int = 0

    def __str__(self) -> str:
        opset = f", opset {self.opset}" if self.opset else ""
        place = f", node {self.index}" if self.index >= 0 else ""
        return harmless_line(f"{self.name} ({self.op_type}{opset}){place}")


class OnnxlaError(Exception):
    """The base of every error that onnxla raises on purpose. Names in its text come from models: they are harmless."""

    def __str__(self) -> str:
        return harmless(super().__str__())


class ModelFormatError(OnnxlaError):
    """The bytes given as a model, graph or HLO text cannot be read as one."""


@dataclass(frozen=True)
class Problem:
    """One finding about a model: the node, the cause and the way out."""

    kind: type["CompileError"]
    cause: str
    node: SourceNode | None = None
    details: tuple[tuple[str, str], ...] = field(default=())
    """Further labelled lines: `("input", "x f32[1,64,56,56]")`, `("chain", ...)`."""
    hint: str = ""
    needs_constants: tuple[str, ...] = ()
    """Graph inputs whose values would solve this problem, were they known while compiling."""

    def __str__(self) -> str:
        rows = [("node", str(self.node))] if self.node else []
        # a name with a line break in it must not begin a line of the report
        rows += [(label, text.replace("\n", "\\n")) for label, text in self.details]
        rows += [("hint", self.hint)] if self.hint else []
        return "\n".join([self.cause, *(f"  {label:<6} {text}" for label, text in rows)])


class CompileError(OnnxlaError):
    """A model cannot be compiled; `problems` lists every reason found, not only the first."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = [Problem(type(self), problems)]
        self.problems: tuple[Problem, ...] = tuple(problems)
        head = "" if len(self.problems) == 1 else f"{len(self.problems)} problems\n"
        super().__init__(head + "\n".join(str(p) for p in self.problems))

    @property
    def needs_constants(self) -> tuple[str, ...]:
        """Graph inputs whose values would solve every problem; empty when a problem would remain."""
        if not all(p.needs_constants for p in self.problems):
            return ()
        return tuple(dict.fromkeys(name for p in self.problems for name in p.needs_constants))


class UnsupportedOpError(CompileError):
    """An operator, an opset of it, or one of its attribute values has no import rule."""


class ShapeError(CompileError):
    """Shapes or element types do not fit together, or a dimension is not known."""


class UnboundDimensionsError(ShapeError):
    """Inputs have symbolic dimensions without a size; sizes at compile time or at the first run solve it."""


class DynamicShapeError(CompileError):
    """The shape of a value depends on data that is only known at run time."""


class HloError(OnnxlaError):
    """An HLO instruction, computation or text breaks a rule of the language."""


class ArtifactError(OnnxlaError):
    """A compiled file is corrupt, of another format version, or made for another machine."""


class FileError(ArtifactError):
    """A file cannot be read or written, whatever is in it: a matter of paths, permissions or room."""


class InputError(OnnxlaError):
    """Arrays given to a compiled model have the wrong names, shapes, dtypes or memory."""


class ResourceLimitError(OnnxlaError):
    """A documented, adjustable limit was met."""


class DeviceError(OnnxlaError):
    """A device, its driver or its compiler is missing or unfit."""


class ServiceError(OnnxlaError):
    """A server that was to compile cannot be reached, fails, or answers what nobody understands."""


class InternalError(OnnxlaError):
    """onnxla broke one of its own invariants; the message names the pass or kernel."""


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise one error for all `problems`: their common kind, or CompileError for a mixture."""
    if problems:
        kinds = {p.kind for p in problems}
        raise (kinds.pop() if len(kinds) == 1 else CompileError)(problems)
