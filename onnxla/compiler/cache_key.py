"""The key of a program in the compile cache: everything that decides its code, part by part, so that a miss can be
explained. Two programs with equal keys have equal code."""

from onnxla.compiler.sources import Imported
from onnxla.config import CompileOptions
from onnxla.hlo.fingerprint import fingerprint
from onnxla.hlo.ops.structural import Constant
from onnxla.makers import compiler_digest, libraries
from onnxla.runtime.artifact import FORMAT_VERSION
from onnxla.runtime.cache import CacheKey
from onnxla.runtime.digest import digest_of_all
from onnxla.runtime.manifest import constant_data
from onnxla.version import __version__


def cache_key(imported: Imported, text: str, options: CompileOptions, target: str) -> CacheKey:
    """The key of what `options` make of an imported module, whose text is `text`, for a target."""
    return CacheKey(
        {
            "program": digest_of_all([text, fingerprint(imported.module)]),
            "weights": _weights(imported),
            "shapes": "; ".join(map(str, imported.inputs)),
            "signature": "; ".join(
                map(str, (*imported.inputs, "->", *imported.outputs, *imported.state, *imported.results))
            ),
            "constants": digest_of_all(
                part for name, value in sorted(imported.constants.items()) for part in (name, *constant_data(value))
            ),
            "vocabularies": digest_of_all(
                part for name, words in sorted(imported.vocabularies.items()) for part in (name, *words)
            ),
            **{f"option {name}": repr(value) for name, value in options.code_options().items()},
            "target": target,
            "version": f"onnxla {__version__}, format {FORMAT_VERSION}",
            "libraries": libraries(),
            "compiler": compiler_digest(),
        }
    )


def _weights(imported: Imported) -> str:
    """A digest of all constants, in the order of the program."""
    return digest_of_all(
        i.op.literal.digest
        for computation in imported.module.computations()
        for i in computation.instructions()
        if isinstance(i.op, Constant)
    )
