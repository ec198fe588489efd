"""What the texts of the command line mean, and what is said to those that mean nothing."""

import numpy as np
import pytest

from onnxla.cli.arguments import parse_constants, parse_dims, parse_options, parse_shapes
from onnxla.errors import InputError


def test_shapes_dimensions_and_constants() -> None:
    assert parse_shapes(["image=1x3x8x8", "scalar="]) == {"image": (1, 3, 8, 8), "scalar": ()}
    assert parse_dims(["batch=8", "length=16,32"]) == {"batch": 8, "length": [16, 32]}
    constants = parse_constants(["k=5", "axes=[0,-1]"], {"k": np.dtype("int64"), "axes": np.dtype("int64")})
    assert constants["k"].dtype == np.int64 and constants["k"].shape == ()
    assert constants["axes"].tolist() == [0, -1]


def test_options_are_knobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLA_OPT_LEVEL", "1")
    options = parse_options(["fast_math=yes", "disabled_passes=a,b"], dump_to="dump")
    assert (options.fast_math, options.disabled_passes, options.dump_to, options.opt_level) == (
        True,
        ("a", "b"),
        "dump",
        1,
    )


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_shapes, "image", "--shape image: write it as image=1x3x224x224"),
        (parse_shapes, "=1x2", "--shape =1x2: write it as image=1x3x224x224"),
        (parse_shapes, "x=1x-2", "a size of '1x-2' is negative"),
        (parse_shapes, "x=1,2", "'1,2' is not a list of sizes with 'x' between them"),
        (parse_dims, "batch=", "--dim batch=: a size is missing"),
        (parse_dims, "batch=two", "'two' is not a list of sizes"),
        (parse_options, "speed=9", "--option speed: no such knob; there are fast_math"),
        (parse_options, "fast_math=maybe", "'maybe' is neither true nor false"),
        (parse_options, "opt_level=9", "choose 0, 1, 2 or 3"),
    ],
)
def test_texts_that_mean_nothing(parse: object, text: str, message: str) -> None:
    assert callable(parse)
    with pytest.raises(InputError) as raised:
        parse([text])
    assert message in str(raised.value)


def test_a_name_twice_is_an_error() -> None:
    with pytest.raises(InputError, match="--dim is given twice for batch"):
        parse_dims(["batch=1", "batch=2"])


def test_a_constant_that_is_neither_file_nor_json() -> None:
    with pytest.raises(InputError, match="--constant k=five: neither a .npy or .pb file nor JSON"):
        parse_constants(["k=five"], {})
