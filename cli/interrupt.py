"""Ctrl-C, from the first moment of the process: it is remembered, whatever becomes of the exception.

A library that is being imported may turn KeyboardInterrupt into an error of its own: that is no fault of anybody.
"""

import signal
from types import FrameType

EXIT_CODE = 130
LINE = "KeyboardInterrupt: stopped from the keyboard"
_seen = False


def remember() -> None:
    """From now on `was_interrupted` knows; the interrupt itself goes on as before."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)


def was_interrupted(error: BaseException) -> bool:
    """Whether an error is an interrupt, comes from one, or came when the process had been interrupted."""
    link: BaseException | None = error
    known: set[int] = set()
    while link is not None and id(link) not in known:
        if isinstance(link, KeyboardInterrupt):
            return True
        known.add(id(link))
        link = link.__cause__ or link.__context__
    return _seen


def _note(number: int, frame: FrameType | None) -> None:
    global _seen
    _seen = True
    signal.default_int_handler(number, frame)
