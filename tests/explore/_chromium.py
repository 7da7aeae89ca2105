"""A headless Chromium, driven through the pipe of its debugging protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

EXECUTABLE = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-dev-shm-usage "
    "--remote-debugging-pipe --window-size=1200,1100"
)
_PATIENCE = 60.0  # seconds for any answer


class Page:
    """One tab.

    Args:
        profile: a folder for the browser's own files.
    """

    def __init__(self, profile: Path) -> None:
        assert EXECUTABLE is not None
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()
        line = f'exec "{EXECUTABLE}" {_FLAGS} --user-data-dir="{profile}" about:blank'
        self._process = subprocess.Popen(
            ["bash", "-c", f"{line} 3<&{commands} 4>&{answers}"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        self.call("Page.enable")
        self.call("Runtime.enable")
        size = {"width": 1200, "height": 1100, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            read = os.read(self._from, 1 << 16)
            assert read, "the browser went away"
            self._unread += read
        message, self._unread = self._unread.split(b"\0", 1)
        answer = json.loads(message)
        if answer.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(answer["params"]["exceptionDetails"])[:800])
        return answer

    def open(self, address: str) -> None:
        """Go to a page and wait until it has been read."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        end = time.monotonic() + _PATIENCE
        while self.run("document.readyState") != "complete" or self.run("location.href") == (
            "about:blank"
        ):
            assert time.monotonic() < end
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """Value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def middle(self, selector: str) -> tuple[float, float]:
        """Where an element is, scrolled into view."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return box[0], box[1]

    def mouse(self, kind: str, place: tuple[float, float]) -> None:
        """Press, move or release the left button."""
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **held)

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        place = self.middle(selector)
        self.mouse("mousePressed", place)
        self.mouse("mouseReleased", place)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 5) -> None:
        """Press at a place, move in steps and release."""
        self.mouse("mousePressed", start)
        for k in range(1, steps + 1):
            share = k / steps
            place = tuple(a + share * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", (place[0], place[1]))
        self.mouse("mouseReleased", end)

    def press(self, key: str, shift: bool = False) -> None:
        """Press and release a key."""
        codes = {
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
            " ": 32,
            "Tab": 9,
        }
        more = {"text": " "} if key == " " else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=codes[key],
                modifiers=8 if shift else 0,
                **(more if kind == "keyDown" else {}),
            )

    def screenshot(self, path: Path, width: int = 1200, height: int = 1100) -> None:
        """Save what the page looks like."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._to)
        os.close(self._from)
