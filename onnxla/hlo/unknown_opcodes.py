"""The way out where HLO text has an operation that is not read."""

from difflib import get_close_matches

from onnxla.hlo import xla_forms
from onnxla.hlo.op import OPS

_SPELLING_CUTOFF, _LONGEST_NAME = 0.75, 64

_BETWEEN_DEVICES = (
    "after-all add-dependency all-gather all-reduce all-to-all collective-broadcast collective-permute infeed outfeed "
    "partition-id ragged-all-to-all recv reduce-scatter replica-id send"
).split()
_OF_SCHEDULES = ("async", "copy")


def known_opcodes() -> list[str]:
    """The operations that are read, forms that XLA writes and dumps of ours do not have among them."""
    return sorted({*OPS, *xla_forms.FORMS})


def way_out(opcode: str) -> str:
    """What to do about an operation that is unknown, for the hint of an error."""
    base, _, step = opcode.rpartition("-")
    stem = base if step in ("start", "update", "done") else opcode
    if stem in _BETWEEN_DEVICES:
        return "write the program for one device, without tokens"
    if stem in _OF_SCHEDULES:
        return 'take the text before XLA\'s passes, in JAX lower(...).as_text("hlo")'
    close = get_close_matches(opcode[:_LONGEST_NAME], known_opcodes(), 1, _SPELLING_CUTOFF)
    meant = f"is {close[0]} meant? " if close else ""
    return f"{meant}write it in operations that are known: onnxla ops --hlo lists them"
