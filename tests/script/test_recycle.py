# SPDX-License-Identifier: Apache-2.0
"""--recycle: how sent buffers come back, what the report tells of it, and what is refused."""

import json
import unittest

from support import frames, pcap
from support.case import Case, needs_vnic

WAYS = ("off", "fast-free", "cache", "direct", "auto")
PACKETS = 500_000
TWO = ("--port", "net_vnic0,wire=static", "--port", "net_vnic1,wire=static")


class Recycle(Case):
    def forward(self, *options):
        return self.warpline("forward", "--workload", "none", "--lcores", 1, "--packets", PACKETS, "--json", *options)

    @needs_vnic
    def test_each_way_between_two_ports_and_through_one(self):
        for ports in (TWO, TWO[:2]):
            for way in WAYS:
                with self.subTest(ports=len(ports) // 2, way=way):
                    recycle = self.report_of(self.forward(*ports, "--recycle", way))["recycle"]
                    self.assertEqual(recycle["way"], way)
                    direct = way in ("direct", "auto")
                    if direct:
                        self.assertGreater(recycle["recycled"], PACKETS * 0.9)
                        self.assertLess(recycle["mempool_gets"], PACKETS * 0.1)
                    else:
                        self.assertEqual(recycle["recycled"], 0)
                        self.assertGreater(recycle["mempool_gets"], PACKETS)
                    self.assertEqual(len(recycle["links"]), len(ports) // 2 if direct else 0)

    @needs_vnic
    def test_every_byte_is_right_whatever_the_way(self):
        for way in WAYS:
            with self.subTest(way=way):
                outcome = self.warpline(
                    "forward", "--loopback", "--recycle", way, "--packets", 50_000, "--size", "imix", "--json"
                )
                report = self.report_of(outcome)
                self.assertEqual(report["verify"]["bad"] + report["verify"]["missing"], 0)
                self.assertEqual(report["recycle"]["recycled"] > 0, way in ("direct", "auto"))

    @needs_vnic
    def test_another_lcore_is_refused_in_words(self):
        outcome = self.forward(*TWO, "--model", "pipeline", "--share-cores", "--recycle", "direct")
        report = self.report_of(outcome)
        self.assertEqual(report["recycle"]["recycled"], 0)
        notes = "\n".join(report["notes"])
        self.assertIn("one lcore receives and another sends; fast-free is used instead", notes)
        self.assertIn("no buffer went from a transmit ring to a receive ring", notes)
        self.assertIn("one lcore receives and another sends", outcome.stderr, "it is said before the run, too")

    def test_a_driver_without_it_is_told_of_only_when_asked(self):
        for options, told in (((), False), (("--recycle", "auto"), True), (("--recycle", "direct"), True)):
            with self.subTest(options=options):
                outcome = self.warpline("forward", "--port", "net_null0", "--packets", 10_000, "--json", *options)
                notes = "\n".join(self.report_of(outcome)["notes"])
                self.assertEqual("net_null has no hooks for it; off is used instead" in notes, told)
                self.assertEqual("no buffer went from" in notes, told)

    @needs_vnic
    def test_thresholds_are_mended(self):
        report = self.report_of(
            self.forward(*TWO, "--recycle", "direct", "--tx-rs-thresh", 64, "--tx-free-thresh", 64, "--rx-free-thresh", 32)
        )
        self.assertGreater(report["recycle"]["recycled"], PACKETS * 0.9)
        self.assertIn("its tx_rs_thresh of 64 would keep buffers from ever moving", "\n".join(report["notes"]))

    @needs_vnic
    def test_the_live_lines_count_too(self):
        outcome = self.warpline("forward", *TWO, "--lcores", 1, "--packets", PACKETS, "--json-stream")
        self.assertEqual(outcome.code, 0, outcome.stderr)
        lines = [json.loads(line) for line in outcome.stdout.splitlines()]
        self.assertGreater(sum(line["recycled"] for line in lines), PACKETS * 0.9)


@needs_vnic
class Routed(Case):
    """l3forward between three links, on each of which a host asks for the router and then sends to the two others."""

    PORTS = 3
    PACKETS = 200_000

    def setUp(self):
        super().setUp()
        self.ports = []
        routes = ""
        for port in range(self.PORTS):
            host, own = frames.mac(f"02:00:00:00:01:{port:02x}"), frames.vnic_mac(f"net_vnic{port}")
            sent = [frames.arp_request(host, f"10.0.{port}.9", f"10.0.{port}.1").ljust(60, b"\0")]
            for i in range(400):
                other = (port + 1 + i % (self.PORTS - 1)) % self.PORTS
                segment = frames.udp(f"10.0.{port}.9", f"10.{100 + other}.0.{i % 250}", 5000, i, b"payload" * (i % 9))
                packet = frames.ip(f"10.0.{port}.9", f"10.{100 + other}.0.{i % 250}", frames.UDP, segment)
                sent.append(frames.ethernet(own, host, frames.ETHERTYPE_IPV4, packet).ljust(60, b"\0"))
            capture = pcap.write(self.scratch.path / f"host{port}.pcap", sent)
            self.ports += ["--port", f"net_vnic{port},wire=source,pcap={capture}", "--address", f"10.0.{port}.1/24"]
            routes += f"10.{100 + port}.0.0/16 via 10.0.{port}.9\n"
        (self.scratch.path / "routes").write_text(routes, encoding="ascii")

    def route(self, *options):
        run = ("l3forward", *self.ports, "--routes", "routes", "--share-cores", "--packets", self.PACKETS, "--json")
        return self.warpline(*run, *options)

    def test_each_way_among_three_ports(self):
        for way in WAYS:
            with self.subTest(way=way):
                report = self.report_of(self.route("--recycle", way))
                recycle = report["recycle"]
                self.assertEqual(recycle["way"], way)
                self.assertEqual(report["drops"].get("no_route", 0), 0)
                self.assertGreater(report["tx"]["packets"], self.PACKETS * 0.9)
                direct = way in ("direct", "auto")
                self.assertEqual(recycle["recycled"] > 0, direct)
                self.assertEqual(bool(recycle["links"]), direct)
                # What ports took from the pool and did not put back is what their rings hold.
                self.assertGreaterEqual(recycle["mempool_gets"], recycle["mempool_puts"])
                self.assertLessEqual(recycle["mempool_gets"] - recycle["mempool_puts"], self.PORTS * 2 * 4096)
                self.assertEqual([note for note in report["notes"] if "recycl" in note], [])

    def test_pipelines_of_their_own_recycle_each_for_itself(self):
        report = self.report_of(self.route("--recycle", "direct", "--pipelines", 2))
        self.assertGreater(report["recycle"]["recycled"], 0)

    def test_what_a_driver_cannot_is_said_of_its_port(self):
        self.ports += ["--port", "net_null0", "--address", "10.0.9.1/24"]
        for way in ("direct", "auto"):
            with self.subTest(way=way):
                report = self.report_of(self.route("--recycle", way))
                notes = "\n".join(report["notes"])
                self.assertIn("net_null0 rx 0: no direct recycling: net_null has no hooks for it", notes)
                self.assertGreater(report["recycle"]["recycled"], 0, "the others do it")


if __name__ == "__main__":
    unittest.main()
