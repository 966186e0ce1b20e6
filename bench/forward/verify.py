# SPDX-License-Identifier: Apache-2.0
"""Both contenders swap the addresses of a capture file's frames; every byte of what they make of it is compared."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support import frames, pcap
from testpmd import Testpmd

FRAMES = 1000


def swap(binary, cpu):
    sent = frames.mixed(FRAMES, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        source = pcap.write(Path(folder) / "in.pcap", sent)
        for name, run in (("testpmd", run_testpmd), ("warpline", run_warpline)):
            output = Path(folder) / f"{name}.pcap"
            run(f"net_pcap0,rx_pcap={source},tx_pcap={output}", binary, cpu)
            if pcap.read(output) != [frames.swapped(frame) for frame in sent]:
                raise RuntimeError(f"{name} made other frames than expected")


def run_testpmd(spec, _, cpu):
    peer = Testpmd([spec], "mac-swap", 32, cpu, f"verify{os.getpid()}", extra=["--no-flush-rx"])
    try:
        peer.start(circulate=False)
        while peer.received()[1] < FRAMES:
            pass
    finally:
        peer.close()


def run_warpline(spec, binary, _):
    subprocess.run(
        [binary, "forward", "--port", spec, "--workload", "mac-swap", "--burst", "32", "--packets", str(FRAMES)],
        check=True,
        capture_output=True,
    )
