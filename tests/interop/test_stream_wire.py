# SPDX-License-Identifier: Apache-2.0
"""`warpline stream send` to `warpline stream receive`, two processes: over a wire that damages frames, and stopped in the middle."""

import signal
import unittest

from support.case import long_only
from support.namespaces import Namespace
from support.program import IS_ROOT
from support.sending import SEED, SendCase
from support.streams import VethCase
from support.wires import DamagingWire

FAULTS = {"loss": 0.01, "duplicate": 0.01, "reorder": 0.02, "corrupt": 0.01}


class BothCase(SendCase):
    TAKEN_BY = ()  # what takes segments, if not the queue's own thread
    CORES = 1  # of each queue

    def verifier(self, *arguments, ring=""):
        return self.receiver(
            "--port", f"net_af_packet0,iface=right0{ring}", "--address", "10.9.0.2/24", "--verify", "--seed", SEED,
            *self.TAKEN_BY, *arguments, netns=self.far.name,
        )  # fmt: skip

    def sends(self, *arguments):
        return self.sender(
            *arguments, port="net_af_packet0,iface=left0", address="10.9.0.3/24", to="10.9.0.2", netns=self.near.name
        )

    def all_arrived(self, sender, receiver, connections, length):
        """Both reports."""
        sent = self.send_report(sender.finish())
        received = self.stopped(receiver)
        self.assertEqual(sent["connections"]["finished"], connections)
        self.assertEqual(received["connections"]["finished"], connections)
        self.assertEqual(received["verify"], {"checked": connections * length, "bad": 0})
        return sent, received


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Damage(BothCase):
    def setUp(self):
        super().setUp()
        self.near, self.far = Namespace("near"), Namespace("far")
        self.addCleanup(self.near.remove)
        self.addCleanup(self.far.remove)

    def wire(self, **faults):
        wire = DamagingWire(self.near, self.far, seed=1, **faults)
        self.addCleanup(wire.remove)
        return wire

    def check(self, wire, sent, received):
        self.assertGreater(min(wire.damaged.values()), 0, wire.damaged)
        self.assertGreater(sent["retransmitted"]["segments"], 0)
        self.assertGreater(received["drops"]["wrong_checksum"] + received["drops"].get("malformed", 0), 0)

    def test_everything_at_once(self):
        wire = self.wire(**FAULTS)
        receiver = self.verifier()
        self.check(wire, *self.all_arrived(self.sends("--bytes", 700_000, "-P", 4), receiver, 4, 700_000))

    def test_two_queues(self):
        wire = self.wire(**FAULTS)
        receiver = self.verifier("--pipelines", 2, "--connections", 40, ring=",qpairs=2")
        sent, received = self.all_arrived(self.sends("--bytes", 70_000, "-P", 40), receiver, 40, 70_000)
        self.check(wire, sent, received)
        self.assertEqual(len(received["lcores"]), 2 * self.CORES)

    def test_a_fixed_window(self):
        """It is not made smaller by losses."""
        wire = self.wire(**FAULTS)
        receiver = self.verifier()
        sender = self.sends("--bytes", 1_000_000, "--congestion", "fixed", "--window", "64Ki")
        self.check(wire, *self.all_arrived(sender, receiver, 1, 1_000_000))


class DamageByGpuIo(Damage):
    """By GPU-driven I/O, a thread in the GPU's place."""

    TAKEN_BY = ("--engine", "thread", "--io", "gpu")
    CORES = 2

    @long_only
    def test_two_queues(self):
        super().test_two_queues()


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Stopped(VethCase, BothCase):
    LENGTH = 64 << 20

    def test_both_one_after_the_other(self):
        receiver = self.verifier()
        sender = self.sends("--bytes", self.LENGTH, "-P", 2)
        sender.wait_for("stderr", r"^ *\d+\.\d+ +[0-9.]*[1-9][0-9.]* +2 ")
        receiver.signal(signal.SIGSTOP)
        try:
            sender.wait_for("stderr", r"^ *([2-9]|\d\d+)\.\d+ +0\.000 +2 ")
        finally:
            receiver.signal(signal.SIGCONT)
        sender.signal(signal.SIGSTOP)
        try:
            receiver.wait_for("stderr", r"^ *([4-9]|\d\d+)\.\d+ +0\.000 +2 ")
        finally:
            sender.signal(signal.SIGCONT)
        sent, _ = self.all_arrived(sender, receiver, 2, self.LENGTH)
        self.assertGreater(sent["timeouts"] + sent["window_probes"] + sent["tail_probes"], 0)

    def test_a_second_interrupt_ends_at_once(self):
        for program in (self.verifier(), self.sends()):
            program.wait_for("stderr", r"^ *\d+\.\d+ +\d+\.\d+ +[01] ")
            program.signal(signal.SIGINT)
            program.signal(signal.SIGINT)
            outcome = program.finish(timeout=5)
            self.assertIn(outcome.code, (130, -signal.SIGINT), outcome)


class StoppedByGpuIo(Stopped):
    TAKEN_BY = DamageByGpuIo.TAKEN_BY

    @long_only
    def test_both_one_after_the_other(self):
        super().test_both_one_after_the_other()


if __name__ == "__main__":
    unittest.main()
