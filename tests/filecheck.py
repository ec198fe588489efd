"""Text tests of passes: a program, what to run on it, and what must come out, in one file.

    // RUN: onnxla opt %s --passes merge-transposes
    ENTRY pair_cancels {
      // CHECK: ROOT %x = f32[2,3]{1,0} parameter(0)
      // CHECK-NOT: transpose
      ...
    }

`CHECK` is found after the match before it, `CHECK-NEXT` in the very next line, `CHECK-NOT` nowhere
between its neighbours, `CHECK-COUNT-3` three times in a row. `{{...}}` is a regular expression,
`[[X:...]]` one whose match is called X, `[[X]]` that match; other text stands for itself, spaces for
any spaces. `// -----` divides a file into programs; a part without RUN uses the RUN of the first.
`not` before the command expects an error, and checks its text.
"""

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from onnxla.cli.opt_command import run_passes
from onnxla.config import CompileOptions
from onnxla.errors import OnnxlaError
from onnxla.hlo.printer import print_module

_DIRECTIVE = re.compile(r"//\s*CHECK(?:-(NEXT|NOT|COUNT-(\d+)))?:\s*(.*?)\s*$")
_RUN = re.compile(r"//\s*RUN:\s*(.*?)\s*$", re.MULTILINE)
_DIVIDER = re.compile(r"^// -----[^\n]*\n", re.MULTILINE)
_ENTRY = re.compile(r"^ENTRY\s+%?([\w.\-]+)", re.MULTILINE)
_SPECIAL = re.compile(r"\{\{(.*?)\}\}|\[\[(\w+):(.*?)\]\]|\[\[(\w+)\]\]|(\s+)")


class CheckFailure(Exception):
    """A check does not hold; the message shows the check and the output."""


@dataclass(frozen=True)
class Check:
    kind: str
    pattern: str
    line: int


def checks_in(text: str) -> list[Check]:
    """The checks of a program, in order; `CHECK-COUNT-n` counts as n checks."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _DIRECTIVE.search(line):
            kind, count, pattern = match.groups()
            repeats = int(count) if count else 1
            found += [Check("" if count else kind or "", pattern, number)] * repeats
    return found


def check_output(output: str, checks: list[Check]) -> None:
    """Raise CheckFailure at the first check that `output` does not meet."""
    names: dict[str, str] = {}
    at = 0
    forbidden: list[Check] = []
    for check in checks:
        if check.kind == "NOT":
            forbidden.append(check)
            continue
        line_end = output.find("\n", at)
        start = at if check.kind != "NEXT" else line_end + 1 if line_end >= 0 else len(output)
        match = _regex(check.pattern, names).search(output, start)
        if match is None or (check.kind == "NEXT" and "\n" in output[start : match.start()]):
            raise CheckFailure(_explain(check, "not found", output, start))
        _check_absent(output, at, match.start(), forbidden, names)
        forbidden.clear()
        names.update(match.groupdict())
        at = match.end()
    _check_absent(output, at, len(output), forbidden, names)


def _check_absent(output: str, start: int, end: int, forbidden: list[Check], names: dict[str, str]) -> None:
    for check in forbidden:
        if match := _regex(check.pattern, names).search(output, start, end):
            raise CheckFailure(_explain(check, "found, but must not be there", output, match.start()))


def _regex(pattern: str, names: dict[str, str]) -> re.Pattern[str]:
    """The regular expression of a check, with what earlier checks named filled in."""
    parts, at = [], 0
    for special in _SPECIAL.finditer(pattern):
        parts.append(re.escape(pattern[at : special.start()]))
        expression, new, of_new, known, space = special.groups()
        if space:
            parts.append(r"[ \t]+")
        elif expression is not None:
            parts.append(f"(?:{expression})")
        elif new is not None:
            parts.append(f"(?P<{new}>{of_new})")
        else:
            parts.append(re.escape(names[known]) if known in names else f"(?P={known})")
        at = special.end()
    parts.append(re.escape(pattern[at:]))
    return re.compile("".join(parts))


def _explain(check: Check, what: str, output: str, at: int) -> str:
    line = output.count("\n", 0, at) + 1
    shown = "\n".join(f"{n:4d} {text}" for n, text in enumerate(output.splitlines(), start=1))
    kind = f"CHECK-{check.kind}" if check.kind else "CHECK"
    return f"line {check.line}: {kind}: {check.pattern}\n{what}, searched from line {line} of the output:\n{shown}"


def run_command(command: str, text: str) -> str:
    """What the command of a RUN line prints for the program `text`."""
    words = shlex.split(command)
    expects_error = words[:1] == ["not"]
    if words[expects_error : expects_error + 3] != ["onnxla", "opt", "%s"]:
        raise ValueError(f"a RUN line starts with 'onnxla opt %s', not {command!r}")
    try:
        output = _opt(text, words[expects_error + 3 :])
    except OnnxlaError as error:
        if expects_error:
            return f"{type(error).__name__}: {error}\n"
        raise
    if expects_error:
        raise CheckFailure(f"{command}: expected an error, got\n{output}")
    return output


def _opt(text: str, words: list[str]) -> str:
    """`onnxla opt`, in this process."""
    arguments = argparse.ArgumentParser("onnxla opt", exit_on_error=False)
    arguments.add_argument("--passes", default="")
    arguments.add_argument("--fast-math", action="store_true")
    given = arguments.parse_args(words)
    names = given.passes.split(",") if given.passes else []
    return print_module(run_passes(text, names, CompileOptions(fast_math=given.fast_math)))


class HloFile(pytest.File):
    """A `.hlo` file of programs with checks."""

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text()
        run = _RUN.search(text)
        if run is None:
            raise ValueError(f"{self.path}: no RUN line")
        for number, program in enumerate(_DIVIDER.split(text), start=1):
            own = _RUN.search(program)
            entry = _ENTRY.search(program)
            yield HloProgram.from_parent(
                self, name=entry[1] if entry else f"program_{number}", command=(own or run)[1], program=program
            )


class HloProgram(pytest.Item):
    """One program of such a file."""

    def __init__(self, *, command: str, program: str, **of_item: object) -> None:
        super().__init__(**of_item)  # type: ignore[arg-type]
        self.command = command
        self.program = program

    def runtest(self) -> None:
        checks = checks_in(self.program)
        if not checks:
            raise CheckFailure("the program has no CHECK")
        check_output(run_command(self.command, self.program), checks)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, (CheckFailure, OnnxlaError)):
            return f"{self.path.name}: {self.name}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}::{self.name}"


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> HloFile | None:
    """Collect `.hlo` files below `tests`."""
    return HloFile.from_parent(parent, path=file_path) if file_path.suffix == ".hlo" else None
