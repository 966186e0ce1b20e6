# SPDX-License-Identifier: Apache-2.0
"""spead2's side of bench/frames/run, for a Python that has it.

spead2_rounds.py make PACKETS HEAPS HEAP_BYTES PAYLOAD_BYTES: writes the packets that spead2 makes of so many heaps of
random bytes, all as long, and prints the length of one.

spead2_rounds.py receive PACKETS HEAPS HEAP_BYTES PAYLOAD_BYTES: each line on standard input is one measurement: a stream
receives all packets out of memory. Prints the seconds of a packet; then every heap is compared, and a difference ends it with 4. Heaps
lie in buffers that were touched before, copied as spead2 does it for data that is not read soon, and its ring has room for
all, so that Python has no part in what is timed but the start and the end.
"""

import mmap
import sys
import time
from pathlib import Path

import numpy
import spead2
import spead2.recv
import spead2.send

ITEM = 0x1600
#: Header, heap counter, size, offset and length, and the item's own pointer in every packet.
HEADER = 8 + 5 * 8


def heap_data(heaps, length):
    return numpy.random.default_rng(7).integers(0, 256, size=(heaps, length), dtype=numpy.uint8)


def make(path, heaps, length, payload):
    stream = spead2.send.BytesStream(
        spead2.ThreadPool(), spead2.send.StreamConfig(max_packet_size=HEADER + payload, max_heaps=4)
    )
    for data in heap_data(heaps, length):
        heap = spead2.send.Heap(spead2.Flavour(4, 64, 48))
        heap.repeat_pointers = True
        heap.add_item(spead2.Item(ITEM, "samples", "", (length,), dtype=numpy.uint8, value=data))
        stream.send_heap(heap)
    path.write_bytes(stream.getvalue())
    print(HEADER + payload)


def in_huge_pages(data):
    memory = mmap.mmap(-1, len(data), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(data)
    return memory


def receive(path, heaps, length, payload):
    packets = in_huge_pages(path.read_bytes())
    expected = heap_data(heaps, length)
    pool = spead2.MemoryPool(length, length + 1, heaps + 8, heaps + 8)
    config = spead2.recv.StreamConfig(
        memory_allocator=pool, max_heaps=2, memcpy=spead2.MEMCPY_NONTEMPORAL, stop_on_stop_item=False
    )
    for _ in sys.stdin:
        stream = spead2.recv.Stream(spead2.ThreadPool(1), config, spead2.recv.RingStreamConfig(heaps=heaps + 8))
        begin = time.perf_counter()
        stream.add_buffer_reader(packets)
        while stream.stats["heaps"] < heaps:  # released by the reader's thread as it goes
            time.sleep(0)
        taken = time.perf_counter() - begin
        seen = 0
        for heap in stream:
            items = heap.get_items()
            data = next(item for item in items if item.id == ITEM)
            if not numpy.array_equal(numpy.asarray(data), expected[seen]):
                sys.exit(4)
            seen += 1
            if seen == heaps:
                break
        stream.stop()
        if seen != heaps:
            sys.exit(4)
        print(taken / (heaps * length // payload), flush=True)


if __name__ == "__main__":
    what, packets_path, *numbers = sys.argv[1:]
    count, heap_bytes, payload_bytes = map(int, numbers)
    if what == "make":
        make(Path(packets_path), count, heap_bytes, payload_bytes)
    else:
        receive(Path(packets_path), count, heap_bytes, payload_bytes)
