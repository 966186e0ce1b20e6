# SPDX-License-Identifier: Apache-2.0
"""What every report must hold, whatever the command was."""

NUMBER = (int, float)
PAIR = {"packets": int, "bytes": int}
SCHEMA = {
    "schema_version": int,
    "command": str,
    "build": dict,
    "host": dict,
    "config": dict,
    "duration_s": NUMBER,
    "rx": PAIR,
    "tx": PAIR,
    "drops": dict,
    "in_flight": int,
    "conserved": bool,
    "rate": {"mpps": NUMBER, "gbps_l1": NUMBER, "gbps_l2": NUMBER},
}
OPTIONAL = {
    "delivered": PAIR,
    "generated": PAIR,
    "verify": {"checked": int, "bad": int, "missing": int, "duplicated": int, "reordered": int},
    "latency_ns": {
        "count": int,
        "p50": NUMBER,
        "p90": NUMBER,
        "p99": NUMBER,
        "p999": NUMBER,
        "p99999": NUMBER,
        "max": NUMBER,
    },
    "stages": list,
    "gpu": dict,
    # Beyond the contract: what the count workload and each device counted, what ran where, and what cost rate.
    "counted": dict,
    "ingest": dict,
    "delays_ns": dict,
    "cycles_per_packet": NUMBER,
    "routing": dict,
    "recycle": dict,
    "capture": {
        "files": list,
        "packets": int,
        "bytes": int,
        "drops": dict,
        "left_out": {"ring_full": int, "write_failed": int},
        "left_out_drops": dict,
        "filtered": int,
        "overwritten": int,
    },
    "queues": list,
    "privileges": {"capabilities": list, "no_new_privs": bool, "seccomp": bool, "landlock": int, "core_dumps": bool},
    "ports": list,
    "lcores": list,
    "notes": list,
    "refused_offloads": list,
}
STAGE = {"name": str, "calls": int, "packets": int, "cycles_per_packet": NUMBER, "batch_mean": NUMBER}


def faults_of_shape(value, shape, where):
    if not isinstance(shape, dict):
        fits = isinstance(value, shape) and not (isinstance(value, bool) and shape is not bool)
        return [] if fits else [f"{where} is {value!r}"]
    if not isinstance(value, dict):
        return [f"{where} is {value!r}, not an object"]
    faults = []
    for key, inner in shape.items():
        if key not in value:
            faults.append(f"{where}.{key} is absent")
        else:
            faults += faults_of_shape(value[key], inner, f"{where}.{key}")
    return faults


def faults_of_schema(report):
    faults = faults_of_shape(report, SCHEMA, "report")
    for key, shape in OPTIONAL.items():
        if key in report:
            faults += faults_of_shape(report[key], shape, f"report.{key}")
    for i, stage in enumerate(report.get("stages", [])):
        faults += faults_of_shape(stage, STAGE, f"report.stages[{i}]")
    faults += [f"report.{key} is in no contract" for key in report if key not in SCHEMA and key not in OPTIONAL]
    if report.get("schema_version") != 1:
        faults.append("schema_version is not 1")
    for reason, count in report.get("drops", {}).items():
        if not isinstance(count, int) or count < 0:
            faults.append(f"drops.{reason} is {count!r}")
    return faults


def packets(report, key):
    return report.get(key, {}).get("packets", 0)


def faults_of_conservation(report):
    """received + generated = transmitted + delivered + dropped by reason + in flight"""
    came = packets(report, "rx") + packets(report, "generated")
    went = packets(report, "tx") + packets(report, "delivered") + sum(report["drops"].values()) + report["in_flight"]
    faults = []
    if came != went:
        faults.append(f"{came} packets came, {went} are accounted for")
    if report["conserved"] is not True:
        faults.append("the program itself says that packets are unaccounted for")
    return faults
