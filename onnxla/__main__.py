"""The entry of the command `onnxla` and of `python -m onnxla`: Ctrl-C ends it with 130 and no traceback at any time."""

import signal
import sys
from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command that this process was started with. It is imported here, since importing takes a while."""
    try:
        from onnxla.cli.main import run_command_line

        code = run_command_line(sys.argv[1:])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done; nothing is left to stop
    sys.exit(code)


if __name__ == "__main__":
    main()
