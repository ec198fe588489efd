"""Kernels of whole models in the simulator, some blocks of each, against the interpreter."""

import signal
from types import FrameType

import numpy as np

from onnxla.codegen.lowering import Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array
from tests.gpu.model_kernels import Compiled, ModelKernels
from tests.gpu.ptx_text import PtxKernel, UnsupportedPtx
from tests.gpu.running import reference, run_blocks, samples

RIGHT, CLEAN, TOO_LONG = "right", "clean", "too long"
"""What is said of kernels; all else is a complaint. Clean ones have no faults, but were not compared."""
PATTERN = 0xA5
"""In results before a kernel runs: what is still there was not written by the blocks that ran."""


class TooLong(BaseException):
    """Kernels have been simulated for longer than they may."""


def check_kernels(model: ModelKernels, count: int, seconds: float, known: Compiled, said: dict[str, str]) -> None:
    """Add to `said` what there is to say of each kernel, by digest, that it lacks: the first and the last of `count`
    blocks run, for at most so many seconds of processor time an instruction.

    Where an instruction takes several kernels, which read what others wrote, all of their blocks run; or some, and
    nothing is compared, where that takes too long.
    """
    for instruction, lowering in model.lowered:
        digests = [model.digests[symbol] for symbol in model.symbols_of(lowering)]
        if said.keys() >= set(digests):
            continue
        kernels = [known.ptx[digest] for digest in digests]
        several = len(kernels) > 1
        verdict = _verdict(instruction, lowering, kernels, None if several else count, seconds)
        if several and verdict == TOO_LONG:
            verdict = _verdict(instruction, lowering, kernels, count, seconds)
        for digest in digests:
            if digest not in said or verdict not in (RIGHT, CLEAN, TOO_LONG):
                said[digest] = verdict


def _verdict(
    instruction: Instruction, lowering: Lowering, kernels: list[PtxKernel], count: int | None, seconds: float
) -> str:
    """What `_checked` says, or that it takes longer than so many seconds of processor time."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        return _checked(instruction, lowering, kernels, count)
    except TooLong:
        return TOO_LONG
    except UnsupportedPtx as error:
        return f"not simulated: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _checked(instruction: Instruction, lowering: Lowering, kernels: list[PtxKernel], count: int | None) -> str:
    """Of so many blocks, or all, of the kernels of an instruction, on random numbers."""
    arrays = samples(instruction)
    results, reports = run_blocks(lowering, instruction, arrays, kernels, count, PATTERN)
    if reports:
        return f"faults {dict(list(reports.items())[:2])}"
    if len(kernels) > 1 and count is not None:
        return CLEAN
    copied = {leaf: arrays[operand] for operand, leaf in lowering.copies}
    for leaf, (ours, theirs) in enumerate(zip(results, reference(instruction, arrays), strict=True)):
        wrong = _difference(ours, theirs, copied.get(leaf))
        if wrong:
            return wrong
    return RIGHT


def _difference(ours: Array, theirs: Array, before: Array | None) -> str:
    """How many of the values are wrong that kernels wrote, over what was there before; empty where none is."""
    if before is None:
        before = np.full(ours.nbytes, PATTERN, np.uint8).view(ours.dtype)
    bits = f"u{ours.dtype.itemsize}"
    written = ours.reshape(-1).view(bits) != np.ascontiguousarray(before).reshape(-1).view(bits)
    if not written.any():
        # what is the same as before may be what was asked for
        return "nothing was written" if ours.size and not np.array_equal(ours, theirs) else ""
    ours, theirs = ours.reshape(-1)[written], theirs.reshape(-1)[written]
    if ours.dtype.kind not in "fV":
        # quantised values may be rounded to either side
        wrong = np.abs(ours.astype("f8") - theirs.astype("f8")) > (1 if ours.dtype.itemsize == 1 else 0)
    else:
        tolerance = 2e-2 if ours.dtype.itemsize == 2 else 2e-3
        scale = np.abs(theirs[np.isfinite(theirs)].astype("f8")).max(initial=1e-3)
        wrong = ~np.isclose(ours.astype("f8"), theirs.astype("f8"), tolerance, tolerance * scale, equal_nan=True)
    return f"{wrong.sum()} of {written.sum()} values are wrong" if wrong.any() else ""
