"""Kept programs of JAX run as XLA ran them, without JAX. `make_programs.py` makes them."""

from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.hlo.types import Array

FOLDER = Path(__file__).parent / "programs"
FILES = sorted(p.name for p in FOLDER.iterdir() if p.suffix in (".mlir", ".txt"))


def arrays(name: str) -> tuple[list[Array], list[Array]]:
    """Inputs and outputs of a function, in order."""
    with np.load(FOLDER / f"{name.partition('.')[0]}.npz") as found:
        inputs, outputs = (
            [found[f"{kind}_{k}"] for k in range(sum(f.startswith(kind) for f in found.files))]
            for kind in ("input", "output")
        )
    return inputs, outputs


@pytest.mark.parametrize("name", FILES)
def test_a_kept_program_gives_what_xla_gave(name: str) -> None:
    inputs, outputs = arrays(name)
    compiled = onnxla.compile(FOLDER / name, options={"opt_level": 0})
    feeds = {
        tensor.name: array.astype(tensor.dtype) for tensor, array in zip(compiled.get_inputs(), inputs, strict=True)
    }
    for ours, theirs in zip(compiled.run(None, feeds), outputs, strict=True):
        if theirs.dtype.kind in "biu":
            assert np.array_equal(ours, theirs)
        else:
            wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=2e-5, atol=2e-6)
