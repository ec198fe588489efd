"""CUDA C++ to PTX and machine code: here or in workers, the same bytes; how kernels are shared out over modules."""

import pytest

from onnxla.codegen.gpu.backend import _modules
from onnxla.codegen.gpu.compile_nvrtc import CompiledKernel, compile_cuda
from onnxla.codegen.gpu.compile_parallel import compile_sources
from onnxla.errors import DeviceError, InternalError


def source(k: int) -> str:
    return f'extern "C" __global__ void f{k}(float* x) {{ x[threadIdx.x] *= {k}.0f; }}\n'


def test_workers_give_the_same_code_in_the_same_order() -> None:
    jobs = [(source(k), architecture) for k in range(3) for architecture in ("sm_80", "sm_90")]
    alone = compile_sources(jobs, processes=1)
    assert [c.ptx for c in alone] == [compile_cuda(*job).ptx for job in jobs]
    together = compile_sources(jobs, processes=3)
    assert [(c.ptx, c.cubin) for c in together] == [(c.ptx, c.cubin) for c in alone]


def test_code_is_the_same_after_a_pipe() -> None:
    code = CompiledKernel("ptx\n", b"\0\1\2", "log: \u00b5s")
    assert CompiledKernel.unpack(code.pack()) == code


def test_bad_text_in_a_worker_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="(?s)a compile worker failed.*NVRTC refused"):
        compile_sources([(source(1) + " " * 100, "sm_80"), ("nonsense", "sm_80")], processes=2)


def test_an_architecture_that_nvrtc_does_not_know_is_named() -> None:
    with pytest.raises(DeviceError, match=r"does not compile for sm_60; it knows sm_75"):
        compile_sources([(source(1), "sm_80"), (source(1), "sm_60")], processes=2)


def test_modules_hold_kernels_in_order_up_to_a_size() -> None:
    assert _modules({}) == []
    assert _modules({"a": "x" * 40_000, "b": "x" * 9_000, "c": "x" * 9_000, "d": "x" * 90_000}) == [
        ["a", "b"],
        ["c"],
        ["d"],
    ]
