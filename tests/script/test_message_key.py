# SPDX-License-Identifier: Apache-2.0
"""`message --key`: two processes with the same key, with different ones, and files that are no key."""

import json
import signal
import socket
import unittest

from support.case import Case


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class MessageKey(Case):
    def setUp(self):
        super().setUp()
        self.here = f"127.0.0.1:{free_port()}"

    def key(self, name, text, mode=0o600):
        path = self.scratch.path / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def serve(self, *arguments):
        server = self.start("message", "server", "--port", "socket", "--listen", self.here, "--json", *arguments)
        server.wait_for("stderr", "listening on")
        return server

    def ask(self, *arguments):
        return self.warpline("message", "client", "--port", "socket", "--connect", self.here, "--requests", 300, "--length", 3000,
                             "--verify", "--json", *arguments)

    def ask_in_vain(self, *arguments):
        """Nobody answers. Where somebody does, no limit is as short: a busy machine may take longer."""
        self.assertEqual(self.ask("--peer-timeout", "300ms", *arguments).code, 5)

    def end(self, server):
        server.signal(signal.SIGINT)
        outcome = server.finish()
        self.assertEqual(outcome.code, 130, outcome)
        return outcome.report

    def test_the_same_key(self):
        key = self.key("key", "# for the test\n00112233445566778899aabbccddeeff\n")
        server = self.serve("--key", key, "--workers", 1)
        for _ in range(2):
            outcome = self.ask("--key", key, "--parallel", 4, "--workers", 2)
            self.assertEqual(outcome.code, 0, outcome)
            self.assertNotIn("not_authentic", outcome.report["drops"])
        self.assertNotIn("not_authentic", self.end(server)["drops"])

    def test_another_key(self):
        server = self.serve("--key", self.key("one", "00112233445566778899aabbccddeeff"))
        self.ask_in_vain("--key", self.key("other", "00112233445566778899aabbccddeefe"))
        report = self.end(server)
        self.assertGreater(report["drops"]["unknown_key"], 0)

    def test_a_key_on_one_side(self):
        key = self.key("key", "00112233445566778899aabbccddeeff")
        server = self.serve("--key", key)
        self.ask_in_vain()
        self.end(server)
        self.here = f"127.0.0.1:{free_port()}"
        server = self.serve()
        self.ask_in_vain("--key", key)
        self.end(server)

    def test_keys_are_exchanged_while_the_server_runs(self):
        one, other = "alice 00112233445566778899aabbccddeeff\n", "bob ffeeddccbbaa99887766554433221100\n"
        keys = self.key("keys", one)
        server = self.serve("--key", keys)
        lasting = self.start("message", "client", "--port", "socket", "--connect", self.here, "--key", self.key("first", one),
                             "--rate", 200, "--verify", "--json", "--interval", "0.1")
        lasting.wait_for("stderr", r"^ *(\d+\.\d+) ", where=lambda row: float(row[1]) >= 0.1)
        second = self.key("second", other)
        self.ask_in_vain("--key", second)
        keys.write_text(one + other)
        server.signal(signal.SIGHUP)
        server.wait_for("stderr", "read the keys again: added bob; 2 in all$")
        self.assertEqual(self.ask("--key", second).code, 0)
        keys.write_text(other)
        server.signal(signal.SIGHUP)
        server.wait_for("stderr", "read the keys again: removed alice; 1 in all$")
        self.assertEqual(self.ask("--key", second).code, 0)
        self.ask_in_vain("--key", self.key("third", one))
        keys.write_text(other + "carol 00\n")
        server.signal(signal.SIGHUP)
        server.wait_for("stderr", "the keys stay as they were: .*line 2 has 2 digits")
        keys.unlink()
        server.signal(signal.SIGHUP)
        server.wait_for("stderr", "the keys stay as they were: .*No such file")
        self.assertEqual(self.ask("--key", second).code, 0)
        lasting.signal(signal.SIGINT)
        outcome = lasting.finish()
        self.assertEqual(outcome.code, 130, outcome)
        self.assertEqual(outcome.report["sessions"]["lost"], {})
        # An acknowledgement may come behind the goodbye.
        self.assertLessEqual(set(outcome.report["drops"]), {"unknown_session"})
        self.end(server)

    def test_files_that_are_no_key(self):
        twice = "00112233445566778899aabbccddeeff\n"
        refused = (
            (self.key("twice", twice + twice), 2, "line 2 holds the key of line 1 again"),
            (self.key("name", f"# names\na/b {twice}"), 2, "line 2 begins with no name"),
            (self.key("short", "0011\n"), 2, "line 1 has 4 digits"),
            (self.key("open", "00112233445566778899aabbccddeeff", 0o644), 3, "chmod 600"),
            (self.scratch.path / "none", 3, "No such file"),
        )
        for path, code, fragment in refused:
            outcome = self.warpline("message", "server", "--listen", self.here, "--key", path)
            self.assert_one_line_error(outcome, code, path, fragment)

    def test_new_and_show(self):
        path = self.scratch.path / "new"
        outcome = self.warpline("message", "key", "new", "--name", "alice", path)
        self.assertRegex(outcome.stdout, r"^[0-9a-f]{16}  alice\n$", outcome)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        first = path.read_text()
        self.assertRegex(first, r"^alice [0-9a-f]{32}\n$")
        self.assert_one_line_error(self.warpline("message", "key", "new", path), 2, path, "it is there already", "--append")
        self.assertEqual(path.read_text(), first)
        self.assertRegex(self.warpline("message", "key", "new", "--append", path).stdout, r"^[0-9a-f]{16}\n$")
        lines = path.read_text().splitlines()
        self.assertRegex(lines[1], r"^[0-9a-f]{32}$")
        self.assertNotIn(lines[1], first)
        shown = self.warpline("message", "key", "show", path)
        self.assertRegex(shown.stdout, r"^[0-9a-f]{16}  alice\n[0-9a-f]{16}\n$", shown)
        report = self.warpline("message", "key", "show", path, "--json").report
        self.assertEqual([key.get("name") for key in report["keys"]], ["alice", None])
        self.assertEqual([key["id"] for key in report["keys"]], [line.split()[0] for line in shown.stdout.splitlines()])
        for line in lines:
            secret = line.split()[-1]
            self.assertNotIn(secret[:8], shown.stdout + json.dumps(report))
        server = self.serve("--key", path)
        self.assertEqual(self.ask("--key", path).code, 0)
        self.end(server)

    def test_new_and_show_refuse(self):
        path = self.scratch.path / "new"
        for arguments, code, fragments in (
            ((), 2, ("there are message key new and message key show",)),
            (("sow", path), 2, ("message key sow", "did you mean message key show?")),
            (("new",), 2, ("no file is given", "message key new FILE")),
            (("show", path, path), 2, ("2 files are given",)),
            (("show", path), 3, (path, "No such file", "message key new")),
            (("show", path, "--name", "a"), 2, ("--name", "show changes nothing")),
            (("new", path, "--name", "a b"), 2, ("'a b'", "letters")),
            (("new", path, "--append"), 3, (path, "No such file")),
            (("new", path / "below"), 3, ("cannot write the key file",)),
            (("new", path, "--burst", 3), 2, ("--burst",)),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline("message", "key", *arguments), code, *fragments)
        self.assertFalse(path.exists())
        self.assertEqual(self.warpline("message", "key", "--help").code, 0)

    def test_buffers_too_small_to_encrypt_in(self):
        key = self.key("key", "00112233445566778899aabbccddeeff")
        outcome = self.warpline("message", "server", "--port", "net_null0", "--address", "10.0.0.1/24", "--key", key, "--data-room", 512)
        self.assert_one_line_error(outcome, 2, "--key", "--data-room 512", "1518")


if __name__ == "__main__":
    unittest.main()
