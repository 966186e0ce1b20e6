# SPDX-License-Identifier: Apache-2.0
"""The JSON report and stream."""

import json
import unittest

from support import frames, pcap
from support.case import Case


class Report(Case):
    def test_every_field_of_a_loopback_run(self):
        report = self.report_of(self.warpline("forward", "--loopback", "--packets", 20_000, "--json"))
        for key in ("delivered", "generated", "verify", "latency_ns", "stages"):
            self.assertIn(key, report)
        self.assertEqual(report["command"], "forward")
        self.assertGreater(report["duration_s"], 0)
        latency = report["latency_ns"]
        self.assertGreater(latency["count"], 0)
        ordered = [latency[key] for key in ("p50", "p90", "p99", "p999", "p99999", "max")]
        self.assertEqual(ordered, sorted(ordered))
        for stage in report["stages"]:
            with self.subTest(stage=stage["name"]):
                self.assertGreater(stage["packets"], 0)
                self.assertLessEqual(stage["batch_mean"], report["config"]["forward"]["burst"])

    def test_what_does_not_apply_is_absent(self):
        source = pcap.write(self.scratch.path / "in.pcap", frames.mixed(20, seed=3))
        outcome = self.warpline(
            "forward",
            "--port",
            f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}",
            "--packets",
            20,
            "--json",
        )
        report = self.report_of(outcome)
        for key in ("generated", "delivered", "verify", "gpu"):
            self.assertNotIn(key, report)

    def test_raw_numbers_and_one_object(self):
        outcome = self.warpline("forward", "--loopback", "--packets", 1000, "--json")
        decoder = json.JSONDecoder(parse_constant=lambda text: self.fail(f"{text} is no JSON number"))
        _, end = decoder.raw_decode(outcome.stdout)
        self.assertEqual(outcome.stdout[end:].strip(), "")

    def test_rates_agree_with_each_other(self):
        rate = self.report_of(self.warpline("forward", "--loopback", "--packets", 50_000, "--size", 100, "--json"))[
            "rate"
        ]
        self.assertAlmostEqual(rate["gbps_l1"], rate["mpps"] * (100 + 24) * 8 / 1000, delta=rate["gbps_l1"] * 1e-6)
        self.assertAlmostEqual(rate["gbps_l2"], rate["mpps"] * (100 + 4) * 8 / 1000, delta=rate["gbps_l2"] * 1e-6)

    def test_a_short_run_has_a_rate_too(self):
        """However few packets: the time in which they went through is part of the run's."""
        for packets in (64, 1000, 20_000):
            with self.subTest(packets=packets):
                report = self.report_of(self.warpline("forward", "--loopback", "--packets", packets, "--json"))
                self.assertGreaterEqual(report["rate"]["mpps"] * 1e6 * report["duration_s"], packets * 0.99)
                self.assertLess(report["rate"]["mpps"], 500, "more than a packet in two nanoseconds")

    def test_one_packet_has_no_rate(self):
        """A rate is of the time from the first packet to the last."""
        report = self.report_of(self.warpline("forward", "--loopback", "--packets", 1, "--json"))
        self.assertEqual(report["rate"]["mpps"], 0)

    def test_a_report_is_a_configuration(self):
        """The same run again, from its own report."""
        outcome = self.warpline(
            "forward", "--loopback", "--packets", 1000, "--burst", 5, "--workload", "count", "--json"
        )
        first = self.report_of(outcome)
        path = self.scratch.path / "run.json"
        path.write_text(outcome.stdout, encoding="utf-8")
        second = self.report_of(self.warpline("forward", "--config", path))
        self.assertEqual(second["config"], first["config"])

    def test_without_json_the_report_is_for_people(self):
        outcome = self.warpline("forward", "--loopback", "--packets", 1000)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertNotIn("{", outcome.stdout)
        self.assertRegex(outcome.stdout, r"1000")


class Stream(Case):
    def test_each_line_is_an_interval(self):
        outcome = self.warpline("forward", "--loopback", "--seconds", "0.5", "--json-stream", "--interval", "50ms")
        self.assertEqual(outcome.code, 0, outcome)
        lines = outcome.lines
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            for key in ("time_s", "interval_s", "rx", "tx"):
                self.assertIn(key, line)
        times = [line["time_s"] for line in lines]
        self.assertEqual(times, sorted(times))

    def test_intervals_add_up_to_the_report(self):
        """With both, the report is the last line."""
        outcome = self.warpline(
            "forward", "--loopback", "--packets", 200_000, "--json", "--json-stream", "--interval", "20ms"
        )
        self.assertEqual(outcome.code, 0, outcome)
        *intervals, report = outcome.lines
        self.assertEqual(report["schema_version"], 1)
        self.assertLessEqual(sum(line["rx"]["packets"] for line in intervals), report["rx"]["packets"])

    def test_the_live_table_stays_off_stdout(self):
        outcome = self.warpline("forward", "--loopback", "--seconds", "0.3", "--json", "--interval", "50ms")
        self.report_of(outcome)
        self.assertGreaterEqual(len(outcome.stderr.splitlines()), 3, outcome)


if __name__ == "__main__":
    unittest.main()
