# SPDX-License-Identifier: Apache-2.0
"""warpline.Streams: connections of the kernel's TCP through a veth pair, as arrays in this process."""

import asyncio
import contextlib
import gc
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import unittest
import warnings

import warpline
from support.program import IS_ROOT
from support.streams import PATIENCE, PORT, VethCase, random_bytes
from warpline import errors, packet, streams

sys.path.append(os.environ["WARPLINE_TEST_WHEELS"])  # NumPy, if it is there
try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None
for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

COMMON = {"no_hugepages": True, "share_cores": True, "lcores": 1, "pool_cache": 32}
RING = 64 << 10


class Sender(threading.Thread):
    """A peer: does `work` with a connection of its own, in a thread."""

    def __init__(self, case, work, address="10.9.0.2"):
        super().__init__()
        self.case, self.work, self.address = case, work, address
        self.failure = None
        self.start()
        case.addCleanup(self.join)

    def run(self):
        try:
            with self.case.connect(self.address) as sock:
                self.work(sock)
        except Exception as failure:
            self.failure = failure

    async def done(self):
        await asyncio.to_thread(self.join)
        if self.failure:
            raise self.failure


def sends(data):
    """All of it, and waits for the other end to have read it."""

    def work(sock):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""

    return work


async def read(connection):
    whole = bytearray()
    async for view in connection:
        whole += memoryview(view)
    return bytes(whole)


