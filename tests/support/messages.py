# SPDX-License-Identifier: Apache-2.0
"""Runs of `warpline message` and what every report of theirs must hold."""

import itertools
import os
import signal
import socket

from support.case import Case

ROW = r"^ *\d+\.\d+ +[1-9]\d* "  # of the live table, with requests
LISTENING = r"listening on "
STATUSES = ("ok", "refused", "too_long", "deadline", "cancelled", "peer_lost")

ports = itertools.count(20_000 + os.getpid() % 10_000)


def free_port(family=socket.AF_INET):
    """A UDP port that nobody has now."""
    while True:
        port = next(ports)
        with socket.socket(family, socket.SOCK_DGRAM) as handle:
            try:
                handle.bind(("", port))
                return port
            except OSError:
                continue


class MessageCase(Case):
    def server(self, *arguments, **options):
        program = self.start("message", "server", *arguments, "--json", "--interval", "20ms", **options)
        program.wait_for("stderr", LISTENING)
        return program

    def client(self, *arguments, **options):
        return self.start("message", "client", *arguments, "--json", "--interval", "20ms", **options)

    def message_report(self, outcome, code=0):
        self.assertEqual(outcome.code, code, outcome)
        self.assertEqual(outcome.left, [], outcome)
        report = outcome.report
        self.assertEqual(report["schema_version"], 1, outcome)
        requests = report["requests"]
        self.assertEqual(requests["submitted"], sum(requests[status] for status in STATUSES), outcome)
        self.assertTrue(report["conserved"], outcome)
        self.assertEqual(report["leaked_buffers"], 0, outcome)
        if "verify" in report:
            self.assertEqual(report["verify"]["bad"], 0, outcome)
        return report

    def judge_losses(self, report, sessions=4, *, timeout, told=False):
        """All were lost by silence, and each request of theirs ended with an error in time. `told`: the network said
        that nobody is there, and silence was shorter."""
        self.assertEqual(report["peer_timeout_ns"], timeout)
        lost = [loss for loss in report["losses"] if loss["reason"] == ("unreachable" if told else "silent")]
        self.assertEqual(len(lost), sessions, report["losses"])
        doubted = report["protocol"]["peers_doubted"]  # more often if answers were still on the way
        self.assertTrue(doubted >= sessions if told else doubted == 0, report["protocol"])
        for loss in lost:
            # In the client's own clock, without the time that it was not on a processor: the turn of its loop before
            # the one that told of the loss had no reason to tell of it 50 ms before, or half the timeout where a
            # loaded machine has it credit the peer with gaps in its own schedule.
            # The program hears of a response after its endpoint: by the turns that it takes to hand out what came before.
            # Who is told waits an eighth of it, and as long as it takes to be told and to ask twice.
            self.assertGreaterEqual(loss["silent_ns"], (timeout // 8 if told else timeout) - 10_000_000)
            self.assertLessEqual(loss["silent_before_ns"], timeout + timeout // 2 + 50_000_000)
        self.assertEqual(report["requests"]["peer_lost"], sum(loss["requests"] for loss in report["losses"]))
        self.assertGreater(report["requests"]["peer_lost"], 0)

    def stopped(self, program):
        """The report of a program that runs until it is told to end."""
        program.signal(signal.SIGINT)
        return self.message_report(program.finish(), code=130)

    def all_answered(self, outcome, requests):
        report = self.message_report(outcome)
        self.assertEqual(report["requests"]["ok"], requests, outcome)
        self.assertEqual(report["verify"]["checked"], requests, outcome)
        self.assertGreater(report["rate"]["requests_per_s"], 0)
        return report
