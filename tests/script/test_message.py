# SPDX-License-Identifier: Apache-2.0
"""Messages over the kernel's sockets on loopback: every test, both IP versions, peers that go and come back."""

import re
import signal
import socket
import unittest
from pathlib import Path

from support.messages import ROW, MessageCase, free_port


class Message(MessageCase):
    def pair(self, *client, requests, server=(), address="127.0.0.1"):
        here = f"{address}:{free_port()}"
        program = self.server("--listen", here, *server)
        outcome = self.client("--connect", here, "-n", requests, "--verify", *client).finish()
        report = self.all_answered(outcome, requests)
        other = self.stopped(program)
        self.assertEqual(other["requests"]["served"], requests)
        self.assertEqual(other["requests"]["not_served"], 0)
        # An acknowledgement may come behind the goodbye.
        self.assertLessEqual(set(other["drops"]), {"unknown_session"}, other)
        return report

    def test_every_test_answers_every_request_rightly(self):
        for test, arguments, requests in (
            ("echo", (), 50),
            ("rate", ("-P", 3), 3000),
            ("latency", (), 200),
            ("bandwidth", ("-l", "300000"), 40),
            ("bandwidth", ("-l", "300000", "--bidir"), 40),
            ("incast", ("-P", 8, "-l", "20000"), 80),
        ):
            with self.subTest(test=test, arguments=arguments):
                report = self.pair("--test", test, *arguments, requests=requests)
                self.assertGreater(report["latency_ns"]["p50"], 0)
                # Requests that were lost one by one are sent again together (message/internal/send/bundle_test.cc).
                if test == "rate" or report["protocol"]["packets_lost"] == 0:
                    self.assertEqual(report["protocol"]["fragments_bundled"] > 0, test == "rate", report)

    def test_every_length_comes_back(self):
        for length in (0, 1, 127, 128, 129, 1300, 1400, 1500, 65536, 4_000_000):
            with self.subTest(length=length):
                self.pair("-l", length, requests=5)

    def test_ipv6_and_large_datagrams(self):
        self.pair("-l", 100_000, requests=20, address="[::1]")
        self.pair("-l", 100_000, "--datagram", 9000, requests=20, server=("--datagram", 9000))

    def test_every_controller_and_both_reliabilities(self):
        for controller in ("swift", "timely", "dctcp", "none"):
            for reliability in ((), ("--reliability", "go-back-n", "--rto", "5ms", "--credits", 32)):
                with self.subTest(controller=controller, reliability=reliability):
                    self.pair("--cc", controller, *reliability, "-l", 20_000, requests=30, server=("--cc", controller))

    def test_grants_at_either_end(self):
        self.pair("--test", "bandwidth", "-P", 8, "-l", 200_000, requests=80, server=("--grants", "64Ki"))
        self.pair("--test", "incast", "-P", 8, "-l", 200_000, "--grants", "64Ki", requests=80)
        outcome = self.warpline("message", "client", "--connect", "127.0.0.1:1", "--grants", 100)
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("grants of 100 bytes", outcome.stderr)

    def test_several_clients_and_workers(self):
        here = f"127.0.0.1:{free_port()}"
        server = self.server("--listen", here, "--workers", 2)
        clients = [
            self.client("--connect", here, "-P", 6, "--workers", 2, "-n", 600, "--verify", "--test", "rate")
            for _ in range(3)
        ]
        for client in clients:
            self.all_answered(client.finish(), 600)
        report = self.stopped(server)
        self.assertEqual(report["requests"]["served"], 1800)
        self.assertEqual(report["sessions"]["accepted"], 18)

    def test_quotas_of_an_address(self):
        here = f"127.0.0.1:{free_port()}"
        for quota in ("address", "prefix"):
            with self.subTest(quota):
                server = self.server("--listen", here, f"--sessions-per-{quota}", 2)
                report = self.message_report(self.client("--connect", here, "-P", 5, "-n", 100, "--verify").finish(), code=5)
                self.assertEqual((report["sessions"]["connected"], report["sessions"]["lost"]), (2, {"peer_full": 3}))
                report = self.stopped(server)
                self.assertEqual((report["sessions"]["accepted"], report["drops"]), (2, {"over_quota": 3}))
                self.assertEqual(report["protocol"][f"over_per_{quota}"], 3)
                self.assertEqual(report["requests"]["served"], 100)

    def test_a_client_of_two_servers(self):
        first, second = (f"127.0.0.1:{free_port()}" for _ in range(2))
        servers = [self.server("--listen", address) for address in (first, second)]
        outcome = self.client("--connect", f"{first},{second}", "-P", 4, "-n", 20_000, "--verify").finish()
        self.all_answered(outcome, 20_000)
        served = [self.stopped(server)["requests"]["served"] for server in servers]
        self.assertEqual(sum(served), 20_000)
        self.assertGreater(min(served), 0)

    def test_requests_at_a_rate(self):
        here = f"127.0.0.1:{free_port()}"
        self.server("--listen", here)
        outcome = self.client("--connect", here, "-P", 3, "-n", 200, "--rate", "1K", "--verify").finish()
        report = self.all_answered(outcome, 200)
        self.assertLessEqual(report["rate"]["offered_per_s"], 1010)
        self.assertGreaterEqual(report["duration_s"], 0.19)
        outcome = self.warpline("message", "client", "--connect", here, "--test", "incast", "--rate", "1K")
        self.assert_one_line_error(outcome, 2, "--rate", "incast")

    def test_a_stream_of_intervals(self):
        here = f"127.0.0.1:{free_port()}"
        self.server("--listen", here)
        client = self.start("message", "client", "--connect", here, "--json-stream", "--interval", "20ms")
        client.wait_for("stdout", r'"requests":[1-9]')
        client.signal(signal.SIGINT)
        outcome = client.finish()
        self.assertEqual(outcome.code, 130, outcome)
        for line in outcome.lines:
            self.assertIn("requests_per_s", line["rate"])

    def test_nobody_there(self):
        outcome = self.warpline("message", "client", "--connect", f"127.0.0.1:{free_port()}", "--json")
        report = self.message_report(outcome, code=5)
        self.assertEqual(report["sessions"]["lost"], {"no_answer": 1})
        self.assertIn("the server is gone: no session was accepted", outcome.stderr)

    def test_a_port_that_is_taken(self):
        here = f"127.0.0.1:{free_port()}"
        self.server("--listen", here)
        outcome = self.warpline("message", "server", "--listen", here)
        self.assert_one_line_error(outcome, 3, here, "use another port")

    def test_an_address_of_somebody_else(self):
        outcome = self.warpline("message", "server", "--listen", "192.0.2.1:7000")
        self.assert_one_line_error(outcome, 3, "192.0.2.1:7000")

    def test_memory_of_a_gpu_where_there_is_none(self):
        if Path("/dev/nvidia0").exists():
            self.skipTest("there is a GPU")
        for end in (("server",), ("client", "--connect", f"127.0.0.1:{free_port()}")):
            for memory in ("pinned", "device"):
                with self.subTest(end=end[0], memory=memory):
                    outcome = self.warpline("message", *end, "-m", memory)
                    self.assert_one_line_error(outcome, 3, "GPU")

    def test_strangers_packets_are_counted_and_change_nothing(self):
        port = free_port()
        server = self.server("--listen", f"127.0.0.1:{port}")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            for payload in (b"", b"x", b"GET / HTTP/1.1\r\n", b"\x57" * 3, b"\x57\x10" + bytes(1000), b"\x57\xf0" * 40):
                handle.sendto(payload, ("127.0.0.1", port))
        outcome = self.client("--connect", f"127.0.0.1:{port}", "-n", 50, "--verify").finish()
        self.all_answered(outcome, 50)
        report = self.stopped(server)
        late = report["drops"].get("unknown_session", 0)  # behind the goodbye
        self.assertIn(sum(report["drops"].values()), (6, 6 + late), report["drops"])
        self.assertEqual(report["requests"]["served"], 50)

    def lost_server(self, *client):
        """A client whose server was killed in the middle: (client, server's address)."""
        here = f"127.0.0.1:{free_port()}"
        server = self.server("--listen", here)
        program = self.client(
            "--connect", here, "-P", 4, "--test", "rate", "--peer-timeout", "2s", "--verify", *client
        )
        program.wait_for("stderr", ROW)
        server.signal(signal.SIGKILL)
        server.process.wait()
        return program, here

    def test_a_killed_server_ends_every_request_with_an_error(self):
        client, _ = self.lost_server()
        outcome = client.finish()
        report = self.message_report(outcome, code=5)
        self.judge_losses(report, timeout=2_000_000_000, told=True)
        self.assertGreater(report["protocol"]["icmp_unreachable"], 0)
        self.assertIn("sessions were lost", outcome.stderr)

    def test_a_server_that_goes_away_leaves_no_request_open(self):
        here = f"127.0.0.1:{free_port()}"
        server = self.server("--listen", here)
        client = self.client("--connect", here, "-P", 4, "--test", "rate", "--verify")
        client.wait_for("stderr", ROW)
        served = self.stopped(server)
        report = self.message_report(client.finish(), code=5)
        self.assertEqual(report["sessions"]["lost"], {"going_away": 4})
        ended = {status: count for status, count in report["requests"].items() if count != 0}
        self.assertLessEqual(set(ended), {"submitted", "ok", "refused"}, ended)
        self.assertEqual(report["requests"]["ok"], served["requests"]["served"])
        self.assertEqual(served["sessions"]["lost"], {"closed": 4})

    def wait_for_row(self, program, later, pattern=""):
        """Waits for a row of a table that is later than the last by `later` seconds, and matches `pattern` after its time. A
        machine that pauses skips rows."""
        last = float(re.findall(r"^ *(\d+\.\d+) ", program.text("stderr"), re.MULTILINE)[-1])
        program.wait_for("stderr", rf"^ *(\d+\.\d+) +{pattern}", where=lambda row: float(row[1]) > last + later)

    def stop_for_a_second(self, program, witness):
        """One second at least passes in the witness's table."""
        program.signal(signal.SIGSTOP)
        try:
            self.wait_for_row(witness, 1)
        finally:
            program.signal(signal.SIGCONT)

    def test_who_was_stopped_goes_on(self):
        for stops, workers in (("client", 1), ("server", 1), ("server", 2)):
            with self.subTest(stops, workers=workers):
                here = f"127.0.0.1:{free_port()}"
                server = self.server("--listen", here, "--workers", workers)
                # The client's own absence is longer than its patience; the server has fifteen seconds of it.
                impatient = ("--peer-timeout", "900ms") if stops == "client" else ()  # it is stopped for a second at least
                client = self.client("--connect", here, "-P", 4, "--workers", workers, "--test", "rate", "--verify", *impatient)
                for program in (client, server):
                    program.wait_for("stderr", ROW)
                who, witness = (client, server) if stops == "client" else (server, client)
                self.stop_for_a_second(who, witness)
                self.wait_for_row(client, 0.1, "[1-9]")  # it asks again, and is answered
                client.signal(signal.SIGINT)
                report = self.message_report(client.finish(), code=130)
                self.assertEqual(report["sessions"]["lost"], {})
                self.assertEqual(report["sessions"]["connected"], 4)
                self.assertGreater(report["verify"]["checked"], 0)
                self.assertEqual(report["protocol"]["timeouts"], 0)
                self.stopped(server)

    def test_a_killed_server_that_comes_back_is_used_again(self):
        client, here = self.lost_server("--reconnect")
        server = self.server("--listen", here)
        server.wait_for("stderr", ROW)
        client.signal(signal.SIGINT)
        report = self.message_report(client.finish(), code=130)
        self.assertGreater(report["sessions"]["connected"], 4)  # sessions come back one by one
        self.assertGreater(report["verify"]["checked"], 0)
        again = self.stopped(server)
        self.assertGreater(again["requests"]["served"], 0)


if __name__ == "__main__":
    unittest.main()
