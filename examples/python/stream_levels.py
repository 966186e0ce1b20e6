#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How loud is what peers send over TCP, 16-bit samples of one channel: stream_levels.py PORT ADDRESS/LEN LISTEN CONNECTIONS.

Takes so many connections to the TCP port LISTEN at that address of a DPDK port. Prints, for every 4096 samples, who sent
them, at which sample they begin, and their level in decibels below full scale.
"""

import asyncio
import sys

import numpy
import warpline

PIECE = 4096  # samples


async def levels(connection):
    """(sample, level) of each piece; what is computed with lies in the connection's own ring."""
    begin = 0
    async for view in connection:
        samples = numpy.asarray(view)[: len(view) // 2 * 2].view("<i2") / 32768
        if samples.size:
            yield begin, 10 * numpy.log10(numpy.mean(samples**2) + 1e-12)
        begin += samples.size


async def show(connection):
    async for begin, level in levels(connection):
        print(f"{connection.peer} {begin} {level:.1f} dB", flush=True)


async def main(port, address, listen, connections):
    async with warpline.Streams(port=port, address=address, listen=listen, chunk=2 * PIECE, share_cores=True) as streams:
        print(f"listening on {address.split('/')[0]} port {listen}", flush=True)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(int(connections)):
                tasks.create_task(show(await anext(streams)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
