# SPDX-License-Identifier: Apache-2.0
"""The published tables, with few and short runs."""

import unittest

from support.case import Case, long_only, needs_vnic

QUICK = ("--rounds", "2", "--seconds", "100ms", "--rows", "64")


class Bench(Case):
    def test_names_its_tables(self):
        outcome = self.warpline("bench", "list")
        self.assertEqual((outcome.code, outcome.stderr), (0, ""), outcome)
        self.assertRegex(outcome.stdout, "(?m)^forward-size ")
        names = [bench["name"] for bench in self.warpline("bench", "list", "--json").report["benches"]]
        self.assertEqual(names, ["forward-size", "forward-burst", "adaptive", "copy-batch", "memcpy", "rate", "recycle",
                                 "stream-chunk"])

    def test_a_wrong_name_or_row_is_refused(self):
        outcome = self.warpline("bench", "forward-sice")
        self.assertEqual((outcome.code, outcome.stdout), (2, ""), outcome)
        self.assertIn("did you mean bench forward-size?", outcome.stderr)
        outcome = self.warpline("bench", "forward-size", "--rows", "65")
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("there are 64, 128", outcome.stderr)

    @needs_vnic
    def test_each_cell_is_verified_and_timed(self):
        outcome = self.warpline("bench", "forward-burst", *QUICK, "--json")
        self.assertEqual(outcome.code, 0, outcome)
        report = outcome.report
        self.assertEqual((report["schema_version"], report["command"]), (1, "bench"))
        self.assertEqual([(row["size"], row["burst"]) for row in report["table"]["rows"]], [(1024, 64), (64, 64)])
        for row in report["table"]["rows"]:
            cell = row["columns"]["inline"]
            self.assertGreater(cell["verified_packets"], 0)
            self.assertEqual(len(cell["mpps"]["samples"]), 2)
            self.assertGreater(max(cell["mpps"]["samples"]), 0)  # the machine may pause for a whole round
        if "gpu" not in report:
            self.assertEqual(list(report["table"]["rows"][0]["columns"]), ["inline"])
            self.assertIn("no column for a GPU", report["table"]["notes"][0])

    @needs_vnic
    def test_for_people(self):
        outcome = self.warpline("bench", "forward-size", *QUICK)
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("| frame | burst | host |", outcome.stdout)
        self.assertRegex(outcome.stdout, r"(?m)^\| 64 B \| 64 \| \d+ Gbit/s")
        self.assertIn("l2fwd-nv's README", outcome.stdout)

    @needs_vnic
    def test_packets_received_by_size_and_batch(self):
        few = ("--size", "64,1514", "--batch", "32,2048,adaptive", "--engine", "inline", "--seconds", "50ms")
        outcome = self.warpline("bench", "copy-batch", *few, "--json")
        self.assertEqual(outcome.code, 0, outcome)
        table = outcome.report["table"]
        self.assertEqual([(row["size"], row["batch"]) for row in table["rows"]],
                         [(size, batch) for size in (64, 1514) for batch in ("32", "2048", "adaptive")])
        for row in table["rows"]:
            lent = [] if row["batch"] == "2048" else ["zerocopy, inline"]
            self.assertEqual(list(row["columns"]), ["copy, inline", *lent, "copy-naive, inline"])
            for cell in row["columns"].values():
                self.assertGreater(cell["verified_packets"], 0)
                self.assertGreater(cell["taken"]["median"], 0)
                self.assertLessEqual(cell["taken"]["median"], 1)
        self.assertAlmostEqual(table["rows"][0]["published"]["launch"], 0.09, delta=0.005)
        if "gpu" not in outcome.report:
            self.assertIn("the consumer ran on the CPU", table["notes"][0])
        page = self.scratch.root / "page.html"
        report = self.scratch.root / "copy_batch.json"
        report.write_text(outcome.stdout, encoding="utf-8")
        self.assertEqual(self.warpline("report", report, "--html", page).code, 0)
        self.assertIn("copy-naive, inline", page.read_text(encoding="utf-8"))

    def test_packets_received_refuses_what_it_has_not(self):
        for arguments, reason in (
            (("--batch", 65536), "there are 32, 64"),
            (("--path", "device"), "there are copy, zerocopy, copy-naive"),
            (("--rows", 64), "use --size"),
        ):
            outcome = self.warpline("bench", "copy-batch", *arguments)
            self.assertEqual(outcome.code, 2, outcome)
            self.assertIn(reason, outcome.stderr)
        self.assertEqual(self.warpline("bench", "memcpy", "--size", 64).code, 2)

    @needs_vnic
    def test_recycling_one_factor_at_a_time(self):
        outcome = self.warpline("bench", "recycle", "--rounds", "1", "--packets", "16Ki", "--only", "base,cloned,lcores", "--keep-disturbed",
                                "--json")
        self.assertIn(outcome.code, (0, 1), outcome)  # 1: too short to see what is expected of it
        table = outcome.report["table"]
        rows = {(row["factor"], row["value"]): row["ways"] for row in table["rows"]}
        direct = rows["base", "forward"]["direct"]
        self.assertGreater(direct["recycled_per_packet"], 0.9)
        self.assertEqual(direct["mempool_gets_per_packet"] < 0.1, True)
        self.assertEqual(rows["base", "forward"]["off"]["recycled_per_packet"], 0)
        self.assertGreater(rows["cloned", "10 %"]["direct"]["recycled_per_packet"], 0.5)
        self.assertTrue(rows["lcores", "2"]["auto"]["refused"])
        self.assertIn("another lcore", " ".join(rows["lcores", "2"]["auto"]["notes"]))
        for ways in rows.values():
            for way in ways.values():
                self.assertRegex(way["dpdk"], "^DPDK ")

    def test_recycling_has_no_rows_of_sizes(self):
        outcome = self.warpline("bench", "recycle", "--rows", "64")
        self.assertEqual(outcome.code, 2, outcome)
        outcome = self.warpline("bench", "recycle", "--only", "colour")
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("there are base", outcome.stderr)
        outcome = self.warpline("bench", "forward-size", "--only", "burst")
        self.assertEqual(outcome.code, 2, outcome)

    @needs_vnic
    @long_only
    def test_streams_in_chunks(self):
        few = ("--chunk", "64Ki,1Mi", "--size", "1500,9000", "--bytes", "8Mi", "--rounds", "2")
        outcome = self.warpline("bench", "stream-chunk", *few, "--json")
        self.assertEqual(outcome.code, 0, outcome)
        table = outcome.report["table"]
        self.assertEqual([(row["mtu"], row["processing"], row["chunk"]) for row in table["rows"]],
                         [(mtu, processing, chunk) for mtu in (1500, 9000) for processing in ("placed", "verified", "acknowledged")
                          for chunk in (64 << 10, 1 << 20)])
        for row in table["rows"]:
            cell = row["columns"]["cpu"]
            self.assertEqual(cell["bytes"], 2 * (8 << 20))
            self.assertEqual(cell["verified_bytes"], cell["bytes"] if row["processing"] == "verified" else 0)
            self.assertEqual(cell["chunks_a_round"], (8 << 20) // row["chunk"])
            self.assertEqual(len(cell["goodput_gbps"]["samples"]), 2)
            self.assertGreater(cell["goodput_gbps"]["min"], 0)
            self.assertGreater(cell["chunk_p50_us"]["min"], 0)
            self.assertEqual("chunk_p99_us" in cell, cell["chunks_a_round"] >= 100)
            self.assertEqual(row["published_gbps"], {"processing": 55, "no processing": 75})
        page = self.scratch.root / "page.html"
        report = self.scratch.root / "stream_chunk.json"
        report.write_text(outcome.stdout, encoding="utf-8")
        self.assertEqual(self.warpline("report", report, "--html", page).code, 0)
        self.assertIn("no processing, published", page.read_text(encoding="utf-8"))

    @needs_vnic
    def test_streams_in_chunks_with_processing_or_without(self):
        few = ("--chunk", "1Mi", "--size", "9000", "--bytes", "4Mi", "--rounds", "1", "--json")
        for asked, expected in (("off", ["acknowledged"]), ("on", ["placed", "verified"])):
            outcome = self.warpline("bench", "stream-chunk", *few, "--processing", asked)
            self.assertEqual(outcome.code, 0, outcome)
            self.assertEqual([row["processing"] for row in outcome.report["table"]["rows"]], expected)
            self.assertEqual(outcome.report["table"]["rows"][0]["columns"]["cpu"]["bytes"], 4 << 20)

    @needs_vnic
    def test_streams_in_chunks_with_payload_put_in_by_an_engine(self):
        outcome = self.warpline("bench", "stream-chunk", "--chunk", "1Mi", "--size", "9000", "--bytes", "4Mi", "--rounds", "1", "-P", "4",
                                "--send-engine", "thread", "--json")
        self.assertEqual(outcome.code, 0, outcome)
        for row in outcome.report["table"]["rows"]:
            self.assertEqual(sorted(row["columns"]), ["cpu", "cpu --send-engine thread"])
            for cell in row["columns"].values():
                self.assertEqual(cell["bytes"], 4 << 20)
                self.assertEqual(cell["verified_bytes"], cell["bytes"] if row["processing"] == "verified" else 0)

    @needs_vnic
    def test_streams_in_chunks_for_a_time(self):
        outcome = self.warpline("bench", "stream-chunk", "--chunk", "64Ki", "--size", "9000", "--seconds", "50ms",
                                "--rounds", "1", "-p", "2", "-P", "3")
        self.assertEqual(outcome.code, 0, outcome)
        self.assertIn("2 pairs of ports", outcome.stdout)
        self.assertRegex(outcome.stdout, r"(?m)^\| 9000 \| verified \| 64 KiB \| cpu \| \d+\.\d \[")

    def test_streams_in_chunks_refuse_what_they_have_not(self):
        for arguments, reason in (
            (("stream-chunk", "--chunk", "100"), "there are 65536"),
            (("stream-chunk", "--size", "1400"), "there are 1500, 9000"),
            (("stream-chunk", "--rows", "64"), "use --chunk"),
            (("stream-chunk", "--processing", "no"), "there are on, off"),
            (("stream-chunk", "--send-engine", "graph"), "use inline, thread or launch"),
            (("forward-size", "--processing", "off"), "make bench stream-chunk"),
            (("stream-chunk", "--engine", "graph"), "use launch or persistent"),
            (("forward-size", "--chunk", "64Ki"), "make bench stream-chunk"),
            (("recycle", "--bytes", "1Mi"), "make bench stream-chunk"),
        ):
            outcome = self.warpline("bench", *arguments)
            self.assertEqual(outcome.code, 2, outcome)
            self.assertIn(reason, outcome.stderr)


if __name__ == "__main__":
    unittest.main()
