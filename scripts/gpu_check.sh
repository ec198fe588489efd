#!/usr/bin/env bash
# Everything that needs a GPU, in ten minutes and offline: fragment layouts, each class of kernels, models, the runtime,
# operations of HLO and ONNX, NVIDIA's sanitizer where it is installed, and a table of times.
# Ends with 0 when all is right, 1 when something is wrong, 6 without a GPU. --pretended runs it all on the simulator.
# PYTHON chooses the interpreter, which needs onnxla[cuda], onnxruntime and pytest; PyTorch adds columns to the table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" -m tests.gpu.check "$@"
