# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to in the DevTools protocol over a pair of pipes."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
TIMEOUT_S = 60


def find_browser():
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def pipe():
    """Both ends of a pipe, out of the way of the browser's descriptors 3 and 4."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """A context manager: the browser and its files are gone when the block ends."""

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="warpline-browser-", dir="/var/tmp")
        to_read, self.writer = pipe()
        self.reader, to_write = pipe()
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"]
        arguments += ["--disable-background-networking", "--disable-component-update", "--disable-extensions"]
        arguments += [f"--user-data-dir={self.home}", "--remote-debugging-pipe", "about:blank"]
        # The browser reads commands from its descriptor 3 and writes answers to 4.
        start = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-'
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", start, find_browser(), *arguments],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.home},
        )
        os.close(to_read)
        os.close(to_write)
        self.received = b""
        self.events = []
        self.number = 0
        self.session = None
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, EOFError):
            pass  # it has ended already
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        shutil.rmtree(self.home, ignore_errors=True)

    def open_tab(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def load(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def show(self, width, scheme):
        """Lays the page out at a width, in a colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def complaints(self):
        """What the console has to show, and requests for anything but the page."""
        found = []
        for event in self.events:
            name, about = event["method"], event["params"]
            if name in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                found.append(event)
            if name == "Network.requestWillBeSent" and not about["request"]["url"].startswith(("file:", "data:")):
                found.append(event)
        return found

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.writer, data) :]
        return self.wait(lambda answer: answer.get("id") == self.number, method)

    def wait_for(self, event):
        if not any(seen["method"] == event for seen in self.events):
            self.wait(lambda answer: answer.get("method") == event, event)

    def wait(self, is_wanted, what):
        end = time.monotonic() + TIMEOUT_S
        while True:
            while b"\0" in self.received:
                message, _, self.received = self.received.partition(b"\0")
                answer = json.loads(message)
                if "method" in answer:
                    self.events.append(answer)
                if is_wanted(answer):
                    if "error" in answer:
                        raise AssertionError(f"{what}: {answer['error']}")
                    return answer.get("result", {})
            if not select.select([self.reader], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"no answer in {TIMEOUT_S} s: {what}")
            data = os.read(self.reader, 1 << 20)
            if not data:
                raise EOFError(f"the browser has ended: {what}")
            self.received += data
