# SPDX-License-Identifier: Apache-2.0
"""`generate` as two ends of their own: who only sends, who only receives, and what each says of its queues."""

import unittest

from support import frames, pcap
from support.case import Case, needs_vnic

PACKETS = 1000
SAME = ("--size", 74, "--flows", 8, "--seed", 7, "--no-hugepages")


class Transmit(Case):
    def transmit(self, port, *arguments, **options):
        outcome = self.warpline("generate", "--role", "transmit", "--port", port, "--packets", PACKETS, *SAME, *arguments, "--json", **options)
        report = self.report_of(outcome)
        self.assertEqual(report["tx"]["packets"], PACKETS)
        self.assertNotIn("verify", report)
        return report["queues"]

    def check_flow(self, flow):
        self.assertEqual((flow["packets"], flow["bytes"], flow["packet_bytes"], flow["payload_bytes"]), (PACKETS, 74 * PACKETS, 74, 32))
        for key, value in {
            "ns_per_packet": flow["elapsed_ns"] / PACKETS,
            "pps": 1e9 * PACKETS / flow["elapsed_ns"],
            "bytes_per_s": 1e9 * 74 * PACKETS / flow["elapsed_ns"],
            "payload_bytes_per_s": 1e9 * 32 * PACKETS / flow["elapsed_ns"],
        }.items():
            self.assertAlmostEqual(flow[key] / value, 1, places=9, msg=key)

    @needs_vnic
    def test_until_the_last_packet_has_left(self):
        (queue,) = self.transmit("net_vnic0,wire=sink", "--tx-rs-thresh", 1)
        self.check_flow(queue["tx"])
        self.assertGreaterEqual(queue["tx"]["stalled"], 0)
        self.assertEqual(queue["left"]["unreported"], 0)
        self.assertGreaterEqual(queue["left"]["elapsed_ns"], queue["tx"]["elapsed_ns"])
        self.assertAlmostEqual(queue["left"]["ns_per_packet"], queue["left"]["elapsed_ns"] / PACKETS)
        self.assertNotIn("rx", queue)

    @needs_vnic
    def test_what_the_device_does_not_report_is_said(self):
        for engine in ("inline", "thread"):
            (queue,) = self.transmit(f"net_vnic0,wire=sink,engine={engine}", "--tx-rs-thresh", 32)
            self.assertEqual(queue["left"]["unreported"], PACKETS % 32)

    def test_a_driver_that_does_not_tell(self):
        (queue,) = self.transmit("net_null0")
        self.check_flow(queue["tx"])
        self.assertNotIn("left", queue)

    def test_an_end_with_an_address_answers(self):
        """A router that asks for the generator's address by ARP or echo is answered, whichever end the generator is."""
        mac = bytes.fromhex("020000000007")
        asked = frames.arp_request(mac, "10.0.0.2", "10.0.0.1")
        capture = pcap.write(self.scratch.path / "asked.pcap", [asked])
        for role in ("transmit", "receive", "both"):
            answers = self.scratch.path / f"{role}.pcap"
            outcome = self.warpline(
                *("generate", "--role", role, "--port", f"net_pcap0,rx_pcap={capture},tx_pcap={answers}", "--address", "10.0.0.1/24"),
                *("--seconds", "1s", *(() if role == "receive" else ("--rate", "10pps")), "--no-hugepages", "--json"),
            )
            report = self.report_of(outcome)
            self.assertTrue(report["conserved"], outcome)
            self.assertEqual(report["rx"]["packets"], 1, outcome)
            (answer,) = [frame for frame in pcap.read(answers) if frame[12:14] == b"\x08\x06"]
            own = answer[6:12]
            self.assertEqual(answer[:6], mac)
            self.assertEqual(answer[14:42], bytes.fromhex("0001080006040002") + own + bytes([10, 0, 0, 1]) + mac + bytes([10, 0, 0, 2]))

    @needs_vnic
    def test_for_people(self):
        outcome = self.warpline("generate", "--role", "transmit", "--port", "net_vnic0,wire=sink", "--packets", PACKETS, *SAME)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertRegex(outcome.stdout, r"net_vnic0 queue 0 sent: 1000 packets of 74 bytes \(32 payload\) in \d+ ns: \d+ a second, [\d.]+ ns each, .* stalls\n")
        self.assertRegex(outcome.stdout, r"net_vnic0 queue 0 left: after \d+ ns, [\d.]+ ns each")

    @needs_vnic
    def test_configured_by_the_environment(self):
        variables = {"ROLE": "transmit", "PORT": "net_vnic0,wire=sink", "PACKETS": "500", "SIZE": "74", "QUEUES": "2", "JSON": "true",
                     "NO_HUGEPAGES": "true", "SHARE_CORES": "true"}
        outcome = self.warpline("generate", env={f"WARPLINE_GENERATE_{key}": value for key, value in variables.items()})
        queues = self.report_of(outcome)["queues"]
        self.assertEqual([(queue["queue"], queue["tx"]["packets"]) for queue in queues], [(0, 250), (1, 250)])


class Receive(Case):
    def setUp(self):
        super().setUp()
        self.sent = self.scratch.path / "sent.pcap"
        sender = self.warpline("generate", "--role", "transmit", "--port", f"net_pcap0,tx_pcap={self.sent}", "--packets", PACKETS, *SAME)
        self.assertEqual(sender.code, 0, sender)

    def receive(self, path, packets, code=0, *arguments):
        outcome = self.warpline("generate", "--role", "receive", "--port", f"net_pcap0,rx_pcap={path}", "--packets", packets, *SAME,
                                "--verify", "--json", *arguments)
        return self.report_of(outcome, code)

    def test_all_that_was_sent(self):
        report = self.receive(self.sent, PACKETS)
        self.assertEqual((report["tx"]["packets"], report["generated"]["packets"]), (0, 0))
        self.assertEqual(report["delivered"]["packets"], PACKETS)
        self.assertEqual(report["verify"], {"checked": PACKETS, "bad": 0, "missing": 0, "duplicated": 0, "reordered": 0, "late": 0})
        self.assertNotIn("latency_ns", report)
        (queue,) = report["queues"]
        Transmit.check_flow(self, queue["rx"])
        self.assertNotIn("tx", queue)

    def test_lost_repeated_and_damaged(self):
        frames = pcap.read(self.sent)
        damaged = frames[900][:70] + bytes([frames[900][70] ^ 1]) + frames[900][71:]
        path = pcap.write(self.scratch.path / "worse.pcap", frames[:5] + frames[6:17] + frames[18:100] + frames[99:900] + [damaged] + frames[901:])
        report = self.receive(path, PACKETS - 3, 4)
        verify = report["verify"]
        self.assertEqual((verify["missing"], verify["duplicated"], verify["bad"]), (3, 1, 1))

    def test_what_does_not_go_together(self):
        self.assert_one_line_error(self.warpline("generate", "--role", "transmit", "--port", "net_null0", "--verify"), 2, "--role", "--verify")
        self.assert_one_line_error(self.warpline("generate", "--role", "receive", "--port", "net_null0", "--rate", "1Mpps"), 2, "--rate")
        self.assert_one_line_error(self.warpline("generate", "--role", "send", "--port", "net_null0"), 2, "transmit")


if __name__ == "__main__":
    unittest.main()
