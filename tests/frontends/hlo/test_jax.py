"""What JAX exports compiles to what XLA computes: text, bytecode, serialized functions, open sizes, XLA's own text."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# by default XLA's CPU client loses NaN in maximum and minimum
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_enable_fast_min_max=false")
jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import export  # noqa: E402

import onnxla  # noqa: E402
from onnxla.errors import InputError, ModelFormatError, ShapeError, UnsupportedOpError  # noqa: E402
from onnxla.hlo.types import Array  # noqa: E402
from tests.frontends.hlo.jax_programs import PROGRAMS, JaxProgram  # noqa: E402
from tests.frontends.hlo.make_programs import KEPT  # noqa: E402


def expected(program: JaxProgram) -> list[Array]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(program.function)(*program.arguments))]


def results_of(model: Any, arguments: Sequence[Array], **how: Any) -> list[Array]:
    compiled = onnxla.compile(model, options={"opt_level": 0}, **how)
    feeds = dict(zip((i.name for i in compiled.get_inputs()), arguments, strict=True))
    return list(compiled.run(None, feeds))


def require_same(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    for mine, their in zip(ours, theirs, strict=True):
        assert mine.dtype == their.dtype and mine.shape == their.shape
        if their.dtype.kind in "biu":
            assert np.array_equal(mine, their)
        else:
            wide = np.complex128 if their.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(mine.astype(wide), their.astype(wide), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in KEPT or n in ("attention", "adam_step")])
def test_an_exported_function_gives_what_xla_gives(name: str) -> None:
    """The others are kept as files, which `test_programs.py` compares with XLA's results."""
    program = PROGRAMS[name]
    exported = export.export(jax.jit(program.function))(*program.arguments)
    require_same(results_of(exported, program.arguments), expected(program))


FEW = (
    "conditional_and_switch",
    "scattering",
    "convolution_channels_last",
    "solve_triangular",
    "top_k",
    "sorting",
)


@pytest.mark.parametrize("name", FEW)
def test_text_without_names_and_the_generic_form_say_the_same(name: str) -> None:
    program = PROGRAMS[name]
    exported = export.export(jax.jit(program.function))(*program.arguments)
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(exported.mlir_module())
        texts = [module.operation.get_asm(print_generic_op_form=generic) for generic in (False, True)]
    for text in texts:
        compiled = onnxla.compile(text, options={"opt_level": 0})
        assert [i.name for i in compiled.get_inputs()] == [f"arg{k}" for k in range(len(program.arguments))]
        require_same(
            compiled.run(None, dict(zip((i.name for i in compiled.get_inputs()), program.arguments, strict=True))),
            expected(program),
        )


OF_XLA = "cholesky solve_triangular while_loop map_and_vmap scattering top_k attention".split()


@pytest.mark.parametrize("name", OF_XLA)
def test_xlas_text_before_and_after_its_passes_gives_what_xla_gives(name: str) -> None:
    program = PROGRAMS[name]
    lowered = jax.jit(program.function).lower(*program.arguments)
    for text in (lowered.as_text("hlo"), lowered.compile().as_text()):
        require_same(results_of(text, program.arguments), expected(program))


def affine(parameters: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ parameters["w"]) + parameters["b"]}


PARAMETERS: dict[str, Array] = {"w": np.ones((8, 3), np.float32) / 4, "b": np.arange(3, dtype=np.float32)}


def polymorphic() -> Any:
    (b,) = export.symbolic_shape("b")
    return export.export(jax.jit(affine))(PARAMETERS, jax.ShapeDtypeStruct((b, 8), "float32"))


def test_files_of_every_kind(tmp_path: Path) -> None:
    exported = polymorphic()
    (tmp_path / "f.mlir").write_text(exported.mlir_module())
    (tmp_path / "f.stablehlo").write_bytes(exported.mlir_module_serialized)
    (tmp_path / "f.bin").write_bytes(exported.serialize())
    x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)
    theirs = np.asarray(jax.jit(affine)(PARAMETERS, x)["y"])
    for name in ("f.mlir", "f.stablehlo", "f.bin"):
        compiled = onnxla.compile(tmp_path / name, dims={"b": 5}, options={"opt_level": 0})
        assert [i.name for i in compiled.get_inputs()] == ["parameters['b']", "parameters['w']", "x"]
        assert [o.name for o in compiled.get_outputs()] == ["result['y']"]
        require_same(
            compiled.run(None, {"x": x, "parameters['w']": PARAMETERS["w"], "parameters['b']": PARAMETERS["b"]}),
            [theirs],
        )


