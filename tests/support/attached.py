# SPDX-License-Identifier: Apache-2.0
"""Processes that attach to `message daemon`, for tests of it."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

from support.program import TIMEOUT

CLIENT = Path(__file__).with_name("daemon_client.py")


class Process:
    """A client's process, whose lines a test waits for."""

    def __init__(self, *words, user=None):
        options = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        self.process = subprocess.Popen([sys.executable, CLIENT, *map(str, words)], stdout=subprocess.PIPE, text=True, **options)
        self.lines = []
        self.news = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.strip())
                self.news.notify_all()
        with self.news:
            self.lines.append(None)
            self.news.notify_all()

    def wait_for(self, pattern, times=1):
        with self.news:
            self.news.wait_for(lambda: None in self.lines or sum(bool(re.match(pattern, line)) for line in self.lines) >= times, TIMEOUT)
            found = [line for line in self.lines if line and re.match(pattern, line)]
        if len(found) < times:
            raise AssertionError(f"no {pattern} in {self.lines[-20:]}")
        return found[-1]

    def asked(self):
        """How many requests it says that it has made."""
        return max((int(line.split()[1]) for line in self.lines if line and line.startswith("asked ")), default=0)

    def signal(self, number):
        self.process.send_signal(number)

    def result(self):
        """What an asker says at its end."""
        ends = json.loads(self.wait_for(r"\{"))
        self.process.wait(TIMEOUT)
        return ends

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
