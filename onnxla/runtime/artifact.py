"""The artifact: one file with all that a compiled model needs, mapped from disk and verified before it is used.

It is a zip file, so that any tool opens it. Entries are stored, not compressed, and start at multiples of 4096 bytes:

    code/<triple>/<k>.o       object code; code/<triple>/thread_pool.o is the thread pool
    weights/<k>.bin           packed weights, read in place; programs share pages (`shared_pages.py`)
    constants/<k>.bin         values of inputs that a program was made for
    state/<k>.bin             values of the variables that running changes
    onnx/<k>.onnx             parts of a model for onnxruntime; their weights are with the others
    texts/<program>/<stage>   HLO and the plan, read only when asked for
    manifest.json             signature, programs; offset, size and digest of every other section

The comment at the end of the file gives the manifest's place and digest, so reading needs no zip library and trusts no
zip header. The same model gives the same bytes; equal sections are stored once. Digests find damage, not malice:
loading an artifact runs its code, so load only files that you would run.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from onnxla.runtime.manifest import Json
from onnxla.runtime.mixed_parts import StoredPlan
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature
from onnxla.runtime.tensors import Array

FORMAT_VERSION = 5
MANIFEST = "manifest.json"
COMMENT = "onnxla artifact: manifest at {:020d} of {:020d} bytes, digest {}"
COMMENT_FORM = re.compile(rb"onnxla artifact: manifest at (\d{20}) of (\d{20}) bytes, digest ([0-9a-f]{64})")
COMMENT_SIZE = len(COMMENT.format(0, 0, "0" * 64))

Section: TypeAlias = bytes | memoryview


@dataclass(frozen=True)
class Artifact:
    """The contents of an artifact."""

    signature: ModelSignature
    programs: tuple[Program, ...]
    about: Mapping[str, Json] = field(default_factory=dict)
    """Facts for people and the cache: onnxla's version, model digest, options."""
    state: Mapping[str, Array] = field(default_factory=dict)
    """The variables that the programs change, with their values."""
    mixed: tuple[StoredPlan, ...] = ()
    """How parts in onnxruntime and the programs are run; empty where each program is the whole model."""
