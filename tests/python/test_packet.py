# SPDX-License-Identifier: Apache-2.0
"""warpline.packet beside sums made here, and against frames that are damaged."""

import array
import itertools
import os
import pathlib
import random
import struct
import sys
import tempfile
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


    def test_a_payload_is_the_bytes_of_its_array(self):
        for numbers in (array.array("h", [300, 5]), array.array("f", [1.7, -3.0]), array.array("q", range(100)), memoryview(b"abcdef").cast("B", (2, 3))):
            for make in (packet.udp, packet.tcp):
                frame = make(numbers, **ENDS)
                self.assertEqual(numbers.tobytes(), frame[packet.parse(frame).payload_offset :])
        for other in (memoryview(b"abcdef")[::2], "text", None, 5, [1, 2]):
            with self.assertRaises(TypeError):
                packet.udp(other, **ENDS)


class Parse(unittest.TestCase):
    def test_any_buffer_of_bytes(self):
        frame = packet.udp(b"x", **ENDS)
        for same in (bytearray(frame), memoryview(frame), array.array("B", frame), memoryview(b"." + frame)[1:]):
            self.assertEqual("udp", packet.parse(same).l4)
        for other in (array.array("H", [1, 2]), memoryview(frame)[::2], "text", None, 5):
            with self.assertRaises(TypeError):
                packet.parse(other)

    def test_numbers_wider_than_a_byte_are_not_cut(self):
        """The buffer protocol names the type of an array's numbers (PEP 3118); nothing converts them in silence."""
        arrays = [array.array("h", [300, 5]), array.array("f", [1.7, -3.0]), array.array("q", range(9)), memoryview(bytes(8)).cast("I")]
        try:
            import numpy
            arrays += [numpy.array([300, 5], "<i2"), numpy.ones(3, "f4"), numpy.arange(1000)]
        except ImportError:
            pass
        for numbers in arrays:
            for take in (packet.parse, packet.verify, packet.with_checksums):
                with self.subTest(numbers=type(numbers)), self.assertRaises(TypeError):
                    take(numbers)

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


class Captures(unittest.TestCase):
    FRAMES = [packet.udp(bytes([n % 251]) * n, **ENDS) for n in (18, 1, 1400)]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "capture"

    def pcap(self, magic=0xA1B2C3D4):
        records = b"".join(struct.pack("<IIII", 1_700_000_000 + i, 5 + i, len(f), len(f) + i) + f for i, f in enumerate(self.FRAMES))
        return struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65535, 1) + records

    def pcapng(self):
        def block(kind, body):
            body += bytes(-len(body) % 4)
            return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

        packets = [block(6, struct.pack("<IIIII", 0, *divmod(1_700_000_000_000_005, 1 << 32), len(f), len(f)) + f) for f in self.FRAMES]
        return block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 65535)) + b"".join(packets)

    def read(self, data):
        self.path.write_bytes(data)
        return packet.read_pcap(self.path)

    def test_pcap(self):
        for magic, unit in ((0xA1B2C3D4, 1000), (0xA1B23C4D, 1)):
            capture = self.read(self.pcap(magic))
            self.assertEqual(self.FRAMES, [bytes(frame) for frame in capture])
            self.assertEqual([(1_700_000_000 + i) * 10**9 + (5 + i) * unit for i in range(3)], list(memoryview(capture.times_ns)))
            self.assertEqual([len(frame) + i for i, frame in enumerate(self.FRAMES)], list(memoryview(capture.lengths)))
            self.assertEqual([0, *itertools.accumulate(map(len, self.FRAMES))], list(memoryview(capture.offsets)))
            self.assertEqual(b"".join(self.FRAMES), bytes(capture.data))

    def test_pcapng(self):
        capture = self.read(self.pcapng())
        self.assertEqual(self.FRAMES, [bytes(frame) for frame in capture])
        self.assertEqual([1_700_000_000_000_005_000] * 3, list(memoryview(capture.times_ns)))

    def test_is_a_sequence(self):
        capture = self.read(self.pcap())
        self.assertEqual((3, self.FRAMES[2], self.FRAMES[:2]), (len(capture), bytes(capture[-1]), [bytes(frame) for frame in capture[:2]]))
        for index in (3, -4):
            with self.assertRaises(IndexError):
                capture[index]
        self.assertEqual("udp", packet.parse(capture[0]).l4)
        view = capture[1]
        del capture
        self.assertEqual(self.FRAMES[1], bytes(view))

    def test_numpy_sees_numbers(self):
        sys.path.append(os.environ["WARPLINE_TEST_WHEELS"])
        try:
            import numpy
        except ImportError:
            self.skipTest("there is no NumPy")
        capture = self.read(self.pcap())
        for array in (numpy.asarray(capture.times_ns), numpy.from_dlpack(capture.times_ns)):
            self.assertEqual((numpy.int64, (3,), [1_000_001_000] * 2), (array.dtype, array.shape, numpy.diff(array).tolist()))

    def test_what_is_none_is_refused(self):
        for data, why in ((b"", "empty"), (b"nonsense" * 9, "unknown file format"), (self.pcap()[:-1], "broken after 2 packets"), (self.pcap()[:24], "no packets")):
            with self.assertRaisesRegex(warpline.UsageError, why):
                self.read(data)
        with self.assertRaisesRegex(warpline.UsageError, "No such file"):
            packet.read_pcap("/nonexistent/capture")


if __name__ == "__main__":
    unittest.main()
