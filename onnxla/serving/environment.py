"""What a process that this one starts is told of the environment."""

import os
import sys

_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "HOME", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES")
"""Beside onnxla's own knobs: no keys of object stores, no tokens."""


def child_environment(**more: str) -> dict[str, str]:
    """For Python that finds the modules of this process, and none in the folder it is started in."""
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith("ONNXLA_")}
    places = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    return {**kept, "PYTHONPATH": places, "PYTHONSAFEPATH": "1", **more}
