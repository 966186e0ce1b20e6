# SPDX-License-Identifier: Apache-2.0
"""DPDK's own test program meets the software NIC as a NIC."""

import re
import unittest

from support import frames, pcap
from testpmd import Case

FLOW = "flow create 0 ingress pattern"


def five_tuple_swapped(frame):
    """What testpmd's 5tswap makes of a frame of UDP or TCP without tags."""
    out = bytearray(frames.swapped(frame))
    if out[12:14] == b"\x08\x00":
        out[26:30], out[30:34] = frame[30:34], frame[26:30]
        l4 = 14 + 4 * (frame[14] & 15)
    else:
        out[22:38], out[38:54] = frame[38:54], frame[22:38]
        l4 = 54
    out[l4 : l4 + 2], out[l4 + 2 : l4 + 4] = frame[l4 + 2 : l4 + 4], frame[l4 : l4 + 2]
    return bytes(out)


class Modes(Case):
    def through(self, mode, sent, count):
        """The frames that come out when `mode` forwards from a port that replays `sent` to a capture file."""
        source = pcap.write(self.scratch.path / "in.pcap", sent)
        program = self.start_testpmd(
            [f"net_vnic0,wire=source,pcap={source},rate=100Kpps", "net_pcap0,tx_pcap=out.pcap"],
            f"--forward-mode={mode}",
        )
        program.ask("start")
        program.wait_for(lambda stats: stats["tx_good_packets"] >= count, port=1)
        program.ask("stop")
        self.assert_good_end(program)
        return pcap.read(self.scratch.path / "out.pcap")

    def assert_in_order(self, received, expected, count):
        """Every frame is one of those expected; they come round and round, and a busy machine may skip some."""
        self.assertGreaterEqual(len(received), count)
        place = {frame: i for i, frame in enumerate(expected)}
        self.assertEqual(len(place), len(expected))
        for frame in received:
            self.assertIn(frame, place)
        self.assertEqual(len(set(received)), len(expected), "not all came")

    def test_macswap(self):
        sent = frames.mixed(300, seed=21)
        self.assert_in_order(self.through("macswap", sent, 2000), [frames.swapped(frame) for frame in sent], 2000)

    def test_5tswap(self):
        sent = [frame for frame in frames.mixed(400, seed=22) if frame[12:14] != b"\x81\x00"]
        self.assert_in_order(self.through("5tswap", sent, 2000), [five_tuple_swapped(frame) for frame in sent], 2000)

    def test_rxonly(self):
        program = self.start_testpmd(["net_vnic0,wire=source,size=128"], "--forward-mode=rxonly")
        program.ask("start")
        stats = program.wait_for(lambda now: now["rx_good_packets"] >= 10000)
        self.assertEqual(stats["tx_good_packets"], 0)
        stopped = program.ask("stop")
        self.assertIn("TX-packets: 0", stopped)
        stats = program.xstats()
        self.assertEqual(stats["rx_good_bytes"], 128 * stats["rx_good_packets"])
        self.assert_good_end(program)

    def test_txonly(self):
        program = self.start_testpmd(["net_vnic0,wire=sink"], "--forward-mode=txonly", "--txpkts=70,100,300")
        program.ask("start")
        program.wait_for(lambda now: now["tx_good_packets"] >= 10000)
        stopped = program.ask("stop")
        stats = program.xstats()
        self.assertEqual(stats["tx_packets"], int(re.search(r"TX-packets: (\d+)", stopped).group(1)))
        self.assertEqual(stats["tx_good_bytes"], 470 * stats["tx_good_packets"])
        self.assertEqual((stats["rx_good_packets"], stats["tx_malformed"], stats["tx_errors"]), (0, 0, 0))
        self.assert_good_end(program)

    def test_csum(self):
        """Checksums that are wrong when they come to the port are right when they have passed it."""
        good = frames.mixed(400, seed=23)
        bad = [spoil(frame) for frame in good]
        self.assertTrue(all(a != b for a, b in zip(good, bad)))
        source = pcap.write(self.scratch.path / "in.pcap", bad)
        program = self.start_testpmd(
            [f"net_pcap0,rx_pcap={source},tx_pcap=out.pcap", "net_vnic0"], "--forward-mode=csum", "--rx-offloads=0"
        )
        program.ask("port stop 1")
        for what in ("ip", "udp", "tcp"):
            program.ask(f"csum set {what} hw 1")
        for what in ("ipv4_cksum", "udp_cksum", "tcp_cksum"):
            program.ask(f"port config 1 rx_offload {what} on")
        program.ask("port start 1")
        program.ask("start")
        program.wait_for(lambda now: now["tx_good_packets"] >= len(bad), port=0)
        stats = program.xstats(1)
        program.ask("stop")
        self.assertEqual((stats["tx_packets"], stats["rx_packets"]), (len(bad), len(bad)))
        self.assertEqual((stats["rx_bad_ip_checksum"], stats["rx_bad_l4_checksum"], stats["tx_malformed"]), (0, 0, 0))
        self.assert_good_end(program)
        # The addresses of Ethernet are testpmd's own.
        received = [frame[12:] for frame in pcap.read(self.scratch.path / "out.pcap")]
        self.assertEqual(received, [frame[12:] for frame in good])


