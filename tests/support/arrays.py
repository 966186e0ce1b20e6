# SPDX-License-Identifier: Apache-2.0
"""Libraries of arrays on a GPU, as far as they are installed and see one, by the same few functions."""

import importlib


def library(name):
    """A library of arrays that sees a GPU, or None."""
    try:
        module = importlib.import_module(name)
        there = {"cupy": lambda: module.cuda.runtime.getDeviceCount(), "torch": lambda: module.cuda.device_count(), "jax": lambda: len(module.devices("gpu"))}
        return module if there[name]() else None
    except Exception:  # it is not installed, or there is no GPU: each library says so in its own way
        return None


class Cupy:
    def __init__(self, module):
        self.xp = module

    def array(self, data):
        return self.xp.frombuffer(bytearray(data), dtype="u1") if data else self.xp.empty(0, "u1")

    def take(self, array):
        return self.xp.from_dlpack(array)

    def bytes(self, array):
        return array.tobytes()

    def empty(self, size):
        return self.xp.zeros(size, "u1")


class Torch(Cupy):
    def array(self, data):
        return self.xp.frombuffer(bytearray(data), dtype=self.xp.uint8).cuda()

    def bytes(self, array):
        return array.cpu().numpy().tobytes()

    def empty(self, size):
        return self.xp.zeros(size, dtype=self.xp.uint8, device="cuda")


class Jax(Cupy):
    def array(self, data):
        import numpy

        return self.xp.device_put(numpy.frombuffer(data, "u1"), self.xp.devices("gpu")[0])

    def take(self, array):
        return self.xp.numpy.from_dlpack(array)

    def bytes(self, array):
        import numpy

        return numpy.asarray(array).tobytes()


def libraries():
    """What there is, by name. Of several GPUs this thread uses the first."""
    kinds = (("cupy", Cupy), ("torch", Torch), ("jax", Jax))
    found = {name: kind(module) for name, kind in kinds if (module := library(name))}
    if "cupy" in found:
        found["cupy"].xp.cuda.Device(0).use()  # JAX leaves the thread with the last one
    elif "torch" in found:
        found["torch"].xp.cuda.set_device(0)
    return found
