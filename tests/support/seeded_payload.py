# SPDX-License-Identifier: Apache-2.0
"""The payload of `warpline stream send`, worked out once more."""

import hashlib


class SeededPayload:
    """The bytes that `warpline stream send --seed N` sends by a connection, as stream/seeded_payload.h describes them."""

    PIECE, PLACES = 4096, 128 * 1024
    MASK = (1 << 64) - 1
    GOLDEN = 0x9E3779B97F4A7C15

    def __init__(self, seed):
        self.seed = self.mix(seed)
        state = [self.mix(seed + i * self.GOLDEN & self.MASK) for i in range(4)]
        table = bytearray(self.PLACES + self.PIECE)
        for i in range(len(table)):
            table[i] = self.next(state) >> 56
        self.table = bytes(table)

    @classmethod
    def mix(cls, x):
        x = (x + cls.GOLDEN) & cls.MASK
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & cls.MASK
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & cls.MASK
        return x ^ x >> 31

    @classmethod
    def next(cls, state):
        """xoshiro256**"""
        word = state[1] * 5 & cls.MASK
        result = ((word << 7 | word >> 57) & cls.MASK) * 9 & cls.MASK
        shifted = state[1] << 17 & cls.MASK
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = (state[3] << 45 | state[3] >> 19) & cls.MASK
        return result

    def bytes(self, port, length):
        """The first bytes of the stream that comes from `port`."""
        stream = self.mix(self.seed ^ port)
        places = (self.mix(stream ^ piece) % self.PLACES for piece in range((length + self.PIECE - 1) // self.PIECE))
        return b"".join(self.table[place : place + self.PIECE] for place in places)[:length]

    def digest(self, port, length):
        return hashlib.sha256(self.bytes(port, length)).hexdigest()
