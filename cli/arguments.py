"""Arguments that several commands take, and what their text means."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import typer

from onnxla.config import CompileOptions
from onnxla.errors import InputError

Model: TypeAlias = Annotated[
    Path,
    typer.Argument(help="An ONNX model, a SavedModel's folder, a GraphDef, HLO text, or a compiled .onnxla file."),
]
OnnxModel: TypeAlias = Annotated[Path, typer.Argument(help="An ONNX model.")]
UncompiledModel: TypeAlias = Annotated[
    Path, typer.Argument(help="An ONNX model, a SavedModel's folder, or a GraphDef (.pb, .pbtxt).")
]
Signature: TypeAlias = Annotated[
    str | None, typer.Option("--signature", metavar="NAME", help="The signature of a SavedModel that is meant.")
]
From: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="NAME", help="A value where a GraphDef begins; by default its placeholders."),
]
To: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="NAME", help="A value where a GraphDef ends; by default those that nobody reads."),
]
ShapeTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="INPUT=1x3x8x8", help="Shape of an input: `image=1x3x224x224`. May be repeated."),
]
DimTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dim", metavar="NAME=SIZE", help="Size of a symbolic dimension: `batch=8`; `batch=1,8` makes code for both."
    ),
]
ConstantTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--constant",
        metavar="INPUT=VALUE",
        help="Value of an input that the code is made for: `k=5`, `axes=[0,1]`, `x=file.npy`.",
    ),
]
OptionTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-O", metavar="KNOB=VALUE", help="A knob of the compiler: `fast_math=true`, `target_cpu=x86-64-v3`."
    ),
]
DumpTo: TypeAlias = Annotated[
    str | None,
    typer.Option("--dump-to", metavar="FOLDER", help="Folder that receives every stage of the compiler as text."),
]
Inputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE",
        help="Inputs: `file.npz`, `name=file.npy`, `name=file.pb`, or a folder of `input_0.pb`, ... What is not given "
        "is random.",
    ),
]


def sensible(value: float | None) -> float | None:
    """A number of an option that is no NaN and not below 0."""
    if value is not None and not 0 <= value < math.inf:
        raise typer.BadParameter(f"{value} is no number from 0 on")
    return value


Seed: TypeAlias = Annotated[int, typer.Option("--seed", min=0, help="Seed of random inputs.")]
Threads: TypeAlias = Annotated[
    int | None, typer.Option("--threads", "-t", min=1, help="Most threads to use; by default all that there are.")
]
Rtol: TypeAlias = Annotated[
    float | None, typer.Option("--rtol", callback=sensible, help="Relative tolerance in place of the type's own.")
]
Atol: TypeAlias = Annotated[
    float | None, typer.Option("--atol", callback=sensible, help="Absolute tolerance in place of the type's own.")
]
Target: TypeAlias = Annotated[str, typer.Option("--target", help="What to make code for: cpu or gpu.")]
Device: TypeAlias = Annotated[
    str | None, typer.Option("--device", metavar="NAME", help="Where to run: cpu, cuda, or cuda:1 for the second GPU.")
]
Architectures: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--arch",
        metavar="sm_80,sm_90",
        help="GPUs to make machine code for with --target gpu; later ones compile the PTX of the lowest.",
    ),
]
Precision: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="What factors of f32 products are rounded to on a GPU, sums staying f32: fp16, bf16, tf32, or fp32.",
    ),
]
KeepF32: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-f32", metavar="NODE", help="A node whose products --precision leaves in f32. May be repeated."
    ),
]
Fallback: TypeAlias = Annotated[
    str | None,
    typer.Option("--fallback", metavar="RUNTIME", help="Where nodes run that cannot be compiled: onnxruntime."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def parse_shapes(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """`image=1x3x224x224` -> {"image": (1, 3, 224, 224)}; `x=` is a scalar. Raises InputError."""
    return {name: _sizes(text, "x", "--shape") for name, text in _pairs(texts, "--shape", "image=1x3x224x224")}


def parse_dims(texts: Sequence[str] | None) -> dict[str, int | list[int]]:
    """`batch=8` -> {"batch": 8}, `batch=1,8` -> {"batch": [1, 8]}. Raises InputError."""
    dims: dict[str, int | list[int]] = {}
    for name, text in _pairs(texts, "--dim", "batch=8"):
        sizes = list(dict.fromkeys(_sizes(text, ",", "--dim")))
        if not sizes:
            raise InputError(f"--dim {name}=: a size is missing")
        dims[name] = sizes[0] if len(sizes) == 1 else sizes
    return dims


def parse_constants(texts: Sequence[str] | None, dtypes: dict[str, np.dtype[Any] | None]) -> dict[str, Any]:
    """Arrays by name, from files or from JSON, which gets the dtype that the model declares. Raises InputError."""
    from onnxla.cli.feeds import read_array

    constants: dict[str, Any] = {}
    for name, text in _pairs(texts, "--constant", "k=5"):
        if Path(text).suffix in (".npy", ".pb"):
            constants[name] = read_array(Path(text))
            continue
        try:
            constants[name] = np.asarray(json.loads(text), dtypes.get(name))
        except (ValueError, TypeError) as error:
            raise InputError(f"--constant {name}={text}: neither a .npy or .pb file nor JSON: {error}") from error
    return constants


def parse_options(
    texts: Sequence[str] | None, dump_to: str | None = None, named: Mapping[str, Any] | None = None
) -> CompileOptions:
    """`fast_math=true` and so on, over the environment, over the defaults. `named` are knobs with options of their own,
    None where they are not given. Raises InputError, also for a knob that is given both ways."""
    knobs = {knob.name: knob for knob in fields(CompileOptions)}
    given: dict[str, Any] = {}
    for name, text in _pairs(texts, "--option", "fast_math=true"):
        if name not in knobs:
            raise InputError(f"--option {name}: no such knob; there are {', '.join(knobs)}")
        try:
            given[name] = knobs[name].metadata["read"](text)
        except ValueError as error:
            raise InputError(f"--option {name}={text}: {error}") from error
    if dump_to is not None:
        given["dump_to"] = dump_to
    for name, value in (named or {}).items():
        if value is None:
            continue
        if name in given:
            raise InputError(f"--option {name} is given by an option of its own as well")
        given[name] = value
    return CompileOptions.from_environment(**given)


def _pairs(texts: Sequence[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    """`name=value`, parted at the first `=`. Raises InputError, also for a name twice."""
    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {text}: write it as {example}")
        pairs.append((name, value))
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{option} is given twice for {', '.join(twice)}")
    return pairs


def _sizes(text: str, separator: str, option: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for part in text.split(separator)) if text else ()
    except ValueError:
        raise InputError(f"{option}: {text!r} is not a list of sizes with {separator!r} between them") from None
    if any(n < 0 for n in sizes):
        raise InputError(f"{option}: a size of {text!r} is negative")
    return sizes
