# SPDX-License-Identifier: Apache-2.0
"""warpline.rpc between processes: peers that are killed, stopped or interrupted; the examples; the C++ library as peer."""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import unittest.mock

from support.messages import free_port
from warpline import rpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/python"
PATIENCE_S = 60
SERVER = """
import asyncio, sys
from warpline import rpc

async def never(request):
    await asyncio.Event().wait()

async def main():
    async with rpc.Server({1: lambda request: request, 2: never}) as server:
        print(f"serving at {server.address}", flush=True)
        await server.serve()

asyncio.run(main())
"""


class Processes(unittest.TestCase):
    def start(self, *command):
        """A server that says where it serves; it does not outlive the test."""
        process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        self.assertRegex(line, r"^serving at ")
        return process, line.split()[-1]

    def run_example(self, *command):
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, timeout=PATIENCE_S)


class Peers(Processes):
    def test_a_killed_server_is_lost(self):
        server, address = self.start("-c", SERVER)

        async def main():
            async with rpc.Client(address, peer_timeout=2) as client:
                self.assertEqual(b"x", await client.call(1, b"x"))
                waiting = [client.call(2, bytes(100 * i)) for i in range(40)]  # fewer than a session has slots
                rows = asyncio.ensure_future(client.call_many(2, memoryview(bytes(40)).cast("B", (10, 4))))
                self.assertEqual(b"y", await client.call(1, b"y"))
                server.kill()
                for ended in await asyncio.gather(*waiting, rows, return_exceptions=True):
                    self.assertIsInstance(ended, rpc.PeerLost)
                self.assertEqual("maybe_handled", waiting[0].exception().reach)

        asyncio.run(asyncio.wait_for(main(), PATIENCE_S))

    def test_a_server_that_stands_still_for_a_moment_is_waited_for(self):
        server, address = self.start("-c", SERVER)

        async def main():
            async with rpc.Client(address) as client:
                self.assertEqual(b"x", await client.call(1, b"x"))
                os.kill(server.pid, signal.SIGSTOP)
                calls = [client.call(1, bytes([i])) for i in range(50)]
                with self.assertRaises(rpc.CallTimeout):
                    await client.call(1, timeout=0.05)
                os.kill(server.pid, signal.SIGCONT)
                self.assertEqual([bytes([i]) for i in range(50)], await asyncio.gather(*calls))

        asyncio.run(asyncio.wait_for(main(), PATIENCE_S))

    def test_a_client_that_is_killed_leaves_nothing_behind(self):
        text = """
import asyncio, sys
from warpline import rpc

async def main():
    client = rpc.Client(sys.argv[1])
    calls = [client.call(2) for _ in range(50)]
    await client.call(1)
    print("serving at nothing", flush=True)
    await asyncio.gather(*calls)

asyncio.run(main())
"""

        async def main():
            tasks = set()

            async def never(request):
                tasks.add(asyncio.current_task())
                await asyncio.Event().wait()

            async with rpc.Server({1: lambda request: request, 2: never}, peer_timeout=1) as server:
                loop = asyncio.get_running_loop()
                process, _ = await loop.run_in_executor(None, self.start, "-c", text, server.address)
                self.assertEqual(50, len(tasks))
                process.kill()
                await asyncio.wait(tasks, timeout=PATIENCE_S)
                self.assertTrue(all(task.cancelled() for task in tasks))

        asyncio.run(main())

    def test_ctrl_c_ends_a_server_and_a_client(self):
        server, address = self.start(EXAMPLES / "rpc_echo.py", "serve")
        text = f"""
import asyncio
from warpline import rpc

async def main():
    async with rpc.Client({address!r}) as client:
        await client.call(1, b"x")
        print("serving at nothing", flush=True)
        await asyncio.Event().wait()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
        client, _ = self.start("-c", text)
        for process in (client, server):
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=PATIENCE_S)
            self.assertEqual((0, "interrupted\n", ""), (process.returncode, output, errors))


class Examples(Processes):
    def test_echo(self):
        _, address = self.start(EXAMPLES / "rpc_echo.py", "serve")
        done = self.run_example(EXAMPLES / "rpc_echo.py", "ask", address, "stressed", "", "Ada")
        self.assertEqual((0, "desserts\n\nadA\n", ""), (done.returncode, done.stdout, done.stderr))

    def test_nobody_there_is_said(self):
        done = self.run_example(EXAMPLES / "rpc_echo.py", "ask", "127.0.0.1:9", "x")
        self.assertEqual((5, ""), (done.returncode, done.stdout), done)
        self.assertIn("the server is gone", done.stderr)

    def test_tensors(self):
        wheels = os.environ["WARPLINE_TEST_WHEELS"]
        if not (pathlib.Path(wheels) / "numpy").is_dir():
            self.skipTest("there is no numpy: setup/test_wheels")
        path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), wheels)))
        with unittest.mock.patch.dict(os.environ, PYTHONPATH=path):
            _, address = self.start(EXAMPLES / "tensor_transfer.py", "serve")
            done = self.run_example(EXAMPLES / "tensor_transfer.py", "check", address)
        self.assertEqual((0, 3, ""), (done.returncode, done.stdout.count("the same\n"), done.stderr), done.stdout)


class OfCpp(Processes):
    def test_the_programs_server_answers_python(self):
        address = f"127.0.0.1:{free_port()}"
        process = subprocess.Popen(
            [os.environ["WARPLINE_BINARY"], "message", "server", "--listen", address, "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("WARPLINE_")},
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while "listening on" not in (line := process.stderr.readline()):
            self.assertNotEqual("", line)

        async def main():
            async with rpc.Client(address) as client:
                return await client.call(1, b"how are you"), await client.call_many(1, memoryview(bytes(64)).cast("B", (2, 32)))

        answer, (rows, _) = asyncio.run(asyncio.wait_for(main(), PATIENCE_S))
        self.assertEqual((b"how are you", bytes(64)), (answer, rows.tobytes()))
        process.send_signal(signal.SIGINT)
        report = json.loads(process.communicate(timeout=PATIENCE_S)[0])
        self.assertTrue(report["conserved"])


if __name__ == "__main__":
    unittest.main()
