# SPDX-License-Identifier: Apache-2.0
"""Sends heaps of random bytes by spead2: ADDRESS PORT HEAPS HEAP_BYTES PACKET_BYTES REPEAT.

Descriptors go in front and the end of the stream behind, as senders do. Prints each heap in hexadecimal digits.
"""

import os
import sys

import numpy
import spead2
import spead2.send

address = sys.argv[1]
port, heaps, length, packet, repeat = map(int, sys.argv[2:])
stream = spead2.send.UdpStream(
    spead2.ThreadPool(),
    [(address, port)],
    spead2.send.StreamConfig(max_packet_size=packet, rate=2e7, max_heaps=heaps + 4),
)
group = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48))
group.add_item(0x1600, "samples", "what a digitiser saw", shape=(length,), dtype=numpy.uint8)
stream.send_heap(group.get_heap(descriptors="all", data="none"))
source = numpy.random.default_rng(heaps)
for _ in range(heaps):
    data = source.integers(0, 256, size=length, dtype=numpy.uint8)
    group["samples"].value = data
    heap = group.get_heap(descriptors="none", data="all")
    heap.repeat_pointers = bool(repeat)
    stream.send_heap(heap)
    print(data.tobytes().hex())
stream.send_heap(group.get_end())
sys.stdout.flush()
# Without an end of the interpreter's: in one, spead2 4.5.1 sometimes waits for a thread that is gone.
os._exit(0)
