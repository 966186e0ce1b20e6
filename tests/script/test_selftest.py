# SPDX-License-Identifier: Apache-2.0
"""`selftest` between two software NICs, with what works and what does not, to its end and in two parts."""

import json
import signal
import unittest

from support.case import Case, needs_vnic

PAIR = ("--port", "net_vnic0,wire=net_vnic1", "--port", "net_vnic1,wire=net_vnic0")


@needs_vnic
class Selftest(Case):
    def steps(self, report):
        return {step["name"]: step for step in report["steps"]}

    def test_two_ports_from_end_to_end(self):
        outcome = self.warpline("selftest", *PAIR, "--quick", "--no-hugepages", "--json", timeout=400)
        self.assertEqual(outcome.code, 0, outcome)
        report = outcome.report
        self.assertTrue(report["complete"])
        steps = self.steps(report)
        self.assertEqual([step for step in report["steps"] if step["outcome"] in ("failed", "skipped")], [])
        for name in ("link", "mtu 9000", "queues 2", "forward", "burst adaptive", "split 60", "rate: defaults"):
            self.assertEqual(steps[name]["outcome"], "ok", steps[name])
        self.assertEqual(len(steps["queues 2"]["found"]["queue_packets"]), 4)
        self.assertGreater(min(steps["queues 2"]["found"]["queue_packets"]), 0)
        self.assertGreater(report["best"]["frames_per_s"], 0)
        self.assertGreater(steps["latency at a tenth of the rate"]["found"]["latency_ns"]["count"], 0)

        folder = self.scratch.path / "selftest"
        self.assertEqual(json.loads((folder / "selftest.json").read_text(encoding="utf-8")), report)
        self.assertIn("best", (folder / "selftest.html").read_text(encoding="utf-8"))
        self.assertEqual(self.warpline("config", "check", "forward", "--config", folder / "best.toml").code, 0)

    def test_it_goes_on_where_it_was_interrupted(self):
        program = self.start("selftest", *PAIR, "--quick", "--no-hugepages")
        program.wait_for("stderr", "selftest: frames size 60: ok")
        program.signal(signal.SIGINT)
        outcome = program.finish()
        self.assertEqual(outcome.code, 130, outcome)
        kept = json.loads((self.scratch.path / "selftest" / "selftest.json").read_text(encoding="utf-8"))
        self.assertFalse(kept["complete"])
        done = sum(step["outcome"] == "ok" and step["stage"] != "left" for step in kept["steps"])

        program = self.start("selftest", *PAIR, "--quick", "--no-hugepages")
        program.wait_for("stderr", rf"going on behind {done} steps")
        program.wait_for("stderr", "selftest: frames")
        self.assertNotIn("size 60", program.text("stderr"))
        program.signal(signal.SIGTERM)
        self.assertEqual(program.finish().code, 130)

    def test_ports_that_are_not_joined(self):
        outcome = self.warpline(
            *("selftest", "--port", "net_vnic0,wire=sink", "--port", "net_vnic1,wire=sink", "--quick", "--no-hugepages", "--json")
        )
        self.assertEqual(outcome.code, 5, outcome)
        steps = self.steps(outcome.report)
        self.assertEqual(steps["link"]["outcome"], "failed")
        self.assertIn("nothing came back", steps["link"]["why"])
        self.assertEqual(steps["forward"]["outcome"], "skipped")
        self.assertFalse((self.scratch.path / "selftest" / "best.toml").read_text(encoding="utf-8").count("recycle"))

    def test_a_port_that_is_not_there(self):
        outcome = self.warpline("selftest", "--port", "0000:ff:1f.7", "--port", "net_vnic0", "--quick", "--no-hugepages", "--json")
        self.assertIn(outcome.code, (3,), outcome)
        self.assertEqual(self.steps(outcome.report)["link"]["outcome"], "refused")

    def test_what_is_refused_at_once(self):
        for arguments, fragment in (
            ((), "none is given"),
            (("--port", "net_null0") * 3, "3 are given"),
            (("--port", "net_null0") * 2, "a cable has two ends"),
            (("--port", "net_null0", "--gpu", 0), "nobody sends"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline("selftest", *arguments), 2, fragment)


if __name__ == "__main__":
    unittest.main()
