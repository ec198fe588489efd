"""Commands take groups of arguments; typer sees single ones, in the same order."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from onnxla.cli.argument_groups import Compilation, Cut, flat

Size = Annotated[int, typer.Option("--size")]
Colour = Annotated[str, typer.Option("--colour")]
First = Annotated[str, typer.Argument()]
Last = Annotated[bool, typer.Option("--last")]


@dataclass(frozen=True)
class Inner:
    size: Size = 3


@dataclass(frozen=True)
class Outer:
    colour: Colour = "red"
    inner: Inner = Inner()


def show(
    first: Annotated[str, typer.Argument()], *, outer: Outer, last: Annotated[bool, typer.Option("--last")]
) -> None:
    """Show what is given."""
    print(first, outer, last)


def test_groups_in_groups_become_single_parameters_in_their_place() -> None:
    signature = inspect.signature(flat(show))
    assert list(signature.parameters) == ["first", "colour", "size", "last"]
    assert (
        signature.parameters["colour"].default == "red"
        and signature.parameters["last"].default is inspect.Parameter.empty
    )
    assert flat(show).__doc__ == "Show what is given."


def test_a_command_gets_its_groups_from_single_arguments() -> None:
    app = typer.Typer()
    app.command()(flat(show))
    run = CliRunner().invoke(app, ["it", "--size", "5", "--last"])
    assert run.output == "it Outer(colour='red', inner=Inner(size=5)) True\n"


def test_the_groups_of_the_commands_have_distinct_names() -> None:
    def command(*, how: Compilation, cut: Cut) -> None: ...

    names = list(inspect.signature(flat(command)).parameters)
    assert names == [
        *("target", "device", "precision", "keep_f32", "shape", "dim", "constant", "option"),
        *("signature", "inputs", "outputs"),
    ]
