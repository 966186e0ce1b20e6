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

    def test_ports_that_are_joined_to_themselves(self):
        outcome = self.warpline(
            *("selftest", "--port", "net_vnic0,wire=loopback", "--port", "net_vnic1,wire=loopback"),
            *("--quick", "--no-hugepages", "--json"),
        )
        self.assertEqual(outcome.code, 5, outcome)
        self.assertEqual(self.steps(outcome.report)["link"]["outcome"], "ok")
        self.assertEqual(self.steps(outcome.report)["joined"]["outcome"], "failed")
        self.assertIn("check which ports the cable joins", outcome.stderr.splitlines()[-1])

    def test_one_port_that_gets_its_own_frames_back(self):
        outcome = self.warpline(
            *("selftest", "--port", "net_vnic0,wire=loopback", "--gpu", 0, "--quick", "--no-hugepages", "--json"),
            timeout=400,
            env={"CUDA_VISIBLE_DEVICES": ""},
        )
        self.assertEqual(outcome.code, 0, outcome)
        steps = self.steps(outcome.report)
        for name in ("link", "queues 2", "ingest into host memory", "engine thread", "pipelines 2", "several buffers a frame"):
            self.assertEqual(steps[name]["outcome"], "ok", steps[name])
        skipped = [step for step in outcome.report["steps"] if step["outcome"] == "skipped"]
        self.assertEqual({step["name"] for step in skipped if "GPU" not in step["why"]}, {"forward"})
        self.assertIn("ingest, path device", [step["name"] for step in skipped])
        self.assertGreater(outcome.report["best"]["frames_per_s"], 0)
        best = self.scratch.path / "selftest" / "best.toml"
        self.assertEqual(self.warpline("config", "check", "ingest", "--config", best).code, 0)

    def test_features_of_every_persona(self):
        """What each NIC can do works, what it cannot is refused; an ena hears its own address only."""
        for persona in ("mlx5", "ice", "i40e", "ixgbe", "iavf", "ena", "bnxt", "virtio", "vmxnet3", "gve"):
            with self.subTest(persona=persona):
                ports = [f"net_vnic{i},wire=net_vnic{1 - i},persona={persona}" for i in (0, 1)]
                mtu = ("--mtu", 1460) if persona == "gve" else ()
                program = self.start(
                    *("selftest", "--port", ports[0], "--port", ports[1], *mtu, "--quick", "--no-hugepages", "--again")
                )
                program.wait_for("stderr", "selftest: ingest ingest into host memory: ", 60)
                program.signal(signal.SIGINT)
                self.assertEqual(program.finish().code, 130)
                kept = json.loads((self.scratch.path / "selftest" / "selftest.json").read_text(encoding="utf-8"))
                steps = self.steps(kept)
                self.assertEqual([step for step in kept["steps"] if step["outcome"] == "failed"], [])
                self.assertEqual(steps["link"]["outcome"], "refused" if persona in ("ena", "gve") else "ok", steps["link"])
                for name in ("size 60", "queues 2", "forward", "ingest into host memory"):
                    self.assertEqual(steps[name]["outcome"], "ok", steps[name])

    def test_a_port_that_is_not_there(self):
        outcome = self.warpline("selftest", "--port", "0000:ff:1f.7", "--port", "net_vnic0", "--quick", "--no-hugepages", "--json")
        self.assertIn(outcome.code, (3,), outcome)
        self.assertEqual(self.steps(outcome.report)["link"]["outcome"], "refused")

    def test_what_is_refused_at_once(self):
        for arguments, fragment in (
            ((), "none is given"),
            (("--port", "net_null0") * 3, "3 are given"),
            (("--port", "net_null0") * 2, "a cable has two ends"),
            (("--port", "net_null0", "--port", "net_null0,no-rx=1"), "a cable has two ends"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline("selftest", *arguments), 2, fragment)


if __name__ == "__main__":
    unittest.main()
