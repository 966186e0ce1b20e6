# SPDX-License-Identifier: Apache-2.0
"""spead2's side of bench/frames/veth, for a Python that has it: spead2_socket.py ADDRESS PORT PACKETS PAYLOAD HEAPS CPU.

Receives heaps of PACKETS packets of PAYLOAD bytes by spead2's reader of a UDP socket. Its one thread runs on the
processor that the process may use, all else on processor CPU. As frame_receiver.cc, each line on standard input is one
measurement: from the first packet that comes until none has come for a while. Heaps lie in buffers that were touched
before, and there is room for HEAPS of them and in their ring, so that Python has no part in what is timed. Then every
whole heap is compared with what bench/frames/heap_pattern.h says, and all packets must be in some heap, but for those of heaps that
were not at their end: else it ends with 4. Of incomplete heaps spead2's Python tells the length alone.
"""

import json
import os
import sys
import time

import numpy
import spead2
import spead2.recv

ITEM = 0x1600
MAX_HEAPS = 4
LOOK_S = 100e-6
SILENCE_S = 0.2
RECEIVE_BUFFER = 256 << 20


def watch(stream):
    """(packets, packets timed, seconds): timed are those from when the first were seen to the last."""
    first = seen = 0
    begin = last = time.perf_counter()
    while seen == 0 or time.perf_counter() - last < SILENCE_S:
        time.sleep(LOOK_S)
        now = stream.stats["packets"]
        if now == seen:
            continue
        last = time.perf_counter()
        if seen == 0:
            first, begin = now, last
        seen = now
    return seen, seen - first, last - begin


def main():
    address, *numbers = sys.argv[1:]
    port, packets, payload, heaps, cpu = map(int, numbers)
    words = payload // 8
    pattern = numpy.arange(packets * words, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    pattern = pattern.reshape(packets, words)[:, 1:]
    numbers = numpy.arange(packets, dtype=numpy.uint64)
    length = packets * payload
    pool = spead2.MemoryPool(length, length + 1, heaps + 8, heaps + 8)
    config = spead2.recv.StreamConfig(
        memory_allocator=pool, max_heaps=MAX_HEAPS, memcpy=spead2.MEMCPY_NONTEMPORAL, stop_on_stop_item=False
    )
    ring = spead2.recv.RingStreamConfig(heaps=heaps + 8, contiguous_only=False)
    (receiving,) = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [cpu])
    for _ in sys.stdin:
        stream = spead2.recv.Stream(spead2.ThreadPool(1, [receiving]), config, ring)
        stream.add_udp_reader(port, max_size=2048, buffer_size=RECEIVE_BUFFER, bind_hostname=address)
        print("ready", flush=True)
        count, timed, seconds = watch(stream)
        stream.stop()
        kept = 0
        for heap in stream:
            if isinstance(heap, spead2.recv.IncompleteHeap):
                kept += heap.received_length // payload
                continue
            (item,) = [item for item in heap.get_items() if item.id == ITEM]
            data = numpy.asarray(item).view(numpy.uint64).reshape(packets, words)
            stamps = numpy.uint64(heap.cnt * packets) + numbers
            if not numpy.array_equal(data[:, 0], stamps) or not numpy.array_equal(data[:, 1:], pattern):
                sys.exit(4)
            kept += packets
        if not count - MAX_HEAPS * packets <= kept <= count:
            sys.exit(4)
        print(json.dumps({"packets": count, "timed": timed, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
