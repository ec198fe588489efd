"""Prints what one call costs beyond the model's own work: `python -m tests.bench.call_overhead`.

Also prints how long an artifact takes from a fresh Python process to its first result.
"""

import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

import numpy as np

from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature, model_tensor
from tests.runtime.hand_written import scale_and_add

_COLD = """
import sys, time
start = time.perf_counter()
import numpy as np
imported = time.perf_counter()
from onnxla.runtime.loading import load_compiled
model = load_compiled(sys.argv[1])
loaded = time.perf_counter()
model(np.zeros(model.get_inputs()[0].shape, np.float32))
print(f"numpy {(imported - start) * 1e3:.1f} ms, load {(loaded - imported) * 1e3:.1f} ms, "
      f"first run {(time.perf_counter() - loaded) * 1e3:.1f} ms")
"""


def microseconds(statement: str, names: dict[str, object]) -> float:
    """The fastest of five trials, per call."""
    return min(timeit.repeat(statement, globals=names, number=20_000, repeat=5)) / 20_000 * 1e6


def main() -> None:
    program = scale_and_add(1)
    signature = signature_of(program)
    x = np.zeros((1, 16), np.float32)
    for title, model in (
        ("fixed shapes", CompiledModel(signature, [program])),
        ("open shapes", CompiledModel(signature, [program], specialise=lambda arrays: program)),
    ):
        names = {"model": model, "x": x, "feeds": {"x": x}, "out": {"y": np.empty_like(x)}}
        print(f"{title}: run(None, feeds) {microseconds('model.run(None, feeds)', names):.2f} us")
        print(f"{title}: model(x) {microseconds('model(x)', names):.2f} us")
        print(f"{title}: run(..., out=) {microseconds('model.run(None, feeds, out=out)', names):.2f} us")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnxla"
        large = scale_and_add(100 << 14)  # 100 MB of weights
        CompiledModel(signature_of(large), [large]).save(path)
        for _ in range(3):
            subprocess.run([sys.executable, "-c", _COLD, str(path)], check=True, cwd=Path(__file__).parents[2])


def signature_of(program: Program) -> ModelSignature:
    return ModelSignature((model_tensor(program.inputs[0]),), (model_tensor(program.outputs[0]),))


if __name__ == "__main__":
    main()
