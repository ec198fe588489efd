"""onnxruntime's levels of logging, as those of the logger `onnxla`."""

import logging

_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


def set_default_logger_severity(severity: int) -> None:
    """0 verbose, 1 info, 2 warnings, 3 errors, 4 fatal. Raises ValueError for other numbers."""
    if severity not in range(len(_LEVELS)):
        raise ValueError(f"the severity is 0 (verbose) to 4 (fatal), not {severity!r}")
    logging.getLogger("onnxla").setLevel(_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted: there is one level of verbose messages."""


def disable_telemetry_events() -> None:
    """Accepted: there are none."""


def enable_telemetry_events() -> None:
    """Accepted: there are none."""
