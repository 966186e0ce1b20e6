# SPDX-License-Identifier: Apache-2.0
"""The transport of tensors of PyTorch, where there is PyTorch. What becomes of tensors of a GPU is asked with stand-ins for CUDA."""

import contextlib
import unittest
import unittest.mock

from support.ray_cluster import ray, running

try:
    import torch
except ImportError:
    torch = None

if ray is not None and torch is not None:
    import warpline
    import warpline.ray
    from warpline.ray import exchange, memory
    from warpline.ray.transport import TensorTransport

LONG = 9_000_001  # of float32: some pieces, and a rest


def several():
    torch.manual_seed(7)
    made = {str(kind): (torch.rand(3, 5) * 100).to(kind) for kind in (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
        torch.complex64, torch.complex128)}
    return made | {
        "one": torch.tensor(7.5), "none": torch.empty(0, 4), "turned": torch.arange(60).reshape(10, 6)[::3].T, "long": torch.rand(LONG),
        "a parameter": torch.nn.Parameter(torch.ones(3)), "conjugate": torch.rand(4, dtype=torch.complex64).conj(),
        "negative": torch.rand(4, dtype=torch.complex64).conj().imag, "channels last": torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last),
    }


@unittest.skipIf(ray is None or torch is None, "there is no Ray, or no PyTorch")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = running()

    def assert_same(self, ours, theirs, name):
        self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape), name)
        self.assertTrue(torch.equal(ours.detach(), theirs), name)

    def test_come_as_they_were(self):
        transport = TensorTransport()
        values = several()
        metadata = transport.extract_tensor_transport_metadata("several", list(values.values()))
        for (name, ours), theirs in zip(values.items(), transport.recv_multiple_tensors("several", metadata, None), strict=True):
            self.assert_same(ours, theirs, name)
            self.assertTrue(theirs.is_contiguous() and not theirs.requires_grad, name)
        into = [torch.zeros(ours.shape, dtype=ours.dtype) for ours in values.values()]
        got = transport.recv_multiple_tensors("several", metadata, None, into)
        self.assertTrue(all(one is other for one, other in zip(into, got, strict=True)))
        for (name, ours), theirs in zip(values.items(), into, strict=True):
            self.assert_same(ours, theirs, name)
        transport.garbage_collect("several", metadata, [])

    def test_between_actors(self):
        warpline.ray.register_transport()

        class Peer:
            @ray.method(tensor_transport=warpline.ray.TENSORS)
            def state(self):
                torch.manual_seed(3)
                return torch.nn.Linear(1000, 1000).state_dict()

            def total(self, state):
                return {name: int(values.view(torch.int32).sum()) for name, values in state.items()}

        kind = ray.remote(num_cpus=0.1)(Peer)
        far, near = (kind.options(resources={node: 1}).remote() for node in ("far", "near"))
        state = far.state.remote()
        torch.manual_seed(3)
        self.assertEqual({name: int(values.view(torch.int32).sum()) for name, values in torch.nn.Linear(1000, 1000).state_dict().items()}, ray.get(near.total.remote(state)))
        self.assertEqual({"weight", "bias"}, set(ray.get(state)))

    def test_frames_come_as_tensors(self):
        with warpline.ray.ingest(
            streams=1, loopback=True, size=200, packets=320, frame="packets=16,seq=2:48:le,payload=18:140", transport=warpline.ray.TENSORS, num_cpus=0.1,
        ) as frames:
            taken = list(frames)
        self.assertEqual((20, {torch.Tensor}, {16 * 140}), (len(taken), {type(frame.data) for frame in taken}, {len(frame.data) for frame in taken}))

    def test_those_without_bytes_in_a_row_are_refused(self):
        for tensor in (torch.eye(3).to_sparse(), torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)):
            with self.assertRaisesRegex(TypeError, "make it dense"):
                TensorTransport().extract_tensor_transport_metadata("x", [tensor])

    def test_of_a_gpu_go_through_pinned_memory(self):
        done = []

        class Event:
            def __init__(self, blocking):
                pass

            def record(self, stream):
                done.append("recorded")

            def synchronize(self):
                done.append("waited for")

        stand_ins = {
            "device": lambda _: contextlib.nullcontext(), "stream": lambda _: contextlib.nullcontext(), "Stream": unittest.mock.MagicMock,
            "current_stream": lambda: None, "Event": Event,
        }
        values = torch.rand(LONG)
        empty = torch.empty
        pinned = []

        def count(*shape, pin_memory=False, **options):
            pinned.append(pin_memory)
            return empty(*shape, **options)

        with contextlib.ExitStack() as patched:
            for name, stand_in in stand_ins.items():
                patched.enter_context(unittest.mock.patch.object(torch.cuda, name, stand_in))
            patched.enter_context(unittest.mock.patch.object(torch, "empty", count))
            source, target = memory.DeviceMemory(values.view(torch.uint8)), torch.zeros(LONG)
            known = exchange.of_this_process()
            place = known.offer([source])
            known.fetch(place, [memory.DeviceMemory(target.view(torch.uint8))]).result()
            known.withdraw(place)
        self.assertTrue(torch.equal(values, target))
        pieces = -(-LONG * 4 // exchange.PIECE_BYTES)
        self.assertEqual(([True] * 2 * pieces, 2 * pieces), (pinned, done.count("waited for")))
