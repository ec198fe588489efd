"""The entry of the command `onnxla` and of `python -m onnxla`: Ctrl-C ends it with 130 and one line at any time."""

import signal
import sys
from typing import NoReturn

from onnxla.cli import interrupt


def main() -> NoReturn:
    """Run the command that this process was started with. It is imported here, since importing takes a while."""
    try:
        interrupt.remember()
        from onnxla.cli.main import run_command_line

        code = run_command_line(sys.argv[1:])
    except BaseException as error:
        if not interrupt.was_interrupted(error):
            raise
        print(interrupt.LINE, file=sys.stderr)
        code = interrupt.EXIT_CODE
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done; nothing is left to stop
    sys.exit(code)


if __name__ == "__main__":
    main()
