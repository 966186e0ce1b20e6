#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests and answers between two programs, in asyncio.

rpc_echo.py serve [ADDRESS:PORT]      turns round what it is asked, until Ctrl-C
rpc_echo.py ask ADDRESS:PORT TEXT...  asks for all texts at once
"""

import asyncio
import sys

from warpline import errors, rpc

TURN_ROUND = 1


def turn_round(request):
    return request.decode()[::-1].encode()


async def serve(address="127.0.0.1:0"):
    async with rpc.Server({TURN_ROUND: turn_round}, address) as server:
        print(f"serving at {server.address}", flush=True)
        await server.serve()


async def ask(address, *texts):
    async with rpc.Client(address, timeout=5) as client:
        for answer in await asyncio.gather(*(client.call(TURN_ROUND, text.encode()) for text in texts)):
            print(answer.decode())


def main(command, *arguments):
    try:
        asyncio.run({"serve": serve, "ask": ask}[command](*arguments))
    except KeyboardInterrupt:
        print("interrupted")
    except errors.WarplineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
