"""Chromium without a window, spoken to over a pipe in the DevTools protocol: open a page, click, type, take a picture.

Needs the program only (Debian: `apt-get install chromium`), no library. What the page logs as an error, throws, or is
refused by its Content-Security-Policy is collected.
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 60.0


def chromium() -> str | None:
    """The program, where there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page."""

    def __init__(self, size: tuple[int, int] = (1440, 900)) -> None:
        program = chromium()
        assert program is not None
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        asked, self._ask = os.pipe()
        self._hear, answered = os.pipe()

        def give_pipes() -> None:
            """The browser reads from 3 and writes to 4."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (asked, answered)]
            for place, end in enumerate(ends, start=3):
                os.dup2(end, place)

        width, height = size
        switches = ("no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run", "remote-debugging-pipe")
        self._process = subprocess.Popen(
            [
                program,
                "--headless",
                *(f"--{switch}" for switch in switches),
                f"--user-data-dir={self._profile.name}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            pass_fds=(3, 4),
            preexec_fn=give_pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(answered)
        self._number = 0
        self._buffer = b""
        self._session: str | None = None
        self.problems: list[str] = []
        """What the page complained of."""
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ask)
        os.close(self._hear)
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of one command of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._ask, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self) -> Any:
        while b"\0" not in self._buffer:
            part = os.read(self._hear, 1 << 16)
            if not part:
                raise RuntimeError(f"the browser ended with {self._process.wait()}")
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, event: Any) -> None:
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.problems.append(str(details.get("exception", {}).get("description", details["text"])))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.problems.append(str([argument.get("value") for argument in event["args"]]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.problems.append(event["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"a dialog: {event['message']}")

    def open(self, page: Path, ready: str = "document.documentElement?.dataset.ready === '1'") -> float:
        """Open a file and wait for it; returns the milliseconds from the start until it was drawn."""
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait(ready)
        return float(self.script("new Promise(done => requestAnimationFrame(() => done(performance.now())))"))

    def wait(self, condition: str) -> None:
        """Until a JavaScript condition holds."""
        end = time.monotonic() + _PATIENCE
        while not self.script(condition):
            assert time.monotonic() < end, f"{condition} did not become true; {self.problems}"
            time.sleep(0.02)

    def script(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def click(self, selector: str) -> None:
        """As a mouse does it, in the middle of the first element that matches."""
        place = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        x, y = self.script(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({place})")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text: str) -> None:
        """Into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """One key, such as ("Enter", 13)."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, file: Path) -> None:
        """What can be seen, as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as the system would say it."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
