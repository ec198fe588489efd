"""The C header of a compiled model: a function with a typed pointer for each input and output."""

import re
from collections.abc import Iterable

from onnxla.ahead.reserved_names import DECLARED, HEADERS, KEYWORDS, LIBRARIES, MACROS
from onnxla.runtime.program import Program
from onnxla.runtime.tensors import TensorSignature
from onnxla.version import __version__

_TYPES = {
    "f32": "float",
    "f64": "double",
    "pred": "uint8_t",
    "c64": "float _Complex",
    "c128": "double _Complex",
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("f16", "bf16"), "uint16_t"),
}
"""Others lie in a byte each."""
_RESERVED = KEYWORDS | MACROS | {"inputs", "outputs", "threads", "int64_t", "size_t", *_TYPES.values()}
"""What no array of a header may be called: its own variables and the types it uses among them."""
_SUFFIXES = ("", "_run", "_run_in", "_arena_bytes", "_cpu_fits", "_weights", "_program")


def c_identifier(text: str) -> str:
    """`text` as a C identifier: letters, digits and underscores, not a word that C or C++ reserves or a macro of C."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return f"v_{name}" if not name or name[0].isdigit() or name[0] == "_" or name in _RESERVED else name


def library_name(text: str) -> str:
    """`text` as the name of a library: an identifier that no header or library of C has already."""
    name = c_identifier(text)
    return f"v_{name}" if taken_by(name) else name


def taken_by(name: str) -> str:
    """What of C has the name of a library, or a name that its functions would get; empty where nothing has."""
    if name in KEYWORDS or name in MACROS:
        return "a word that C or C++ reserves, or a macro of C's headers"
    found = next((name + suffix for suffix in _SUFFIXES if name + suffix in DECLARED), "")
    if found:
        return "a function or type of C or POSIX" if found == name else f"the beginning of {found}, which POSIX has"
    if name in HEADERS:
        return f"{name}.h of C or POSIX"
    if name in LIBRARIES:
        return f"lib{name} of the C library or the compiler"
    if name.startswith(("onnxla_parallel_for", "onnxla_pool")):
        return "the thread pool of all libraries"
    return ""


def c_header(name: str, program: Program) -> str:
    """The text of `name.h` for a program whose entry was named `name_run`."""
    values = [*program.inputs, *program.outputs]
    identifiers = _different(c_identifier(v.name) for v in values)
    inputs, outputs = identifiers[: len(program.inputs)], identifiers[len(program.inputs) :]
    parameters = [f"const {_c_type(s)} *{i}" for s, i in zip(program.inputs, inputs, strict=True)]
    parameters += [f"{_c_type(s)} *{i}" for s, i in zip(program.outputs, outputs, strict=True)]
    notes = [f"   {i}: {s.element}{list(s.shape)}" for s, i in zip(values, identifiers, strict=True)]
    guard = f"{name.upper()}_H"
    features = ", ".join(program.features) or "no particular ones"
    return f"""/* {name}: made by onnxla {__version__} for {program.triple}, CPU {program.cpu}.
   The CPU that runs it must have these features: {features}.
   On x86-64 each call asks for them (the first time) and returns 2 where one is missing. */
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Run the model on at most `threads` threads (1 or more). `inputs` and `outputs` point to dense arrays, row by row, in
   the order below. Any number of threads may call it at once. Returns 0; 1 when there is no memory for the
   {program.arena_bytes} bytes that a run needs; 2 when this CPU lacks what the code was made for.
   The caller's stack needs 2 MB. */
int {name}_run(const void *const *inputs, void *const *outputs, int64_t threads);

/* The same in memory of the caller: {name}_arena_bytes() bytes at a multiple of 64, for one run at a time. */
int {name}_run_in(const void *const *inputs, void *const *outputs, void *arena, int64_t threads);
size_t {name}_arena_bytes(void);

/* 1 where this CPU can run it, else 0. */
int {name}_cpu_fits(void);

/* Arrays:
{chr(10).join(notes)} */
static inline int {name}({", ".join([*parameters, "int64_t threads"])}) {{
  const void *const inputs[] = {{{", ".join(inputs) or "0"}}};
  void *const outputs[] = {{{", ".join(outputs) or "0"}}};
  return {name}_run(inputs, outputs, threads);
}}

#ifdef __cplusplus
}}
#endif
#endif
"""


def _c_type(signature: TensorSignature) -> str:
    return _TYPES.get(signature.element, "uint8_t")


def _different(names: Iterable[str]) -> list[str]:
    """The names, those that were there before with a number behind."""
    taken: dict[str, None] = {}
    for name in names:
        candidate, n = name, 1
        while candidate in taken:
            n += 1
            candidate = f"{name}_{n}"
        taken[candidate] = None
    return list(taken)
