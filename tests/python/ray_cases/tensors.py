# SPDX-License-Identifier: Apache-2.0
"""The transports of warpline.ray: arrays from node to node, what frees them, and sources that are gone."""

import asyncio
import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from support.ray_cluster import ray, running, until

if ray is not None:
    import numpy
    import warpline
    import warpline.ray
    from ray.exceptions import GetTimeoutError, RayError
    from ray.experimental import set_target_for_ref
    from ray.experimental.rdt import util as ray_transports
    from warpline import program, rpc
    from warpline.ray import exchange
    from warpline.ray.transport import ArrayTransport

ODD = (10 << 20) + 3  # bytes, of some pieces and a rest


def several():
    """Arrays of many kinds, by name."""
    draw = numpy.random.default_rng(7)
    made = {kind: draw.integers(0, 100, (3, 5)).astype(kind) for kind in ("?", "i1", "<u2", ">i4", "f2", "f4", "f8", "c8", "c16", "M8[ns]", "S5")}
    made |= {
        "none": numpy.empty((0, 4)),
        "one": numpy.array(7.5),
        "records": numpy.array([(1, 2.5), (3, 4.5)], dtype=[("number", "<i2"), ("value", "<f8")]),
        "every third, turned": numpy.arange(60).reshape(10, 6)[::3].T,
        "long": draw.integers(0, 256, ODD, dtype=numpy.uint8),
    }
    fixed = numpy.arange(9)
    fixed.flags.writeable = False
    return made | {"read-only": fixed}


def actors():
    """The classes of actors, which need Ray and the transport."""
    warpline.ray.register_transport()

    class Source:
        def __init__(self, key=None):
            warpline.ray.register_transport(key)

        @ray.method(tensor_transport=warpline.ray.ARRAYS)
        def several(self):
            return {"arrays": {name: warpline.ray.array(values) for name, values in several().items()}, "beside": numpy.ones(3)}

        @ray.method(tensor_transport=warpline.ray.ARRAYS)
        def numbers(self, count):
            return warpline.ray.array(numpy.arange(count))

        @ray.method(tensor_transport=warpline.ray.ARRAYS)
        def nothing(self):
            return []

        def put(self, count):
            return [ray.put(warpline.ray.array(numpy.arange(count)), _tensor_transport=warpline.ray.ARRAYS)]

        def offered(self):
            return len(exchange.of_this_process()._offers)

        def pid(self):
            return os.getpid()

    class Sink:
        def __init__(self, key=None):
            if key is not None:  # else it is Ray that registers the transport
                warpline.ray.register_transport(key)

        def differ(self, value):
            """The names of those that are not what they were; and what came with them."""
            wrong = [name for name, values in several().items() if not same(values, value["arrays"][name])]
            return wrong, type(value["beside"]).__name__, value["beside"].tolist()

        def total(self, values):
            return int(values.sum())

        def get_total(self, refs):
            warpline.ray.register_transport()
            return int(ray.get(refs[0]).sum())

        def pid(self):
            return os.getpid()

    return ray.remote(num_cpus=0.1, max_restarts=1)(Source), ray.remote(num_cpus=0.1, enable_tensor_transport=True)(Sink)


