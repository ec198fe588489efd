"""What HLO should compute: XLA's answer where jaxlib is installed, else the interpreter's."""

from collections.abc import Mapping, Sequence

import numpy as np

from onnxla.cli.models import Request
from onnxla.debugging.xla_witness import run_mlir, run_module, xla_version
from onnxla.frontends.hlo.syntax import Program
from onnxla.runtime.tensors import Array


def judge_of_hlo(wanted: Request, feeds: Mapping[str, Array], names: Sequence[str]) -> tuple[str, dict[str, Array]]:
    """Who judges, and the outputs by name.

    StableHLO goes to XLA as it was given; where sizes are open or values were fixed, and for HLO text, XLA gets the
    module that was imported. Raises InputError where XLA refuses it.
    """
    shapes = {name: array.shape for name, array in feeds.items()} if isinstance(wanted.hlo, Program) else {}
    imported = wanted.source().load(shapes, {}, {})
    arrays = [feeds[i.name] for i in imported.inputs]
    version = xla_version()
    if version is None:
        computed = imported.module.entry.evaluate(*arrays)
        results = [np.asarray(r) for r in (computed if isinstance(computed, tuple) else (computed,))]
        return "the interpreter", dict(zip(names, results, strict=True))
    if isinstance(wanted.hlo, Program) and not wanted.hlo.is_dynamic and not wanted.constants:
        results = run_mlir(wanted.hlo.text, arrays)
    else:
        results = run_module(imported.module, arrays)
    return f"XLA (jaxlib {version})", dict(zip(names, results, strict=True))
