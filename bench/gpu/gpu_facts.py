# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, as the driver's own tool names them."""

import shutil
import subprocess
from pathlib import Path

FIELDS = (
    "name",
    "driver_version",
    "pci.bus_id",
    "memory.total",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "clocks.sm",
    "clocks.max.sm",
    "power.limit",
)
DRIVER = Path("/proc/driver/nvidia/version")


def gpus():
    """One dictionary a GPU; none where there is no driver."""
    if shutil.which("nvidia-smi") is None:
        return [{"name": "unknown", "driver_version": DRIVER.read_text().split("\n")[0]}] if DRIVER.exists() else []
    command = ["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return []
    if listed.returncode != 0:
        return []
    return [dict(zip(FIELDS, map(str.strip, line.split(",")))) for line in listed.stdout.splitlines()]
