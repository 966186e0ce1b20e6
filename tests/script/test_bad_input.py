# SPDX-License-Identifier: Apache-2.0
"""What goes wrong before packets flow: one line that says what, why and what mends it, and nothing left behind."""

import os
import unittest

from support import frames, pcap
from support.case import Case
from support.program import IS_ROOT, NOBODY


class PcapFiles(Case):
    def forward(self, source):
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}"
        return self.warpline("forward", "--port", spec, "--packets", 10, "--json")

    def refused(self, source, *fragments):
        before = self.scratch.work_files()
        self.assert_one_line_error(self.forward(source), 2, source.name, *fragments)
        self.assertEqual(self.scratch.work_files(), before, "a half-written output stayed")

    def write(self, name, data):
        path = self.scratch.path / name
        path.write_bytes(data)
        return path

    def test_truncated(self):
        whole = pcap.encode(frames.mixed(10, seed=1))
        for name, cut in (("frame", len(whole) - 5), ("record_header", 24 + 7), ("file_header", 11)):
            with self.subTest(cut_in=name):
                self.refused(self.write(f"{name}.pcap", whole[:cut]))

    def test_empty(self):
        self.refused(self.write("empty.pcap", b""))

    def test_no_packets(self):
        self.refused(self.write("header_only.pcap", pcap.encode([])))

    def test_other_link_type(self):
        self.refused(self.write("raw.pcap", pcap.encode([b"E" * 40], linktype=pcap.LINKTYPE_RAW)))

    def test_no_capture_at_all(self):
        self.refused(self.write("words.pcap", b"These are words, and no capture file.\n" * 9))

    def test_not_there(self):
        self.refused(self.scratch.path / "nowhere.pcap")

    def test_a_folder(self):
        folder = self.scratch.path / "folder.pcap"
        folder.mkdir()
        self.refused(folder)

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_not_readable(self):
        source = pcap.write(self.scratch.path / "secret.pcap", frames.mixed(3, seed=2))
        source.chmod(0o600)
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}"
        outcome = self.warpline("forward", "--port", spec, "--packets", 3, user=NOBODY)
        self.assertIn(outcome.code, (2, 3), outcome)
        self.assert_one_line_error(outcome, outcome.code, "secret.pcap")

    def test_output_into_a_folder_that_is_not_there(self):
        source = pcap.write(self.scratch.path / "in.pcap", frames.mixed(3, seed=2))
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path}/nowhere/out.pcap"
        outcome = self.warpline("forward", "--port", spec, "--packets", 3)
        self.assertIn(outcome.code, (2, 3), outcome)
        self.assert_one_line_error(outcome, outcome.code, "nowhere/out.pcap")


class Ports(Case):
    def test_does_not_exist(self):
        for spec, code in (
            ("0000:ff:1f.7", 2),
            ("net_af_packet0,iface=nowhere0", 2),
            ("net_nosuchdriver0", 2),
            ("net_null0,no_such_argument=1", 2),
            ("nonsense", 2),
            ("net_pcap0,iface=nowhere0", 2),
        ):
            with self.subTest(spec=spec):
                outcome = self.warpline("forward", "--port", spec, "--packets", 10, "--json")
                self.assert_one_line_error(outcome, code, spec.partition(",")[0])

    def test_no_port_at_all(self):
        self.assert_one_line_error(self.warpline("forward", "--packets", 10), 2, "--port", "--loopback")

    def test_the_same_port_twice(self):
        outcome = self.warpline("forward", "--port", "net_null0", "--port", "net_null0", "--packets", 10)
        self.assert_one_line_error(outcome, 2, "net_null0")

    def test_three_ports(self):
        ports = [argument for i in range(3) for argument in ("--port", f"net_null{i}")]
        self.assert_one_line_error(self.warpline("forward", *ports, "--packets", 10), 2)

    def test_more_queues_than_the_port_has(self):
        source = pcap.write(self.scratch.path / "in.pcap", frames.mixed(3, seed=2))
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}"
        outcome = self.warpline("forward", "--port", spec, "--pipelines", 4, "--packets", 3)
        self.assert_one_line_error(outcome, 2, "net_pcap0", "4", "pipelines")
        self.assertEqual(self.scratch.work_files(), {"in.pcap"})


class Machine(Case):
    def test_more_lcores_than_the_machine_has(self):
        cores = os.cpu_count()
        outcome = self.warpline("forward", "--loopback", "--lcores", cores + 1, "--packets", 10)
        self.assert_one_line_error(outcome, 2, cores + 1, cores, "--lcores")

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_no_permission(self):
        outcome = self.warpline("forward", "--port", "net_af_packet0,iface=lo", "--packets", 10, user=NOBODY)
        self.assert_one_line_error(outcome, 3, "net_af_packet0", "cap_net_raw")

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_no_permission_for_a_tap(self):
        outcome = self.warpline("forward", "--port", "net_tap0,iface=wltest0", "--packets", 10, user=NOBODY)
        self.assert_one_line_error(outcome, 3, "net_tap0", "CAP_NET_ADMIN")


if __name__ == "__main__":
    unittest.main()