def spoil(frame):
    """The frame with wrong checksums."""
    l3 = 18 if frame[12:14] == b"\x81\x00" else 14
    out = bytearray(frame)
    if frame[l3] >> 4 == 4:
        out[l3 + 10] ^= 0x55
        protocol, l4 = frame[l3 + 9], l3 + 20
    else:
        protocol, l4 = frame[l3 + 6], l3 + 40
    out[l4 + (6 if protocol == frames.UDP else 16)] ^= 0x55
    return bytes(out)


class Offloads(Case):
    def test_rss_spreads_over_the_queues(self):
        program = self.start_testpmd(
            ["net_vnic0,wire=source,flows=512"], "--forward-mode=rxonly", "--rxq=4", "--txq=4", "--rss-udp"
        )
        program.ask("start")
        program.wait_for(lambda now: now["rx_good_packets"] >= 20000)
        program.ask("stop")
        stats = program.xstats()
        queues = [stats[f"rx_q{i}_packets"] for i in range(4)]
        self.assertGreater(min(queues), 0, stats)
        for i in range(0, 512, 8):
            program.ask("port config 0 rss reta " + ",".join(f"({i + j},2)" for j in range(8)))
        program.ask("clear port xstats 0")
        program.ask("start")
        program.wait_for(lambda now: now["rx_q2_packets"] >= 20000)
        program.ask("stop")
        stats = program.xstats()
        # What waited in the other queues' packet buffers was steered before.
        self.assertGreater(stats["rx_q2_packets"], 20000)
        program.ask("clear port xstats 0")
        program.ask("start")
        stats = program.wait_for(lambda now: now["rx_q2_packets"] >= 20000)
        self.assertEqual([stats[f"rx_q{i}_packets"] for i in (0, 1, 3)], [0, 0, 0])
        program.ask("stop")
        self.assert_good_end(program)

    def test_flow_rules(self):
        program = self.start_testpmd(["net_vnic0,wire=source,flows=64"], "--forward-mode=rxonly", "--rxq=4", "--txq=4")
        created = program.ask(f"{FLOW} eth / ipv4 / udp dst is 9 / end actions queue index 3 / mark id 7 / count / end")
        self.assertIn("Flow rule #0 created", created)
        self.assertIn("Flow rule #1 created", program.ask(f"{FLOW} eth type is 0x0806 / end actions drop / end"))
        refused = program.ask(f"{FLOW} eth / ipv4 / end actions queue index 99 / end")
        self.assertNotIn("created", refused)
        program.ask("start")
        program.wait_for(lambda now: now["rx_q3_packets"] >= 10000)
        program.ask("stop")
        hits = int(re.search(r"hits: (\d+)", program.ask("flow query 0 0 count")).group(1))
        stats = program.xstats()
        self.assertGreaterEqual(hits, stats["rx_q3_packets"])
        self.assertEqual([stats[f"rx_q{i}_packets"] for i in range(3)], [0, 0, 0])
        self.assertIn("destroyed", program.ask("flow destroy 0 rule 0"))
        drop = program.ask(f"{FLOW} eth / ipv4 / udp / end actions drop / end")
        self.assertIn("created", drop)
        program.ask("start")
        program.wait_for(lambda now: now["rx_flow_dropped"] >= 10000)
        program.ask("stop")
        program.ask("flow flush 0")
        self.assertNotIn("=>", program.ask("flow list 0"))
        self.assert_good_end(program)

    def test_buffer_split(self):
        """The first pool's buffers hold 128 bytes: larger frames come through only where the rest goes to the second."""
        sent = [frame for frame in frames.mixed(300, seed=24) if len(frame) > 130]
        source = pcap.write(self.scratch.path / "in.pcap", sent)
        program = self.start_testpmd(
            [f"net_vnic0,wire=source,pcap={source},rate=20Kpps", "net_pcap0,tx_pcap=out.pcap"],
            "--forward-mode=io",
            "--mbuf-size=256,2176",
            "--rxpkts=64,0",
            "--rxoffs=0,0",
        )
        self.assertIn("64,0", program.ask("show config rxpkts"))
        program.ask("start")
        program.wait_for(lambda now: now["rx_too_long"] >= 100)
        program.ask("stop")
        program.ask("port stop 0")
        for offload in ("scatter", "buffer_split"):
            program.ask(f"port config 0 rx_offload {offload} on")
        program.ask("port start 0")
        program.ask("clear port xstats all")
        program.ask("start")
        program.wait_for(lambda now: now["tx_good_packets"] >= 1000, port=1)
        program.ask("stop")
        self.assertEqual(program.xstats()["rx_too_long"], 0)
        self.assert_good_end(program)
        received = pcap.read(self.scratch.path / "out.pcap")
        self.assertGreaterEqual(len(received), 1000)
        self.assertEqual(set(received), set(sent))

    def test_mtu(self):
        program = self.start_testpmd(
            ["net_vnic0,wire=source,size=9014,rate=10Kpps"], "--forward-mode=rxonly", "--mbuf-size=9728"
        )
        program.ask("start")
        program.wait_for(lambda now: now["rx_giant"] >= 100)
        program.ask("stop")
        self.assertEqual(program.xstats()["rx_good_packets"], 0)
        program.ask("port stop 0")
        program.ask("port config mtu 0 9000")
        program.ask("port start 0")
        program.ask("clear port xstats 0")
        program.ask("start")
        program.wait_for(lambda now: now["rx_good_packets"] >= 100)
        program.ask("stop")
        stats = program.xstats()
        self.assertEqual(stats["rx_good_bytes"], 9014 * stats["rx_good_packets"])
        self.assertEqual(stats["rx_giant"], 0)
        self.assert_good_end(program)


