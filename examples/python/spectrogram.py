# SPDX-License-Identifier: Apache-2.0
"""A spectrogram of 16-bit samples in UDP packets: spectrogram.py CAPTURE FRAME POINTS.

FRAME describes the frames, as `warpline ingest --frame` has it. Each frame becomes a row of power by frequency, the mean
over its pieces of POINTS samples; pieces with a packet missing are left out. Prints a line a frame: its number, how many
packets it lacks, and the strongest frequency as a part of the sampling rate.
"""

import sys

import numpy
import warpline


def spectrogram(capture, description, points):
    """(frame, its row) for each frame with a whole piece; the arrays lie in the frame's own memory."""
    window = numpy.hanning(points)
    with warpline.Ingest(port=f"net_pcap0,rx_pcap={capture}", frame=description, share_cores=True) as ingest:
        for frame in ingest:
            pieces = numpy.asarray(frame.data).view("<i2").reshape(-1, points)
            there = numpy.repeat(numpy.asarray(frame.present), pieces.size // frame.packets).reshape(-1, points).all(axis=1)
            if there.any():
                yield frame, (numpy.abs(numpy.fft.rfft(pieces[there] * window)) ** 2).mean(axis=0)


def main():
    capture, description, points = sys.argv[1:]
    for frame, row in spectrogram(capture, description, int(points)):
        print(frame.index, frame.missing, row.argmax() / int(points))


if __name__ == "__main__":
    main()