def send(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def same(ours, theirs):
    return (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


@unittest.skipIf(ray is None, "there is no Ray: setup/ray_wheels")
class Tensors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = running()
        cls.source_class, cls.sink_class = actors()
        cls.near = cls.start_source("near")
        cls.far = cls.start_source("far")
        cls.sink = cls.start_sink()

    @classmethod
    def start_source(cls, node, key=None):
        return cls.source_class.options(resources={node: 0.1}).remote(key)

    @classmethod
    def start_sink(cls, key=None):
        return cls.sink_class.options(resources={"near": 0.1}).remote(key)

    def key(self, name):
        """A new file of keys, that all nodes have."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, name)
        subprocess.run([program.path(), "message", "key", "new", path], check=True, capture_output=True, env=program.environment())
        return path

    def stopped(self, source):
        """Has a source's process stand still, until the test ends. Its id."""
        pid = ray.get(source.pid.remote())
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(send, pid, signal.SIGCONT)
        return pid

    def test_come_as_they_were_from_another_node(self):
        before = self.nodes.sent_over_the_wire() if self.nodes.separate else 0
        self.assertEqual(([], "ndarray", [1.0, 1.0, 1.0]), ray.get(self.sink.differ.remote(self.far.several.remote())))
        if self.nodes.separate:
            self.assertGreater(self.nodes.sent_over_the_wire() - before, ODD)

    def test_come_as_they_were_within_a_node(self):
        self.assertEqual([], ray.get(self.sink.differ.remote(self.near.several.remote()))[0])

    def test_are_got_by_whoever_asked_for_them(self):
        made = ray.get(self.far.several.remote())
        self.assertEqual([], [name for name, values in several().items() if not same(values, made["arrays"][name])])
        self.assertIsInstance(made["arrays"]["long"], warpline.ray.Array)
        self.assertEqual([], ray.get(self.far.nothing.remote()))
        self.assertEqual([3, 6], [int(values.sum()) for values in ray.get([self.far.numbers.remote(3), self.near.numbers.remote(4)])])

    def test_are_put_where_they_are_to_go(self):
        ref = self.far.numbers.remote(1_000_000)
        target = warpline.ray.array(numpy.zeros(1_000_000, dtype=int))
        set_target_for_ref(ref, [target])
        self.assertIs(target, ray.get(ref))
        self.assertTrue((target == numpy.arange(1_000_000)).all())

    def test_are_put_by_the_driver_and_by_actors(self):
        self.assertEqual(4950, ray.get(self.sink.total.remote(ray.put(warpline.ray.array(numpy.arange(100)), _tensor_transport=warpline.ray.ARRAYS))))
        self.assertEqual(4950, ray.get(self.sink.get_total.remote(ray.get(self.far.put.remote(100)))))

    def test_are_freed_with_the_last_reference(self):
        refs = [self.far.numbers.remote(1000) for _ in range(20)]
        self.assertEqual([499500] * 20, [ray.get(self.sink.total.remote(ref)) for ref in refs])
        until(lambda: ray.get(self.far.offered.remote()) >= 20)
        del refs
        until(lambda: ray.get(self.far.offered.remote()) == 0)

    def test_that_were_freed_are_said_to_be(self):
        offers = exchange.of_this_process()
        metadata = ArrayTransport().extract_tensor_transport_metadata("x", [warpline.ray.array([1, 2, 3])])
        offers.withdraw(metadata.place)
        with self.assertRaisesRegex(warpline.WarplineError, "they were freed"):
            ArrayTransport().recv_multiple_tensors("x", metadata, None)

    def test_of_a_task_that_is_made_again_are_offered_once(self):
        transport = ArrayTransport()
        values = [warpline.ray.array([1.0])]
        first, again = (transport.extract_tensor_transport_metadata("y", values) for _ in range(2))
        self.assertEqual(first, again)
        transport.garbage_collect("y", first, values)
        self.assertNotIn(first.place.key, exchange.of_this_process()._offers)

    def test_a_source_that_died_is_an_error(self):
        source = self.start_source("far")
        ref = source.numbers.remote(1_000_000)
        ray.wait([ref], fetch_local=False)
        pid = ray.get(source.pid.remote())
        os.kill(pid, signal.SIGKILL)
        with self.assertRaisesRegex(warpline.PeerLost, "the process that has them is gone"):
            ray.get(ref)
        with self.assertRaises(RayError):  # the receiving task's
            ray.get(self.sink.total.remote(ref))
        # Ray starts it again, and its constructor registers the transport.
        until(lambda: self.pid_of(source) not in (None, pid))
        self.assertEqual(10, int(ray.get(source.numbers.remote(5)).sum()))

    @staticmethod
    def pid_of(source):
        try:
            return ray.get(source.pid.remote())
        except RayError:
            return None

    def test_a_source_that_dies_in_the_middle_is_an_error(self):
        source = self.start_source("far")
        ref = source.numbers.remote(1_000_000)
        ray.wait([ref], fetch_local=False)
        pid, ends = self.stopped(source), []
        thread = threading.Thread(target=lambda: ends.append(self.error_of(ref)))
        thread.start()
        until(lambda: ref.hex() in self.transport()._fetched)
        os.kill(pid, signal.SIGKILL)
        thread.join()
        self.assertIsInstance(ends[0], warpline.PeerLost)

    @staticmethod
    def transport():
        """That of this process."""
        return ray_transports.get_tensor_transport_manager(warpline.ray.ARRAYS.upper())

    @staticmethod
    def error_of(ref):
        try:
            return ray.get(ref)
        except Exception as error:
            return error

    def test_a_source_that_stands_still_is_given_up(self):
        source = self.start_source("far")
        ref = source.numbers.remote(1_000_000)
        ray.wait([ref], fetch_local=False)
        self.stopped(source)
        with self.assertRaises(GetTimeoutError):
            ray.get(ref, timeout=0.2)
        with self.assertRaises(warpline.PeerLost):
            ray.get(ref)

    def test_an_aborted_fetch_is_an_error(self):
        source = self.start_source("far")
        ref = source.numbers.remote(1_000_000)
        ray.wait([ref], fetch_local=False)
        self.stopped(source)
        transport, ends = self.transport(), []
        thread = threading.Thread(target=lambda: ends.append(self.error_of(ref)))
        thread.start()
        until(lambda: ref.hex() in transport._fetched)
        transport.abort_transport(ref.hex(), transport.get_communicator_metadata(None, None))
        thread.join()
        self.assertRegex(str(ends[0]), "was aborted")
        self.assertNotIsInstance(ends[0], warpline.PeerLost)

    def test_with_a_key_they_are_for_those_who_have_it(self):
        key, other = self.key("key"), self.key("other")
        source, sink = self.start_source("far", key), self.start_sink(key)
        self.assertEqual(([], "ndarray", [1.0, 1.0, 1.0]), ray.get(sink.differ.remote(source.several.remote())))
        for stranger in (self.sink, self.start_sink(other)):
            with self.assertRaises(RayError) as raised:
                ray.get(stranger.total.remote(source.numbers.remote(5)))
            self.assertIn("PeerLost", str(raised.exception))
        with self.assertRaises(warpline.PeerLost):  # this process has none
            ray.get(source.numbers.remote(5))

    def test_a_key_that_cannot_be_used_is_said_to_be(self):
        source = self.start_source("far", "/nowhere/key")
        with self.assertRaisesRegex(RayError, "/nowhere/key"):
            ray.get(source.several.remote())

    def test_a_process_has_one_key(self):
        key = self.key("key")
        with self.assertRaisesRegex(warpline.UsageError, "this process has it with no key"):
            warpline.ray.register_transport(key)
        exchange.of_this_process()  # which has none, from now on
        with self.assertRaisesRegex(warpline.UsageError, "cannot have"):
            exchange.of_this_process(key)
        with self.assertRaisesRegex(warpline.UsageError, "name a transport"):
            warpline.ray.ingest(streams=1, frame="packets=1,seq=0:64,payload=8:64", key=key)

    def test_a_key_goes_with_the_transport_to_actors_that_register_none(self):
        code = """if True:
            import os, sys
            import warpline.ray
            from ray import cloudpickle
            from ray.experimental.rdt import util
            from warpline.ray.transport import key_of
            os.chdir("/etc")
            warpline.ray.register_transport(*sys.argv[1:])
            sent = cloudpickle.loads(cloudpickle.dumps(util.transport_manager_info))["WARPLINE_ARRAYS"].transport_manager_class
            print(sent.__name__, sent.key, key_of("warpline_arrays"))"""
        for arguments, environment in ((["key"], {}), ([], {"RAY_WARPLINE_KEY": "/etc/key"})):
            done = subprocess.run(
                [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment})
            self.assertEqual("ArrayTransport /etc/key /etc/key\n", done.stdout, done.stderr)

    def test_requests_that_make_no_sense_are_refused(self):
        place = exchange.of_this_process().offer([ArrayTransport().source(numpy.arange(10, dtype=numpy.uint8))])
        whole = struct.Struct("<16sIQQ")

        async def main():
            async with rpc.Client(place.address) as client:
                self.assertEqual(bytes([4, 5]), await client.call(1, whole.pack(place.key, 0, 4, 2)))
                for request, status in (
                    (b"", 2), (bytes(100), 2), (whole.pack(bytes(16), 0, 0, 1), 1), (whole.pack(place.key, 1, 0, 1), 2),
                    (whole.pack(place.key, 0, 9, 2), 2), (whole.pack(place.key, 0, 2**64 - 1, 2**64 - 1), 2),
                ):
                    with self.assertRaises(warpline.RemoteError) as raised:
                        await client.call(1, request)
                    self.assertEqual(status, raised.exception.status, request)

        asyncio.run(main())
        exchange.of_this_process().withdraw(place)

    def test_objects_are_no_numbers(self):
        with self.assertRaisesRegex(TypeError, "objects of Python"):
            warpline.ray.array([object()])
