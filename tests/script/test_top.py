# SPDX-License-Identifier: Apache-2.0
"""`top`: the table of a running process, in a terminal."""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

from support.case import LIVE_ROW, Case
from support.program import BINARY
from support.scraping import in_namespace_of

LOOPBACK = ("forward", "--loopback", "--no-hugepages", "--interval", "20ms", "--telemetry", "shown")
TOP = (str(BINARY), "top", "--telemetry", "shown", "--interval", "50ms")
PATIENCE = 60


class Terminal:
    """The far side of a terminal of 80 columns and 24 lines."""

    def __init__(self, command):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0))
        self.decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character
        self.text = ""

    def wait_for(self, pattern):
        """Reads until that has been written since the last time, and returns it."""
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.text)):
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {pattern!r} in {self.text[-4000:]!r}")
            self.text += self.decoder.decode(os.read(self.master, 65536))
        self.text = self.text[found.end() :]
        return found.group()

    def press(self, key):
        os.write(self.master, key.encode())

    def end(self):
        """Waits for the end; the terminal must be as it was. Returns (exit code, stderr)."""
        self.wait_for(r"\x1b\[\?25h\x1b\[\?1049l")
        _, stderr = self.process.communicate(timeout=PATIENCE)
        if termios.tcgetattr(self.slave) != self.before:
            raise AssertionError("the terminal is not as it was")
        return self.process.returncode, stderr

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.slave)
        os.close(self.master)


class Top(Case):
    def running(self, *options):
        program = self.start(*LOOPBACK, *options)
        program.wait_for("stderr", LIVE_ROW)
        return program

    def terminal(self, program):
        terminal = Terminal(in_namespace_of(program, *TOP))
        self.addCleanup(terminal.close)
        return terminal

    def stop(self, program):
        program.signal(signal.SIGINT)
        self.assertEqual(program.finish().code, 130)

    def test_keys(self):
        program = self.running("--json")
        terminal = self.terminal(program)
        terminal.wait_for(rf"warpline forward shown, pid {program.process.pid}, every 0.05 s")
        terminal.wait_for(r"port +net_vnic0 received" if os.environ.get("WARPLINE_HAS_VNIC", "1") == "1" else r"port +")
        terminal.wait_for("q quit   s sort \\(by name\\)   p pause")
        terminal.press("s")
        terminal.wait_for("by rate")
        terminal.press("s")
        terminal.wait_for("by total")
        terminal.press("p")
        terminal.wait_for("PAUSED")
        terminal.press("x")
        terminal.wait_for("p go on")
        terminal.press("p")
        terminal.wait_for("p pause")
        terminal.press("q")
        self.assertEqual(terminal.end(), (0, ""))
        self.stop(program)

    def test_the_process_ends(self):
        for pause in (False, True):
            with self.subTest(pause=pause):
                program = self.running("--json")
                terminal = self.terminal(program)
                terminal.wait_for("q quit")
                if pause:
                    terminal.press("p")
                    terminal.wait_for("PAUSED")
                self.stop(program)
                self.assertEqual(terminal.end(), (0, "warpline: shown has ended\n"))

    def test_an_interrupt(self):
        program = self.running("--json")
        terminal = self.terminal(program)
        terminal.wait_for("q quit")
        terminal.press("\x03")
        self.assertEqual(terminal.end(), (130, ""))
        self.stop(program)

    @unittest.skipUnless(shutil.which("tmux"), "no tmux")
    def test_a_real_terminal(self):
        program = self.running("--json")
        tmux = ("tmux", "-S", self.scratch.path / "tmux", "-f", "/dev/null")
        command = " ".join(in_namespace_of(program, *TOP))

        def ask(*words):
            return subprocess.run([*tmux, *words], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout

        ask("new-session", "-d", "-x", "80", "-y", "24", f"{command}; exec cat")
        self.addCleanup(ask, "kill-server")

        def wait_for(pattern):
            end = time.monotonic() + PATIENCE
            while not re.search(pattern, screen := ask("capture-pane", "-p"), re.MULTILINE):
                self.assertLess(time.monotonic(), end, screen)
            return screen.splitlines()

        lines = wait_for("[\u2582-\u2588]")
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertRegex(lines[0], rf"^warpline forward shown, pid {program.process.pid}, every 0.05 s$")
        self.assertRegex(lines[1], r"^ +per s +bit/s +total$")
        kinds = [line.split()[0] for line in lines if line[:1] not in " "]
        for kind in ("run", "port", "queue", "engine"):
            self.assertIn(kind, kinds)
        ask("send-keys", "p")
        wait_for("PAUSED$")
        ask("send-keys", "q")
        wait_for(r"\A\s*\Z")  # the screen from before, where cat is now
        self.stop(program)

    def test_one_snapshot(self):
        program = self.running("--json")
        done = subprocess.run(in_namespace_of(program, *TOP, "--json"), capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        shown = json.loads(done.stdout)
        self.assertEqual((shown["schema_version"], shown["command"]), (1, "top"))
        self.assertEqual(shown["process"]["command"], "forward")
        self.assertEqual(shown["process"]["pid"], program.process.pid)
        self.assertGreaterEqual(shown["interval_s"], 0.05)
        (received,) = (row for row in shown["rows"] if (row["kind"], row["name"]) == ("run", "received"))
        self.assertGreater(received["total"], 0)
        self.assertGreater(received["per_s"], 0)
        self.assertGreater(received["bits_per_s"], 0)
        self.assertTrue(any(row["kind"] == "queue" for row in shown["rows"]))
        self.stop(program)

    def test_there_is_no_terminal_or_no_process(self):
        self.assert_one_line_error(self.warpline("top", "--telemetry", "nobody", "--json"), 3, "nobody", "--telemetry nobody")
        self.assert_one_line_error(self.warpline("top", "--telemetry", "nobody"), 2, "no terminal", "--json")
        self.assert_one_line_error(self.warpline("top"), 2, "add --telemetry NAME")
        self.assert_one_line_error(self.warpline("ctl", "reload"), 2, "add --telemetry NAME")
        self.assert_one_line_error(self.warpline("ctl", "reload", "--telemetry", "nobody"), 3, "nobody")
        self.assert_one_line_error(self.warpline("ctl"), 2, "ctl reload")


if __name__ == "__main__":
    unittest.main()
