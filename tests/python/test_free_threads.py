# SPDX-License-Identifier: Apache-2.0
"""Python's threads side by side in the module, which needs no GIL where the interpreter has none."""

import asyncio
import os
import queue
import random
import subprocess
import sys
import sysconfig
import threading
import unittest

for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

import warpline
from warpline import packet, rpc

THREADS = 4
PATIENCE_S = 60
ECHO, TURN = 1, 2


def side_by_side(work, count=THREADS):
    """Runs work(number) in so many threads that begin together, and raises what one of them raised."""
    gate, failures = threading.Barrier(count), []

    def run(number):
        gate.wait()
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class FreeThreads(unittest.TestCase):
    @unittest.skipUnless(sysconfig.get_config_var("Py_GIL_DISABLED"), "this interpreter has a GIL")
    def test_an_interpreter_without_gil_stays_so(self):
        text = "import sys, warpline, warpline.frames, warpline.packet, warpline.rpc, warpline.streams; print(sys._is_gil_enabled())"
        done = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, check=True)
        self.assertEqual("False\n", done.stdout)

    def test_frames_are_read_and_let_go_by_many(self):
        packets = 64_000
        frames, lock, found = queue.SimpleQueue(), threading.Lock(), {"bytes": 0, "present": 0}

        def read(number):
            if number == 0:
                options = {"size": 200, "packets": packets, "gpu_memory": "1Mi", "frame": "packets=16,seq=2:48:le,payload=18:140"}
                try:
                    with warpline.Ingest(loopback=True, share_cores=True, **options) as ingest:
                        for frame in ingest:
                            frames.put(frame)
                finally:
                    for _ in range(THREADS - 1):
                        frames.put(None)
                return
            while (frame := frames.get()) is not None:
                views = [memoryview(frame.data) for _ in range(3)]
                present = sum(memoryview(frame.present))
                del frame
                with lock:
                    found["bytes"] += len(views[0])
                    found["present"] += present
                del views

        side_by_side(read)
        self.assertEqual({"bytes": packets * 140, "present": packets}, found)

    def test_event_loops_each_with_ends_of_its_own(self):
        def work(number):
            chosen = random.Random(number)

            async def calls():
                async with rpc.Server({ECHO: lambda request: request, TURN: lambda request: request[::-1]}) as server:
                    async with rpc.Client(server.address, timeout=PATIENCE_S) as client:
                        requests = [chosen.randbytes(chosen.choice((0, 5, 128, 129, 3000, 70_000))) for _ in range(200)]
                        self.assertEqual(requests, await asyncio.gather(*(client.call(ECHO, request) for request in requests)))
                        rows, size = 256, 40
                        many = memoryview(chosen.randbytes(rows * size)).cast("B", (rows, size))
                        into = memoryview(bytearray(rows * size)).cast("B", (rows, size))
                        await client.call_many(TURN, many, into=into)
                        self.assertEqual([row[::-1] for row in many.tolist()], into.tolist())

            asyncio.run(calls())

        side_by_side(work)

    def test_one_client_in_hands_of_many_stays_whole(self):
        async def calls():
            async with rpc.Server({ECHO: lambda request: request}) as server:
                async with rpc.Client(server.address, timeout=PATIENCE_S) as client:
                    over = threading.Event()

                    def meddle(_):
                        while not over.is_set():
                            self.assertGreaterEqual(client.under_way, 0)

                    meddlers = asyncio.create_task(asyncio.to_thread(side_by_side, meddle))
                    try:
                        for _ in range(20):
                            requests = [os.urandom(i) for i in range(200)]
                            self.assertEqual(requests, await asyncio.gather(*(client.call(ECHO, request) for request in requests)))
                    finally:
                        over.set()
                    await meddlers

        asyncio.run(calls())

    def test_packets(self):
        def work(number):
            for i in range(2000):
                payload = bytes([number]) * (i % 1400)
                frame = packet.udp(payload, source="10.0.0.1", destination=f"10.0.{number}.2", source_port=1 + i, destination_port=2)
                headers = packet.parse(frame)
                self.assertEqual((f"10.0.{number}.2", 1 + i, "forward"), (headers.destination, headers.source_port, packet.verify(frame)))
                self.assertEqual(payload, frame[headers.payload_offset:headers.payload_offset + headers.payload_length])

        side_by_side(work)


if __name__ == "__main__":
    unittest.main()
