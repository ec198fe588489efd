"""CUDA C++ to PTX and machine code with NVRTC. Needs no GPU and no driver."""

import json
import re
from dataclasses import dataclass
from typing import Any

from onnxla.errors import DeviceError, InternalError


@dataclass(frozen=True)
class CompiledKernel:
    """What NVRTC made of one source: PTX text, the machine code of one architecture, and the compiler's log."""

    ptx: str
    cubin: bytes
    log: str
    """Registers, shared memory and spills as ptxas reports them, and warnings."""

    def pack(self) -> bytes:
        """As bytes, for another process."""
        head = json.dumps([self.ptx, self.log]).encode()
        return len(head).to_bytes(8, "little") + head + self.cubin

    @staticmethod
    def unpack(data: bytes) -> "CompiledKernel":
        end = 8 + int.from_bytes(data[:8], "little")
        ptx, log = json.loads(data[8:end])
        return CompiledKernel(ptx, data[end:], log)


def supported_architectures() -> list[str]:
    """What NVRTC compiles for, such as `sm_80`. Raises DeviceError where it is missing."""
    nvrtc = _nvrtc()
    return [f"sm_{number}" for number in _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs())]


def require_architecture(architecture: str) -> None:
    """Raise DeviceError where NVRTC is missing, or does not compile for it."""
    known = supported_architectures()
    if re.sub(r"[a-z]$", "", architecture) not in known:
        names = ", ".join(known)
        raise DeviceError(f"NVRTC {nvrtc_version()} does not compile for {architecture}; it knows {names}")


def compile_cuda(source: str, architecture: str = "sm_80") -> CompiledKernel:
    """Compile for one architecture such as `sm_90`.

    Raises DeviceError where NVRTC is missing or does not know the architecture, and InternalError with
    NVRTC's log where it refuses the source.
    """
    nvrtc = _nvrtc()
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    try:
        options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"--ptxas-options=-v"]
        # the IR says which products and sums are fused; others must round twice
        options.append(b"--fmad=false")
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:
            raise DeviceError(f"NVRTC does not compile for {architecture}: {log}")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise InternalError(f"NVRTC refused a kernel ({status.name}):\n{log}\n{source}")
        ptx = _text(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        size = _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))
        cubin = b" " * size
        _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin))
        return CompiledKernel(ptx, cubin, log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def nvrtc_version() -> str:
    """Such as `13.0`. Raises DeviceError where NVRTC is missing."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return f"{major}.{minor}"


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise DeviceError(f"NVRTC is missing ({error}); install it with `pip install onnxla[cuda]`") from error
    return nvrtc


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    if result[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise InternalError(f"NVRTC failed: {result[0].name}")
    return result[1] if len(result) > 1 else None


def _text(nvrtc: Any, program: Any, size_of: Any, read: Any) -> str:
    buffer: bytes = b" " * _checked(nvrtc, size_of(program))
    _checked(nvrtc, read(program, buffer))
    return buffer.rstrip(b"\0 ").decode()
