# SPDX-License-Identifier: Apache-2.0
"""Random combinations of options, each within what the program itself says that it takes: a run verifies every packet, or it
is refused with one line that says what, why and what to do instead."""

import random
import re
import unittest

from support.case import IS_LONG, Case, needs_vnic

SEED = 1
RUNS = 200 if IS_LONG else 4  # of each command
PATIENCE = 200  # seconds until a run hangs, on a busy machine too
OPTION = re.compile(r"^ +(?:-\w, )?--([a-z0-9-]+)(?: (\S+))? +(.*?)(?: \[(.*)\])?$")

# Of their own sense: what is run and for how long, what is written where, who may watch, and what ends a slow run.
LEFT_OUT = {
    "address", "capture", "capture-filter", "capture-limit", "capture-snaplen", "capture-what", "config", "consumer", "crash-report",
    "dst-mac", "dst-port", "drain", "eal", "faults", "frame", "frame-timeout", "help", "interval", "json", "json-stream", "log-level",
    "loopback", "metrics", "metrics-allow", "no-hugepages", "nvtx", "packets", "persona", "port", "role", "rss-fields", "rss-key",
    "rx-offloads", "seconds", "seed", "share-cores", "src-mac", "src-port", "telemetry", "tx-offloads", "verify", "warmup", "watchdog",
    "keep-privileges", "routes",
}  # fmt: skip
# What takes longer than a test has time for, or more memory than a machine has: the largest value that is drawn.
CAPS = {"flows": 4096, "packet-time": 50_000, "deadline": 2_000_000, "pipelines": 12, "ctas": 4, "queues": 8, "pool-size": 100_000,
        "tx-first": 2000, "lcores": 16, "batch": 4096, "data-room": 16_384}  # fmt: skip
