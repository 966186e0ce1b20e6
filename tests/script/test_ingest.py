# SPDX-License-Identifier: Apache-2.0
"""Receiving for a consumer: every byte of every packet is checked where it lies, and every packet is accounted for."""

import ipaddress
import itertools
import json
import random
import signal
import unittest

from support import frames, pcap
from support.case import LIVE_ROW, Case, needs_vnic, some_of
from support.frame_sums import MASK, frame_sum

PATHS = ("copy", "zerocopy", "copy-naive")
ENGINES = (("--engine", "inline"), ("--engine", "thread"), ("--engine", "thread", "--ctas", 3, "--ring-slots", 4))
BATCHES = (1, 32, 256)
SIZES = ("60", "64", "1514", "9014", "imix")
PACKETS = 3000


class IngestCase(Case):
    def ingest(self, *arguments, packets=PACKETS, code=0):
        outcome = self.warpline(
            "ingest", "--loopback", "-m", "host", "--packets", packets, "--json", "--share-cores", *arguments
        )
        report = self.report_of(outcome, code)
        self.assertTrue(report["conserved"], outcome)
        return report

    def assert_all_taken(self, report, packets=PACKETS):
        verify = report["verify"]
        self.assertEqual((verify["bad"], verify["missing"], verify["duplicated"]), (0, 0, 0), report)
        self.assertEqual(report["generated"]["packets"], packets)
        self.assertEqual(report["delivered"], report["generated"])
        self.assertEqual(report["ingest"]["consumed"]["packets"], packets)
        self.assertEqual(report["ingest"]["consumed"]["bytes"], report["generated"]["bytes"])
        self.assertEqual(report["ingest"]["offered"]["packets"], packets)
        self.assertEqual((report["drops"], report["in_flight"]), ({}, 0))


