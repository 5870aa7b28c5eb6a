# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium driven through chromedriver, one for all tests of a script, and a
web server on localhost for its pages."""

from __future__ import annotations

import atexit
import base64
import functools
import json
import re
import time
import urllib.error
import urllib.request
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Optional

from harness import Case, kept, need_program

# No service of the browser's may look for the network: the pages must work without.
OPTIONS = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1600,1000",
           "--disable-background-networking", "--disable-component-update", "--no-first-run",
           "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


class Browser:
    """One window. To start it takes longer than to load most traces, so that it stays: shared()."""

    def __init__(self) -> None:
        need_program("chromium", "chromium")
        self._case = Case("browser")
        profile = self._case.path("chromium")
        self._driver = self._case.start([need_program("chromedriver", "chromium-driver"), "--port=0"])
        kept.add(self._driver.pid)
        port = self._driver.wait_for(r"started successfully on port (\d+)").group(1)
        self._base = f"http://127.0.0.1:{port}"
        # Root has no user namespace of its own to put the browser into.
        options = [*OPTIONS, "--no-sandbox", f"--user-data-dir={profile}"]
        answer = self._query("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": options},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self._base += f"/session/{answer['sessionId']}"
        self._query("POST", "/timeouts", {"script": 60000, "pageLoad": 60000})

    def _query(self, method: str, path: str, body: Optional[dict[str, Any]] = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"the browser: {json.load(error)['value']['message'][:2000]}") from error

    def close(self) -> None:
        """End it, whatever state it is in."""
        try:
            self._query("DELETE", "")
        except (AssertionError, OSError):
            pass
        kept.discard(self._driver.pid)
        self._case.clean_up()

    def open(self, url: str) -> None:
        self._query("POST", "/url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """What a function body returns in the page."""
        return self._query("POST", "/execute/sync", {"script": script, "args": list(args)})

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self._query("GET", "/screenshot")))

    def errors(self) -> list[str]:
        """What the page complained of."""
        log = self._query("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def report(self, seconds: float = 120) -> dict[str, Any]:
        """The page's report when it has loaded the trace: window.report. Fails if that is an error."""
        end = time.monotonic() + seconds
        while True:
            found = self.run("return window.report || null")
            if found:
                assert "error" not in found, f"the page shows an error: {found['error']}"
                return found
            assert time.monotonic() < end, f"the page did not load the trace in {seconds} s: {self.errors()}"
            time.sleep(0.1)


_shared: Optional[Browser] = None


def shared() -> Browser:
    """The browser of this process, started at first use."""
    global _shared
    if _shared is None:
        _shared = Browser()
    return _shared


def close_shared() -> None:
    """End it: the next test gets a new one."""
    global _shared
    browser, _shared = _shared, None
    if browser:
        browser.close()


atexit.register(close_shared)


class _Handler(SimpleHTTPRequestHandler):
    """/NAME/file is in the first folder of that name that has it."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}

    def __init__(self, *args: Any, folders: dict[str, list[Path]], **kwargs: Any) -> None:
        self._folders = folders
        super().__init__(*args, **kwargs)

    def translate_path(self, path: str) -> str:
        found = re.fullmatch(r"/(\w+)/([\w.-]+)(?:\?.*)?", path)
        for folder in self._folders.get(found.group(1), []) if found else []:
            if (folder / found.group(2)).is_file():
                return str(folder / found.group(2))
        return "/nonexistent"

    def log_message(self, format: str, *args: Any) -> None:  # pylint: disable=redefined-builtin
        pass


def serve(case: Case, **folders: list[Path]) -> str:
    """The address of a server for these folders."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, folders=folders))
    Thread(target=server.serve_forever, daemon=True).start()
    case.at_end.append(server.server_close)
    case.at_end.append(server.shutdown)
    return f"http://127.0.0.1:{server.server_address[1]}"
