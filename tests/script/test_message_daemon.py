# SPDX-License-Identifier: Apache-2.0
"""`message daemon`: programs that attach to it, as processes of their own, and what becomes of the others when one is
killed, stopped or lies."""

import os
import signal
import subprocess
import sys
import unittest

from support.attached import CLIENT, Process
from support.messages import MessageCase, free_port
from support.program import IS_ROOT, NOBODY, TIMEOUT


@unittest.skipUnless("LIBWARPLINE_CLIENT" in os.environ, "this build has no libraries")
class MessageDaemon(MessageCase):
    def daemon(self, name="a", *arguments, **options):
        """A daemon: (program, path of its socket, its address)."""
        here = f"127.0.0.1:{free_port()}"
        path = self.scratch.path / name
        program = self.start("message", "daemon", "--listen", here, "--attach", path, "--json", "--interval", "20ms", *arguments, **options)
        program.wait_for("stderr", "listening on ")
        return program, path, here

    def process(self, *words, **options):
        process = Process(*words, **options)
        self.addCleanup(process.end)
        return process

    def serving(self, path, code=7, kind="serve"):
        server = self.process(kind, path, code)
        server.wait_for("listening")
        return server

    def check_goes_on(self, path, peer, code=7, count=300):
        """Somebody else is served as ever."""
        self.assertEqual(self.process("ask", path, peer, code, count, 8).result(), {"ok": count})

    def test_two_clients_and_a_service_through_two_daemons(self):
        near, here, _ = self.daemon("near")
        far, there, peer = self.daemon("far")
        server = self.serving(there)
        askers = [self.process("ask", here, peer, 7, 1000, 30) for _ in range(2)]
        for asker in askers:
            self.assertEqual(asker.result(), {"ok": 1000})
        report = self.stopped(near)
        self.assertEqual(report["command"], "message daemon")
        self.assertEqual((report["requests"]["submitted"], report["requests"]["ok"]), (2000, 2000))
        self.assertEqual([client["requests"]["ok"] for client in report["clients"]], [1000, 1000])
        self.assertEqual({client["pid"] for client in report["clients"]}, {asker.process.pid for asker in askers})
        self.assertEqual({client["uid"] for client in report["clients"]}, {os.getuid()})
        self.assertEqual((report["door"]["attached"], report["door"]["expelled"]), (2, 0))
        report = self.stopped(far)
        server.wait_for("gone")
        self.assertEqual(report["requests"]["served"], 2000)
        self.assertEqual(report["sessions"]["accepted"], 2)
        self.assertEqual([client["answered"] for client in report["clients"]], [2000])
        self.assertEqual(self.scratch.work_files(), set())

    def test_services_and_callers_at_one_daemon(self):
        daemon, path, here = self.daemon()
        for code in (1, 2, 3):
            self.serving(path, code)
        second = self.process("serve", path, 2)
        second.wait_for("in_use")
        askers = [self.process("ask", path, here, code, 300, 20) for code in (1, 2, 3)]
        for asker in askers:
            self.assertEqual(asker.result(), {"ok": 300})
        self.assertEqual(self.process("ask", path, here, 4, 10, 2).result(), {"refused": 10})
        self.assertEqual(self.stopped(daemon)["door"]["no_service"], 10)

    def test_an_ordinary_client_asks_a_service(self):
        daemon, path, here = self.daemon()
        self.serving(path, 1)  # the code of an echo
        outcome = self.client("--connect", here, "-n", 100).finish()
        report = self.message_report(outcome)
        self.assertEqual(report["requests"]["ok"], 100)
        self.assertEqual(self.stopped(daemon)["requests"]["served"], 100)

    def test_a_client_that_is_killed(self):
        near, here, _ = self.daemon("near")
        far, there, peer = self.daemon("far")
        holder = self.serving(there, 8, "hold")
        self.serving(there)
        victim = self.process("ask", here, peer, 8, 0, 20)
        holder.wait_for("request", times=20)
        victim.signal(signal.SIGKILL)
        holder.wait_for("withdrawn", times=20)
        self.check_goes_on(here, peer)
        busy = self.process("ask", here, peer, 7, 0, 60)
        busy.wait_for("asked 500")
        busy.signal(signal.SIGKILL)
        self.check_goes_on(here, peer)
        report = self.stopped(near)
        self.assertEqual(report["door"]["expelled"], 0)
        self.assertEqual(report["clients"][0]["requests"]["peer_lost"], 20)
        self.stopped(far)

    def test_a_service_that_is_killed(self):
        near, here, _ = self.daemon("near")
        far, there, peer = self.daemon("far")
        self.serving(there)
        holder = self.serving(there, 8, "hold")
        asker = self.process("ask", here, peer, 8, 40, 40)
        holder.wait_for("request", times=40)
        holder.signal(signal.SIGKILL)
        self.assertEqual(asker.result(), {"refused": 40})
        self.check_goes_on(here, peer)
        self.serving(there, 8)  # its code is free for another
        self.check_goes_on(here, peer, 8)
        self.stopped(near)
        report = self.stopped(far)
        self.assertEqual(sum(client["declined"] for client in report["clients"]), 40)

    def test_a_client_that_is_stopped_holds_nobody_up(self):
        near, here, _ = self.daemon("near")
        far, there, peer = self.daemon("far")
        self.serving(there)
        stalled_server = self.serving(there, 9)
        stalled = self.process("ask", here, peer, 7, 2000, 64)
        waiting = self.process("ask", here, peer, 9, 2000, 30)
        stalled.wait_for("asked 200")
        waiting.wait_for("asked 200")
        for process in (stalled, stalled_server):
            process.signal(signal.SIGSTOP)
        # For as long as somebody else takes for thousands.
        self.check_goes_on(here, peer, count=5000)
        for process in (stalled_server, stalled):
            process.signal(signal.SIGCONT)
        self.assertEqual(stalled.result(), {"ok": 2000})
        self.assertEqual(waiting.result(), {"ok": 2000})
        self.assertEqual(self.stopped(near)["door"]["expelled"], 0)
        self.stopped(far)

    def test_liars_are_expelled_and_harm_nobody(self):
        daemon, path, here = self.daemon()
        self.serving(path)
        asker = self.process("ask", path, here, 7, 0, 8)
        asker.wait_for("asked 100")
        lies = {"tail": "bad_ring", "head": "bad_ring", "all": "bad_ring", "length": "bad_descriptor", "slot": "bad_descriptor", "operation": "bad_descriptor"}
        for lie in lies:
            with self.subTest(lie):
                liar = self.process("lie", path, lie)
                liar.wait_for("gone")
                if lie == "all":
                    liar.wait_for("sealed")
                self.check_goes_on(path, here)
        for noise in ("scribble", "bells"):
            with self.subTest(noise):
                self.assertEqual(self.process("lie", path, noise).process.wait(TIMEOUT), 0)
                self.check_goes_on(path, here)
        before = asker.asked()
        asker.wait_for(f"asked {before // 100 * 100 + 200}$")
        report = self.stopped(daemon)
        self.assertEqual(report["door"]["expelled"], len(lies))
        found = [client["expelled_for"] for client in report["clients"] if "expelled_for" in client]
        self.assertEqual(sorted(found), sorted(lies.values()))

    def test_as_many_as_may_be(self):
        daemon, path, here = self.daemon("a", "--clients", 3)
        self.serving(path)
        holders = [self.serving(path, code, "hold") for code in (20, 21)]
        self.process("serve", path, 30).wait_for("attach: the daemon takes no more clients")
        holders[0].signal(signal.SIGKILL)
        holders[0].process.wait(TIMEOUT)
        while True:  # its place is free soon
            outcome = subprocess.run([sys.executable, CLIENT, "ask", path, here, "7", "100", "8"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if outcome.returncode == 0:
                break
            self.assertIn("the daemon takes no more clients", outcome.stdout)
        self.assertGreaterEqual(self.stopped(daemon)["door"]["refused_full"], 1)

    def test_a_daemon_without_descriptors(self):
        daemon, path, here = self.daemon("a", "--clients", 100, prefix=("/usr/bin/prlimit", "--nofile=32:32"))
        self.serving(path)
        holders = []
        for code in range(100, 140):
            holders.append(self.process("hold", path, code))
        # Some are in, some are not, and nobody waits.
        for holder in holders:
            with holder.news:
                holder.news.wait_for(lambda holder=holder: holder.lines, TIMEOUT)
        inside = [holder for holder in holders if holder.lines[0] == "listening"]
        self.assertGreater(len(inside), 3)
        self.assertLess(len(inside), len(holders))
        for holder in inside:
            holder.signal(signal.SIGKILL)
            holder.process.wait(TIMEOUT)
        while subprocess.run([sys.executable, CLIENT, "ask", path, here, "7", "100", "8"], capture_output=True, timeout=TIMEOUT, check=False).returncode != 0:
            pass
        report = self.stopped(daemon)
        self.assertGreater(report["door"]["refused_descriptors"] + report["door"]["refused_memory"], 0)

    def test_one_room_of_each(self):
        daemon, path, here = self.daemon("a", "--client-calls", 1, "--client-requests", 1, "--client-sessions", 1)
        self.serving(path)
        self.check_goes_on(path, here)
        self.stopped(daemon)

    def test_a_daemon_that_is_killed(self):
        daemon, path, here = self.daemon()
        server = self.serving(path)
        asker = self.process("ask", path, here, 7, 0, 16)
        asker.wait_for("asked 300")
        daemon.signal(signal.SIGKILL)
        daemon.process.wait()
        server.wait_for("gone")
        asker.wait_for("gone")
        # What it has left behind is in nobody's way.
        again = self.start("message", "daemon", "--listen", here, "--attach", path, "--json")
        again.wait_for("stderr", "listening on ")
        self.serving(path)
        self.check_goes_on(path, here)
        self.stopped(again)

    def test_sigterm_ends_it_in_peace(self):
        near, here, _ = self.daemon("near")
        far, there, peer = self.daemon("far")
        server = self.serving(there)
        asker = self.process("ask", here, peer, 7, 0, 16)
        asker.wait_for("asked 300")
        far.signal(signal.SIGTERM)
        report = self.message_report(far.finish(), code=130)
        server.wait_for("gone")
        self.assertEqual(report["sessions"]["lost"], {"closed": 1})
        near.signal(signal.SIGTERM)
        report = self.message_report(near.finish(), code=130)
        ends = asker.result()
        self.assertLessEqual(set(ends), {"ok", "refused", "peer_lost", "going_away"}, ends)
        self.assertGreaterEqual(ends["ok"], 200)
        self.assertEqual(report["requests"]["ok"], ends["ok"])

    @unittest.skipUnless(IS_ROOT, "needs root to become others")
    def test_without_privileges_and_who_may_attach(self):
        path = self.scratch.path / "socket"
        daemon, path, here = self.daemon("socket", user=NOBODY)
        server = self.process("serve", path, 7, user=NOBODY)
        server.wait_for("listening")
        self.assertEqual(self.process("ask", path, here, 7, 100, 8, user=NOBODY).result(), {"ok": 100})
        report = self.stopped(daemon)
        self.assertEqual({client["uid"] for client in report["clients"]}, {NOBODY})
        daemon, path, here = self.daemon("socket", "--attach-mode", "0666", "--attach-user", NOBODY)
        self.process("serve", path, 7).wait_for("attach: this user may not attach")
        self.process("serve", path, 7, user=NOBODY).wait_for("listening")
        self.assertEqual(self.stopped(daemon)["door"]["refused_user"], 1)
        # The socket is its owner's, unless --attach-mode says otherwise.
        daemon, path, here = self.daemon("socket")
        code = f"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('{path}')"
        other = subprocess.run([sys.executable, "-c", code], user=NOBODY, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertIn("PermissionError", other.stderr)
        self.stopped(daemon)

    def test_what_makes_no_sense_is_refused(self):
        here = f"127.0.0.1:{free_port()}"
        attach = ("--listen", here, "--attach", self.scratch.path / "a")
        for arguments, *fragments in (
            (("daemon", "--listen", here), "--attach"),
            (("daemon", *attach, "--workers", 2), "--workers 2", "one endpoint"),
            (("daemon", *attach, "-m", "pinned"), "--memory"),
            (("daemon", *attach, "--attach-mode", "9"), "--attach-mode", "octal"),
            (("daemon", *attach, "--attach-user", "ada"), "--attach-user"),
            (("daemon", *attach, "--clients", 4096, "--client-message", "16Mi"), "--clients"),
            (("daemon", *attach, "--connect", here), "--connect"),
            (("server", *attach), "--attach", "message daemon"),
            (("client", "--connect", here, "--clients", 3), "--clients"),
        ):
            with self.subTest(arguments):
                self.assert_one_line_error(self.warpline("message", *arguments), 2, *fragments)
        first, path, _ = self.daemon()
        outcome = self.warpline("message", "daemon", "--listen", f"127.0.0.1:{free_port()}", "--attach", path)
        self.assert_one_line_error(outcome, 3, path, "--attach")
        self.stopped(first)


if __name__ == "__main__":
    unittest.main()
