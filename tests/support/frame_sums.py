# SPDX-License-Identifier: Apache-2.0
"""The sum that `ingest --frame` makes of frames, from what was sent and nothing else."""

MASK = (1 << 64) - 1


def word_sum(word, index):
    x = word + (index + 1) * 0x9E3779B97F4A7C15 & MASK
    x = (x ^ x >> 32) * 0x94D049BB133111EB & MASK
    return x ^ x >> 29


def frame_sum(index, first, payloads, length, packets):
    """Of frame `index` of the one stream, which begins with number `first` and has these payloads of `length` bytes, by
    their place among `packets`."""
    salt = word_sum(first, 0)
    total = word_sum(index, salt) + word_sum(packets - len(payloads), salt + 1)
    for slot, payload in payloads.items():
        begin = slot * length
        filled = bytes(begin % 8) + payload
        filled += bytes(-len(filled) % 8)
        for at in range(0, len(filled), 8):
            total += word_sum(int.from_bytes(filled[at : at + 8], "little"), salt + 2 + begin // 8 + at // 8)
    return total & MASK