@unittest.skipUnless(IS_ROOT, "network namespaces need root")
class Streams(VethCase):
    def streams(self, address="10.9.0.2/24", **options):
        with self.far.entered():
            return warpline.Streams(port="net_af_packet0,iface=right0", address=address, listen=PORT, **COMMON, **options)

    def test_bytes_are_what_was_sent(self):
        async def main():
            lengths = [0, 1, 1447, 1449, 65_536, 65_537, 3_000_000] * 4
            sent = [random_bytes(i, length) for i, length in enumerate(lengths)]
            async with self.streams(ring="64Ki") as here:
                senders = [Sender(self, sends(data)) for data in sent]
                tasks = []
                async for connection in here:
                    self.assertEqual(f"10.9.0.2:{PORT}", connection.local)
                    self.assertTrue(connection.peer.startswith("10.9.0.1:"), connection.peer)
                    tasks.append(asyncio.create_task(read(connection)))
                    if len(tasks) == len(sent):
                        break
                received = await asyncio.gather(*tasks)
                for sender in senders:
                    await sender.done()
            self.assertEqual(sorted(sent), sorted(received))
            report = here.report
            self.assertEqual((len(sent), sum(lengths), True, 0), (report.connections.finished, report.delivered.bytes, report.conserved, report.leaked_buffers))
            self.assertEqual("stream receive", report.command)

        asyncio.run(main())

    def test_over_ipv6(self):
        async def main():
            async with self.streams("fd00:9::2/64") as here:
                sender = Sender(self, sends(b"six"), "fd00:9::2")
                connection = await anext(here)
                self.assertEqual(f"[fd00:9::2]:{PORT}", connection.local)
                self.assertEqual(b"six", await read(connection))
                await sender.done()

        asyncio.run(main())

    def test_views_are_read_only_and_without_a_copy(self):
        async def main():
            async with self.streams() as here:
                sender = Sender(self, sends(b"0123456789abcdef"))
                connection = await anext(here)
                view = await anext(connection)
                shown = memoryview(view)
                self.assertEqual((True, "B", (len(view),), len(view)), (shown.readonly, shown.format, shown.shape, view.nbytes))
                with self.assertRaises(TypeError):
                    shown[0] = 0
                with self.assertRaisesRegex(BufferError, "read-only"):
                    view.__dlpack__()
                self.assertEqual((1, 0), view.__dlpack_device__())
                with self.assertRaises(BufferError):
                    view.__dlpack__(stream=1, max_version=(1, 0))
                if numpy is not None:
                    for array in (numpy.asarray(view), numpy.from_dlpack(view)):
                        self.assertFalse(array.flags.writeable)
                        self.assertEqual(numpy.asarray(view).__array_interface__["data"], array.__array_interface__["data"])
                    copy = numpy.from_dlpack(view, copy=True)
                    self.assertEqual((True, bytes(view)), (copy.flags.writeable, copy.tobytes()))
                    self.assertEqual(0x33323130, int(numpy.asarray(view)[:4].view("<u4")[0]))
                if torch is not None:
                    tensor = torch.from_dlpack(view)
                    self.assertEqual((numpy.asarray(view).__array_interface__["data"][0], bytes(view)), (tensor.data_ptr(), bytes(tensor.tolist())))
                    self.assertNotEqual(tensor.data_ptr(), torch.from_dlpack(view, copy=True).data_ptr())
                shown.release()
                array = view = tensor = None
                self.assertEqual(b"", await read(connection))
                self.assertEqual("finished", connection.state)
                await sender.done()

        asyncio.run(main())

    def test_nothing_is_written_under_a_view_and_the_peer_waits(self):
        data = random_bytes(1, 8 * RING)

        async def main():
            async with self.streams(ring=RING) as here:
                sender = Sender(self, sends(data))
                connection = await anext(here)
                first = await anext(connection)
                copy, taken, last = bytes(first), len(first), None
                with contextlib.suppress(TimeoutError):
                    while True:  # views behind the first one go, and there is no place for more all the same
                        last = await asyncio.wait_for(anext(connection), 0.3)
                        self.assertLessEqual(len(last), RING // 4)
                        taken += len(last)
                self.assertLessEqual(taken, RING)
                self.assertTrue(sender.is_alive())
                self.assertEqual(copy, bytes(first))
                at = memoryview(first)  # lives on without the view
                del first
                with self.assertRaises(TimeoutError):
                    await asyncio.wait_for(anext(connection), 0.1)
                self.assertEqual(copy, at.tobytes())
                at.release()
                behind = taken - len(last)
                rest = [bytes(await anext(connection))]
                self.assertEqual(data[behind:taken], bytes(last))  # kept while others came behind it
                del last
                rest += [bytes(view) async for view in connection]
                self.assertEqual(data[taken:], b"".join(rest))
                await sender.done()

        asyncio.run(main())

    def test_chunks(self):
        data = random_bytes(2, 1_000_001)

        async def main():
            async with self.streams(ring="1Mi", chunk="64Ki") as here:
                sender = Sender(self, sends(data))
                connection = await anext(here)
                pieces = [bytes(view) async for view in connection]
                await sender.done()
            self.assertEqual([RING] * 15 + [1_000_001 - 15 * RING], [len(piece) for piece in pieces])
            self.assertEqual(data, b"".join(pieces))

        asyncio.run(main())

    def test_a_reset_is_told_behind_what_came(self):
        def work(sock):
            sock.sendall(b"before it")
            while self.unacknowledged(sock):
                pass
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        async def main():
            async with self.streams() as here:
                Sender(self, work)
                connection = await anext(here)
                came = bytearray()
                with self.assertRaises(streams.StreamReset) as raised:
                    async for view in connection:
                        came += memoryview(view)
                self.assertEqual(b"before it", came)
                self.assertIsInstance(raised.exception, (ConnectionResetError, errors.PeerLost))
                self.assertIn(connection.peer, str(raised.exception))
                self.assertEqual("reset", connection.state)

        asyncio.run(main())

    def test_a_silent_peer_is_lost(self):
        async def main():
            async with self.streams(keepalive=0.05) as here:
                sock = await asyncio.to_thread(self.connect)
                connection = await anext(here)
                self.near.ip("link", "set", "left0", "down")
                with self.assertRaises(errors.PeerLost) as raised:
                    await anext(connection)
                self.assertIs(errors.PeerLost, type(raised.exception))
                sock.close()

        asyncio.run(main())

    def test_closing_a_connection_resets_its_peer_when_its_views_are_gone(self):
        def work(sock):
            sock.sendall(b"x" * 1000)
            with self.assertRaises(ConnectionResetError):
                sock.recv(1)

        async def main():
            async with self.streams() as here:
                sender = Sender(self, work)
                connection = await anext(here)
                view = await anext(connection)
                async with connection:
                    pass
                with self.assertRaises(errors.ClientClosed):
                    await anext(connection)
                self.assertEqual(b"x", bytes(view)[:1])
                self.assertTrue(sender.is_alive())
                del view
                await sender.done()
                sender = Sender(self, lambda sock: sock.recv(1))
                connection = await anext(here)
                del connection  # is as good
                gc.collect()
                with self.assertRaises(ConnectionResetError):
                    await sender.done()

        asyncio.run(main())

    def test_closing_all_of_it(self):
        def work(sock):
            sock.sendall(b"kept")
            with self.assertRaises(ConnectionResetError):
                sock.recv(1)

        async def main():
            here = self.streams()
            sender = Sender(self, work)
            connection = await anext(here)
            view = await anext(connection)
            waits = asyncio.ensure_future(anext(connection))
            accepts = asyncio.ensure_future(anext(here))
            await asyncio.sleep(0)
            await here.close()
            with self.assertRaises(errors.ClientClosed):
                await waits
            with self.assertRaises(StopAsyncIteration):
                await accepts
            await sender.done()
            self.assertEqual(b"kept", bytes(view))
            self.assertEqual((1, True), (here.report.connections.aborted, here.report.conserved))
            await here.close()
            # A later run, while bytes of this one are kept.
            async with self.streams() as again:
                sender = Sender(self, sends(b"again"))
                self.assertEqual(b"again", await read(await anext(again)))
                await sender.done()
            self.assertEqual(b"kept", bytes(view))

        asyncio.run(main())

    def test_it_ends_by_time(self):
        async def main():
            seen = []
            async with self.streams(seconds=0.3, interval=0.05, progress=seen.append) as here:
                async for _ in here:
                    self.fail("nobody connects")
            self.assertEqual(0, here.report.connections.opened)
            self.assertIn("time_s", seen[0])

        asyncio.run(main())

    def test_views_that_fill_the_ring_are_warned_of(self):
        async def main():
            async with self.streams(ring=RING) as here:
                Sender(self, lambda sock: self.ignoring(sock, bytes(4 * RING)))
                connection = await anext(here)
                kept = []
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    self.addCleanup(setattr, streams, "_FULL_S", streams._FULL_S)
                    streams._FULL_S = 0.01
                    while not caught:
                        try:
                            kept.append(await asyncio.wait_for(anext(connection), 0.1))
                        except TimeoutError:
                            pass
                self.assertEqual([ResourceWarning], [one.category for one in caught])
                self.assertIn("larger ring", str(caught[0].message))

        asyncio.run(main())

    def ignoring(self, sock, data):
        try:
            sock.sendall(data)
        except OSError:
            pass

    def test_one_run_at_a_time_of_whichever_kind(self):
        async def main():
            async with self.streams():
                with self.assertRaisesRegex(warpline.UsageError, "another one runs"):
                    self.streams()
                with self.assertRaisesRegex(warpline.UsageError, "another one runs"):
                    warpline.Ingest(loopback=True, frame="packets=1,seq=2:48:le,payload=18:46", **COMMON)

        asyncio.run(main())
        path = self.scratch.path / "in.pcap"
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            frame = packet.udp(bytes(72), source="10.0.0.1", destination="10.0.0.2", source_port=1, destination_port=2)
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
        with warpline.Ingest(port=f"net_pcap0,rx_pcap={path}", frame="packets=1,seq=0:64,payload=8:64", **COMMON) as ingest:
            self.assertEqual(1, len(list(ingest)))

    def test_two_queues(self):
        async def main():
            with self.far.entered():
                here = warpline.Streams(port="net_af_packet0,iface=right0,qpairs=2", address="10.9.0.2/24", listen=[PORT, PORT + 1], pipelines=2, **{**COMMON, "lcores": 2})
            async with here:
                sent = [random_bytes(i, 200_000 + i) for i in range(16)]
                senders = [Sender(self, sends(data)) for data in sent]
                received = await asyncio.gather(*[asyncio.create_task(read(await anext(here))) for _ in sent])
                for sender in senders:
                    await sender.done()
            self.assertEqual(sorted(sent), sorted(received))

        asyncio.run(main())

    def test_ctrl_c(self):
        script = textwrap.dedent(f"""
            import asyncio, warpline
            async def main():
                streams = warpline.Streams(port="net_af_packet0,iface=right0", address="10.9.0.2/24", listen={PORT}, **{COMMON!r})
                try:
                    async with streams:
                        print("listening", flush=True)
                        async for connection in streams:
                            async for view in connection:
                                print(len(view), flush=True)
                finally:
                    print(streams.report.connections.aborted, streams.report.conserved, flush=True)
            asyncio.run(main())
        """)
        child = subprocess.Popen(self.far.command(sys.executable, "-c", script), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            self.assertEqual("listening\n", child.stdout.readline())
            with self.connect() as sock:
                sock.sendall(b"four")
                self.assertEqual("4\n", child.stdout.readline())
                child.send_signal(signal.SIGINT)
                said, wrong = child.communicate(timeout=PATIENCE)
                self.assertEqual("1 True\n", said, wrong)
                self.assertIn("KeyboardInterrupt", wrong)
                self.assertEqual(-signal.SIGINT, child.returncode)
                with self.assertRaises(ConnectionResetError):
                    sock.recv(1)
        finally:
            child.kill()
            child.communicate()

    @unittest.skipIf(numpy is None, "there is no NumPy: setup/test_wheels")
    def test_example_levels(self):
        loud, quiet = (struct.pack("<h", level) * 10_000 for level in (16_384, -512))
        program = pathlib.Path(__file__).resolve().parents[2] / "examples/python/stream_levels.py"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((os.environ["PYTHONPATH"], sys.path[-1]))}
        child = subprocess.Popen(
            self.far.command(sys.executable, program, "net_af_packet0,iface=right0", "10.9.0.2/24", PORT, 2),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        try:
            self.assertEqual(f"listening on 10.9.0.2 port {PORT}\n", child.stdout.readline())
            ports = {}
            for data in (loud + b"?", quiet):  # half a sample is none
                with self.connect() as sock:
                    ports[sock.getsockname()[1]] = "-6.0" if data is not quiet else "-36.1"
                    sends(data)(sock)
            said, wrong = child.communicate(timeout=PATIENCE)
        finally:
            child.kill()
            child.communicate()
        self.assertEqual(0, child.returncode, wrong)
        self.assertEqual(
            sorted(f"10.9.0.1:{port} {begin} {level} dB" for port, level in ports.items() for begin in (0, 4096, 8192)), sorted(said.splitlines()))


class Options(unittest.TestCase):
    def test_that_make_no_sense_are_refused(self):
        right = {"port": "net_null0", "address": "10.0.0.2/24", "listen": 5001}
        for wrong, text in (
            ({"address": None}, "no address"),
            ({"listen": None}, "listens nowhere"),
            ({"engine": "persistent"}, "option engine: .* use launch"),
            ({"output": "/nonexistent"}, "option output"),
            ({"verify": True}, "option verify"),
            ({"processing": False}, "option processing"),
            ({"ring": 1000}, "ring"),
            ({"chunk": "4Mi"}, "twice the chunk"),
            ({"nonsense": 1}, "nonsense"),
            ({"json": True}, "comes as an object"),
            ({"port": "net_nonsense0"}, "net_nonsense0"),
        ):
            with self.subTest(wrong), self.assertRaisesRegex(warpline.UsageError, text):
                warpline.Streams(**{**right, **COMMON, **wrong})


if __name__ == "__main__":
    unittest.main()
