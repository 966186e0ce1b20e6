# SPDX-License-Identifier: Apache-2.0
"""Under real-time scheduling the kernel runs nobody else on a core until the program lets it: every run still ends, by
itself and when it is told to. A guard of higher priority kills one that does not."""

import os
import shutil
import signal
import subprocess
import unittest

from support.case import LIVE_ROW, Case

CHRT, TASKSET, GUARD = (shutil.which(name) for name in ("chrt", "taskset", "timeout"))
POLICIES = {"fifo": "-f", "round robin": "-r"}
CPUS = sorted(os.sched_getaffinity(0))[-2:]
# More workers than two cores, and a pair that has a core each, so that only the control thread has none.
COMMANDS = (
    ("forward", "--loopback", "--verify"),
    ("forward", "--loopback", "--pipelines", 2, "--engine", "thread", "--verify"),
    ("generate", "--port", "net_ring0", "--verify"),
    ("forward", "--port", "net_null0", "--pipelines", 2),
)


def permitted():
    if not (CHRT and TASKSET and GUARD):
        return False
    return subprocess.run([CHRT, "-f", "99", "true"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(permitted(), "chrt, of util-linux, may not give real-time priority here")
class RealTime(Case):
    def start_on(self, cpus, policy, *arguments):
        guard = (CHRT, "-f", "99", GUARD, "--foreground", "--signal=KILL", "30")
        pinned = (CHRT, POLICIES[policy], "1", TASKSET, "--cpu-list", ",".join(map(str, cpus)))
        return self.start(*arguments, "--json", "--interval", "50ms", prefix=(*guard, *pinned))

    def each(self):
        for cpus in (CPUS[-1:], CPUS):
            for policy in POLICIES:
                for command in COMMANDS:
                    with self.subTest(cpus=cpus, policy=policy, command=command):
                        yield cpus, policy, command

    def test_a_run_ends_when_its_time_is_over(self):
        for cpus, policy, command in self.each():
            program = self.start_on(cpus, policy, *command, "--seconds", "0.2")
            report = self.report_of(program.finish())
            self.assertEqual(report["in_flight"], 0)

    def test_a_run_ends_when_it_is_told_to(self):
        for cpus, policy, command in self.each():
            program = self.start_on(cpus, policy, *command)
            program.wait_for("stderr", LIVE_ROW)
            program.signal(signal.SIGTERM)
            report = self.report_of(program.finish(), code=130)
            self.assertEqual(report["in_flight"], 0)


if __name__ == "__main__":
    unittest.main()
