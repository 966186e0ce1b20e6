# SPDX-License-Identifier: Apache-2.0
"""The test's end of a port's cable, and traffic over several of them."""

import contextlib
import errno
import select
import socket
import threading
import time

PATIENCE = 60
LONG_MTU = 9216  # of interfaces that a cable is on


class Cable:
    """A Unix datagram socket: one datagram is one frame without FCS."""

    def __init__(self, own, peer):
        self.peer = str(peer)
        self.handle = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.handle.bind(str(own))
        self.handle.setblocking(False)

    def fileno(self):
        return self.handle.fileno()

    def close(self):
        self.handle.close()

    def send(self, frame):
        """False if the cable is full."""
        try:
            self.handle.sendto(frame, self.peer)
        except BlockingIOError:
            return False
        return True

    def receive(self, seconds=PATIENCE):
        """The next frame, or None."""
        if not select.select([self], [], [], seconds)[0]:
            return None
        try:
            return self.handle.recv(65536)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.ENETDOWN):  # the latter tells once that an interface went down
                return None
            raise

    def drain(self):
        """Takes what is there."""
        while self.receive(0) is not None:
            pass


class AddressedCable:
    """A cable to a port that takes no frames but those to its address: `address` stands for `own` in what is sent, and for
    `far`, the other port's, in what comes."""

    def __init__(self, cable, address, own, far):
        self.cable, self.address, self.own, self.far = cable, address, own, far

    def fileno(self):
        return self.cable.fileno()

    def send(self, frame):
        return self.cable.send(self.own + frame[6:] if frame[:6] == self.address else frame)

    def receive(self, seconds=PATIENCE):
        frame = self.cable.receive(seconds)
        return self.address + frame[6:] if frame is not None and frame[:6] == self.far else frame

    def drain(self):
        self.cable.drain()


class PacketCable(Cable):
    """A packet socket on a network interface."""

    SOL_PACKET, IGNORE_OUTGOING = 263, 23
    # A queue that is full, an interface that is down for the moment.
    FULL = (errno.EAGAIN, errno.ENOBUFS, errno.ENETDOWN)

    def __init__(self, namespace, interface):
        self.handle = namespace.packet_socket(interface)
        self.handle.setsockopt(self.SOL_PACKET, self.IGNORE_OUTGOING, 1)
        self.handle.setblocking(False)

    def send(self, frame):
        try:
            self.handle.send(frame)
        except OSError as error:
            if error.errno in self.FULL:
                return False
            raise
        return True


@contextlib.contextmanager
def relayed(ways):
    """What comes out of the first cable of each way goes into the second."""
    ending = threading.Event()

    def serve():
        while not ending.is_set():
            ready, _, _ = select.select([source for source, _ in ways], [], [], 0.05)
            for source, to in ways:
                frame = source.receive(0) if source in ready else None
                while frame is not None and not ending.is_set():
                    if to.send(frame):
                        frame = source.receive(0)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def exchange(ways, frames, window=64, patience=PATIENCE):
    """Sends all frames into the first cable of each way and receives what comes out of the second, until all are there
    or nothing has come for so many seconds. No more than `window` are under way. Returns what came, by way."""
    came = [[] for _ in ways]
    sent = [0 for _ in ways]
    last = time.monotonic()
    while any(len(frames) > len(got) for got in came) and time.monotonic() - last < patience:
        blocked = True
        for i, (source, _) in enumerate(ways):
            while sent[i] < len(frames) and sent[i] - len(came[i]) < window and source.send(frames[sent[i]]):
                sent[i] += 1
                blocked = False
        ready, _, _ = select.select([to for _, to in ways], [], [], 0.01 if blocked else 0)
        for i, (_, to) in enumerate(ways):
            while to in ready and (frame := to.receive(0)) is not None:
                came[i].append(frame)
                last = time.monotonic()
    return came