class Operation(Case):
    def test_ports_stop_and_start_under_traffic(self):
        """One end stops and starts while the other goes on sending."""
        program = self.start_testpmd(
            ["net_vnic0,wire=net_vnic1,engine=thread", "net_vnic1,wire=net_vnic0,engine=thread"], "--forward-mode=io"
        )
        program.ask("start tx_first")
        for _ in range(5):
            program.wait_for(lambda now: now["rx_good_packets"] > 0)
            for step in ("stop", "port stop 0", "port start 0", "clear port xstats all", "start tx_first"):
                program.ask(step)
            program.wait_for(lambda now: now["rx_good_packets"] > 0, port=1)
        self.assert_good_end(program)

    def test_queues_stop_and_start(self):
        """testpmd goes on polling a queue that it has stopped."""
        program = self.start_testpmd(
            ["net_vnic0,wire=source,flows=512"], "--forward-mode=rxonly", "--rxq=4", "--txq=4", "--rss-udp"
        )
        for _ in range(5):
            program.ask("port 0 rxq 1 stop")
            program.ask("port 0 txq 1 stop")
            program.ask("clear port xstats 0")
            program.ask("start")
            stats = program.wait_for(lambda now: now["rx_stopped"] > 0 and now["rx_q0_packets"] > 1000)
            self.assertEqual(stats["rx_q1_packets"], 0)
            program.ask("stop")
            program.ask("port 0 rxq 1 start")
            program.ask("port 0 txq 1 start")
            program.ask("start")
            program.wait_for(lambda now: now["rx_q1_packets"] > 1000)
            program.ask("stop")
        self.assert_good_end(program)

    def test_reconfiguration_with_other_queues(self):
        program = self.start_testpmd(["net_vnic0,wire=source,flows=512"], "--forward-mode=macswap", "--rss-udp")
        for queues in (1, 8, 3, 2):
            program.ask("port stop 0")
            program.ask(f"port config all rxq {queues}")
            program.ask(f"port config all txq {queues}")
            program.ask("port config all rxd 256")
            program.ask("port config all txd 128")
            program.ask("port start 0")
            program.ask("start")
            program.wait_for(lambda now, last=f"tx_q{queues - 1}_packets": now[last] > 1000)
            program.ask("stop")
        self.assert_good_end(program)

    def test_xstats_tell_of_faults(self):
        program = self.start_testpmd(
            ["net_vnic0,wire=net_vnic1,loss=0.5,duplicate=0.1,corrupt=0.1,seed=5", "net_vnic1,wire=sink"],
            "--forward-mode=txonly",
            "--port-topology=loop",
        )
        program.ask("start")
        program.wait_for(lambda now: now["tx_good_packets"] >= 10000)
        program.ask("stop")
        stats = program.xstats()
        self.assertAlmostEqual(stats["fault_loss"] / stats["tx_good_packets"], 0.5, delta=0.1)
        self.assertGreater(stats["fault_duplicate"], 0)
        self.assertGreater(stats["fault_corrupt"], 0)
        program.ask("clear port xstats all")
        self.assertEqual(set(program.xstats().values()), {0})
        self.assert_good_end(program)

    def test_link(self):
        program = self.start_testpmd(["net_vnic0,wire=net_vnic1", "net_vnic1,wire=net_vnic0"], "--forward-mode=io")
        self.assertIn("Link status: up", program.ask("show port info 0"))
        program.ask("set link-down port 0")
        self.assertIn("Link status: down", program.ask("show port info 0"))
        self.assertIn("link state change event", program.output)
        program.ask("set link-up port 0")
        self.assertIn("Link status: up", program.ask("show port info 0"))
        self.assert_good_end(program)


if __name__ == "__main__":
    unittest.main()
