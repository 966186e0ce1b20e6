#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors from one program to another: a server that keeps them by number, in NumPy.

tensor_transfer.py serve [ADDRESS:PORT]      keeps tensors, until Ctrl-C
tensor_transfer.py check ADDRESS:PORT        puts some there, gets them back, compares
"""

import asyncio
import json
import struct
import sys

import numpy as np

from warpline import errors, rpc

PUT, DESCRIBE, GET = 1, 2, 3
KEY = struct.Struct("<I")


class Store:
    def __init__(self):
        self.tensors = {}

    def put(self, request):
        """The key, the length of the description, the description, the tensor's bytes."""
        key, length = struct.unpack_from("<II", request)
        kind = json.loads(request[8 : 8 + length])
        self.tensors[key] = np.frombuffer(request, kind["dtype"], offset=8 + length).reshape(kind["shape"])

    def find(self, request):
        (key,) = KEY.unpack(request)
        if key not in self.tensors:
            raise rpc.RemoteError(1, f"there is no tensor {key}".encode())
        return self.tensors[key]

    def describe(self, request):
        tensor = self.find(request)
        return json.dumps({"dtype": tensor.dtype.str, "shape": tensor.shape}).encode()


async def put(client, key, tensor):
    kind = json.dumps({"dtype": tensor.dtype.str, "shape": tensor.shape}).encode()
    await client.call(PUT, struct.pack("<II", key, len(kind)) + kind + tensor.tobytes())


async def get(client, key):
    """The answer is written to where the tensor lies."""
    kind = json.loads(await client.call(DESCRIBE, KEY.pack(key)))
    tensor = np.empty(kind["shape"], kind["dtype"])
    await client.call(GET, KEY.pack(key), into=tensor)
    return tensor


async def serve(address="127.0.0.1:0"):
    store = Store()
    async with rpc.Server({PUT: store.put, DESCRIBE: store.describe, GET: store.find}, address) as server:
        print(f"serving at {server.address}", flush=True)
        await server.serve()


async def check(address):
    tensors = [np.arange(48, dtype=np.float32).reshape(2, 4, 6), np.random.default_rng(1).random((1000, 300)), np.array([1 + 2j])]
    async with rpc.Client(address, timeout=10) as client:
        for key, tensor in enumerate(tensors):
            await put(client, key, tensor)
        for tensor, there in zip(tensors, await asyncio.gather(*(get(client, key) for key in range(len(tensors)))), strict=True):
            print(tensor.dtype, tensor.shape, "the same" if np.array_equal(tensor, there) else "DIFFERS")


def main(command, *arguments):
    try:
        asyncio.run({"serve": serve, "check": check}[command](*arguments))
    except KeyboardInterrupt:
        print("interrupted")
    except errors.WarplineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
