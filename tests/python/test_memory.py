# SPDX-License-Identifier: Apache-2.0
"""Nothing stays of frames, packets and connections that were taken and let go: by tracemalloc, resident memory, descriptors, threads."""

import asyncio
import gc
import os
import pathlib
import socket
import struct
import tempfile
import threading
import tracemalloc
import unittest

import warpline
from support.program import IS_ROOT
from support.streams import PORT, VethCase
from support.threads import thread_count
from warpline import packet

for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

CYCLES = 10_000
KIB, MIB = 1 << 10, 1 << 20
COMMON = {"no_hugepages": True, "share_cores": True}
WHOLE = memoryview(bytes(64))


def resident():
    """Bytes of this process in memory."""
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def file_count():
    return len(os.listdir("/proc/self/fd"))


class Kept:
    """What is there more than at the beginning."""

    def __init__(self, case):
        self.case = case
        gc.collect()
        tracemalloc.start()
        case.addCleanup(tracemalloc.stop)
        self.files, self.threads, self.resident = file_count(), thread_count(), resident()

    def check(self, at_most=8 * MIB):
        gc.collect()
        self.case.assertLess(tracemalloc.get_traced_memory()[0], 64 * KIB)
        self.case.assertLessEqual(file_count(), self.files)
        self.case.assertLessEqual(thread_count(self.threads), self.threads)
        self.case.assertLess(resident() - self.resident, at_most)


def write_pcap(path, packets):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number in range(packets):
            frame = packet.udp(struct.pack(">Q", number) + bytes(64), source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
            file.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "in.pcap"

    def test_frames(self):
        warm = 1000
        write_pcap(self.path, 2 * (CYCLES + warm))
        with warpline.Ingest(port=f"net_pcap0,rx_pcap={self.path}", frame="packets=2,seq=0:64,payload=8:64", gpu_memory="256Ki", batch=4, **COMMON) as ingest:
            taken, kept = 0, None
            for frame in ingest:
                taken += 1
                memoryview(frame.data)[:5].tobytes(), list(memoryview(frame.present)), frame.data.__dlpack__(max_version=(1, 0)), frame.data.__dlpack__(copy=True)
                if taken == warm:
                    kept = Kept(self)
                if taken == warm + CYCLES - 100:  # the run goes on
                    del frame
                    kept.check()
        self.assertEqual(warm + CYCLES, taken)

    def test_runs(self):
        write_pcap(self.path, 20)

        def run():
            with warpline.Ingest(port=f"net_pcap0,rx_pcap={self.path}", frame="packets=2,seq=0:64,payload=8:64", gpu_memory="256Ki", batch=4, **COMMON) as ingest:
                self.assertEqual(10, len(list(ingest)))

        for _ in range(5):
            run()
        kept = Kept(self)
        for _ in range(20):
            run()
        kept.check(24 * MIB)

    def test_packets(self):
        write_pcap(self.path, 200)

        def cycle(number):
            frame = packet.udp(bytes(number % 500), source="10.0.0.1", destination="10.0.0.2", source_port=number % 60_000, destination_port=9, vlan=(5,))
            headers = packet.parse(frame)
            self.assertEqual(number % 60_000, headers.source_port)
            packet.verify(packet.with_checksums(packet.tcp(WHOLE, source="fd00::1", destination="fd00::2", source_port=1, destination_port=2)))
            packet.parse(b"short")
            for wrong in ("text", None):
                try:
                    packet.parse(wrong)
                except TypeError:
                    pass
            if number % 50 == 0:
                capture = packet.read_pcap(self.path)
                self.assertEqual(200, len([memoryview(one)[:1] for one in capture]))

        for number in range(1000):
            cycle(number)
        kept = Kept(self)
        for number in range(CYCLES):
            cycle(number)
        kept.check()


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Connections(VethCase):
    def test_connections(self):
        """Of each a view, half of them reset by the peer, given up or kept for a while."""
        warm, at_once = 1000, 8
        turn = threading.Semaphore(at_once)

        def peer(count):
            with self.near.entered():
                for number in range(count):
                    turn.acquire()
                    with socket.create_connection(("10.9.0.2", PORT), 60) as sock:
                        sock.sendall(b"x" * (1 + number % 1400))
                        if number % 4 == 1:
                            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        async def read(connection, number, held):
            try:
                async for view in connection:
                    held[number % len(held)] = view
                    if number % 4 == 3:
                        connection.close()
            except (ConnectionResetError, warpline.ClientClosed):
                pass
            turn.release()

        async def main():
            with self.far.entered():
                streams = warpline.Streams(port="net_af_packet0,iface=right0", address="10.9.0.2/24", listen=PORT, ring="64Ki", lcores=1, **COMMON)
            async with streams:
                sender = threading.Thread(target=peer, args=(warm + CYCLES,))
                sender.start()
                tasks, held = set(), [None] * 4
                for number in range(warm + CYCLES):
                    task = asyncio.create_task(read(await anext(streams), number, held))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                    if number == warm:
                        kept = Kept(self)
                await asyncio.gather(*tasks)
                await asyncio.to_thread(sender.join)
                held[:] = [None] * 4
                del task
                while streams._connections:
                    gc.collect()
                    await asyncio.sleep(0)
                kept.threads = thread_count()  # threads of the peers and of asyncio come and go
                kept.check()
            self.assertEqual((warm + CYCLES, True, 0), (streams.report.connections.opened, streams.report.conserved, streams.report.leaked_buffers))

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
