# SPDX-License-Identifier: Apache-2.0
"""A wire between two network namespaces that loses, doubles, delays and damages frames, the same ones for the same seed."""

import os
import random
import selectors
import threading

from support.namespaces import Namespace, veth


class DamagingWire:
    """Joins `left` and `right`, whose interfaces are called left0 and right0. Of each kind of damage a part of all frames."""

    def __init__(self, left, right, seed, loss=0.0, duplicate=0.0, reorder=0.0, corrupt=0.0):
        self.middle = Namespace("middle")
        veth(left, "left0", self.middle, "in0")
        veth(self.middle, "out0", right, "right0")
        self.sockets = [self.middle.packet_socket(name) for name in ("in0", "out0")]
        self.rates = (loss, duplicate, reorder, corrupt)
        self.random = [random.Random(seed), random.Random(seed + 1)]
        self.damaged = {"lost": 0, "doubled": 0, "delayed": 0, "corrupted": 0}
        self.stop_read, self.stop_write = os.pipe()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def remove(self):
        os.write(self.stop_write, b"x")
        self.thread.join()
        for handle in self.sockets:
            handle.close()
        os.close(self.stop_read)
        os.close(self.stop_write)
        self.middle.remove()

    def _run(self):
        held = [[], []]  # frames that are delayed, and how many others go before them
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.stop_read, selectors.EVENT_READ, None)
            for i, handle in enumerate(self.sockets):
                waiting.register(handle, selectors.EVENT_READ, i)
            while True:
                for key, _ in waiting.select():
                    if key.data is None:
                        return
                    self._carry(key.data, self.sockets[key.data].recv(65535), held[key.data])

    def _carry(self, way, frame, held):
        rng, to = self.random[way], self.sockets[1 - way]
        loss, duplicate, reorder, corrupt = (rng.random() < rate for rate in self.rates)
        self.damaged["lost"] += loss
        if loss:
            return
        if corrupt:
            self.damaged["corrupted"] += 1
            damaged = bytearray(frame)
            damaged[rng.randrange(14, len(frame))] ^= 1 << rng.randrange(8)
            frame = bytes(damaged)
        if reorder:
            self.damaged["delayed"] += 1
            held.append([rng.randrange(1, 10), frame])
            return
        self.damaged["doubled"] += duplicate
        for _ in range(2 if duplicate else 1):
            to.send(frame)
        for late in list(held):
            late[0] -= 1
            if late[0] == 0:
                held.remove(late)
                to.send(late[1])
