"""Compiled models on 64-bit Arm: as a C library in a program that an emulator runs.

Needs a cross compiler and qemu's user mode (Debian: gcc-aarch64-linux-gnu, qemu-user).
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from onnxla.ahead.library import write_library
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.tensors import Array

TARGET = "generic-aarch64"
_COMPILER, _EMULATOR, _SYSTEM = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
static const size_t in_bytes[] = {%(in_bytes)s};
static const size_t out_bytes[] = {%(out_bytes)s};
int main(void) {
  const void *inputs[%(inputs)d + 1];
  void *outputs[%(outputs)d + 1];
  FILE *file = fopen("in.bin", "rb");
  for (int k = 0; k < %(inputs)d; k++) {
    void *array = malloc(in_bytes[k] + 1);
    if (fread(array, 1, in_bytes[k], file) != in_bytes[k]) return 2;
    inputs[k] = array;
  }
  for (int k = 0; k < %(outputs)d; k++) outputs[k] = malloc(out_bytes[k] + 1);
  if (model_run(inputs, outputs, 2)) return 3;
  file = fopen("out.bin", "wb");
  for (int k = 0; k < %(outputs)d; k++) fwrite(outputs[k], 1, out_bytes[k], file);
  return fclose(file);
}
"""


def is_possible() -> bool:
    return all(shutil.which(tool) for tool in (_COMPILER, _EMULATOR)) and Path(_SYSTEM).exists()


def run_on_arm64(model: CompiledModel, arguments: Sequence[Array]) -> list[Array]:
    """The results of a model that was compiled for `TARGET`; `arguments` in the order of its inputs."""
    (program,) = model.programs
    sizes = {
        "in_bytes": ", ".join(str(s.bytes) for s in program.inputs) or "0",
        "out_bytes": ", ".join(str(s.bytes) for s in program.outputs),
        "inputs": len(program.inputs),
        "outputs": len(program.outputs),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_library(model, folder, "model")
        (folder / "main.c").write_text(_MAIN % sizes)
        (folder / "in.bin").write_bytes(b"".join(np.ascontiguousarray(a).tobytes() for a in arguments))
        command = [_COMPILER, "-O1", "main.c", "libmodel.a", "-lm", "-lpthread", "-o", "main"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        subprocess.run([_EMULATOR, "-L", _SYSTEM, "./main"], cwd=folder, check=True, capture_output=True)
        data = (folder / "out.bin").read_bytes()
    results, at = [], 0
    for signature in program.outputs:
        flat = np.frombuffer(data[at : at + signature.bytes], signature.dtype)
        results.append(flat.reshape(signature.shape))
        at += signature.bytes
    return results
