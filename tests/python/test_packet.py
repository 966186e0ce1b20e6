# SPDX-License-Identifier: Apache-2.0
"""warpline.packet beside sums made here, and against frames that are damaged."""

import array
import random
import struct
import unittest

import warpline
from warpline import packet

ENDS = {"source": "10.0.0.1", "destination": "10.0.0.2", "source_port": 7000, "destination_port": 9}
ENDS_V6 = {**ENDS, "source": "fd00::1", "destination": "fd00::2"}


def ones_sum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Build(unittest.TestCase):
    def test_udp_by_hand(self):
        frame = packet.udp(b"hello", **ENDS, type_of_service=4, time_to_live=3)
        self.assertEqual(bytes.fromhex("020000000002 020000000001 0800 4504 0021 0000"), frame[:20])
        self.assertEqual(0xFFFF, ones_sum(frame[14:34]))
        self.assertEqual((3, 17), (frame[22], frame[23]))
        self.assertEqual(struct.pack(">HHH", 7000, 9, 13), frame[34:40])
        self.assertEqual(0xFFFF, ones_sum(frame[26:34] + struct.pack(">HH", 17, 13) + frame[34:]))
        self.assertEqual(b"hello", frame[42:])

    def test_tcp_over_ipv6_by_hand(self):
        frame = packet.tcp(b"odd", **ENDS_V6, sequence=2**32 - 1, acknowledgement=5, flags=packet.TcpFlags.SYN | packet.TcpFlags.ACK, window=77)
        self.assertEqual(struct.pack(">HHIIBBH", 7000, 9, 2**32 - 1, 5, 0x50, 0x12, 77), frame[54:70])
        self.assertEqual(0xFFFF, ones_sum(frame[22:54] + struct.pack(">II", 23, 6) + frame[54:]))

    def test_parses_what_it_built(self):
        payload = bytes(range(50))
        for make, l4 in ((packet.udp, "udp"), (packet.tcp, "tcp")):
            for ends, l3 in ((ENDS, "ipv4"), (ENDS_V6, "ipv6")):
                for vlan in ((), (5,), (0xE005, 7)):
                    frame = make(payload, **ends, vlan=vlan)
                    found = packet.parse(frame)
                    self.assertEqual(("forward", l3, l4, vlan), (found.verdict, found.l3, found.l4, found.vlan))
                    self.assertEqual(ends, {name: getattr(found, name) for name in ends})
                    self.assertEqual(("02:00:00:00:00:01", "02:00:00:00:00:02"), (found.source_mac, found.destination_mac))
                    self.assertEqual(payload, frame[found.payload_offset :][: found.payload_length])
                    self.assertEqual("forward", packet.verify(frame))

    def test_what_cannot_be_built_is_said(self):
        for wrong, text in (
            ({"source": "10.0.0"}, "10.0.0"),
            ({"source": "fd00::1"}, "two families"),
            ({"source_mac": "02:00"}, "02:00"),
            ({"vlan": (1, 2, 3)}, "VLAN"),
            ({"vlan": (70000,)}, "VLAN"),
            ({"payload": bytes(65508)}, "longer"),
            ({"payload": bytes(1 << 18)}, "longer"),
        ):
            with self.assertRaisesRegex(warpline.UsageError, text):
                packet.udp(**{**ENDS, **wrong})
        for wrong in ({"source_port": 65536}, {"destination_port": -1}, {"payload": "text"}, {"time_to_live": 256}):
            with self.assertRaises(TypeError):
                packet.udp(**{**ENDS, **wrong})


class Parse(unittest.TestCase):
    def test_any_buffer_of_bytes(self):
        frame = packet.udp(b"x", **ENDS)
        for same in (bytearray(frame), memoryview(frame), array.array("B", frame), memoryview(b"." + frame)[1:]):
            self.assertEqual("udp", packet.parse(same).l4)
        for other in (array.array("H", [1, 2]), memoryview(frame)[::2], "text", None, 5):
            with self.assertRaises(TypeError):
                packet.parse(other)

    def test_damage_has_a_name(self):
        frame = packet.udp(b"x" * 20, **ENDS)
        self.assertEqual("runt", packet.parse(frame[:13]).verdict)
        self.assertEqual("runt", packet.parse(b"").verdict)
        self.assertEqual("ipv4_truncated", packet.parse(frame[:30]).verdict)
        damaged = frame[:-1] + b"y"
        self.assertNotEqual("forward", packet.verify(damaged))
        mended = packet.with_checksums(damaged)
        self.assertEqual(("forward", damaged[-20:]), (packet.verify(mended), mended[-20:]))
        with self.assertRaisesRegex(warpline.UsageError, "runt"):
            packet.with_checksums(b"")

    def test_no_bytes_bring_it_down(self):
        draw = random.Random(1)
        frames = [make(bytes(30), **ends, vlan=vlan) for make in (packet.udp, packet.tcp) for ends in (ENDS, ENDS_V6) for vlan in ((), (1,))]
        for _ in range(20_000):
            frame = bytearray(draw.choice(frames))
            for _ in range(draw.randrange(4)):
                frame[draw.randrange(len(frame))] = draw.randrange(256)
            frame = frame[: draw.randrange(len(frame) + 1)]
            found = packet.parse(frame)
            self.assertLessEqual(found.payload_offset + found.payload_length, len(frame))
            packet.verify(frame)


if __name__ == "__main__":
    unittest.main()