class Ingest(IngestCase):
    def test_every_path_engine_batch_and_size(self):
        kinds = [(32, size) for size in SIZES] + [(batch, "64") for batch in BATCHES if batch != 32]
        for path, engine, (batch, size) in some_of(itertools.product(PATHS, ENGINES, kinds)):
            with self.subTest(path=path, engine=engine, batch=batch, size=size):
                mtu = ("--mtu", 9000) if size == "9014" else ()
                self.assert_all_taken(
                    self.ingest("--path", path, *engine, "--batch", batch, "--size", size, *mtu, packets=800), 800
                )

    def test_the_report_of_a_path_that_copies(self):
        report = self.ingest("--path", "copy", "--batch", 32, "--deadline", "1s", packets=3200)
        copies = report["ingest"]["copies"]
        self.assertEqual((copies["count"], copies["bytes"]), (100, 3200 * 64))
        self.assertGreater(copies["submit_ns"], 0)
        self.assertEqual(report["delays_ns"]["batching"]["count"], 100)
        self.assertEqual(report["delays_ns"]["gpu"]["count"], 100)
        self.assertNotIn("sending", report["delays_ns"])
        self.assertGreater(report["cycles_per_packet"], 0)

    def test_a_batch_that_waits_longer_than_the_drain_is_not_lost(self):
        """The last packets of a run wait for their batch to fill, which nothing does any more."""
        deadline = ("--deadline", "300ms")  # more than the drain's 200
        self.assert_all_taken(self.ingest(*deadline, packets=100), 100)
        verify = self.ingest(*deadline, "--transmit", packets=100)["verify"]
        self.assertEqual((verify["checked"], verify["missing"]), (100, 0))

    def test_people_are_told_of_sums_where_there_are_any(self):
        run = ("ingest", "--loopback", "-m", "host", "--share-cores", "--packets", 320, "--size", 200)
        self.assertNotIn("byte sum", self.warpline(*run).stdout)
        said = self.warpline(*run, "--frame", "packets=16,seq=2:48:le,payload=18:140").stdout
        self.assertRegex(said, r"byte sum +[0-9a-f]{16} of 44800 bytes")
        self.assertRegex(said, r"frames +20 complete, 0 incomplete, .*, open for \d+\.\d us at most, 320 packets placed")

    def test_a_path_that_lends_copies_nothing(self):
        report = self.ingest("--path", "zerocopy")
        self.assertNotIn("copies", report["ingest"])

    @needs_vnic
    def test_copied_batches_are_as_large_as_a_slot(self):
        for path, engine in (("copy", "inline"), ("copy", "thread"), ("copy-naive", "inline")):
            outcome = self.warpline(
                *("ingest", "--port", "net_vnic0,wire=static", "--verify", "--packets", 100_000, "--rx-ring", 256, "--json"),
                *("--path", path, "--engine", engine, "--batch", 32768, "--deadline", "1s", "--gpu-memory", "256Mi"),
                *("-m", "host", "--share-cores"),
            )
            report = self.report_of(outcome)
            self.assertTrue(report["conserved"], outcome)
            self.assertEqual((report["verify"]["checked"], report["verify"]["bad"]), (100_000, 0))
            self.assertEqual(report["ingest"]["copies"]["count"], 4)  # three full ones, and what is left at the end
        outcome = self.warpline("ingest", "--loopback", "--path", "zerocopy", "--batch", 1024)
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("use --batch 512", outcome.stderr)

    def test_the_budget_bounds_the_batches_with_the_consumer(self):
        batch_bytes = 32 * 1536  # 1500 and 22 bytes, rounded up to sixteens
        for path, batches, slots in some_of(itertools.product(("copy", "zerocopy"), (2, 3, 4, 9), (2, 16)), one_in=3):
            with self.subTest(path=path, batches=batches, slots=slots):
                report = self.ingest(
                    *("--path", path, "--batch", 32, "--gpu-memory", batches * batch_bytes, "--ring-slots", slots),
                    *("--engine", "thread"),
                )
                self.assertEqual(report["ingest"]["slots"], min(slots, 1 << (batches.bit_length() - 1)))
                self.assert_all_taken(report)

    def test_several_queues(self):
        for path in PATHS:
            with self.subTest(path=path):
                self.assert_all_taken(self.ingest("--path", path, "--pipelines", 3, "--flows", 1000))

    @needs_vnic
    def test_a_port_that_gets_its_own_frames_back(self):
        for more in ((), ("--pipelines", 4, "--flows", 256), ("--path", "zerocopy", "--engine", "thread"), ("--rate", "20kpps")):
            with self.subTest(more=more):
                report = self.ingest("--port", "net_vnic0,wire=loopback", *more)
                self.assert_all_taken(report)
                self.assertEqual([port["name"] for port in report["ports"]], ["net_vnic0"])

    @needs_vnic
    def test_the_sum_is_the_same_on_every_way(self):
        sums = set()
        for path, engine, batch in some_of(itertools.product(PATHS, ENGINES, (7, 64)), one_in=5):
            report = self.report_of(
                self.warpline(
                    *("ingest", "--port", "net_vnic0,wire=source,size=300,flows=7,seed=3", "--packets", 6400, "--json"),
                    *("-m", "host", "--share-cores", "--path", path, *engine, "--batch", batch),
                )
            )
            self.assertTrue(report["conserved"])
            self.assertEqual(report["ingest"]["consumer"], "sum")
            self.assertEqual(report["ingest"]["consumed"]["packets"], 6400)
            self.assertEqual(report["ingest"]["consumed"]["bytes"], 6400 * 300)
            sums.add(report["ingest"]["consumed"]["sum"])
        self.assertEqual(len(sums), 1)

    def test_the_full_loop(self):
        for path, engine in itertools.product(PATHS, ENGINES):
            with self.subTest(path=path, engine=engine):
                report = self.ingest("--path", path, *engine, "--transmit")
                verify = report["verify"]
                self.assertEqual((verify["bad"], verify["missing"], verify["duplicated"]), (0, 0, 0))
                self.assertEqual(report["delivered"]["packets"], PACKETS)  # by the far side
                self.assertEqual(report["ingest"]["delivered"]["packets"], PACKETS)
                self.assertEqual(report["tx"]["packets"], 2 * PACKETS)
                self.assertGreater(report["delays_ns"]["sending"]["count"], 0)

    def frames(self, *arguments, code=0):
        """The generator's sequence number is the third to eighth byte of the payload, its pattern follows the stamp."""
        return self.report_of(
            self.warpline(
                *("ingest", "--loopback", "-m", "host", "--packets", 3200, "--json", "--share-cores", "--size", 200),
                *("--frame", "packets=16,seq=2:48:le,payload=18:140", "--frame-timeout", 0), *arguments,
            ),
            code,
        )["ingest"]  # fmt: skip

    def test_packets_become_frames(self):
        for path, engine in itertools.product(PATHS, ENGINES[:2]):
            with self.subTest(path=path, engine=engine):
                frames = self.frames("--path", path, *engine)["frames"]
                self.assertEqual((frames["complete"], frames["incomplete"], frames["missing"]), (200, 0, 0))
                self.assertEqual(frames["packets"], {"placed": 3200})

    @needs_vnic
    def test_frames_know_what_the_wire_lost_doubled_and_reordered(self):
        for path, (engine, batch) in itertools.product(PATHS, zip((*ENGINES[:2], ENGINES[0]), BATCHES)):
            with self.subTest(path=path, engine=engine, batch=batch):
                ingest = self.frames(
                    *("--path", path, *engine, "--batch", batch, "--drain", "50ms"),
                    *("--faults", "loss=0.03,duplicate=0.01,reorder=0.05"),
                )
                frames, faults = ingest["frames"], ingest["faults"]
                self.assertGreater(faults["fault_reorder"], 0)
                self.assertEqual(frames["missing"] + 16 * frames["skipped"], faults["fault_loss"])
                doubled = frames["packets"].get("duplicate", 0) + frames["packets"].get("late", 0)
                self.assertEqual(doubled, faults["fault_duplicate"])
                self.assertEqual(frames["packets"]["placed"], 3200 - faults["fault_loss"])

    @needs_vnic
    def test_the_same_faults_make_the_same_frames_on_every_way(self):
        """Bits that flip in headers and numbers, too: every packet has a name in the end, and no way sees another byte."""
        chance = random.Random(5)
        ends = ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.2")
        datagrams = [frames.udp(*ends, 5, 6, n.to_bytes(8, "big") + chance.randbytes(100)) for n in range(2000)]
        sent = [frames.ethernet(bytes(6), bytes(6), 0x0800, frames.ip(*ends, frames.UDP, each)) for each in datagrams]
        capture = pcap.write(self.scratch.path / "frames.pcap", sent)
        found = set()
        for path, engine, batch in some_of(itertools.product(PATHS, ENGINES[:2], BATCHES)):
            report = self.report_of(
                self.warpline(
                    *("ingest", "-m", "host", "--json", "--share-cores", "--path", path, *engine, "--batch", batch),
                    *("--port", f"net_vnic0,wire=source,pcap={capture},loss=0.02,duplicate=0.02,reorder=0.05,corrupt=0.03"),
                    *("--frame", "packets=16,seq=0:64,payload=8:100", "--frame-timeout", 0, "--packets", 1500),
                )
            )
            ingest = report["ingest"]
            self.assertEqual(sum(ingest["frames"]["packets"].values()), 1500)
            del ingest["frames"]["longest_open_ns"]
            found.add(json.dumps([ingest["consumed"], ingest["frames"]], sort_keys=True))
        self.assertEqual(len(found), 1, found)
        placements = json.loads(found.pop())[1]["packets"]
        self.assertLessEqual({"placed", "duplicate", "out_of_window", "unrelated"}, set(placements))

    def test_every_byte_of_a_frame_is_summed_where_it_lies(self):
        """Packets of a capture, some of them lost, doubled and exchanged, against a model of frames of 8 times 21 bytes."""
        chance = random.Random(4)
        numbers = [n for n in range(8 * 50) if chance.random() > 0.05]
        numbers += chance.sample(range(8 * 48, 8 * 50), 3)
        for _ in range(40):
            i = chance.randrange(1, len(numbers) - 6)
            numbers[i], numbers[i + 5] = numbers[i + 5], numbers[i]
        payloads = {n: chance.randbytes(21) for n in range(8 * 50)}
        ends = ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.2")
        sent = []
        for n in numbers:
            datagram = frames.udp(*ends, 5, 6, n.to_bytes(8, "big") + payloads[n])
            sent.append(frames.ethernet(bytes(6), bytes(6), 0x0800, frames.ip(*ends, frames.UDP, datagram)))
        capture = pcap.write(self.scratch.path / "frames.pcap", sent)
        made = {}
        for n in numbers:
            made.setdefault(n // 8, {})[n % 8] = payloads[n]
        expected = {
            "packets": len(set(numbers)),
            "bytes": 21 * len(set(numbers)),
            "sum": sum(frame_sum(index, 8 * index, there, 21, 8) for index, there in made.items()) & MASK,
        }
        for path, engine, batch in some_of(itertools.product(PATHS, ENGINES[:2], (1, 64)), one_in=5):
            with self.subTest(path=path, engine=engine, batch=batch):
                ingest = self.report_of(
                    self.warpline(
                        *("ingest", "--port", f"net_pcap0,rx_pcap={capture}", "-m", "host", "--json", "--share-cores"),
                        *("--path", path, *engine, "--batch", batch, "--frame", "packets=8,seq=0:64,payload=8:21"),
                    )
                )["ingest"]
                self.assertEqual(ingest["consumed"], expected)
                self.assertEqual(ingest["frames"]["missing"], sum(8 - len(there) for there in made.values()))

    def test_streams_by_5_tuple_are_assembled_on_several_queues(self):
        """A board for each queue, which sends 5 frames of 8 packets from a port of its own."""
        ends = ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("10.0.0.2")
        inputs = ""
        for port in (5, 6):
            datagrams = [frames.udp(*ends, port, 7, n.to_bytes(8, "big") + bytes(21)) for n in range(40)]
            sent = [frames.ethernet(bytes(6), bytes(6), 0x0800, frames.ip(*ends, frames.UDP, each)) for each in datagrams]
            inputs += f",rx_pcap={pcap.write(self.scratch.path / f'{port}.pcap', sent)}"
        ingest = self.report_of(
            self.warpline(
                *("ingest", "--port", f"net_pcap0{inputs}", "-m", "host", "--json", "--share-cores", "--pipelines", 2),
                *("--frame", "packets=8,seq=0:64,payload=8:21,stream=5-tuple"),
            )
        )["ingest"]
        self.assertEqual((ingest["frames"]["complete"], ingest["frames"]["incomplete"]), (10, 0))
        self.assertEqual(ingest["frames"]["packets"], {"placed": 80})

    def test_frames_that_do_not_fit_the_budget_are_refused(self):
        outcome = self.warpline(
            *("ingest", "--loopback", "-m", "host", "--share-cores", "--gpu-memory", "4Mi"),
            *("--frame", "packets=1024,seq=0:64,payload=8:1024"),
        )
        self.assertEqual(outcome.code, 2, outcome)
        self.assertIn("use a larger --gpu-memory, of which half is for frames", outcome.stderr)

    def test_a_consumer_of_ones_own(self):
        report = self.ingest("--consumer", "user")
        self.assertEqual(report["ingest"]["consumed"]["packets"], PACKETS)

    def test_an_open_loop_that_is_too_fast_loses_at_the_port_by_name(self):
        """The consumer shares its core with everything else, so it cannot keep up with a rate that is not to be had."""
        report = self.ingest("--rate", "400gbit", "--rx-ring", 64, "--batch", 16, packets=400_000)
        ingest = report["ingest"]
        missed = ingest["port_drops"]["missed"]
        self.assertEqual(report["verify"]["missing"], 0)
        self.assertEqual(ingest["offered"]["packets"], 400_000)
        self.assertEqual(ingest["delivered"]["packets"] + missed, 400_000)

    @needs_vnic
    def test_giants_are_dropped_by_name(self):
        outcome = self.warpline(
            *("ingest", "--port", "net_vnic0,wire=static,size=3000", "--mtu", 1500, "--data-room", 4096, "--json"),
            *("-m", "host", "--path", "copy", "--packets", 1000),
        )
        report = self.report_of(outcome)
        self.assertTrue(report["conserved"])
        self.assertEqual(report["delivered"]["packets"] + report["drops"].get("giant", 0), report["rx"]["packets"])


@needs_vnic
class Faults(IngestCase):
    """What net_vnic does to the frames on purpose, the consumer finds, frame by frame."""

    def found(self, faults, path, engine, batch, size):
        report = self.report_of(
            self.warpline(
                *("ingest", "--loopback", "-m", "host", "--packets", 5000, "--json", "--share-cores", "--flows", 5),
                *("--path", path, *engine, "--batch", batch, "--faults", faults, "--drain", "50ms"),
                *("--size", size, *(("--mtu", 9000) if size == "9014" else ())),
            ),
        )
        self.assertTrue(report["conserved"])
        verify = report["verify"]
        return report, verify, report["ingest"]["faults"]

    def test_each_fault(self):
        """Sizes take turns, another at each fault of each cell: all of them meet all faults, paths and batches."""
        sizes = itertools.cycle(SIZES)
        for path, engine, batch in some_of(itertools.product(PATHS, ENGINES[:2], BATCHES), one_in=5):
            with self.subTest(path=path, engine=engine, batch=batch):
                cell = (path, engine, batch)
                # More are lost than doubled, or the run would end when as many have come as were sent.
                _, verify, done = self.found("loss=0.02,duplicate=0.01", *cell, next(sizes))
                self.assertEqual(
                    (verify["missing"], verify["duplicated"], verify["bad"]),
                    (done["fault_loss"], done["fault_duplicate"], 0),
                )
                report, verify, done = self.found("corrupt=0.01", *cell, next(sizes))
                unstamped = report["drops"].get("unstamped", 0)
                self.assertEqual(verify["missing"], done["fault_corrupt"])
                self.assertEqual(verify["bad"] + unstamped, done["fault_corrupt"])
                report, verify, done = self.found("reorder=0.05", *cell, next(sizes))
                self.assertGreater(done["fault_reorder"], 0)
                self.assert_all_taken(report, 5000)

    def test_only_what_the_faults_account_for_is_excused(self):
        """The same faults by a port's own arguments were not asked of this command, so its run fails."""
        for fault in ("loss=0.02", "duplicate=0.02", "corrupt=0.02", "truncate=0.02", "flap_frames=500"):
            with self.subTest(fault=fault):
                self.found(fault, "copy", ENGINES[0], 32, "64")
                wires = ("--port", "net_vnic0,wire=net_vnic1", "--port", f"net_vnic1,wire=net_vnic0,{fault}")
                self.ingest(*wires, "--drain", "50ms", packets=5000, code=4)


class Signals(Case):
    def test_an_interrupt_drains_and_reports(self):
        for path in PATHS:
            with self.subTest(path=path):
                program = self.start(
                    *("ingest", "--loopback", "-m", "host", "--json", "--share-cores", "--path", path),
                    *("--interval", 0.05),
                )
                program.wait_for("stderr", LIVE_ROW)
                program.signal(signal.SIGINT)
                report = self.report_of(program.finish(), 130)
                self.assertTrue(report["conserved"])
                self.assertEqual(report["delivered"], report["generated"])


class BadInput(Case):
    def test_what_does_not_fit_together_is_refused(self):
        loopback = ("ingest", "--loopback")
        for arguments, fragments in (
            (("ingest",), ("ingest has no port", "--loopback")),
            ((*loopback, "--port", "net_null0", "--transmit"), ("cannot combine", "come back to it")),
            ((*loopback, *(f"--port=net_null{i}" for i in range(3))), ("cannot combine --loopback with 3 of --port", "one, two")),
            ((*loopback, "--path", "device", "-m", "host"), ("--path device", "host", "GPU memory")),
            ((*loopback, "--path", "device", "--engine", "inline"), ("--path device", "--engine inline")),
            ((*loopback, "--engine", "persistent", "-m", "host"), ("--engine persistent", "ordinary host memory")),
            ((*loopback, "--engine", "thread", "-m", "pinned"), ("--engine thread", "pinned")),
            ((*loopback, "--path", "zerocopy", "-m", "device"), ("--path zerocopy", "pinned memory")),
            ((*loopback, "--engine", "inline", "--ctas", 4), ("--ctas 4", "no threads")),
            ((*loopback, "--gpu-memory", "64Ki", "--batch", 64), ("--gpu-memory 65536", "one batch takes")),
            ((*loopback, "--path", "zerocopy", "--batch", 512, "--rx-ring", 256), ("--batch 512", "--rx-ring 256")),
            ((*loopback, "--transmit", "--batch", 1024), ("--batch 1024", "--transmit")),
            ((*loopback, "--batch", 0), ("--batch", "0")),
            ((*loopback, "--consumer", "sum", "--verify"), ("--verify", "--consumer sum")),
            (("ingest", "--port", "net_null0", "--faults", "loss=0.1"), ("--faults", "--loopback")),
            (("ingest", "--port", "net_null0", "--rate", "1gbit"), ("--rate", "--loopback")),
            ((*loopback, "--frame-timeout", 5), ("--frame-timeout", "there are no frames")),
            ((*loopback, "--tx-retries", 5), ("--tx-retries", "nothing is sent")),
            ((*loopback, "-m", "host", "--gpu", 0), ("--gpu", "does not run on a GPU")),
            ((*loopback, "--frame", "packets=2,seq=0:64,payload=8:64", "--pipelines", 2), ("--pipelines 2", "stream=5-tuple")),
            ((*loopback, "--frame", "packets=2,seq=0:64,payload=12:8,stream=8:32", "-p", 2), ("--pipelines 2", "stream=5-tuple")),
            ((*loopback, "--frame", "packets=10,seq=0:8,payload=8:64,window=1,jump=1"), ("'seq'", "2^8 is no multiple of the 10")),
            ((*loopback, "--frame", "packets=2,seq=0:64,payload=8:1465"), ("--frame", "--mtu 1500", "use --mtu 1501")),
            ((*loopback, "--frame", "packets=2,seq=14:64,payload=22:1493,from=ethernet"), ("--frame", "use --mtu 1501")),
            (("ingest", "--port", "net_vnic0,wire=static,size=1024", "--verify"), ("1024 bytes", "use --size 1024")),
            (("ingest", "--port", "net_vnic0,wire=static", "--verify", "--size", 60), ("64 bytes", "use --size 64")),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(self.warpline(*arguments), 2, *fragments)


if __name__ == "__main__":
    unittest.main()
