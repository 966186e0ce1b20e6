# SPDX-License-Identifier: Apache-2.0
"""Readers and peers that leave before the program does."""

import os
import signal
import subprocess
import unittest

from support.case import LIVE_ROW, Case
from support.program import BINARY


def clean_environment():
    return {key: value for key, value in os.environ.items() if not key.startswith("WARPLINE_")}


class ReadersThatLeave(Case):
    def run_unread(self, *arguments, **streams):
        """Runs with a pipe that nobody reads as the streams that `streams` names; the others are read."""
        reader, writer = os.pipe()
        os.close(reader)
        try:
            return subprocess.run(
                [BINARY, *map(str, arguments)],
                cwd=self.scratch.path,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                text=True,
                check=False,
                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **dict.fromkeys(streams, writer)},
            )
        finally:
            os.close(writer)

    def test_of_stdout(self):
        for arguments in (
            ("--help",),
            ("config", "show", "forward", "--json"),
            ("doctor",),
            ("forward", "--loopback", "--packets", 1000, "--json"),
            ("forward", "--loopback", "--packets", 1000),
        ):
            with self.subTest(arguments=arguments):
                outcome = self.run_unread(*arguments, stdout=True)
                self.assertEqual(outcome.returncode, 3, outcome)
                self.assertIn("warpline: cannot write to stdout: ", outcome.stderr.splitlines()[-1])

    def test_of_a_stream_ends_the_run(self):
        """It has no bound of its own."""
        for command in (("forward", "--loopback"), ("generate", "--port", "net_ring0")):
            with self.subTest(command=command):
                outcome = self.run_unread(*command, "--json-stream", "--interval", "20ms", stdout=True)
                self.assertEqual(outcome.returncode, 3, outcome)

    def test_of_stderr_ends_no_run(self):
        outcome = self.run_unread(
            "forward", "--loopback", "--seconds", "0.2", "--interval", "20ms", "--json", stderr=True
        )
        self.assertEqual(outcome.returncode, 0, outcome)
        self.assertIn('"conserved":true', outcome.stdout)

    def test_a_full_disk_is_named(self):
        for arguments in (
            ("--version",),
            ("forward", "--loopback", "--packets", "1000", "--json"),
            ("ingest", "--loopback", "-m", "host", "--json-stream", "--interval", "20ms"),
        ):
            with self.subTest(arguments=arguments), open("/dev/full", "w", encoding="ascii") as full:
                outcome = subprocess.run(
                    [BINARY, *arguments],
                    cwd=self.scratch.path,
                    env=clean_environment(),
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    check=False,
                )
                self.assertEqual(outcome.returncode, 3, outcome)
                self.assertIn("No space left on device", outcome.stderr)


class PeersThatLeave(Case):
    def test_of_a_virtio_port(self):
        """The driver says farewell to its peer, which has gone, as the port is closed after the report."""
        socket = self.scratch.path / "vhost.sock"
        port = f"net_virtio_user0,path={socket},server=1"
        program = self.start("forward", "--port", port, "--share-cores", "--no-hugepages", "--json")
        while not socket.exists() and program.process.poll() is None:
            pass
        peer = self.warpline(
            "generate", "--port", f"net_vhost0,iface={socket},client=1", "--seconds", 1, "--share-cores", "--json"
        )
        self.assertEqual(peer.code, 0, peer)
        program.wait_for("stderr", LIVE_ROW)
        program.signal(signal.SIGINT)
        self.report_of(program.finish(), code=130)


if __name__ == "__main__":
    unittest.main()
