# SPDX-License-Identifier: Apache-2.0
"""Capture file in, capture file out, every byte compared with what Python makes of the same frames."""

import itertools
import unittest

from support import frames, pcap
from support.case import Case, some_of


class PcapInPcapOut(Case):
    def forward(self, sent, *arguments):
        source = pcap.write(self.scratch.path / "in.pcap", sent)
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}"
        outcome = self.warpline("forward", "--port", spec, "--packets", len(sent), "--json", *arguments)
        report = self.report_of(outcome)
        self.assertEqual(report["rx"], {"packets": len(sent), "bytes": sum(map(len, sent))})
        return report, pcap.read(self.scratch.path / "out.pcap")

    def test_bytes(self):
        sent = frames.mixed(1000, seed=7)
        works = (
            ("none", sent),
            ("mac-swap", [frames.swapped(frame) for frame in sent]),
            ("count", sent),
            ("checksum", sent),
        )
        models = (("inline", "run-to-completion"), ("inline", "pipeline"), ("thread", "pipeline"))
        for (workload, expected), (engine, model), burst in some_of(itertools.product(works, models, (1, 3, 32, 256))):
            with self.subTest(workload=workload, engine=engine, model=model, burst=burst):
                report, received = self.forward(
                    sent, "--workload", workload, "--engine", engine, "--model", model, "--burst", burst
                )
                self.assertEqual(len(received), len(expected))
                self.assertEqual(received, expected)
                self.assertEqual(report["tx"], report["rx"])
                self.assertEqual(sum(report["drops"].values()), 0)

    def test_what_the_count_workload_counts(self):
        sent = [*frames.mixed(500, seed=14), frames.arp_request(bytes(6), "10.0.0.1", "10.0.0.2").ljust(60, b"\0")]
        tagged = [frame[12:14] == b"\x81\x00" for frame in sent]
        types = [frame[16:18] if tag else frame[12:14] for frame, tag in zip(sent, tagged)]
        expected = {
            "packets": 501,
            "bytes": sum(map(len, sent)),
            "arp": 1,
            "ipv4": types.count(b"\x08\x00"),
            "ipv6": types.count(b"\x86\xdd"),
            "vlan_tagged": sum(tagged),
            "other": 0,
            "malformed": 0,
        }
        for arguments in ((), ("--engine", "thread", "--ctas", 2, "--burst", 8)):
            with self.subTest(arguments=arguments):
                report, _ = self.forward(sent, "--workload", "count", *arguments)
                self.assertEqual(report["counted"], {**report["counted"], **expected})
                self.assertEqual(report["counted"]["udp"] + report["counted"]["tcp"], 500)

    def test_several_engine_threads_keep_the_order(self):
        sent = frames.mixed(3000, seed=8)
        _, received = self.forward(sent, "--engine", "thread", "--ctas", 3, "--workload", "none", "--burst", 16)
        self.assertEqual(received, sent)

    def test_multi_segment(self):
        """Frames above one buffer arrive in several segments (net_pcap splits them) and leave whole."""
        sent = [
            frame.ljust(size, bytes([size % 251]))
            for size, frame in zip((60, 2048, 2049, 4000, 6100, 9014), frames.mixed(6, seed=9))
        ]
        for engine in ("inline", "thread"):
            with self.subTest(engine=engine):
                _, received = self.forward(sent, "--mtu", 9000, "--data-room", 2048, "--engine", engine)
                self.assertEqual(received, [frames.swapped(frame) for frame in sent])

    def assert_dropped_for_length(self, report, count):
        self.assertLessEqual(set(report["drops"]), {"giant", "too_many_segments"})
        self.assertEqual(sum(report["drops"].values()), count)

    def test_frames_of_receive_offload_leave_whole_or_by_name(self):
        """Captures of hosts with GRO or TSO have segments of up to 64 KiB. net_pcap writes no more than 16,128 bytes (RTE_ETHER_MAX_JUMBO_FRAME_LEN)
        of a frame in several buffers."""
        sizes = (1514, 9014, 16_128, 16_129, 20_000, 65_535)
        sent = [frame.ljust(size, bytes([size % 251])) for size, frame in zip(sizes, frames.mixed(len(sizes), seed=3))]
        for engine in ("inline", "thread"):
            for room, most in ((2048, 16_128), (32_768, 20_000)):
                with self.subTest(engine=engine, room=room):
                    report, received = self.forward(sent, "--workload", "none", "--data-room", room, "--engine", engine)
                    whole = [frame for frame in sent if len(frame) <= most]
                    self.assertEqual(received, whole)
                    self.assert_dropped_for_length(report, len(sent) - len(whole))
                    self.assertEqual(report["tx"], {"packets": len(whole), "bytes": sum(map(len, whole))})
        report, received = self.forward(sent, "--workload", "mac-swap")
        self.assertEqual(received, [frames.swapped(sent[0])])
        self.assert_dropped_for_length(report, len(sent) - 1)

    def test_each_queue_reads_a_file_of_its_own(self):
        sent = {name: frames.mixed(count, seed) for name, count, seed in (("a", 10, 11), ("b", 700, 12))}
        inputs = "".join(f",rx_pcap={pcap.write(self.scratch.path / name, frame)}" for name, frame in sent.items())
        outputs = "".join(f",tx_pcap={self.scratch.path / name}.out" for name in sent)
        run = ("forward", "--port", f"net_pcap0{inputs}{outputs}", "--workload", "none", "--json")
        report = self.report_of(self.warpline(*run, "-p", 2))
        self.assertEqual(report["rx"]["packets"], 710)
        for name in sent:
            self.assertEqual(pcap.read(self.scratch.path / f"{name}.out"), sent[name])
        self.assert_one_line_error(self.warpline(*run), 2, "2 files or interfaces to receive from", "use 2 pipelines")

    def test_files_with_long_names(self):
        """More than the 128 bytes of arguments that rte_dev_probe() of DPDK 24.11 takes."""
        folder = self.scratch.path / ("f" * 100) / ("g" * 100)
        folder.mkdir(parents=True)
        sent = frames.mixed(20, seed=14)
        source, into = pcap.write(folder / "in.pcap", sent), folder / "out.pcap"
        report = self.report_of(self.warpline("forward", "--port", f"net_pcap0,rx_pcap={source},tx_pcap={into}", "--workload", "none", "--json"))
        self.assertEqual(report["rx"]["packets"], 20)
        self.assertEqual(pcap.read(into), sent)

    def test_two_ports_forward_to_each_other(self):
        sent = {name: frames.mixed(200, seed) for name, seed in (("a", 11), ("b", 12))}
        ports = []
        for i, name in enumerate(sent):
            source = pcap.write(self.scratch.path / f"{name}.pcap", sent[name])
            ports += ["--port", f"net_pcap{i},rx_pcap={source},tx_pcap={self.scratch.path / name}.out.pcap"]
        report = self.report_of(self.warpline("forward", *ports, "--workload", "none", "--packets", 400, "--json"))
        self.assertEqual(report["rx"]["packets"], 400)
        self.assertEqual(pcap.read(self.scratch.path / "a.out.pcap"), sent["b"])
        self.assertEqual(pcap.read(self.scratch.path / "b.out.pcap"), sent["a"])

    def test_a_bound_below_the_file(self):
        sent = frames.mixed(100, seed=13)
        source = pcap.write(self.scratch.path / "in.pcap", sent)
        outcome = self.warpline(
            "forward",
            "--port",
            f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}",
            "--packets",
            37,
            "--workload",
            "none",
            "--json",
        )
        self.assertEqual(self.report_of(outcome)["tx"]["packets"], 37)
        self.assertEqual(pcap.read(self.scratch.path / "out.pcap"), sent[:37])


if __name__ == "__main__":
    unittest.main()
