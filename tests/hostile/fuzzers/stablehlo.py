"""StableHLO text: a program, imported with size 2 for every open dimension, or a typed error."""

from functools import cache
from pathlib import Path

from onnxla.frontends.hlo.importer import import_program
from onnxla.frontends.hlo.operations import read_program
from onnxla.frontends.hlo.signature import inputs_of
from onnxla.frontends.hlo.syntax import TensorForm
from onnxla.hlo.verifier import verify
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.mutation import mutate_text
from tests.hostile.fuzzers.target import LIMITS, OPTIONS, Target

_PROGRAMS = Path(__file__).parents[2] / "frontends" / "hlo" / "programs"
_LARGEST_SEED = 3000


def run(data: bytes) -> None:
    program = read_program(data.decode(errors="replace"), LIMITS)
    dims = {
        d: 2
        for form in inputs_of(program)
        if isinstance(form.form, TensorForm)
        for d in form.dimensions
        if isinstance(d, str)
    }
    verify(import_program(program, dims=dims, options=OPTIONS, limits=LIMITS).module)


@cache
def seeds() -> list[bytes]:
    found = [file.read_bytes() for file in sorted(_PROGRAMS.glob("*.mlir"))]
    return [data for data in found if len(data) <= _LARGEST_SEED]


TARGET = Target("stablehlo", seeds, run, mutate_text)

if __name__ == "__main__":
    main(TARGET)
