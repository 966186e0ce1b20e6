# SPDX-License-Identifier: Apache-2.0
"""warpline.ray.ingest: streams spread over actors of two nodes, frames handed on, actors that die."""

import os
import signal
import struct
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from support.ray_cluster import ray, running, until

if ray is not None:
    import numpy
    import warpline
    import warpline.ray
    from warpline import packet
    from warpline.ray import claims
    from warpline.ray.actor import IngestActor, Share
    from warpline.ray.transport import key_of

PACKETS, PAYLOAD = 4, 256
FRAME = f"packets={PACKETS},seq=0:64,payload=8:{PAYLOAD}"
LOOPBACK = {"loopback": True, "size": 200, "frame": "packets=16,seq=2:48:le,payload=18:140"}
SMALL = {"gpu_memory": "64Ki", "batch": 4}  # a few dozen frames
HAS_VNIC = os.environ.get("WARPLINE_HAS_VNIC") == "1"


def payload(stream, number):
    """The bytes of a packet: 64-bit words that no other packet has."""
    return struct.pack(f"<{PAYLOAD // 8}Q", *(stream << 32 | number * (PAYLOAD // 8) + i for i in range(PAYLOAD // 8)))


def frame_bytes(stream, index):
    return b"".join(payload(stream, index * PACKETS + i) for i in range(PACKETS))


def write_capture(path, stream, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number in range(frames * PACKETS):
            data = packet.udp(struct.pack(">Q", number) + payload(stream, number), source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
            file.write(struct.pack("<IIII", number, 0, len(data), len(data)) + data)


def consumers(transport):
    """The class of actors that frames are handed to."""

    class Consumer:
        def take(self, frames):
            """Stream, index and whether it is whole and right, of each frame."""
            return [(frame.stream, frame.index, frame.complete and bytes(frame.data) == frame_bytes(int(frame.stream[-1]), frame.index)) for frame in frames]

    return ray.remote(num_cpus=0.1, **({} if transport is None else {"enable_tensor_transport": True}))(Consumer)


@unittest.skipIf(ray is None, "there is no Ray: setup/ray_wheels")
class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def captures(self, counts):
        """Streams of captures with so many frames each, the ports by their names."""
        made = {}
        for stream, frames in enumerate(counts):
            path = self.folder / f"{stream}.pcap"
            write_capture(path, stream, frames)
            made[f"beam {stream}"] = f"net_pcap{stream},rx_pcap={path}"
        return made

    def ingest(self, **options):
        """Frames of actors that the test's end ends."""
        frames = warpline.ray.ingest(**{"num_cpus": 0.1, **options})
        self.addCleanup(frames.close)
        return frames

    @staticmethod
    def looked(actor, look):
        """What a function of the actor's object says, in the actor."""
        return ray.get(actor.__ray_call__.remote(look))

    def test_are_left_under_the_key_of_their_transport(self):
        share = Share(self.captures([1]), {"frame": FRAME}, cores=None, transport=warpline.ray.ARRAYS, key="/nowhere/key", apply=None)
        actor = ray.remote(num_cpus=0.1)(IngestActor).remote(share)
        self.addCleanup(ray.kill, actor)
        self.assertEqual("/nowhere/key", self.looked(actor, lambda self: key_of(warpline.ray.ARRAYS)))

    def test_of_every_stream_come_once_and_as_they_were(self):
        for transport, kind in ((None, "ndarray"), (warpline.ray.ARRAYS, "Array")):
            with self.subTest(transport=transport), self.ingest(
                streams=self.captures([30, 20, 10]), frame=FRAME, actors=2, batch_frames=7, transport=transport) as frames:
                seen = {}
                for frame in frames:
                    self.assertEqual((frame_bytes(int(frame.stream[-1]), frame.index), True, kind), (bytes(frame.data), bool(frame.present.all()), type(frame.data).__name__))
                    seen.setdefault(frame.stream, []).append(frame.index)
                self.assertEqual({"beam 0": list(range(30)), "beam 1": list(range(20)), "beam 2": list(range(10))}, seen)
                reports = frames.close()
                self.assertEqual([40, 20], [report.ingest.frames.complete for report in reports])  # streams 0 and 2, and stream 1
                self.assertEqual((0, 0), (frames.deaths, frames.lost_batches))

    def test_are_spread_over_the_nodes(self):
        with self.ingest(streams=self.captures([1, 1]), frame=FRAME) as frames:
            self.assertEqual(2, len({self.looked(actor, lambda _: ray.get_runtime_context().get_node_id()) for actor in frames.actors}))
            self.assertEqual({"beam 0", "beam 1"}, {frame.stream for frame in frames})
        with self.ingest(streams=self.captures([1]), frame=FRAME, resources={"far": 1}) as frames:
            self.assertEqual(1, len(list(frames)))

    def test_are_handed_to_actors(self):
        for transport in (None, warpline.ray.ARRAYS):
            with self.subTest(transport=transport), self.ingest(streams=self.captures([40, 25]), frame=FRAME, batch_frames=4, transport=transport) as frames:
                workers = [consumers(transport).options(resources={node: 1}).remote() for node in ("near", "far")]
                taken = [one for batch in frames.each(workers, "take") for one in batch]
                self.assertEqual([(f"beam {stream}", index, True) for stream, count in enumerate((40, 25)) for index in range(count)], sorted(taken))

    def test_references_keep_frames_and_the_run_waits(self):
        with self.ingest(streams=self.captures([400]), frame=FRAME, transport=warpline.ray.ARRAYS, batch_frames=4, ahead=1, **SMALL) as frames:
            refs = frames.batches()
            held = []
            # So many are kept that nothing more can come.
            while not self.looked(frames.actors[0], lambda actor: actor._ingest._session.starved) and len(held) < 90:
                held.append(next(refs))
            self.assertLess(len(held), 90)
            indices = [frame.index for ref in held for frame in ray.get(ref)]
            self.assertEqual([frame_bytes(0, index) for index in indices], [bytes(frame.data) for ref in held for frame in ray.get(ref)])
            held.clear()
            for ref in refs:
                indices += [frame.index for frame in ray.get(ref)]
                del ref
            self.assertEqual(list(range(400)), indices)

    def test_that_nobody_takes_stay_where_they_are(self):
        with self.ingest(streams=self.captures([400]), frame=FRAME, batch_frames=4, ahead=2, **SMALL) as frames:
            taken = iter(frames)
            indices = [next(taken).index]
            until(lambda: self.looked(frames.actors[0], lambda actor: actor._ingest._session.starved))
            self.assertEqual(list(range(400)), indices + [frame.index for frame in taken])

    @unittest.skipUnless(HAS_VNIC, "built without net_vnic")
    def test_go_on_when_an_actor_has_died(self):
        with self.ingest(streams=1, **LOOPBACK, **SMALL) as frames:
            taken = iter(frames)
            before = next(taken).since_ns
            os.kill(self.looked(frames.actors[0], lambda _: os.getpid()), signal.SIGKILL)
            after = next(frame.since_ns for frame in taken if frame.since_ns != before)
            self.assertGreater(after, before)
            self.assertEqual(1, frames.deaths)
            frames.stop()
            self.assertTrue(all(frame.since_ns == after for frame in taken))

    @unittest.skipUnless(HAS_VNIC, "built without net_vnic")
    def test_an_actor_that_stays_dead_is_an_error(self):
        with self.ingest(streams=1, max_restarts=0, **LOOPBACK, **SMALL) as frames:
            os.kill(self.looked(frames.actors[0], lambda _: os.getpid()), signal.SIGKILL)
            with self.assertRaisesRegex(warpline.PeerLost, "an actor died"):
                for _ in frames:
                    pass
            self.assertEqual([None], frames.close())

    def test_may_become_something_else_in_the_actor(self):
        with self.ingest(streams=self.captures([9]), frame=FRAME, apply=lambda frame: (frame.index, int(frame.data.sum()))) as frames:
            self.assertEqual([(index, sum(frame_bytes(0, index))) for index in range(9)], list(frames))
        with self.ingest(streams=self.captures([1]), frame=FRAME, apply=lambda frame: frame.nonsense) as frames, self.assertRaises(AttributeError):
            list(frames)

    def test_ports_and_processors_are_one_actors_each(self):
        near = {"frame": FRAME, "resources": {"near": 1}}
        with self.ingest(streams=1, **near) as frames:
            self.assertEqual(["net_null7,no-rx=1"], self.looked(frames.actors[0], lambda actor: actor._ports))
            with self.assertRaisesRegex(warpline.EnvironmentNotReady, "ports of this node: 1 asked for, and 0 of 1 are free"):
                self.ingest(streams=1, **near)
        with self.assertRaisesRegex(warpline.EnvironmentNotReady, "cores of this node: 1000 asked for"):
            self.ingest(streams=self.captures([1]), cores=1000, **near)

    def test_what_makes_no_sense_is_refused(self):
        for text, options in (
            ("3 actors for 2 streams", {"streams": ["a", "b"], "actors": 3}), ("0 actors", {"streams": []}), ("is one port", {"streams": "net_null0"}),
            ("as many actors as streams", {"streams": 2, "actors": 1, "loopback": True}), ("leave port", {"streams": 1, "port": "x"}),
            ("batch_frames is 0", {"streams": 1, "batch_frames": 0}), ("unknown option '--lopback'", {"streams": ["net_null0"], "lopback": True}),
        ):
            with self.assertRaisesRegex(warpline.UsageError, text):
                self.ingest(**{"frame": FRAME, **options})

    def test_actors_that_fit_nowhere_are_an_error(self):
        with self.assertRaisesRegex(warpline.EnvironmentNotReady, "1 of 1 actors have not started in 0.5 s; each needs 0.1 CPU, 1 moon"):
            self.ingest(streams=["net_null0,no-rx=1"], frame=FRAME, resources={"moon": 1}, start_timeout=0.5)


@unittest.skipIf(ray is None, "there is no Ray: setup/ray_wheels")
class Claims(unittest.TestCase):
    def test_are_each_ones_own_until_released(self):
        names = [f"{os.getpid()} {number}" for number in range(3)]
        first, second = claims.Claims(), claims.Claims()
        self.assertEqual(names[:2], first.claim("port", names, 2))
        self.assertEqual(names[2:], second.claim("port", names, 1))
        with self.assertRaisesRegex(warpline.EnvironmentNotReady, "1 asked for, and 0 of 3"):
            second.claim("port", names, 1)
        first.release()
        self.assertEqual(names[:1], second.claim("port", names, 1))
        second.release()

    def test_ports_of_a_node_are_those_that_it_names_or_has_from_kubernetes(self):
        with unittest.mock.patch.dict(os.environ, RAY_WARPLINE_PORTS=" net_af_packet0,iface=a; net_af_packet1,iface=b;"):
            self.assertEqual(["net_af_packet0,iface=a", "net_af_packet1,iface=b"], claims.ports_of_node())
        found = {"PCIDEVICE_INTEL_COM_WARPLINE_PORT": "0000:3b:02.0,0000:3b:02.1", "PCIDEVICE_INTEL_COM_WARPLINE_PORT_INFO": "{}"}
        with unittest.mock.patch.dict(os.environ, found):
            self.assertEqual(["0000:3b:02.0", "0000:3b:02.1"], claims.ports_of_node())
