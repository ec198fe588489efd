"""LLVM IR text to object code: parse, verify, optimise, emit.

Kernels arrive as explicit vector code, so LLVM's loop and SLP vectorisers are off, and it does not unroll: a schedule
has chosen already. On the networks measured the passes of -O1 then find all that those of -O2 find, in less time;
without any passes some kernels run a third slower, because nothing leaves their loops.

Objects are position independent, so our linker may put them anywhere and another may make a library of them.
"""

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from onnxla.codegen.cpu.target import Target
from onnxla.errors import DeviceError, InternalError

LAUNCH_LEVEL = -1
"""For code that only stores pointers and calls, such as the plan's function: no passes, the quickest code generator."""
_PASSES = {LAUNCH_LEVEL: 0, 0: 0, 1: 1, 2: 1, 3: 3}
"""LLVM's list of passes for each of our levels."""
_GENERATOR = {LAUNCH_LEVEL: 0, 0: 1, 1: 1, 2: 2, 3: 3}
"""LLVM's code generator. Kernels never take its level 0: for a choice between two floats in memory it reads 16 bytes
with AVX, past the end of what is there."""


def compile_module(text: str, target: Target, opt_level: int = 2) -> bytes:
    """The object code of one LLVM module. Raises InternalError with LLVM's message where the text is not valid."""
    machine = target_machine(target, opt_level)
    object_code: bytes = machine.emit_object(optimised(text, target, opt_level))
    return object_code


def assembly(text: str, target: Target, opt_level: int = 2) -> str:
    """The assembly of one LLVM module after optimisation, for dumps."""
    return str(target_machine(target, opt_level).emit_assembly(optimised(text, target, opt_level)))


@cache
def target_machine(target: Target, opt_level: int) -> Any:
    """LLVM's code generator for `target`. Raises DeviceError when LLVM does not know it."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    features = ",".join(f"+{f}" for f in target.features)
    try:
        return llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu,
            features=features,
            opt=_GENERATOR[opt_level],
            reloc="pic",
            codemodel="small",
            abiname=target.abi,
        )
    except RuntimeError as error:
        raise DeviceError(f"LLVM cannot make code for {target.name}: {error}") from error


def optimised(text: str, target: Target, opt_level: int) -> Any:
    """The verified and optimised module."""
    machine = target_machine(target, opt_level)
    try:
        module = llvm.parse_assembly(text)
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"the generated LLVM IR is not valid: {error}") from error
    tuning = llvm.create_pipeline_tuning_options(speed_level=_PASSES[opt_level])
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_interleaving = False
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module
