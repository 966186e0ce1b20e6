# SPDX-License-Identifier: Apache-2.0
"""warpline.rpc with keys: who has none of a server's is nobody to it, and nothing can be read on the way."""

import asyncio
import os
import pathlib
import socket
import subprocess
import tempfile
import unittest

from warpline import errors, program, rpc

for name in [name for name in os.environ if name.startswith("WARPLINE_") and name != "WARPLINE_BINARY"]:
    del os.environ[name]  # of tests: the program refuses names that are no option of its own

SECRET = b"nobody reads this on its way " * 20
PATIENCE_S = 60


class Relay(asyncio.DatagramProtocol):
    """Hands datagrams on between one client and a server, and keeps a copy of all."""

    def __init__(self, server):
        host, port = server.split(":")
        self.server, self.client, self.seen = (host, int(port)), None, bytearray()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        self.seen += data
        if peer == self.server:
            self.transport.sendto(data, self.client)
        else:
            self.client = peer
            self.transport.sendto(data, self.server)


class Keys(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def key(self, name, *more):
        path = self.folder / name
        subprocess.run([program.path(), "message", "key", "new", str(path), *more], check=True, capture_output=True, env=program.environment())
        return path

    async def served(self, **options):
        return await self.enterAsyncContext(rpc.Server({1: lambda request: request[::-1]}, **options))

    async def test_calls_are_encrypted(self):
        key = self.key("key")
        for options, is_seen in (({"key": key}, False), ({}, True)):
            server = await self.served(**options)
            loop = asyncio.get_running_loop()
            transport, relay = await loop.create_datagram_endpoint(lambda to=server.address: Relay(to), local_addr=("127.0.0.1", 0), family=socket.AF_INET)
            async with rpc.Client("127.0.0.1:{}".format(transport.get_extra_info("sockname")[1]), timeout=PATIENCE_S, **options) as client:
                self.assertEqual(SECRET[::-1], await client.call(1, SECRET))
                rows, _ = await client.call_many(1, memoryview(SECRET[:128]).cast("B", (4, 32)))
                self.assertEqual(SECRET[:32][::-1], bytes(rows)[:32])
            transport.close()
            self.assertEqual(is_seen, SECRET[:16] in relay.seen)

    async def test_who_has_no_key_of_the_servers_is_nobody(self):
        server = await self.served(key=self.key("key"))
        for options in ({}, {"key": self.key("other")}):
            async with rpc.Client(server.address, connect_timeout=0.2, **options) as client:
                with self.assertRaises(rpc.PeerLost) as raised:
                    await client.call(1, SECRET)
                self.assertIn(raised.exception.reach, ("never_sent", "not_handled"))
        plain = await self.served()
        async with rpc.Client(plain.address, connect_timeout=0.2, key=self.folder / "key") as client:
            with self.assertRaises(rpc.PeerLost):
                await client.call(1, SECRET)

    async def test_keys_change_while_a_server_runs(self):
        key, new = self.key("key"), self.key("new")
        server = await self.served(key=key)
        async with rpc.Client(server.address, timeout=PATIENCE_S, key=os.fspath(key)) as before:
            self.assertEqual(b"ba", await before.call(1, b"ab"))
            async with rpc.Client(server.address, connect_timeout=0.2, key=new) as after:
                with self.assertRaises(rpc.PeerLost):
                    await after.call(1, b"ab")
                key.write_bytes(new.read_bytes() + key.read_bytes())
                server.read_key_again()
                self.assertEqual(b"ba", await after.call(1, b"ab", timeout=PATIENCE_S))
            self.assertEqual(b"ba", await before.call(1, b"ab"))
            key.write_text("no key\n")
            for end in (server, before):
                with self.assertRaises(errors.UsageError):
                    end.read_key_again()
            self.assertEqual(b"ba", await before.call(1, b"ab"))

    async def test_files_that_cannot_be_used(self):
        key = self.key("key")
        key.chmod(0o644)
        (self.folder / "none").write_text("not hexadecimal\n")
        (self.folder / "none").chmod(0o600)
        for path, kind in ((key, errors.EnvironmentNotReady), (self.folder / "none", errors.UsageError), (self.folder / "nowhere", errors.WarplineError)):
            for make in (lambda path=path: rpc.Client("127.0.0.1:1", key=path), lambda path=path: rpc.Server({}, key=path)):
                with self.assertRaisesRegex(kind, path.name):
                    make()
        async with rpc.Client("127.0.0.1:1") as client:
            with self.assertRaisesRegex(errors.UsageError, "key"):
                client.read_key_again()


if __name__ == "__main__":
    unittest.main()
