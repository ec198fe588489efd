"""Why a run was refused, in onnxruntime's words: looked for when onnxla has refused it, so that a run pays nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from onnxla.compat.errors import InvalidArgument, compat_error, of_onnxla
from onnxla.compat.misfits import misfit
from onnxla.compat.model import SessionModel
from onnxla.errors import InputError, OnnxlaError


def explained(
    model: SessionModel, error: OnnxlaError, names: Sequence[str] | None, feeds: Mapping[str, Any]
) -> Exception:
    """The exception to raise for `error`, with the text that onnxruntime has for it, if it has one."""
    if not isinstance(error, InputError):
        return of_onnxla(error)
    required = [arg.name for arg in model.inputs if not arg.type.startswith("optional")]
    missing = [name for name in required if name not in feeds]
    if missing:
        return ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feeds)}).")
    args = {arg.name: arg for arg in (*model.inputs, *model.overridable)}
    for name in feeds:
        if name not in args:
            return compat_error(InvalidArgument, f"Invalid input name: {name}")
    known = {arg.name for arg in model.outputs}
    for name in names or ():
        if name not in known:
            return compat_error(InvalidArgument, f"Invalid output name:{name}")
    for name, value in feeds.items():
        text = misfit(args[name], value)
        if text:
            return compat_error(InvalidArgument, text)
    return of_onnxla(error)
