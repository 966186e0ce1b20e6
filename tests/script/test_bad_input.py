# SPDX-License-Identifier: Apache-2.0
"""What goes wrong before packets flow: one line that says what, why and what mends it, and nothing left behind."""

import os
import unittest

from support import frames, pcap
from support.case import Case, needs_vnic
from support.program import IS_ROOT, NOBODY


class Order(Case):
    """A file that an option names is read before ports are looked at: it is wrong on any machine."""

    def names_the_file(self, command, code, name, *arguments):
        outcome = self.warpline(*command.split(), "--port", "0000:ff:1f.7", *arguments)
        self.assert_one_line_error(outcome, code, name)

    def test_routes(self):
        routes = self.scratch.path / "nowhere.toml"
        self.names_the_file("l3forward", 2, routes.name, "--address", "10.0.0.1/24", "--routes", routes)

    def test_keys(self):
        key = self.scratch.path / "nowhere.key"
        address = ("--address", "10.0.0.1/24", "--key", key)
        self.names_the_file("message client", 3, key.name, *address, "--connect", "10.0.0.2:7000")
        self.names_the_file("message server", 3, key.name, *address, "--listen", "10.0.0.1:7000")

    def test_as_config_check_has_them(self):
        routes = self.scratch.path / "nowhere.toml"
        outcome = self.warpline(
            "config", "check", "l3forward", "--port", "0000:ff:1f.", "--address", "10.0.0.1/24", "--routes", routes
        )
        self.assertEqual(outcome.code, 2, outcome)
        said = outcome.stdout.splitlines()
        self.assertEqual([routes.name in line for line in said], [True, False], outcome)


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

    @needs_vnic
    def test_fewer_buffers_than_receive_descriptors(self):
        for command, queues in (("forward", "--pipelines"), ("ingest", "--pipelines"), ("generate", "--queues")):
            ports = ("--port", "net_vnic0") if command == "generate" else ("--loopback",)
            with self.subTest(command=command):
                outcome = self.warpline(
                    command, *ports, queues, 2, "--rx-ring", 512, "--pool-size", 1000, "--packets", 10, "--share-cores", "--no-hugepages"
                )
                self.assert_one_line_error(outcome, 2, "use a --pool-size above 1024, or a smaller --rx-ring")

    def test_more_queues_than_the_port_has(self):
        source = pcap.write(self.scratch.path / "in.pcap", frames.mixed(3, seed=2))
        spec = f"net_pcap0,rx_pcap={source},tx_pcap={self.scratch.path / 'out.pcap'}"
        outcome = self.warpline("forward", "--port", spec, "--pipelines", 4, "--packets", 3)
        self.assert_one_line_error(outcome, 2, "net_pcap0", "4", "pipelines")
        self.assertEqual(self.scratch.work_files(), {"in.pcap"})


def gpus_here(case):
    return case.warpline("doctor", "--json").report["gpus"]


class Gpus(Case):
    """Without a GPU the options for one are refused before packets flow, by what is missing; nonsense is, anywhere."""

    def loopback(self, *arguments):
        with self.start("forward", "--loopback", "--packets", 10, *arguments) as program:
            outcome = program.finish()
            with self.assertRaises(ProcessLookupError, msg="a process of its session is left"):
                os.killpg(program.process.pid, 0)
        return outcome

    def test_none_is_here(self):
        if gpus_here(self):
            self.skipTest("there is a GPU")
        for arguments in (
            ("--engine", "persistent"),
            ("--engine", "launch"),
            ("--engine", "graph", "-m", "device"),
            ("--engine", "persistent", "--on-gpu-failure", "failover"),
            ("--engine", "persistent", "-g", 7),
            ("-m", "pinned"),
            ("-m", "pinned", "--split", 64),
            ("-m", "device", "--workload", "none"),
            ("-m", "device", "--split", "on"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.loopback(*arguments), 3, "GPU", "--engine inline", "-m host")

    def test_one_that_is_not_there(self):
        if not gpus_here(self):
            self.skipTest("there is no GPU")
        self.assert_one_line_error(self.loopback("--engine", "persistent", "-g", 1023), 3, "GPU 1023")

    def test_what_cannot_be(self):
        for arguments, fragments in (
            (("-b", 0), ("--burst", "'0'", "512")),
            (("-b", 513), ("--burst", "'513'", "512")),
            (("-b", 512, "--rx-ring", 256), ("--burst 512", "--rx-ring 256", "--burst 256")),
            (("-b", "adaptiv"), ("--burst", "'adaptiv'")),
            (("-b", "adaptive", "--deadline", 5), ("--burst adaptive", "--deadline", "--engine")),
            (("--engine", "thread", "--ctas", 0), ("--ctas", "'0'")),
            (("--engine", "persistent", "--ctas", 0), ("--ctas", "'0'")),
            (("--split", 1514), ("--split 1514", "--mtu 1500")),
            (("--split", 65536), ("--split", "'65536'")),
            (("--engine", "persistent", "--watchdog", 0), ("--watchdog", "'0'")),
            (("--ring-slots", 0), ("--ring-slots", "'0'")),
            (("--engine", "persistent", "-m", "host"), ("--engine", "--memory host", "-m pinned")),
            (("-g", 0), ("--gpu", "--engine persistent")),
            (("-m", "device"), ("--memory device", "-m pinned")),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.loopback(*arguments), 2, *fragments)


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


class LeftByDrivers(Case):
    def test_an_interrupt_of_a_port_that_was_closed(self):
        """net_memif leaves its listening socket with DPDK's interrupt thread, which may look at it while all ends: once
        in a while, so it is tried often."""
        spec = f"net_memif0,role=server,socket={self.scratch.path / 'memif.sock'},socket-abstract=no"
        for attempt in range(12):
            with self.subTest(attempt=attempt):
                outcome = self.warpline("forward", "--port", spec, "--mtu", 9000, "--no-hugepages")
                self.assert_one_line_error(outcome, 2, "9000")


if __name__ == "__main__":
    unittest.main()
