#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program that attaches to `message daemon`, for tests to kill, stop and compare.

daemon_client.py serve PATH CODE               answers requests with their bytes turned round, until the daemon ends
daemon_client.py hold PATH CODE                takes requests and answers none
daemon_client.py ask PATH PEER CODE COUNT DEEP  asks, DEEP at once; compares; 0: without end; a line of JSON at the end
daemon_client.py lie PATH LIE                  attaches without the library, and writes what no library writes

Each says what it does, a line at a time: "listening", "asked N", "withdrawn", "gone".
"""

import array
import collections
import json
import mmap
import os
import socket
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from warpline.daemon import Again, Client, Error, Gone


def say(text):
    print(text, flush=True)


def payload(number):
    return (f"number {number} " * (1 + number % 7 * (number % 3) * 20)).encode()


def serve(path, code, answers=True):
    with Client(path) as client:
        client.listen(int(code))
        try:
            while client.wait():
                for event in client.poll():
                    if event.kind == "listening":
                        say("listening" if event.status == "ok" else event.status)
                    elif event.kind == "withdrawn":
                        say("withdrawn")
                    elif event.kind == "request" and answers:
                        client.answer(event.id, event.data[::-1])
                    elif event.kind == "request":
                        say("request")
        except Gone:
            say("gone")


def ask(path, peer, code, count, deep):
    count, deep = int(count), int(deep)
    ends = collections.Counter()
    asked = 0
    with Client(path) as client:
        session = client.connect(peer)
        try:
            while count == 0 or sum(ends.values()) < count:
                while asked - sum(ends.values()) < deep and (count == 0 or asked < count):
                    try:
                        client.request(session, int(code), payload(asked), tag=asked)
                    except Again:
                        break
                    asked += 1
                    if asked % 100 == 0:
                        say(f"asked {asked}")
                client.wait()
                for event in client.poll():
                    if event.kind == "response":
                        right = event.status != "ok" or event.data == payload(event.tag)[::-1]
                        ends[event.status if right else "wrong"] += 1
                    elif event.kind == "lost":
                        session = client.connect(peer)
        except Gone:
            say("gone")
    say(json.dumps(ends))


# Where things are in an area: docs/message_daemon.md.
FACTS = struct.Struct("=QIIIIIII")
TAIL, COMPLETION_HEAD = 4096, 4100
RING = 8192


def lie(path, what):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        _, ancillary, _, _ = connection.recvmsg(64, socket.CMSG_SPACE(4))
        descriptor = array.array("i", ancillary[0][2])[0]
        size = os.fstat(descriptor).st_size
        area = mmap.mmap(descriptor, size)
        say("attached")

        def submit(operation, slot=0, session=0, length=0, code=0, port=7):
            tail = struct.unpack_from("=I", area, TAIL)[0]
            entries = FACTS.unpack_from(area)[6]
            struct.pack_into("=BBHIIIQq16sIH", area, RING + tail % entries * 64, operation, 0, code, slot, session, length, 1, 0, bytes(16), 0, port)
            struct.pack_into("=I", area, TAIL, tail + 1)

        if what == "tail":
            struct.pack_into("=I", area, TAIL, 0xFFFFFFF0)
        elif what == "head":
            submit(6, length=1)
            struct.pack_into("=I", area, COMPLETION_HEAD, 12345)
        elif what == "length":
            submit(1)
            submit(3, length=0xFFFFFFFF)
        elif what == "slot":
            submit(7, slot=0x7FFFFFFF)
        elif what == "operation":
            submit(200)
        elif what == "all":
            try:
                os.ftruncate(descriptor, 0)
            except PermissionError:
                say("sealed")
            area[:] = b"\xff" * size
        elif what == "scribble":  # not found out, and of no use: rooms while the daemon copies them
            submit(1)
            for _ in range(2000):
                area[size // 2 :] = os.urandom(1) * (size - size // 2)
            connection.close()
            return
        elif what == "bells":
            for _ in range(20_000):
                try:
                    connection.send(b"x" * 100, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    pass
            return
        try:
            connection.send(b"\0")
            while connection.recv(16):
                pass
        except OSError:
            pass  # gone just before
        say("gone")


TASKS = {"serve": serve, "hold": lambda *words: serve(*words, answers=False), "ask": ask, "lie": lie}

if __name__ == "__main__":
    try:
        TASKS[sys.argv[1]](*sys.argv[2:])
    except Error as refused:
        say(refused)
        sys.exit(1)
