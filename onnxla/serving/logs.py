"""The log: lines of text, or of JSON for those who collect them. Names that clients send are made harmless in both."""

import json
import logging
import sys
import time
from typing import Any, TextIO

from onnxla.errors import harmless_line

LOG = logging.getLogger("onnxla.serving")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _TextLines(logging.Formatter):
    """Further lines of a message are indented, so that each entry begins with its time."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        told = "".join(f" {name}={harmless_line(str(value))}" for name, value in fields.items())
        return (super().format(record) + told).replace("\n", "\n    ")


def start_logging(form: str, stream: TextIO | None = None) -> logging.Handler:
    """Send the server's log, the compiler's warnings and uvicorn's errors to `stream` (standard error by default) as
    `text` or `json`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines())
    for name, level in (("onnxla", logging.WARNING), ("onnxla.serving", logging.INFO), ("uvicorn", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level)
    return handler


def log(level: int, message: str, /, **fields: object) -> None:
    """One line; `fields` stand beside the message."""
    LOG.log(level, message, extra={"fields": fields})
