# SPDX-License-Identifier: Apache-2.0
"""The built-in generator and checker on the far side of a pair of software NICs: every packet verified."""

import itertools
import shutil
import unittest

from support.case import Case, needs_vnic, some_of

ENGINES = (("inline", "run-to-completion"), ("inline", "pipeline"), ("thread", "pipeline"))
WORKLOADS = ("none", "mac-swap", "count", "checksum", "spin")
BURSTS = (1, 3, 32, 256)
SIZES = ("60", "64", "1514", "9014", "imix")
PACKETS = 1500


class Loopback(Case):
    def verified(self, *arguments, packets=PACKETS):
        report = self.report_of(
            self.warpline("forward", "--loopback", "--verify", "--packets", packets, "--json", *arguments)
        )
        verify = report["verify"]
        self.assertEqual(
            {key: verify[key] for key in ("bad", "missing", "duplicated")}, {"bad": 0, "missing": 0, "duplicated": 0}
        )
        self.assertEqual(report["generated"]["packets"], report["delivered"]["packets"])
        self.assertEqual(verify["checked"], report["delivered"]["packets"])
        self.assertGreaterEqual(verify["checked"], packets)
        self.assertEqual(report["rx"]["packets"], report["tx"]["packets"])
        self.assertEqual(sum(report["drops"].values()), 0)
        self.assertEqual(report["in_flight"], 0)
        return report

    def matrix(self, engine, model):
        for workload, burst, size in some_of(itertools.product(WORKLOADS, BURSTS, SIZES)):
            with self.subTest(workload=workload, burst=burst, size=size):
                arguments = [
                    "--engine",
                    engine,
                    "--model",
                    model,
                    "--workload",
                    workload,
                    "--burst",
                    burst,
                    "--size",
                    size,
                ]
                if size == "9014":
                    arguments += ["--mtu", 9000]
                if workload == "spin":
                    arguments += ["--packet-time", "200ns"]
                report = self.verified(*arguments)
                if size != "imix":
                    self.assertEqual(report["generated"]["bytes"], report["generated"]["packets"] * int(size))

    def test_inline_run_to_completion(self):
        self.matrix("inline", "run-to-completion")

    def test_inline_pipeline(self):
        self.matrix("inline", "pipeline")

    def test_thread(self):
        self.matrix("thread", "pipeline")

    def test_gpu_driven_io(self):
        """A thread in the place of the GPU takes packets by itself, and the proxy looks at none."""
        gpu_io = ("--engine", "thread", "--io", "gpu")
        sizes = (("--size", 60), ("--size", 9014, "--mtu", 9000), ("--size", "imix", "--data-room", 200))
        for workload, burst, size in some_of(itertools.product(WORKLOADS, (1, 256), sizes)):
            time = ("--packet-time", "200ns") if workload == "spin" else ()
            with self.subTest(workload=workload, burst=burst, size=size):
                report = self.verified(*gpu_io, "--workload", workload, "--burst", burst, *size, *time)
                self.assertEqual(report["config"]["forward"]["io"], "gpu")
        for more in (
            ("--model", "run-to-completion"),
            ("--model", "run-to-completion", "--size", "imix", "--data-room", 200, "--burst", 512),
            ("--pipelines", 3, "--flows", 256),
            ("--ring-slots", 2, "--burst", 1),
            ("--recycle", "off"),
        ):
            with self.subTest(more=more):
                self.verified(*gpu_io, *more)

    @needs_vnic
    def test_gpu_driven_io_of_split_packets(self):
        self.verified("--engine", "thread", "--io", "gpu", "--split", 60)

    def test_one_flow_keeps_its_order(self):
        for engine, model, *more in (*ENGINES, ("thread", "pipeline", "--io", "gpu")):
            with self.subTest(engine=engine, model=model, more=more):
                report = self.verified("--engine", engine, "--model", model, *more, "--flows", 1, packets=20_000)
                self.assertEqual(report["verify"]["reordered"], 0)

    def test_bursts_above_a_block_of_threads_on_a_ring_that_wraps(self):
        """What GPU pipelines fail at in silence; the default workload marks every packet, and each is checked."""
        threads, burst, slots, bursts = 256, 512, 2, 200
        for engine in ("inline", "thread"):
            with self.subTest(engine=engine):
                report = self.verified(
                    *("--engine", engine, "--model", "pipeline", "--burst", burst, "--ring-slots", slots),
                    *("--deadline", "1s"),
                    packets=burst * bursts,
                )
                stages = {stage["name"]: stage for stage in report["stages"]}
                self.assertGreater(stages["work"]["batch_mean"], threads)

    def test_batches_that_adapt(self):
        for engine, model in ENGINES:
            with self.subTest(engine=engine, model=model):
                report = self.verified("--engine", engine, "--model", model, "--burst", "adaptive")
                self.assertEqual(report["config"]["forward"]["burst"], "adaptive")
        for more in (("--ctas", 3, "--pipelines", 2), ("--ring-slots", 128), ("--rx-ring", 64), ("--deadline", "1s")):
            with self.subTest(more=more):
                self.verified("--engine", "thread", "--burst", "adaptive", *more)

    def test_jumbo_batches_that_adapt_leave_no_receive_queue_without_buffers(self):
        """The work is slow, so that bursts take all that they may hold, and the pool is made for no more than that."""
        more = ("--mtu", 9000, "--size", 9014, "--ring-slots", 64, "--workload", "spin", "--packet-time", "2us")
        report = self.verified("--engine", "thread", "--burst", "adaptive", "--rx-ring", 128, *more)
        self.assertEqual(sum(report["drops"].values()), 0)

    def test_several_pipelines_and_engine_threads(self):
        for pipelines, ctas in ((2, 1), (3, 2), (4, 1)):
            with self.subTest(pipelines=pipelines, ctas=ctas):
                self.verified("--pipelines", pipelines, "--ctas", ctas, "--engine", "thread", "--flows", 256)

    def test_rate_and_seconds(self):
        report = self.report_of(
            self.warpline("forward", "--loopback", "--rate", "20kpps", "--seconds", "0.5s", "--json")
        )
        self.assertGreater(report["verify"]["checked"], 0)
        # 20 kpps for half a second, with room below for a busy machine and above for one burst.
        self.assertLessEqual(report["generated"]["packets"], 10_000 + 256)
        (queue,) = report["queues"]
        self.assertEqual(queue["tx"]["packets"], report["generated"]["packets"])
        self.assertEqual(report["verify"]["missing"], 0)

    def test_the_rate_is_of_the_port(self):
        arguments = ("-p", "2", "--rate", "20kpps", "--seconds", "0.5s", "--json")
        report = self.report_of(self.warpline("forward", "--loopback", *arguments))
        self.assertLessEqual(report["generated"]["packets"], 10_000 + 2 * 256)
        self.assertEqual([queue["queue"] for queue in report["queues"]], [0, 1])
        self.assertEqual(report["verify"]["missing"], 0)

    def test_shared_cores_are_said(self):
        """One core for all workers: everything still works, and the report says so."""
        outcome = self.warpline(
            "forward",
            "--loopback",
            "--engine",
            "thread",
            "--lcores",
            1,
            "--packets",
            PACKETS,
            "--json",
            prefix=(shutil.which("taskset"), "-c", "0"),
        )
        self.assertRegex(" ".join(self.report_of(outcome)["notes"]), "share")

    def test_the_same_seed_sends_the_same_bytes(self):
        first, second = (self.verified("--size", "imix", "--seed", 5)["generated"] for _ in range(2))
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
