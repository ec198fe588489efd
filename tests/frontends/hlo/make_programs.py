"""Makes `programs/`: exported functions of JAX as text with XLA's results, small enough to keep. Needs JAX.

    python -m tests.frontends.hlo.make_programs

The text is without debug information; `.txt` files are XLA's own HLO of the same function.
"""

from pathlib import Path

import jax
import numpy as np
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

from tests.frontends.hlo.jax_programs import PROGRAMS

FOLDER = Path(__file__).parent / "programs"

KEPT = (
    "softmax_and_relatives batch_norm attention convolution_channels_last convolution_grouped_and_dilated pooling "
    "gradient_of_a_max_pool einsum product_of_bfloat16 scan while_loop conditional_and_switch map_and_vmap sorting "
    "top_k argmax_and_argmin gathering scattering dynamic_slices movement complex_numbers fourier_transforms cholesky "
    "solve_triangular lu_and_what_stands_on_it qr_decompositions symmetric_eigenvalues singular_value_decompositions "
    "gradient_of_a_network adam_step"
).split()
IN_GENERIC_FORM = ("scan", "scattering", "convolution_channels_last", "attention", "sorting", "cholesky", "pooling")
OF_XLA = ("softmax_and_relatives", "scan", "gradient_of_a_network", "sorting", "top_k")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in KEPT:
        program = PROGRAMS[name]
        function = jax.jit(program.function)
        exported = export.export(function)(*program.arguments)
        with mlir.make_ir_context() as context:
            context.allow_unregistered_dialects = True
            operation = ir.Module.parse(exported.mlir_module()).operation
            (FOLDER / f"{name}.mlir").write_text(operation.get_asm())
            if name in IN_GENERIC_FORM:
                (FOLDER / f"{name}.generic.mlir").write_text(operation.get_asm(print_generic_op_form=True))
        if name in OF_XLA:
            (FOLDER / f"{name}.txt").write_text(function.lower(*program.arguments).as_text("hlo"))
        arrays = {f"input_{k}": a for k, a in enumerate(program.arguments)}
        arrays |= {f"output_{k}": np.asarray(r) for k, r in enumerate(jax.tree.leaves(function(*program.arguments)))}
        kept = {
            key: a.astype(np.float32) if a.dtype.kind == "V" or a.dtype.name == "bfloat16" else a
            for key, a in arrays.items()
        }
        np.savez_compressed(FOLDER / f"{name}.npz", **kept)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