OWN_RANGES = {"gpu-memory": (1 << 16, 64 << 20)}  # which the help does not have
UNITS = {"": 1, "ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
OF_TIME = ("packet-time", "deadline")
RATES = ("max", "1gbit", "200kpps", "40gbit")
PERSONAS = ("mlx5", "ice", "i40e", "ixgbe", "iavf", "ena", "bnxt", "virtio", "vmxnet3", "gve")
FAULTS = ("loss=0.01", "duplicate=0.01", "corrupt=0.01", "reorder=0.02", "truncate=0.01", "delay=20us", "jitter=20us", "stall=0.001",
          "rx_out=0.01", "tx_full=0.01")  # fmt: skip
COMMANDS = {
    "forward": ("forward", "--loopback"),
    "ingest": ("ingest", "--loopback"),
    "generate": ("generate", "--port", "net_vnic0"),
    "l3forward": ("l3forward", "--port", "net_vnic0,wire=source", "--address", "10.0.0.1/24"),
}


def number_of(text):
    digits, unit = re.fullmatch(r"(\d+)([a-z]*)", text).groups()
    return int(digits) * UNITS[unit]


class Option:
    """An option as the help has it, "--NAME VALUE   text [VALUES; default X]": its name, and its values as words and ranges
    such as "inline|thread", "60..9014|imix", "0, 22..9014" and "1..512 or adaptive"."""

    def __init__(self, name, metavar, about):
        self.name, self.flag = name, metavar is None
        self.words, self.ranges = [], []
        about = about or ""
        self.power = "a power of two" in about
        values = re.sub(r"(; |^)default .*|, a power of two|bytes or ", "", about)
        for word in filter(None, re.split(r", | or |\|", values)):
            if bounds := re.fullmatch(r"(\w+)\.\.(\w+)", word):
                self.ranges.append(tuple(map(number_of, bounds.groups())))
            elif re.fullmatch(r"[a-z0-9-]+", word):
                self.words.append(word)
        if name in OWN_RANGES:
            self.ranges.append(OWN_RANGES[name])

    def is_drawn(self):
        return self.name not in LEFT_OUT and (self.flag or self.words or self.ranges or self.name == "rate")

    def value(self, rng):
        if self.name == "rate":
            return rng.choice(RATES)
        if self.words and (not self.ranges or rng.random() < 0.2):
            return rng.choice(self.words)
        low, high = rng.choice(self.ranges)
        high = max(low, min(high, CAPS.get(self.name, high)))
        if rng.random() < 0.25:
            number = rng.choice((low, high))
        else:  # small ones as often as large ones
            number = min(high, low + int(2 ** rng.uniform(0, (high - low + 1).bit_length())) - 1)
        if self.power:
            number = max(low, 1 << number.bit_length() - 1)
        return f"{number}ns" if self.name in OF_TIME else str(number)


def fitting(command, drawn, rng):
    """What hardly any random combination would have, so that more runs are runs: frames that the MTU takes, thresholds
    below the ring, and no option that another one needs."""
    if "size" in drawn or rng.random() < 0.8:
        size = drawn.get("size")
        drawn["mtu"] = str(max(int(size) - 14, 1280)) if size and size.isdigit() else "1500"
    if rng.random() < 0.9:
        for name in ("rx-free-thresh", "tx-free-thresh", "tx-rs-thresh", "tx-first", "on-gpu-failure", "pool-size"):
            drawn.pop(name, None)
        if "packet-time" in drawn:
            drawn["workload"] = "spin"
        elif drawn.get("workload") in ("spin", "user"):
            drawn["workload"] = "none"
        if "data-room" in drawn:  # a frame lies in several of short ones, and a device takes no more than some
            drawn["data-room"] = str(max(int(drawn["data-room"]), 128 if int(drawn.get("mtu", 1500)) < 2000 else 2048))
        if command == "ingest" and "tx-retries" in drawn:
            drawn["transmit"] = ""
        if "split" in drawn:
            drawn["split"] = "60"
    if rng.random() < 0.8:  # this machine may have no GPU, and a run without is no less random
        for name, values in (("engine", ("inline", "thread")), ("memory", ("host",)), ("path", ("copy", "zerocopy", "copy-naive"))):
            if name in drawn:
                drawn[name] = rng.choice(values)
        drawn.pop("gpu", None)
        if command == "ingest":
            drawn["memory"] = "host"
        if "ctas" in drawn or drawn.get("io") == "gpu":
            drawn["engine"] = "thread"
    return drawn


@needs_vnic
class RandomOptions(Case):
    def options_of(self, command):
        outcome = self.warpline(command, "--help")
        self.assertEqual(outcome.code, 0, outcome)
        found = [Option(*match.group(1, 2, 4)) for line in outcome.stdout.splitlines() if (match := OPTION.match(line))]
        return [option for option in found if option.is_drawn()]

    def drawn(self, command, options, number):
        """(arguments, whether faults were asked for)"""
        rng = random.Random(f"{SEED} {command} {number}")
        chosen = rng.sample(options, rng.randrange(1, min(len(options), 12)))
        drawn = fitting(command, {option.name: "" if option.flag else option.value(rng) for option in chosen}, rng)
        head = list(COMMANDS[command])
        faults = ",".join(rng.sample(FAULTS, rng.randrange(1, 4))) if rng.random() < 0.25 else ""
        if faults and command == "ingest":
            drawn["faults"] = faults
        elif faults and command != "forward":
            head[2] += f",{faults}"
        if command in ("forward", "ingest") and rng.random() < 0.15:
            drawn["persona"] = rng.choice(PERSONAS)
            drawn["dst-mac"] = "ff:ff:ff:ff:ff:ff"  # which the ports of all of them receive
        arguments = [*head, "--packets", rng.choice((1, 300, 2000)), "--share-cores", "--no-hugepages", "--json"]
        if command == "l3forward":
            (self.scratch.path / "routes").write_text("198.18.0.0/15 via 10.0.0.2\n", encoding="ascii")
            arguments += ["--routes", "routes"]
        else:
            arguments += ["--seed", number, "--verify"]
        for name, value in drawn.items():
            arguments += [f"--{name}", value] if value != "" else [f"--{name}"]
        return arguments, bool(faults) and command != "forward"

    def judge(self, outcome, faults):
        self.assertEqual(outcome.left, [], outcome)
        if outcome.code in (2, 3) and not outcome.stdout:
            lines = [line for line in outcome.stderr.splitlines() if not re.match(r"warpline: (note: |still |making |allocating )", line)]
            self.assertEqual(len(lines), 1, outcome)
            self.assertRegex(lines[0], r"^warpline: .+: .+; .+", outcome)
            self.assertNotRegex(lines[0], "set aside|guide at|doctor", outcome)  # it is no fault of the environment
            return "refused"
        if outcome.code == 4:
            # `generate` waits for nobody, nor does the far side at a rate: what a port had no room for is missing.
            report = self.report_of(outcome, code=4)
            self.assertTrue(faults or outcome.arguments[0] == "generate" or "--rate" in outcome.arguments, outcome)
            self.assertEqual(report["verify"]["bad"], report["drops"].get("corrupt", 0) if faults else 0, outcome)
            return "lost"
        report = self.report_of(outcome)
        if not faults and "verify" in report:
            self.assertEqual([report["verify"][key] for key in ("bad", "missing", "duplicated")], [0, 0, 0], outcome)
            self.assertGreater(report["verify"]["checked"], 0, outcome)
        return "ran"

    def test_each_runs_or_says_why_not(self):
        for command in COMMANDS:
            options = self.options_of(command)
            self.assertGreater(len(options), 10)
            ends = []
            for number in range(RUNS):
                arguments, faults = self.drawn(command, options, number)
                with self.subTest(command=command, number=number):
                    ends.append(self.judge(self.warpline(*arguments, timeout=PATIENCE), faults))
            self.assertGreater(ends.count("ran"), RUNS // 3, ends)


if __name__ == "__main__":
    unittest.main()
