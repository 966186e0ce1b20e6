# SPDX-License-Identifier: Apache-2.0
"""What Ingest, rpc and read_pcap hand out, as the DLPack specification has it: to NumPy, to PyTorch, and field by field."""

import asyncio
import contextlib
import ctypes
import gc
import os
import pathlib
import struct
import sys
import tempfile
import unittest

import warpline
from warpline import packet, rpc

sys.path.append(os.environ["WARPLINE_TEST_WHEELS"])  # NumPy, if it is there
for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own
LIBRARIES = []
with contextlib.suppress(ImportError):
    import numpy

    LIBRARIES.append(numpy)
with contextlib.suppress(ImportError):
    import torch

    LIBRARIES.append(torch)

PACKETS, PAYLOAD = 4, 256
CPU = (1, 0)
USED = {b"dltensor": b"used_dltensor", b"dltensor_versioned": b"used_dltensor_versioned"}  # which capsules point into
CODES = {"q": (0, 64), "B": (1, 8), "?": (6, 8)}  # DLDataType of what struct calls so


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    )


def managed(capsule, kind, name):
    """The structure of a capsule, and its address."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer(capsule, name)
    return kind.from_address(address), address


def take(capsule, name):
    """Renames a capsule as who consumes it does: its tensor is no longer the capsule's to delete."""
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    rename(capsule, USED[name])


def address_of(array):
    return ctypes.addressof(ctypes.c_char.from_buffer(array))


class Arrays(unittest.TestCase):
    """Arrays of every type of element, with what they must hold."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "in.pcap"
        numbers = (0, 1, 3)
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for number in numbers:
                data = struct.pack(">Q", number) + bytes([number + 1]) * PAYLOAD
                frame = packet.udp(data, source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
                file.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)
        with warpline.Ingest(port=f"net_pcap0,rx_pcap={path}", frame=f"packets={PACKETS},seq=0:64,payload=8:{PAYLOAD}", share_cores=True) as ingest:
            (frame,) = ingest
        capture = packet.read_pcap(path)
        self.arrays = {
            "bytes": frame.data,
            "truth values": frame.present,  # [True, True, False, True]
            "64-bit numbers": capture.times_ns,  # [0, 1_000_000_000, 3_000_000_000]
        }

    def test_structures(self):
        for name, array in self.arrays.items():
            with self.subTest(name):
                shown = memoryview(array)
                for version, kind, called in ((None, Managed, b"dltensor"), ((0, 8), Managed, b"dltensor"), ((1, 0), Versioned, b"dltensor_versioned"), ((1, 3), Versioned, b"dltensor_versioned")):
                    capsule = array.__dlpack__(max_version=version)
                    found, address = managed(capsule, kind, called)
                    tensor = found.tensor
                    self.assertEqual((*CPU, 1, *CODES[shown.format], 1, 0), (tensor.device_type, tensor.device, tensor.ndim, tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset))
                    self.assertEqual((len(array), 1), (tensor.shape[0], tensor.strides[0]))
                    self.assertEqual(address_of(array), tensor.data)
                    if kind is Versioned:
                        self.assertEqual((1, 0, 0), (found.major, found.minor, found.flags))
                    take(capsule, called)
                    del capsule
                    self.assertEqual(len(array), tensor.shape[0])  # it outlives the capsule
                    found.deleter(address)

    def test_copies_are_said_to_be_and_are_somewhere_else(self):
        for name, array in self.arrays.items():
            with self.subTest(name):
                found, _ = managed(capsule := array.__dlpack__(max_version=(1, 0), copy=True), Versioned, b"dltensor_versioned")
                self.assertEqual(2, found.flags)
                self.assertNotEqual(address_of(array), found.tensor.data)
                self.assertEqual(memoryview(array).tobytes(), ctypes.string_at(found.tensor.data, array.nbytes))
                del capsule
                shared, _ = managed(capsule := array.__dlpack__(max_version=(1, 0), copy=False), Versioned, b"dltensor_versioned")
                self.assertEqual((0, address_of(array)), (shared.flags, shared.tensor.data))

    def test_devices_and_streams(self):
        for name, array in self.arrays.items():
            with self.subTest(name):
                self.assertEqual(CPU, array.__dlpack_device__())
                array.__dlpack__(stream=None, dl_device=CPU)
                for wrong in ({"stream": -1}, {"stream": 1}, {"dl_device": (2, 0)}, {"dl_device": (1, 1)}):
                    with self.assertRaises(BufferError):
                        array.__dlpack__(**wrong)

    def test_libraries(self):
        if not LIBRARIES:
            self.skipTest("there is neither NumPy nor PyTorch")
        for library in LIBRARIES:
            for name, array in self.arrays.items():
                with self.subTest(name):
                    there = library.from_dlpack(array)
                    self.assertEqual((str(there.dtype).rpartition(".")[2], tuple(there.shape)), ({"q": "int64", "B": "uint8", "?": "bool"}[memoryview(array).format], (len(array),)))
                    self.assertEqual(memoryview(array).tolist(), there.tolist())
                    first = memoryview(array)[0]
                    there[0] = not first  # which is seen here: nothing was copied
                    self.assertEqual(not first, memoryview(array)[0])
                    there[0] = first

    def test_from_library_to_library(self):
        if len(LIBRARIES) < 2:
            self.skipTest("there are not both NumPy and PyTorch")
        for name, array in self.arrays.items():
            with self.subTest(name):
                there = numpy.from_dlpack(torch.from_dlpack(numpy.from_dlpack(array)))
                self.assertEqual(address_of(array), there.__array_interface__["data"][0])

    def test_they_keep_the_memory(self):
        for library in LIBRARIES:
            for name in list(self.arrays):
                with self.subTest(name, library=library.__name__):
                    held = memoryview(self.arrays[name]).tolist()
                    there = library.from_dlpack(self.arrays[name])[1:]
                    copy = there.tolist()
                    self.setUp()  # another run, whose memory is taken in the place of what was let go
                    gc.collect()
                    self.assertEqual((held[1:], copy), (copy, there.tolist()))


class Rows(unittest.TestCase):
    def test_answers_of_call_many(self):
        if not LIBRARIES:
            self.skipTest("there is neither NumPy nor PyTorch")

        async def main():
            async with rpc.Server({1: lambda request: request}) as server, rpc.Client(server.address, timeout=60) as client:
                for library in LIBRARIES:
                    asked = library.arange(60, dtype=library.int32).reshape(10, 6)
                    rows, lengths = await client.call_many(1, asked)
                    self.assertEqual([24] * 10, list(lengths))
                    there = library.asarray(rows)
                    self.assertEqual(list(struct.pack("60i", *range(60))), there.reshape(-1).tolist())
                    self.assertEqual((10, 24), memoryview(rows).shape)
                    into = library.zeros((10, 6), dtype=library.int32)
                    await client.call_many(1, asked, into=into)
                    self.assertTrue((asked == into).all())

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
