# SPDX-License-Identifier: Apache-2.0
"""What `stream send --seed N` sends, worked out once more: src/warpline/stream/seeded_payload.h."""

_MASK = (1 << 64) - 1
_PIECE = 4096
_PLACES = 128 * 1024


def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _rotated(x, bits):
    return (x << bits | x >> (64 - bits)) & _MASK


class SeededPayload:
    def __init__(self, seed):
        self._seed = _mix(seed)
        state = [_mix((seed + i * 0x9E3779B97F4A7C15) & _MASK) for i in range(4)]
        self._table = bytearray()
        for _ in range(_PLACES + _PIECE):  # xoshiro256**
            self._table.append((_rotated(state[1] * 5 & _MASK, 7) * 9 & _MASK) >> 56)
            shifted = state[1] << 17 & _MASK
            state[2] ^= state[0]
            state[3] ^= state[1]
            state[1] ^= state[2]
            state[0] ^= state[3]
            state[2] ^= shifted
            state[3] = _rotated(state[3], 45)

    def bytes(self, port, length):
        """The first bytes of the connection from that port of the sender's."""
        sent = bytearray()
        while len(sent) < length:
            place = _mix(_mix(self._seed ^ port) ^ len(sent) // _PIECE) % _PLACES
            sent += self._table[place : place + min(_PIECE, length - len(sent))]
        return bytes(sent)
