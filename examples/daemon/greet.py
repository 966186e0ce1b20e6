#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a service through a daemon, all names at once, in Python; what is asked for !NAME goes before the others.

greet.py SOCKET ADDRESS:PORT CODE NAME...
"""

import sys

from warpline.daemon import Client


def main(path, peer, code, *names):
    with Client(path) as client:
        session = client.connect(peer)
        for i, name in enumerate(names):
            client.set_priority("high" if name.startswith("!") else "normal")
            client.request(session, int(code), name.removeprefix("!").encode(), patience=5, tag=i)
        answers = {}
        while len(answers) < len(names):
            client.wait()
            for event in client.poll():
                if event.kind == "response":
                    answers[event.tag] = event.data.decode() if event.status == "ok" else event.status
        for i in range(len(names)):
            print(answers[i])


if __name__ == "__main__":
    main(*sys.argv[1:])
