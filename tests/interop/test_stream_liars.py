# SPDX-License-Identifier: Apache-2.0
"""`warpline stream` against peers that no system has: they acknowledge what was not sent, take windows back, name ends
twice; and frames with a VLAN's tag."""

import hashlib
import re
import signal
import unittest

from support.program import IS_ROOT
from support.raw_peer import ACK, FIN, MASK, PSH, RST, SYN, RawPeer, options
from support.sending import SEED, SendCase
from support.seeded_payload import SeededPayload
from support.streams import PATIENCE, PORT, VethCase, random_bytes

payload = SeededPayload(SEED)
PEER, PROGRAM = "10.9.0.1", "10.9.0.2"
INITIAL = 0xFFFFF000  # of the peer: its numbers wrap soon


class LiarCase(VethCase, SendCase):
    def setUp(self):
        super().setUp()
        self.near.ip("address", "flush", "dev", "left0")

    def peer(self, **options):
        peer = RawPeer(self.near, "left0", PEER, PROGRAM, **options)
        self.addCleanup(peer.close)
        return peer


class TakenStream:
    """The peer's end of a connection that the program opened: what came, and in which order it is acknowledged."""

    def __init__(self, peer, extra=b"", window=65535):
        self.peer = peer
        syn = peer.segment(lambda segment: segment.flags == SYN)
        self.port, self.initial = syn.source, syn.sequence
        self.pieces = {}
        self.end = None
        peer.send(PORT, self.port, INITIAL, syn.sequence + 1, SYN | ACK, window=window, extra=extra)

    def next(self):
        """The next segment with bytes or the end, which is kept."""
        segment = self.peer.segment(lambda s: s.source == self.port and (s.payload or s.flags & (FIN | RST)))
        if segment.has(RST):
            raise AssertionError("it was reset")
        offset = segment.sequence - self.initial - 1 & MASK
        self.pieces[offset] = max(self.pieces.get(offset, b""), segment.payload, key=len)
        if segment.has(FIN):
            self.end = offset + len(segment.payload)
        return offset, offset + len(segment.payload)

    def arrived(self):
        """Bytes without a gap from the first one on."""
        at = 0
        while at in self.pieces and self.pieces[at]:
            at += len(self.pieces[at])
        return at

    def acknowledge(self, offset, window=65535, flags=ACK, extra=b"", data=b"", ahead=0):
        self.peer.send(
            PORT, self.port, INITIAL + 1 + ahead, self.initial + 1 + offset, flags, data, window=window, extra=extra
        )

    def take_all(self, window=65535):
        """Takes what comes, and says so, up to the end."""
        while self.end is None or self.arrived() < self.end:
            self.next()
            self.acknowledge(self.arrived(), window)
        self.acknowledge(self.end + 1, flags=FIN | ACK)

    def digest(self):
        whole = hashlib.sha256()
        at = 0
        while at in self.pieces and self.pieces[at]:
            whole.update(self.pieces[at])
            at += len(self.pieces[at])
        return whole.hexdigest()


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Sender(LiarCase):
    LENGTH = 100_000

    def begin(self, extra=options(mss=1460), window=65535, *arguments):
        peer = self.peer()
        program = self.sender("--bytes", self.LENGTH, *arguments, netns=self.far.name)
        return program, TakenStream(peer, extra, window)

    def ends_right(self, program, stream):
        stream.take_all()
        report = self.send_report(program.finish())
        self.assertEqual(report["connections"]["finished"], 1)
        self.assertEqual(stream.end, self.LENGTH)
        self.assertEqual(stream.digest(), payload.digest(stream.port, self.LENGTH))
        return report

    def test_acknowledges_what_was_not_sent(self):
        program, stream = self.begin()
        stream.next()
        for beyond in (50_000_000, 1 << 31, (1 << 32) - 200_000):
            stream.acknowledge(beyond)
        report = self.ends_right(program, stream)
        self.assertEqual(report["drops"]["wrong_acknowledgement"], 3)

    def test_acknowledges_before_it_can_have_anything(self):
        """What it has not taken is gone: it said that it had it."""
        program, stream = self.begin()
        while stream.end is None:
            _, end = stream.next()
            stream.acknowledge(end + (1 if stream.end is not None else 0))
        stream.acknowledge(stream.end + 1, flags=FIN | ACK)
        self.assertEqual(self.send_report(program.finish())["acknowledged"]["bytes"], self.LENGTH)

    def test_takes_its_window_back(self):
        program, stream = self.begin()
        stream.next()
        for window in (20_000, 3000, 1, 0):
            stream.acknowledge(0, window)
        self.ends_right(program, stream)

    def test_opens_its_window_byte_by_byte(self):
        """Nobody is made to send small segments: the window is taken when a timer says so."""
        self.LENGTH = 5
        program, stream = self.begin(window=1)
        for _ in range(3):
            stream.next()
            stream.acknowledge(stream.arrived(), window=1)
        self.ends_right(program, stream)

    def test_closes_its_window_for_ever(self):
        program, stream = self.begin(window=0)
        for _ in range(3):
            question = stream.peer.segment(lambda segment: segment.source == stream.port and not segment.payload)
            self.assertTrue(question.has(ACK))
            stream.acknowledge(0, window=0)
        program.signal(signal.SIGINT)
        report = self.send_report(program.finish(), code=130)
        self.assertEqual(report["sent"]["bytes"], 0)
        self.assertEqual(report["connections"]["aborted"], 1)

    def test_tells_nonsense_by_selective_acknowledgements(self):
        program, stream = self.begin(extra=options(mss=1460, selective=True))
        begin, end = stream.next()
        first = stream.initial + 1
        for blocks in (
            [(first + 500_000, first + 600_000)],  # not sent
            [(first + end, first)],  # backwards
            [(first - 50_000, first + end)],  # from before the beginning
            [(first, first)],  # empty
            [(first, first + (1 << 31))],  # half of all numbers
            [(first + 1, first + 3), (first + 5, first + 6), (first + 8, first + 9), (first + 10, first + 11)],
        ):
            stream.acknowledge(0, extra=options(blocks=blocks))
        self.ends_right(program, stream)

    def test_throws_away_what_it_selectively_acknowledged(self):
        program, stream = self.begin(extra=options(mss=1460, selective=True))
        begin, end = stream.next()
        while end < 10_000:
            _, end = stream.next()
        stream.acknowledge(0, extra=options(blocks=[(stream.initial + 1, stream.initial + 1 + end)]))
        stream.pieces.clear()
        report = self.ends_right(program, stream)
        self.assertGreater(report["timeouts"], 0)

    def test_names_a_segment_size_that_none_has(self):
        for mss in (0, 1, 87):
            program, stream = self.begin(extra=options(mss=mss))
            self.ends_right(program, stream)
            self.assertLessEqual(max(map(len, stream.pieces.values())), 1448)

    def test_scales_its_window_more_than_there_is(self):
        program, stream = self.begin(extra=options(mss=1460, scale=15))
        self.ends_right(program, stream)

    def test_sends_bytes_and_two_ends(self):
        program, stream = self.begin()
        stream.next()
        stream.acknowledge(0, flags=FIN | ACK, data=b"x" * 10)
        stream.acknowledge(0, flags=FIN | ACK, data=b"x" * 20)
        stream.acknowledge(0, flags=ACK | PSH, data=b"y" * 100, ahead=11)
        while stream.end is None or stream.arrived() < stream.end:
            stream.next()
            stream.acknowledge(stream.arrived(), ahead=11)
        stream.acknowledge(stream.end + 1, ahead=11)
        report = self.send_report(program.finish())
        self.assertEqual(stream.digest(), payload.digest(stream.port, self.LENGTH))
        self.assertEqual(report["ignored_bytes"], 10)
        self.assertGreaterEqual(report["drops"]["behind_end"], 1)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Receiver(LiarCase):
    def begin(self, *arguments, vlan=None, extra=options(mss=1460, scale=0, selective=True)):
        program = self.listener("--output", "out", *arguments)
        peer = self.peer(vlan=vlan)
        peer.ask()
        return program, peer, self.open(peer, extra)

    def open(self, peer, extra=b"", port=40_000):
        """Returns the number that the program's first byte would have."""
        peer.send(port, PORT, INITIAL, 0, SYN, extra=extra)
        answer = peer.segment(lambda segment: segment.has(SYN | ACK) and segment.destination == port)
        self.assertEqual(answer.acknowledgement, INITIAL + 1)
        peer.send(port, PORT, INITIAL + 1, answer.sequence + 1, ACK)
        return answer.sequence + 1

    def acknowledged(self, peer, count, port=40_000):
        """Waits until so many bytes (or the end behind them) are."""
        return peer.segment(lambda s: s.destination == port and s.acknowledgement == (INITIAL + 1 + count & MASK))

    def end(self, peer, theirs, length, port=40_000):
        peer.send(port, PORT, INITIAL + 1 + length, theirs, FIN | ACK)
        peer.segment(lambda segment: segment.destination == port and segment.has(FIN))
        peer.send(port, PORT, INITIAL + 2 + length, theirs + 1, ACK)

    def test_sends_byte_by_byte_and_backwards(self):
        data = random_bytes(1, 3000)
        program, peer, theirs = self.begin()
        for at in range(len(data) - 1, -1, -2):  # more holes than anybody keeps
            peer.send(40_000, PORT, INITIAL + 1 + at, theirs, ACK, data[at : at + 1])
            if at % 128 == 1:
                peer.ask()  # what came before is taken by then: a full ring would lose what is not sent again
        for at in range(len(data)):
            peer.send(40_000, PORT, INITIAL + 1 + at, theirs, ACK, data[at : at + 1])
            if at % 16 == 15:
                self.acknowledged(peer, at + 1)
        self.acknowledged(peer, len(data))
        self.end(peer, theirs, len(data))
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [data])
        self.assertGreater(report["drops"]["too_many_holes"], 0)

    def test_names_two_ends_and_sends_behind_them(self):
        program, peer, theirs = self.begin()
        peer.send(40_000, PORT, INITIAL + 5, theirs, FIN | ACK, b"efgh")  # a hole before it
        peer.send(40_000, PORT, INITIAL + 5, theirs, FIN | ACK, b"efghij")
        peer.send(40_000, PORT, INITIAL + 9, theirs, ACK, b"xxxx")
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK, b"abcd")
        peer.segment(lambda segment: segment.has(FIN))
        peer.send(40_000, PORT, INITIAL + 10, theirs + 1, ACK)
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"abcdefgh"])
        self.assertEqual(report["drops"]["behind_end"], 2)
        self.assertEqual(report["connections"]["finished"], 1)

    def test_acknowledges_what_was_not_sent(self):
        program, peer, theirs = self.begin()
        peer.send(40_000, PORT, INITIAL + 1, theirs + 1000, ACK, b"lie")
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK, b"truth")
        self.acknowledged(peer, 5)
        self.end(peer, theirs, 5)
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"truth"])
        self.assertEqual(report["drops"]["wrong_acknowledgement"], 1)

    def test_sends_beyond_the_window(self):
        program, peer, theirs = self.begin("--ring", "64Ki")
        peer.send(40_000, PORT, INITIAL + 1 + (64 << 10), theirs, ACK, b"beyond")
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK, b"within")
        self.acknowledged(peer, 6)
        self.end(peer, theirs, 6)
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"within"])
        self.assertEqual(report["drops"]["outside_window"], 1)

    def test_a_flood_of_syns_keeps_nobody_out(self):
        program = self.listener("--output", "out", "--connections", 16)
        peer = self.peer()
        peer.ask()
        for port in range(1000, 3000):
            peer.send(port, PORT, INITIAL, 0, SYN, extra=options(mss=1460))
            if port % 100 == 99:  # all answers at once have no room at our socket
                peer.segment(lambda segment, port=port: segment.has(SYN | ACK) and segment.destination == port)
        theirs = self.open(peer, options(mss=1460))
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
        self.acknowledged(peer, 4)
        self.end(peer, theirs, 4)
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"here"])
        self.assertGreater(report["cookies"], 0)

    def test_resets_right_behind_a_handshake(self):
        """All that comes while the program stands still is one burst: nothing of it waits for anything else."""
        program = self.listener("--output", "out")
        peer = self.peer()
        peer.ask()
        theirs = self.open(peer, options(mss=1460), port=40_001)
        peer.send(40_000, PORT, INITIAL, 0, SYN, extra=options(mss=1460))
        answer = peer.segment(lambda segment: segment.has(SYN | ACK) and segment.destination == 40_000)
        program.signal(signal.SIGSTOP)
        try:
            peer.send(40_000, PORT, INITIAL + 1, answer.sequence + 1, ACK)
            peer.send(40_000, PORT, INITIAL + 1, answer.sequence + 1, ACK | PSH, b"here")
            for at in (0, 5, 5):  # one that fits nowhere, and two that fit
                peer.send(40_000, PORT, INITIAL + at, 0, RST)
        finally:
            program.signal(signal.SIGCONT)
        peer.send(40_001, PORT, INITIAL + 1, theirs, ACK | PSH, b"there")
        self.acknowledged(peer, 5, port=40_001)
        self.end(peer, theirs, 5, port=40_001)
        report = self.stopped(program)
        self.assertEqual(sorted(self.outputs().values()), [b"here", b"there"])
        self.assertEqual((report["connections"]["reset"], report["connections"]["finished"]), (1, 1))

    def test_resets_right_behind_bytes(self):
        """Each connection ends in the burst that its bytes come in, and others are served behind it."""
        ports = (41_000, 41_001, 41_002)
        program = self.listener("--output", "out")
        peer = self.peer()
        peer.ask()
        for port in ports:
            theirs = self.open(peer, options(mss=1460), port)
            program.signal(signal.SIGSTOP)
            try:
                peer.send(port, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
                peer.send(port, PORT, INITIAL + 5, 0, RST)
            finally:
                program.signal(signal.SIGCONT)
            peer.ask()  # what is behind the burst is answered when it was taken
        theirs = self.open(peer, options(mss=1460))
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"there")
        self.acknowledged(peer, 5)
        self.end(peer, theirs, 5)
        report = self.stopped(program)
        self.assertEqual(sorted(self.outputs().values()), [b"here"] * len(ports) + [b"there"])
        self.assertEqual((report["connections"]["reset"], report["connections"]["finished"]), (len(ports), 1))

    def test_forges_a_syn_while_another_peer_opens(self):
        program = self.listener("--output", "out")
        peer = self.peer()
        peer.ask()
        peer.send(40_000, PORT, INITIAL, 0, SYN, extra=options(mss=1460))
        answer = peer.segment(lambda segment: segment.has(SYN | ACK) and segment.destination == 40_000)
        theirs = answer.sequence + 1
        peer.send(40_000, PORT, 0x12345678, 0, SYN, extra=options(mss=1460))
        challenge = peer.segment(lambda segment: segment.destination == 40_000)
        self.assertEqual(
            (challenge.flags, challenge.sequence, challenge.acknowledgement), (ACK, theirs & MASK, INITIAL + 1)
        )
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
        self.acknowledged(peer, 4)
        self.end(peer, theirs, 4)
        self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"here"])

    def test_offers_what_none_has(self):
        for port, extra in ((40_000, options(mss=0, scale=15)), (40_001, options(mss=1, scale=255, selective=True))):
            with self.subTest(port):
                program = self.listener("--output", f"out{port}")
                peer = self.peer()
                peer.ask()
                theirs = self.open(peer, extra, port)
                peer.send(port, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
                self.acknowledged(peer, 4, port)
                self.end(peer, theirs, 4, port)
                self.stopped(program)
                self.assertEqual(list(self.outputs(f"out{port}").values()), [b"here"])

    def test_vanishes(self):
        """It answers the second question for a sign of life, and no other."""
        program, peer, theirs = self.begin("--keepalive", "100ms")
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
        self.acknowledged(peer, 4)
        for i in range(2 + 9):
            peer.segment(lambda segment: segment.sequence == (theirs - 1 & MASK) and not segment.payload)
            if i == 1:
                peer.send(40_000, PORT, INITIAL + 5, theirs, ACK)
        seen = len(program.output["stderr"])
        with program.news:  # a line of the table that has no connection open
            free = program.news.wait_for(
                lambda: any(re.match(r" *[0-9.]+ +0\.000 +0 ", line) for _, line in program.output["stderr"][seen:]),
                PATIENCE,
            )
        self.assertTrue(free)
        report = self.stopped(program)
        self.assertEqual(report["connections"]["timed_out"], 1)
        self.assertEqual(list(self.outputs().values()), [b"here"])

    def test_in_a_vlan(self):
        program, peer, theirs = self.begin("--vlan", 7, vlan=7)
        stranger = self.peer(vlan=8)
        stranger.program_mac = peer.program_mac
        stranger.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"elsewhere")
        peer.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
        self.acknowledged(peer, 4)
        self.end(peer, theirs, 4)
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"here"])
        self.assertGreaterEqual(report["drops"]["other_vlan"], 1)  # and what the kernel says untagged

    def test_a_tag_that_nobody_asked_for(self):
        program, peer, theirs = self.begin()
        stranger = self.peer(vlan=7)
        stranger.program_mac = peer.program_mac
        stranger.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"elsewhere")
        priority = self.peer(vlan=0x6000)
        priority.program_mac = peer.program_mac
        priority.send(40_000, PORT, INITIAL + 1, theirs, ACK | PSH, b"here")
        self.acknowledged(peer, 4)
        self.end(peer, theirs, 4)
        report = self.stopped(program)
        self.assertEqual(list(self.outputs().values()), [b"here"])
        self.assertEqual(report["drops"]["other_vlan"], 1)


class ReceiverByGpuIo(Receiver):
    """The same by GPU-driven I/O, a thread in the GPU's place."""

    test_in_a_vlan = None  # refused: the CPU takes tags off

    def listener(self, *arguments, **options):
        return super().listener("--engine", "thread", "--io", "gpu", *arguments, **options)


if __name__ == "__main__":
    unittest.main()
