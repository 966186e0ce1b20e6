#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The installed package serves other projects: by CMake and by pkg-config, shared and static, and says what it lacks.

package_test.py BUILD: installs the libraries of that build folder and builds the examples against them. With WARPLINE_LONG=1
all that is done with shared libraries is done with archives, too, and kernels are for all architectures.
"""

import contextlib
import functools
import hashlib
import itertools
import math
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
from support import pcap
from support.frames import ethernet, ip, mac, udp
from support.namespaces import Namespace, veth

BUILD = Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/release").resolve()
PATIENCE_S = 800
VERSION = re.search(r"^project\(warpline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
INTERFACE = VERSION.rsplit(".", 1)[0]
NVCC = subprocess.run([ROOT / "setup/nvcc", "--print"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout.strip()
HAS_KERNELS = bool(NVCC) and "WARPLINE_DEVICE_CODE=1" in (BUILD / "build.ninja").read_text()
IS_LONG = os.environ.get("WARPLINE_LONG") == "1"
LAUNCHERS = ("CXX", "CUDA") if shutil.which("ccache") else ()
CCACHE = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in LAUNCHERS]
# Where a cached object of the last run has the same name.
WORK = BUILD / "tests/package" / ("consumers_all" if IS_LONG else "consumers")


def run(*command, ok=True, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False, **options)
    if ok and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def install(prefix, *components):
    for component in components:
        run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)


@functools.cache
def tone(channel):
    """The 1024 bytes of a packet, over and over: signed 16-bit samples of a tone, whose channel is a multiple of four."""
    return struct.pack("<512h", *(round(8000 * math.cos(2 * math.pi * channel * i / 2048)) for i in range(512)))


def free_address():
    """An address of the loopback with a UDP port that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def spead_packet(heap, packet, payload):
    """SPEAD-64-48: packet of a heap of 16 KiB, with the array of the whole heap as its one item."""
    items = [(1, heap), (2, 16384), (3, packet * 1024), (4, 1024)]
    words = [1 << 63 | which << 48 | value for which, value in items] + [0x1600 << 48]
    return struct.pack(">IHH5Q", 0x53040206, 0, len(words), *words) + payload


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = WORK
        shutil.rmtree(cls.work, ignore_errors=True)
        cls.work.mkdir(parents=True)
        cls.addClassCleanup(shutil.rmtree, cls.work, ignore_errors=True)
        cls.all = cls.work / "all"
        install(cls.all, "client", "packet", "message", "dataplane")
        cls.libraries = next(cls.all.glob("lib/**/libwarpline_packet.so")).parent

    def configure(self, prefix, name, *options, source=ROOT / "examples", ok=True):
        build = self.work / name
        return build, run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *CCACHE, *options, ok=ok)

    def project(self, text):
        """A project that consists of this CMakeLists.txt."""
        source = Path(tempfile.mkdtemp(dir=self.work))
        (source / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES CXX)\n{text}\n")
        return source

    def greet(self, server, client, environment=None, others=()):
        environment = {**os.environ, **(environment or {})}
        here = free_address()
        with subprocess.Popen([server, here], stdout=subprocess.PIPE, text=True, env=environment) as serving:
            try:
                self.assertIn("listening", serving.stdout.readline())
                said = run(client, here, "Ada", "Grace", env=environment)
                self.assertEqual(said, "hello, Ada\nhello, Grace\n")
                for other, names, typed in others:
                    said = run(other, here, *names, env=environment, input=typed)
                    self.assertEqual(sorted(said.splitlines()), ["hello, Ada", "hello, Grace"], other)
            finally:
                serving.kill()

    def greet_by_a_pool(self, build):
        """Two servers as one: with one of them killed, every name is greeted all the same."""
        with contextlib.ExitStack() as stack:
            here, servers = [free_address(), free_address()], []
            for address in here:
                serving = stack.enter_context(subprocess.Popen([build / "hello_server", address], stdout=subprocess.PIPE, text=True))
                stack.callback(serving.kill)
                self.assertIn("listening", serving.stdout.readline())
                servers.append(serving)
            asking = stack.enter_context(subprocess.Popen([build / "server_pool", *here], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            stack.callback(asking.kill)
            for i in range(60):
                if i == 20:
                    servers[0].kill()
                asking.stdin.write(f"number {i}\n")
                asking.stdin.flush()
                self.assertEqual(asking.stdout.readline(), f"hello, number {i}\n")
            asking.stdin.close()
            said = asking.stdout.read()
            self.assertEqual(asking.wait(PATIENCE_S), 0)
            self.assertRegex(said, rf"^{here[0]}: (left_out|connecting), answered \d+\n{here[1]}: up, answered \d+\n$")

    def calls_in_pieces(self, build):
        """Lines go up and sums come down; a response comes whose size nobody knew; a server that is gone is told of."""
        with subprocess.Popen([build / "stream_server", "0"], stdout=subprocess.PIPE, text=True) as serving:
            try:
                here = f"127.0.0.1:{int(serving.stdout.readline().split()[1])}"
                said = run(build / "sum_lines", here, input="".join(f"{i}\n" for i in range(2000)))
                self.assertEqual(said.split(), [str(i * (i + 1) // 2) for i in range(2000)])
                # One after the other: a sum comes before the next line goes.
                with subprocess.Popen([build / "sum_lines", here], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
                    for line, total in ((5, 5), (-7, -2), (100, 98)):
                        asking.stdin.write(f"{line}\n")
                        asking.stdin.flush()
                        self.assertEqual(asking.stdout.readline(), f"{total}\n")
                    asking.stdin.close()
                    self.assertEqual(asking.wait(PATIENCE_S), 0)
                done = subprocess.run([build / "fetch", here, "100000"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
                primes = done.stdout.split()
                self.assertEqual((len(primes), primes[:4], primes[-1], done.stderr), (9592, ["2", "3", "5", "7"], "99991", "9592 primes\n"))
                with subprocess.Popen([build / "sum_lines", here], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
                    asking.stdin.write("1\n")
                    asking.stdin.flush()
                    self.assertEqual(asking.stdout.readline(), "1\n")
                    serving.terminate()
                    self.assertEqual(serving.wait(PATIENCE_S), 0)
                    asking.stdin.close()
                    self.assertEqual((asking.wait(PATIENCE_S), asking.stderr.read()), (1, "peer_lost\n"))
            finally:
                serving.kill()

    def greet_by_threads(self, build):
        """Two threads at one address; each client's sessions are at one of them."""
        here = free_address()
        with subprocess.Popen([build / "greeting_threads", here, "2"], stdout=subprocess.PIPE, text=True) as serving:
            try:
                self.assertIn("listening", serving.stdout.readline())
                said = run(build / "hello_client", here, "Ada", "Grace")
                self.assertRegex(said, r"^hello, Ada, number 1 of thread ([01])\nhello, Grace, number 2 of thread \1\n$")
                serving.send_signal(signal.SIGINT)
                self.assertEqual(serving.communicate(timeout=PATIENCE_S)[0], "2 greeted\n")
                self.assertEqual(serving.returncode, 0)
            finally:
                serving.kill()

    def greet_through_a_daemon(self, build):
        """A service in C++, asked in C and in Python, of the one component and nothing else."""
        with tempfile.TemporaryDirectory() as folder:
            path, here = f"{folder}/socket", free_address()
            command = [BUILD / "apps/warpline/warpline", "message", "daemon", "--listen", here, "--attach", path]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as daemon:
                try:
                    self.assertIn("listening", daemon.stderr.readline())
                    with subprocess.Popen([build / "greeter", path, "7"], stdout=subprocess.PIPE, text=True) as service:
                        try:
                            self.assertEqual(service.stdout.readline(), "listening\n")
                            installed = {**os.environ, "PYTHONPATH": str(self.all / "share/warpline/python")}
                            asking = (build / "greet",), ("/usr/bin/python3", "-B", ROOT / "examples/daemon/greet.py")
                            for program in asking:
                                said = run(*program, path, here, "7", "Ada", "!Grace", env=installed)
                                self.assertEqual(said, "hello, Ada\nhello, Grace\n", program)
                            self.assertIn("not answered", run(build / "greet", path, here, "8", "Ada", ok=False))
                            daemon.terminate()
                            self.assertEqual(service.communicate(timeout=PATIENCE_S)[0], "the daemon has ended\n")
                            self.assertEqual(service.returncode, 0)
                        finally:
                            service.kill()
                finally:
                    daemon.kill()
        self.assertIn("nobody listens there", run(build / "greet", path, here, "7", "Ada", ok=False))

    def test_a_client_of_the_daemon_needs_nothing_else(self):
        """The component by itself, by CMake and by pkg-config, for C, and no library but the C library."""
        alone = self.work / "alone"
        install(alone, "client")
        source = self.project(
            "enable_language(C)\nfind_package(warpline CONFIG REQUIRED COMPONENTS client)\n"
            f"add_executable(greet {ROOT}/examples/daemon/greet.c)\ntarget_link_libraries(greet PRIVATE warpline::client)"
        )
        build, _ = self.configure(alone, "client_alone", source=source)
        run("cmake", "--build", build)
        library = next(alone.glob("lib/**/libwarpline_client.so"))
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", library)))
        self.assertLessEqual(needed, {"libc.so.6", "libgcc_s.so.1", "libm.so.6", "libstdc++.so.6"})
        environment = {**os.environ, "PKG_CONFIG_PATH": str(library.parent / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "warpline-client", env=environment).split()
        run("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", ROOT / "examples/daemon/greet.c", "-o", self.work / "greet", *flags)
        archive = next(alone.glob("lib/**/libwarpline_client.a"))
        run("cc", "-std=c99", f"-I{alone}/include", ROOT / "examples/daemon/greet.c", "-o", self.work / "greet_static", archive)

    def greet_through_a_port(self, build):
        """The server on the kernel's socket, the client on a port of DPDK's at the other end of a pair of interfaces."""
        near, far = Namespace("near"), Namespace("far")
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "left0", far, "right0")
        far.ip("address", "add", "10.9.0.1/24", "dev", "right0")
        with subprocess.Popen(far.command(build / "hello_server", "10.9.0.1:24240"), stdout=subprocess.PIPE, text=True) as serving:
            try:
                self.assertIn("listening", serving.stdout.readline())
                said = run(*near.command(build / "hello_port", "net_af_packet0,iface=left0", "10.9.0.2/24", "10.9.0.1:24240", "Ada", "Grace"))
                self.assertIn("hello, Ada\nhello, Grace\n", said)
            finally:
                serving.kill()

    def lines_of_streams(self, build):
        """Connections of the kernel's TCP to a port of DPDK's: two that end, one that is aborted."""
        near, far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "left0", far, "right0")
        far.ip("address", "add", "10.9.0.1/24", "dev", "right0")
        command = near.command(build / "stream_lines", "net_af_packet0,iface=left0", "10.9.0.2/24", 5001)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiving:
            try:
                while receiving.stdout.readline() != "listening\n":
                    self.assertIsNone(receiving.poll())
                for count in (1, 100_000):
                    with far.entered(), socket.create_connection(("10.9.0.2", 5001), PATIENCE_S) as sender:
                        port = sender.getsockname()[1]
                        sender.sendall(b"one more line\n" * count)
                        sender.shutdown(socket.SHUT_WR)
                        self.assertEqual(sender.recv(1), b"")
                    said = receiving.stdout.readline()
                    self.assertEqual(said, f"10.9.0.1:{port} finished: {14 * count} bytes, {count} lines\n")
                with far.entered():
                    sender = socket.create_connection(("10.9.0.2", 5001), PATIENCE_S)
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sender.close()
                self.assertRegex(receiving.stdout.readline(), r"^10\.9\.0\.1:\d+ reset: 0 bytes, 0 lines$")
                receiving.send_signal(signal.SIGINT)
                self.assertEqual(receiving.wait(PATIENCE_S), 0)
            finally:
                receiving.kill()

    def digests_of_streams(self, program):
        """Connections of the kernel's TCP, some at once, whose consumers are beside the receiver: each has its digest,
        and patterns are found that lie in two segments, overlap, or are in others."""
        patterns = ("needle", "eedl", "aa")
        near, far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "left0", far, "right0")
        far.ip("address", "add", "10.9.0.1/24", "dev", "right0")
        command = near.command(program, "net_af_packet0,iface=left0", "10.9.0.2/24", 5001, *patterns)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiving:
            try:
                while receiving.stdout.readline() != "listening\n":
                    self.assertIsNone(receiving.poll())
                chance = random.Random(1)
                texts = [b"", b"aaaa", *(bytes(chance.choices(b"abcd\xff", k=length)) for length in (1, 70_000, 5_000_000))]
                texts.append(b"needle" * 500_000)
                senders = []
                for text in texts:
                    with far.entered():
                        sender = socket.create_connection(("10.9.0.2", 5001), PATIENCE_S)
                    feeder = threading.Thread(target=lambda sender=sender, text=text: (sender.sendall(text), sender.shutdown(socket.SHUT_WR)))
                    feeder.start()
                    senders.append((sender, feeder))
                expected = set()
                for (sender, feeder), text in zip(senders, texts):
                    feeder.join()
                    self.assertEqual(sender.recv(1), b"")
                    counts = (len(re.findall(f"(?={pattern})".encode(), text)) for pattern in patterns)
                    expected.add(
                        f"10.9.0.1:{sender.getsockname()[1]} finished: {len(text)} bytes, sha256 "
                        f"{hashlib.sha256(text).hexdigest()} {' '.join(map(str, counts))}\n"
                    )
                    sender.close()
                self.assertEqual({receiving.stdout.readline() for _ in texts}, expected)
                with far.entered():
                    sender = socket.create_connection(("10.9.0.2", 5001), PATIENCE_S)
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sender.close()
                self.assertRegex(receiving.stdout.readline(), rf"^10\.9\.0\.1:\d+ reset: 0 bytes, sha256 {hashlib.sha256().hexdigest()} 0 0 0$")
                receiving.send_signal(signal.SIGINT)
                self.assertEqual(receiving.wait(PATIENCE_S), 0)
            finally:
                receiving.kill()

    def spectra_of_a_tone(self, build):
        """SPEAD packets of two tones, the second with losses: frames lie in the memory of earlier ones, whose tone a
        packet that is not masked would show."""
        near, far = Namespace("near", ipv6=False), Namespace("far", ipv6=False)
        self.addCleanup(near.remove)
        self.addCleanup(far.remove)
        veth(near, "left0", far, "right0")
        far.ip("address", "add", "10.9.0.1/24", "dev", "right0")
        far.ip("neigh", "add", "10.9.0.2", "lladdr", near.mac("left0").hex(":"), "dev", "right0", "nud", "permanent")
        lost = {(heap, (heap * 5 + i) % 16) for heap in range(20, 36) for i in range(heap % 3)}
        packets = [place for place in itertools.product(range(1, 41), range(16)) if place not in lost]
        command = near.command(build / "spead_spectrum", "--packets", len(packets), "net_af_packet0,iface=left0,framecnt=2048")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiving:
            try:
                while receiving.stdout.readline() != "receiving\n":
                    self.assertIsNone(receiving.poll())
                with far.entered(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    for heap, packet in packets:
                        sender.sendto(spead_packet(heap, packet, tone(100 if heap < 20 else 300)), ("10.9.0.2", 8888))
                *lines, counts = receiving.communicate(timeout=PATIENCE_S)[0].splitlines()
            finally:
                receiving.kill()
        self.assertEqual(receiving.returncode, 0)
        said = {int(line.split()[1].strip(":")): line for line in lines}
        self.assertEqual(sorted(said), list(range(1, 41)))
        for heap, line in said.items():
            missing = [packet for of, packet in lost if of == heap]
            left_out = len({packet // 4 for packet in missing})
            channel = 100 if heap < 20 else 300
            self.assertRegex(
                line,
                f"{len(missing)} packets lost, {4 - left_out} spectra, {left_out} left out, channel {channel} has (99.9|100.0)",
            )
        incomplete = len({heap for heap, _ in lost})
        self.assertEqual(counts, f"{40 - incomplete} frames complete, {incomplete} not, {len(lost)} packets missing")

    def frames_of_a_capture(self, build):
        """Ten frames of 16 packets, of which two lack one: the sum is of the bytes that came, in whichever memory."""
        lost = {35, 150}
        packets = {i: bytes((i * 7 + k) % 251 for k in range(1024)) for i in range(160) if i not in lost}
        ends = "10.9.0.1", "10.9.0.2"
        sent = [
            ethernet(mac("02:00:00:00:00:02"), mac("02:00:00:00:00:01"), 0x0800, ip(*ends, 17, udp(*ends, 7, 8, struct.pack(">Q", number) + payload)))
            for number, payload in packets.items()
        ]
        captured = pcap.write(self.work / "frames.pcap", sent)
        said = run(build / "ingest_frames", f"net_pcap0,rx_pcap={captured},tx_pcap={self.work / 'out.pcap'}")
        memory = "GPU" if Path("/dev/nvidiactl").exists() else "host"
        total = sum(map(sum, packets.values()))
        self.assertIn(f"in {memory} memory: 8 frames complete, 2 not, 2 packets missing, sum of bytes {total}\n", said)

    def check_forward(self, build):
        said = run(build / "forward", "--packets", "1000", "net_null0,size=60")
        counted = re.search(r"received (\d+), sent (\d+), dropped (\d+)", said)
        self.assertIsNotNone(counted, said)
        received, sent, dropped = map(int, counted.groups())
        self.assertEqual((received, sent + dropped), (1000, 1000))

    def check_examples(self, build):
        others = (build / "asking_threads", ("Ada", "Grace"), None), (build / "epoll_loop", (), "Ada\nGrace\n")
        self.greet(build / "hello_server", build / "hello_client", others=others)
        self.greet_by_a_pool(build)

        self.calls_in_pieces(build)
        self.greet_by_threads(build)
        self.greet_through_a_daemon(build)
        self.check_forward(build)
        said = run(build / "ingest_sizes", "--packets", "1000", "net_null0,size=60")
        self.assertRegex(said, r"received 1000, consumed 1000, dropped 0\nbelow 64 bytes: 1000\n")
        if os.geteuid() == 0:  # network namespaces need it
            self.greet_through_a_port(build)
            self.lines_of_streams(build)
            self.digests_of_streams(build / "stream_digests")

    def test_examples_by_cmake(self):
        build, _ = self.configure(self.all, "examples_shared", "-DEXAMPLES_STATIC=OFF")
        run("cmake", "--build", build)
        self.check_examples(build)
        if os.geteuid() == 0 and (build / "spead_spectrum").exists():  # where FFTW is
            self.spectra_of_a_tone(build)
        self.assertIn("libwarpline_message.so", run("ldd", build / "hello_client"))

    def test_examples_with_archives(self):
        build, _ = self.configure(self.all, "examples_static", "-DEXAMPLES_STATIC=ON")
        if IS_LONG:
            run("cmake", "--build", build)
            self.check_examples(build)
        else:
            run("cmake", "--build", build, "--target", "hello_server", "hello_client", "forward")
            self.greet(build / "hello_server", build / "hello_client")
            self.check_forward(build)
        self.assertNotIn("libwarpline_message.so", run("ldd", build / "hello_client"))

    @unittest.skipUnless(HAS_KERNELS, "no nvcc, or this build has no kernels")
    def test_examples_with_kernels(self):
        """Consumers of one's own in GPU memory. Without a GPU they say so in one line and end with 3."""
        for kind in ("OFF", "ON") if IS_LONG else ("OFF",):
            with self.subTest(static=kind):
                architectures = [] if IS_LONG else ["-DCMAKE_CUDA_ARCHITECTURES=80"]
                build, _ = self.configure(self.all, f"kernels_{kind}", f"-DEXAMPLES_STATIC={kind}", f"-DCMAKE_CUDA_COMPILER={NVCC}", *architectures)
                run("cmake", "--build", build, "--target", "ingest_batches", "ingest_frames", "ingest_functor", "stream_digests_on_gpu")
                self.frames_of_a_capture(build)
                if Path("/dev/nvidiactl").exists() and os.geteuid() == 0:
                    self.digests_of_streams(build / "stream_digests_on_gpu")
                port = ("--packets", "1000", "net_null0,size=60")
                streams = ("net_null0", "10.9.0.2/24", "5001", "needle")
                commands = [[build / "ingest_batches", *port], [build / "ingest_functor", "persistent", *port]]
                if not Path("/dev/nvidiactl").exists():
                    commands.append([build / "stream_digests_on_gpu", *streams])
                for command in commands:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
                    if Path("/dev/nvidiactl").exists():
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertRegex(done.stdout, r"received 1000, consumed 1000, dropped 0\n(below 64 bytes|small): 1000")
                    else:
                        self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
                        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                said = run(build / "ingest_functor", "inline", *port)
                self.assertRegex(said, r"received 1000, consumed 1000, dropped 0\nsmall: 1000 packets of 60000 bytes\n")

    def test_an_example_by_pkg_config(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "warpline-message", env=environment).split()
        for role in ("server", "client"):
            run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", ROOT / f"examples/hello_{role}.cc", "-o", self.work / role, *flags)
        self.greet(self.work / "server", self.work / "client", {"LD_LIBRARY_PATH": str(self.libraries)})

    def test_every_header_compiles(self):
        """With what is installed, and nothing that is for tests is."""
        folder = self.all / "include"
        headers = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.h"))
        self.assertGreater(len(headers), 100)
        installed = {str(path.relative_to(folder)) for path in folder.rglob("*.*")}
        self.assertEqual([name for name in installed if re.search(r"test|/internal/", name)], [])
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "warpline-dataplane", env=environment).split()
        source = self.work / "all_headers.cc"
        source.write_text("".join(f'#include "{name}"\n' for name in headers))
        run("c++", "-std=c++20", "-fsyntax-only", source, *flags)
        for name in sorted(installed):  # those of device code, too: each header that they name is there
            for included in re.findall(r'#include "(warpline/[^"]+)"', (folder / name).read_text()):
                self.assertIn(included, installed, name)

    @unittest.skipUnless(IS_LONG, "in make test-long")
    def test_the_examples_of_the_headers_to_include(self):
        """Each header beside the modules' folders begins with a small program: it builds against its library, and works."""
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig")}
        headers = {path.name: path.read_text() for path in (self.all / "include/warpline").iterdir() if path.is_file() and path.name != "version.h"}
        ran = 0
        for name, text in sorted(headers.items()):
            lines = re.search(r"^/// @code\n(.*?)^/// @endcode$", text, re.M | re.S).group(1).splitlines()
            source = self.work / f"door_{name}".replace(".cuh", ".cu").replace(".h", ".cc")
            source.write_text("".join(line[4:] + "\n" for line in lines))
            component = re.search(r"warpline::(client|packet|message|dataplane)[_,.]", text).group(1)
            if source.suffix == ".cu":
                if HAS_KERNELS:
                    flags = run("pkg-config", "--cflags-only-I", f"warpline-{component}", env=environment).split()
                    run(NVCC, "-std=c++20", "-arch=sm_80", "--extended-lambda", "-c", source, "-o", self.work / "door.o", *flags)
                continue
            flags = run("pkg-config", "--cflags", "--libs", f"warpline-{component}", env=environment).split()
            program = self.work / f"door_{name}.program"
            run("c++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-volatile", source, "-o", program, *flags)
            if component != "client" and name not in ("rpc.h", "stream.h"):  # which need a peer
                run(program, env={**os.environ, "LD_LIBRARY_PATH": str(self.libraries)})
                ran += 1
        self.assertGreaterEqual(ran, 5)

    def test_nothing_but_the_namespace_is_shown(self):
        for library in self.libraries.glob("libwarpline_*.so"):
            names = run("nm", "-DC", "--defined-only", library).splitlines()
            own = " warpline_client_" if library.name == "libwarpline_client.so" else "warpline::"
            self.assertEqual([line for line in names if own not in line], [], library)
            self.assertGreater(len(names), 10)
            self.assertIn(f"soname: [{library.name}.{INTERFACE}]", run("readelf", "-d", library))

    def test_a_component_that_is_not_there_is_named(self):
        small = self.work / "small"
        install(small, "packet", "message")
        source = self.project("find_package(warpline CONFIG REQUIRED COMPONENTS dataplane)")
        _, said = self.configure(small, "lacking", source=source, ok=False)
        self.assertRegex(" ".join(said.split()), "was built without the component dataplane")
        source = self.project("find_package(warpline CONFIG REQUIRED COMPONENTS message)")
        self.configure(small, "having", source=source)

    def test_one_version_names_all(self):
        """The macros, pkg-config and the files of the libraries have the project's."""
        macros = dict(re.findall(r"#define WARPLINE_VERSION_(MAJOR|MINOR|PATCH) (\d+)", (self.all / "include/warpline/version.h").read_text()))
        self.assertEqual(".".join(macros[part] for part in ("MAJOR", "MINOR", "PATCH")), VERSION)
        for component in ("client", "packet", "message", "dataplane"):
            description = (self.libraries / f"pkgconfig/warpline-{component}.pc").read_text()
            self.assertIn(f"\nVersion: {VERSION}\n", description)
            self.assertTrue((self.libraries / f"libwarpline_{component}.so.{VERSION}").is_file())

    def test_another_version_is_named(self):
        major, minor = INTERFACE.split(".")
        other = f"{major}.{int(minor) + 1}"
        source = self.project(f"find_package(warpline {other} CONFIG REQUIRED COMPONENTS message)")
        _, said = self.configure(self.all, "newer", source=source, ok=False)
        self.assertIn(VERSION, said)
        self.assertIn(other, said)

    def test_messages_need_no_dpdk(self):
        """Not even to be configured: pkg-config, which DPDK is found by, fails here."""
        hidden = self.work / "hidden"
        hidden.mkdir()
        (hidden / "pkg-config").write_text("#!/bin/sh\nexit 1\n")
        (hidden / "pkg-config").chmod(0o755)
        run("cmake", "-S", ROOT, "-B", self.work / "messages", "-G", "Ninja", "-DWARPLINE_DATAPLANE=OFF", "-DWARPLINE_TESTS=OFF",
            env={**os.environ, "PATH": f"{hidden}:{os.environ['PATH']}"})
        targets = run("cmake", "--build", self.work / "messages", "--target", "help")
        self.assertIn("warpline_library_message", targets)
        self.assertNotIn("dataplane", targets)


if __name__ == "__main__":
    unittest.main()
