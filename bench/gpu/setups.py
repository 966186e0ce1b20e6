# SPDX-License-Identifier: Apache-2.0
"""Ways of running `warpline forward`, as its command line."""

import dataclasses

ON_GPU = ("launch", "graph", "persistent")
ETHERNET_HEADER = 14
STANDARD_FRAME = 1514
SPIN = "200ns"  # a packet, of that workload


@dataclasses.dataclass(frozen=True)
class Setup:
    engine: str
    memory: str = "host"
    size: int = 64
    burst: int = 64
    pipelines: int = 1
    ctas: int = 0  # 0: the program's choice
    slots: int = 0
    split: int = 0
    rate: str = ""  # offered, of the port
    workload: str = "mac-swap"
    model: str = ""  # "": the program's choice
    gpus: int = 1  # pipelines take turns at them
    hugepages: bool = True
    recycle: str = ""  # "": the program's choice
    io: str = "cpu"  # who takes packets and posts them for sending
    buffer: int = 0  # of the software NIC, bytes for frames on their way; 0: the driver's choice

    @property
    def on_gpu(self):
        return self.engine in ON_GPU

    @property
    def name(self):
        parts = [self.engine, self.memory, f"{self.size} B", f"burst {self.burst}", f"{self.pipelines} pipelines"]
        parts += [f"{self.ctas} CTAs"] if self.ctas else []
        parts += [f"{self.slots} slots"] if self.slots else []
        parts += [f"split {self.split}"] if self.split else []
        parts += [f"at {self.rate}"] if self.rate else []
        parts += [self.model] if self.model else []
        parts += [self.workload] if self.workload != "mac-swap" else []
        parts += [f"recycle {self.recycle}"] if self.recycle else []
        parts += ["GPU-driven I/O"] if self.io == "gpu" else []
        parts += [f"{self.gpus} GPUs"] if self.gpus > 1 else []
        parts += [] if self.hugepages else ["ordinary pages"]
        parts += [f"buffer {self.buffer >> 20} MiB"] if self.buffer else []
        return ", ".join(parts)

    def common(self, interval="3600s"):
        line = ["--engine", self.engine, "--memory", self.memory, "--burst", self.burst, "--pipelines", self.pipelines]
        line += ["--workload", self.workload, "--json", "--interval", interval]
        line += ["--packet-time", SPIN] if self.workload == "spin" else []
        line += ["--recycle", self.recycle] if self.recycle else []
        line += ["--ctas", self.ctas] if self.ctas else []
        line += ["--ring-slots", self.slots] if self.slots else []
        line += ["--split", self.split] if self.split else []
        line += ["--model", self.model] if self.model else []
        line += ["--io", self.io] if self.io != "cpu" else []
        line += ["--gpu", ",".join(map(str, range(min(self.gpus, self.pipelines))))] if self.gpus > 1 else []
        line += ["--pool", "queue"] if self.gpus > 1 else []
        line += [] if self.hugepages else ["--no-hugepages"]
        line += ["--mtu", self.size - ETHERNET_HEADER] if self.size > STANDARD_FRAME else []
        return line

    def timed(self, seconds):
        """On a wire that costs nothing, so that the rate is that of the path; to and from device memory frames are
        copied all the same."""
        port = f"net_vnic0,wire=static,size={self.size}" + (f",rate={self.rate}" if self.rate else "")
        port += f",buffer={self.buffer}" if self.buffer else ""
        return ["forward", "--port", port, "--seconds", f"{seconds}s", *self.common()]

    def proven(self, seconds):
        """The same, as fast and in the same memory, of which a proof is asked: the program looks at what was done to
        each buffer. Timed runs have it too; here it comes first."""
        return [*self.timed(seconds), "--verify"]

    def checked(self, seconds):
        """The same work between a generator and a checker of every byte of every packet. The rate is theirs to say."""
        return self.loopback("--seconds", f"{seconds}s")

    def loopback(self, *bounds, interval="3600s"):
        return ["forward", "--loopback", "--verify", "--size", self.size, *bounds, *self.common(interval)]