def test_open_sizes_are_settled_by_the_first_run_and_again_by_the_next() -> None:
    compiled = onnxla.compile(polymorphic(), options={"opt_level": 0})
    assert [str(i.shape) for i in compiled.get_inputs()] == ["[3]", "[8, 3]", "['b', 8]"]
    for rows in (1, 5):
        x = np.linspace(-1, 1, 8 * rows, dtype=np.float32).reshape(rows, 8)
        require_same([compiled(PARAMETERS["b"], PARAMETERS["w"], x)], [np.asarray(jax.jit(affine)(PARAMETERS, x)["y"])])


def test_parameters_become_weights() -> None:
    constants: dict[str, Array] = {f"parameters['{name}']": value for name, value in PARAMETERS.items()}
    compiled = onnxla.compile(polymorphic(), dims={"b": 4}, constants=constants, options={"opt_level": 0})
    assert [i.name for i in compiled.get_inputs()] == ["x"]
    x = np.ones((4, 8), np.float32)
    require_same([compiled(x)], [np.asarray(jax.jit(affine)(PARAMETERS, x)["y"])])


def test_sizes_that_the_function_does_not_take_are_refused() -> None:
    (b,) = export.symbolic_shape("b", constraints=["b >= 4"])
    exported = export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((b,), "float32"))
    with pytest.raises(ShapeError, match="the inputs have sizes that the program does not take"):
        onnxla.compile(exported, dims={"b": 3})
    with pytest.raises(InputError, match="the program has no input y"):
        onnxla.compile(exported, shapes={"y": (3,)})


def test_open_sizes_in_everything_that_has_shapes() -> None:
    b, c = export.symbolic_shape("b, c")

    def program(x: Any, y: Any) -> Any:
        size = x.shape[0]
        both = jnp.concatenate([x, x[::-1]])
        return (
            both.reshape(2 * size, -1),
            jnp.arange(size) + x.shape[1],
            jnp.pad(x, ((1, 0), (0, 2))),
            jax.lax.fori_loop(0, 3, lambda i, v: v + jnp.ones(size)[:, None] * x.shape[1], x),
            x[: size - 1].mean(0),
            jnp.broadcast_to(y, (size, 3)).sum(),
            jax.nn.softmax(x @ x.T),
        )

    arguments = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32), np.ones(3, np.float32)
    exported = export.export(jax.jit(program))(
        jax.ShapeDtypeStruct((b, c), "float32"), jax.ShapeDtypeStruct((3,), "float32")
    )
    theirs = [np.asarray(r) for r in jax.jit(program)(*arguments)]
    require_same(results_of(exported, arguments, dims={"b": 4, "c": 5}), theirs)


def test_every_operation_that_is_not_supported_is_named() -> None:
    exported = export.export(jax.jit(lambda x: (jnp.linalg.eig(x)[0], jax.scipy.linalg.hessenberg(x))))(
        np.eye(3, dtype=np.float32)
    )
    with pytest.raises(UnsupportedOpError) as caught:
        onnxla.compile(exported)
    named = {p.cause for p in caught.value.problems}
    assert any("lapack_sgeev_ffi (eigenvalues of matrices that need not be symmetric)" in cause for cause in named)
    assert any("lapack_sgehrd_ffi (Hessenberg's decomposition)" in cause for cause in named)
    assert all(dict(p.details)["at"].startswith("line ") for p in caught.value.problems)


def test_damaged_bytecode_is_refused(tmp_path: Path) -> None:
    data = polymorphic().mlir_module_serialized
    (tmp_path / "half.stablehlo").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelFormatError, match="half.stablehlo is MLIR bytecode; jaxlib cannot read it"):
        onnxla.compile(tmp_path / "half.stablehlo")
