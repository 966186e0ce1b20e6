# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: the configuration is read again while packets flow."""

import json
import re
import signal
import subprocess
import unittest

from support import frames, pcap, pcapng
from support.case import LIVE_ROW, needs_vnic
from support.messages import MessageCase, free_port
from support.program import BINARY
from support.scraping import in_namespace_of, telemetry

TIMES = 30
HOST = frames.mac("02:00:00:00:00:09")


class Reload(MessageCase):
    def write(self, name, text):
        (self.scratch.path / name).write_text(text, encoding="ascii")

    def reload(self, program, pattern):
        program.signal(signal.SIGHUP)
        program.wait_for("stderr", pattern)

    def wait_for_times(self, program, pattern, times):
        """Waits until it has been said so many times."""
        with program.news:
            program.news.wait_for(lambda: program.text("stderr").count(pattern) >= times, 60)
        self.assertGreaterEqual(program.text("stderr").count(pattern), times, program.text("stderr"))

    def stop(self, program):
        program.signal(signal.SIGINT)
        return self.report_of(program.finish(), code=130)

    @needs_vnic
    def test_l3forward_forwards_every_packet_meanwhile(self):
        datagram = frames.ip("10.0.0.9", "10.5.0.5", frames.UDP, frames.udp("10.0.0.9", "10.5.0.5", 5000, 53, b"x" * 18))
        frame = frames.ethernet(frames.vnic_mac("net_vnic0"), HOST, frames.ETHERTYPE_IPV4, datagram).ljust(60, b"\0")
        question = frames.arp_request(HOST, "10.0.0.9", "10.0.0.1").ljust(60, b"\0")
        capture = pcap.write(self.scratch.path / "in.pcap", [question, frame])
        self.write("routes", "10.5.0.0/16 via 10.0.0.9\n")
        self.write("more", "10.5.0.0/16 via 10.0.0.9\n10.6.0.0/16 via 10.0.0.9\n")
        self.write("a.toml", '[l3forward]\nroutes = "routes"\n')
        program = self.start("l3forward", "--port", f"net_vnic0,wire=source,rate=20kpps,pcap={capture}", "--address", "10.0.0.1/24",
                             "--config", "a.toml", "--no-hugepages", "--json", "--interval", "20ms")
        program.wait_for("stderr", LIVE_ROW)
        for count in range(TIMES):
            name, routes = (("more", 2), ("routes", 1))[count % 2]
            self.write("a.toml", f'[l3forward]\nroutes = "{name}"\n')
            program.signal(signal.SIGHUP)
            self.wait_for_times(program, f"read {routes} routes again", count // 2 + 1)
        report = self.stop(program)
        self.assertEqual((report["routing"]["reloads"], report["routing"]["refused_reloads"]), (TIMES, 0))
        self.assertEqual((report["drops"], report["in_flight"]), ({}, 0))
        self.assertGreater(report["rx"]["packets"], 0)
        self.assertEqual(report["tx"]["packets"] - report["routing"]["requests"], report["rx"]["packets"])
        self.assertEqual(report["config"]["l3forward"]["routes"], "routes")

    def test_files_behind_symbolic_links_are_read_again(self):
        """The run may read where a link leads to, not only where the link is."""
        elsewhere = self.scratch.path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "r1").write_text("10.5.0.0/16 via 10.0.0.9\n", encoding="ascii")
        (elsewhere / "c1").write_text("[run]\ninterval = \"20ms\"\n", encoding="ascii")
        links = self.scratch.path / "links"
        links.mkdir()
        (links / "routes").symlink_to(elsewhere / "r1")
        (links / "a.toml").symlink_to(elsewhere / "c1")
        program = self.start("l3forward", "--port", "net_null0", "--address", "10.0.0.1/24", "--routes", "links/routes",
                             "--config", "links/a.toml", "--no-hugepages", "--json")
        program.wait_for("stderr", LIVE_ROW)
        (elsewhere / "r1").write_text("10.5.0.0/16 via 10.0.0.9\n10.6.0.0/16 via 10.0.0.9\n", encoding="ascii")
        self.reload(program, "read 2 routes again")
        report = self.stop(program)
        self.assertEqual((report["routing"]["reloads"], report["routing"]["refused_reloads"]), (1, 0))

    def test_how_much_is_said(self):
        self.write("a.toml", '[run]\ninterval = "3600s"\n')
        program = self.start("forward", "--loopback", "--config", "a.toml", "--no-hugepages", "--json")
        program.wait_for("stderr", LIVE_ROW)
        self.write("a.toml", '[run]\ninterval = "20ms"\n[runtime]\nlog-level = "debug"\n')
        self.reload(program, "changed --interval, --log-level$")
        with program.news:
            program.news.wait_for(lambda: len(re.findall(LIVE_ROW, program.text("stderr"), re.M)) >= 3, 60)
        report = self.stop(program)
        self.assertGreaterEqual(len(re.findall(LIVE_ROW, program.text("stderr"), re.M)), 3)
        self.assertEqual(report["config"]["runtime"]["log-level"], "debug")

    @needs_vnic
    def test_forward_forwards_every_packet_meanwhile(self):
        self.write("a.toml", "[forward]\nburst = 32\n")
        program = self.start("forward", "--port", "net_vnic0,wire=source,rate=50kpps", "--config", "a.toml", "--no-hugepages",
                             "--json", "--interval", "20ms")
        program.wait_for("stderr", LIVE_ROW)
        for count in range(TIMES):
            self.write("a.toml", f"[forward]\nburst = {32 if count % 2 else 16}\n")
            program.signal(signal.SIGHUP)
            said = ("unchanged until the next start: --burst", "nothing has changed")[count % 2]
            self.wait_for_times(program, said, count // 2 + 1)
        report = self.stop(program)
        self.assertEqual((report["drops"], report["in_flight"]), ({}, 0))
        self.assertGreater(report["rx"]["packets"], 0)
        self.assertEqual(report["tx"]["packets"], report["rx"]["packets"])
        self.assertEqual(report["config"]["forward"]["burst"], 32)

    @needs_vnic
    def test_a_capture_begins_and_ends_under_traffic(self):
        """Its folder is open to the run if it had one there at the start; no packet is lost over it."""
        def capture(name, what):
            self.write("a.toml", f'[capture]\nfile = "{name}"\nwhat = "{what}"\n')

        capture("first.pcapng", "sample=1/10")
        program = self.start("forward", "--port", "net_vnic0,wire=source,rate=50kpps", "--config", "a.toml", "--no-hugepages",
                             "--json", "--interval", "20ms")
        program.wait_for("stderr", LIVE_ROW)
        capture("second.pcapng", "all")
        self.reload(program, "changed --capture, --capture-what$")
        first = pcapng.read(self.scratch.path / "first.pcapng")
        self.assertGreater(len(first), 0)
        capture("second.pcapng", "dropped")
        self.reload(program, "the capture stays as it was: its file would be replaced")
        capture("no/third.pcapng", "all")
        self.reload(program, "cannot capture to no/third.pcapng")
        capture("", "dropped")
        program.signal(signal.SIGHUP)
        self.wait_for_times(program, "changed --capture, --capture-what", 2)
        ended = pcapng.read(self.scratch.path / "second.pcapng")
        self.assertGreater(len(ended), 0)
        capture("third.pcapng", "all")
        program.signal(signal.SIGHUP)
        self.wait_for_times(program, "changed --capture, --capture-what", 3)
        report = self.stop(program)
        self.assertEqual(pcapng.read(self.scratch.path / "first.pcapng"), first)
        self.assertEqual(pcapng.read(self.scratch.path / "second.pcapng"), ended)
        third = pcapng.read(self.scratch.path / "third.pcapng")
        self.assertEqual(report["capture"]["packets"], len(third))
        self.assertEqual(report["config"]["capture"]["file"], "third.pcapng")
        self.assertEqual((report["drops"], report["in_flight"]), ({}, 0))
        self.assertEqual(report["tx"]["packets"], report["rx"]["packets"])

    def test_a_capture_where_the_run_may_not_write(self):
        self.write("a.toml", "")
        program = self.start("forward", "--loopback", "--config", "a.toml", "--no-hugepages", "--json", "--interval", "20ms")
        program.wait_for("stderr", LIVE_ROW)
        self.write("a.toml", '[capture]\nfile = "late.pcapng"\n')
        # Without Landlock in the kernel it may.
        self.reload(program, "cannot capture to late.pcapng: Permission denied; |changed --capture$")
        self.stop(program)

    def test_who_may_scrape(self):
        self.write("a.toml", "")
        program = self.start("generate", "--port", "net_null0", "--role", "transmit", "--config", "a.toml", "--no-hugepages", "--json",
                             "--interval", "20ms")
        program.wait_for("stderr", LIVE_ROW)
        self.write("a.toml", '[metrics]\nallow = ["192.0.2.0/24", "2001:db8::/32"]\n')
        self.reload(program, "changed --metrics-allow$")
        self.write("a.toml", "")
        program.signal(signal.SIGHUP)
        self.wait_for_times(program, "changed --metrics-allow", 2)
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.report["config"]["metrics"]["allow"], [])

    def test_the_rate_of_generate(self):
        self.write("a.toml", '[traffic]\nrate = "1kpps"\n')
        program = self.start("generate", "--port", "net_null0", "--role", "transmit", "--config", "a.toml", "--no-hugepages", "--json",
                             "--json-stream", "--interval", "50ms")
        program.wait_for("stdout", '"mpps"')
        self.write("a.toml", '[traffic]\nrate = "max"\n')
        self.reload(program, "changed --rate$")
        # More than a thousand frames a second would ever have been: of 50 ms no more than 50.
        program.wait_for("stdout", r'"mpps": ?(0\.[1-9]|[1-9])')
        self.write("a.toml", '[traffic]\nrate = "2kpps"\nflows = 3\n')
        self.reload(program, "unchanged until the next start: --flows$")
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)
        self.assertEqual(outcome.lines[-1]["config"]["traffic"]["rate"], "2kpps")

    def test_a_configuration_that_is_wrong(self):
        self.write("a.toml", "[forward]\nburst = 32\n")
        program = self.start("forward", "--loopback", "--config", "a.toml", "--no-hugepages", "--json", "--interval", "20ms",
                             "--telemetry", "reloaded")
        program.wait_for("stderr", LIVE_ROW)
        for text, said in (("[forward]\n\nburst = 9999\n", "a.toml:3: forward.burst"), ("[forward\n", "a.toml:1"),
                           ("[forward]\nburts = 3\n", "a.toml:2"), (None, "No such file")):
            with self.subTest(text=text):
                if text is None:
                    (self.scratch.path / "a.toml").unlink()
                else:
                    self.write("a.toml", text)
                self.reload(program, f"the configuration stays as it was: .*{said}")
                (answer,) = telemetry(program, "reloaded", "/warpline/reload")
                self.assertTrue(answer["/warpline/reload"].startswith("refused: the configuration stays as it was: "), answer)
                self.assertIn(said, answer["/warpline/reload"])
        self.write("a.toml", "[forward]\nburst = 32\n")
        self.assertEqual(telemetry(program, "reloaded", "/warpline/reload")[0], {"/warpline/reload": "nothing has changed"})
        report = self.stop(program)
        self.assertEqual(report["drops"], {})

    def test_ctl(self):
        self.write("a.toml", "[forward]\nburst = 32\n")
        program = self.start("forward", "--loopback", "--config", "a.toml", "--no-hugepages", "--json", "--interval", "20ms",
                             "--telemetry", "told")
        program.wait_for("stderr", LIVE_ROW)

        def ctl(*options):
            words = in_namespace_of(program, str(BINARY), "ctl", "reload", "--telemetry", "told", *options)
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout, done.stderr

        self.assertEqual(ctl(), (0, "nothing has changed\n", ""))
        self.write("a.toml", "[forward]\nburst = 16\n[traffic]\nrate = \"2Mpps\"\n")
        self.assertEqual(ctl(), (0, "changed --rate\nunchanged until the next start: --burst\n", ""))
        self.write("a.toml", "[forward]\nburst = 0\n")
        code, stdout, stderr = ctl()
        self.assertEqual((code, stdout), (2, ""))
        self.assertRegex(stderr, r"\Awarpline: the configuration stays as it was: a.toml:2: forward.burst: .*\n\Z")
        code, stdout, stderr = ctl("--json")
        self.assertEqual((code, stderr), (2, ""))
        answer = json.loads(stdout)
        self.assertEqual((answer["schema_version"], answer["command"], answer["reloaded"]), (1, "ctl reload", False))
        self.assertIn("a.toml:2: forward.burst", answer["answer"])
        self.assertEqual(answer["pid"], program.process.pid)
        folder = self.scratch.root / "run" / "dpdk" / "told"
        if folder.exists():
            self.assertEqual(folder.stat().st_mode & 0o077, 0, "another user gets at the socket")
        self.assertEqual(self.stop(program)["drops"], {})

    def test_quotas_of_a_server(self):
        here = f"127.0.0.1:{free_port()}"
        self.write("a.toml", "[message]\nsessions-per-address = 1\n")
        server = self.start("message", "server", "--listen", here, "--config", "a.toml", "--json")
        server.wait_for("stderr", "listening on ")
        ask = ("message", "client", "--connect", here, "--test", "rate", "-P", 2, "-t", "200ms", "--json")
        self.assertEqual(self.warpline(*ask).report["sessions"]["lost"], {"peer_full": 1})
        self.write("a.toml", "[message]\nsessions-per-address = 5\nworkers = 2\n")
        self.reload(server, "changed --sessions-per-address$")
        server.wait_for("stderr", "unchanged until the next start: --workers$")
        sessions = self.warpline(*ask).report["sessions"]
        self.assertEqual((sessions["connected"], sessions["lost"].get("peer_full", 0)), (2, 0))
        server.signal(signal.SIGINT)
        self.assertEqual(server.finish().code, 130)


if __name__ == "__main__":
    unittest.main()
