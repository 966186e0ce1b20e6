# SPDX-License-Identifier: Apache-2.0
"""`--nvtx`, as a profiler sees it: the ranges of a packet's way, each thread's nested properly."""

import os
import unittest

from support.case import Case


class Ranges(Case):
    def ranges_of(self, *arguments):
        """{name: (how often it began, how deep it lay)} of a run."""
        # The program's own view of /tmp is masked; what it writes in its working folder is not.
        env = {"NVTX_INJECTION64_PATH": os.environ["WARPLINE_NVTX_RANGES"], "NVTX_RANGES": "ranges"}
        outcome = self.warpline("forward", "--loopback", "--packets", 20000, "--json", *arguments, env=env)
        report = self.report_of(outcome)
        file = self.scratch.path / "ranges"
        self.assertEqual(file.exists(), "--nvtx" in arguments, outcome)
        lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
        return report, {name: (int(began), int(depth)) for name, began, depth in map(str.split, lines)}

    def test_a_pipeline_marks_each_step_of_each_burst(self):
        for engine in ("inline", "thread"):
            with self.subTest(engine=engine):
                _, ranges = self.ranges_of("--nvtx", "--model", "pipeline", "--engine", engine)
                self.assertEqual(set(ranges), {"rx", "publish", "engine", "complete", "tx", "open"})
                self.assertEqual(ranges["open"][0], 0)
                bursts = ranges["publish"][0]
                self.assertGreater(bursts, 0)
                for step in ("engine", "complete", "tx"):
                    self.assertEqual(ranges[step][0], bursts, step)
                self.assertGreaterEqual(ranges["rx"][0], bursts)
                self.assertEqual(ranges["tx"][1], 2)  # inside of complete

    def test_run_to_completion_marks_its_steps(self):
        _, ranges = self.ranges_of("--nvtx", "--model", "run-to-completion")
        self.assertEqual(set(ranges), {"rx", "engine", "tx", "open"})
        self.assertEqual(ranges["open"][0], 0)
        self.assertEqual(ranges["engine"][0], ranges["tx"][0])

    def test_nothing_is_marked_unless_asked_for(self):
        self.ranges_of()


if __name__ == "__main__":
    unittest.main()
