# SPDX-License-Identifier: Apache-2.0
"""What every driver must do. A check takes a Rig, and raises AssertionError where the driver, or the program with it,
does something else, and NotOffered where the device has no such thing and the program said so; what it returns is kept
with the result."""

import random
import re

from cable import PATIENCE, exchange, relayed
from rigs import ELSEWHERE
from support import frames
from support.report import faults_of_conservation, faults_of_schema

STATION = frames.mac("02:77:6c:00:00:09")  # of the test
SIZES = (60, 61, 64, 65, 127, 128, 255, 256, 511, 512, 1000, 1023, 1024, 1280, 1500, 1513, 1514)
SELFTEST_SECONDS = 600
JUMBO = (60, 1514, 1515, 2000, 2048, 4096, 8191)


class NotOffered(Exception):
    """Why a check is nothing for a driver."""


def stamped(number, size):
    """A frame that no protocol answers, the same each time."""
    head = frames.ethernet(ELSEWHERE, STATION, frames.ETHERTYPE_LOCAL, number.to_bytes(4, "big"))
    return head + random.Random(number).randbytes(size - len(head))


def some_frames(count, sizes=SIZES):
    return [stamped(number, random.Random(number).choice(sizes)) for number in range(count)]


def expect(condition, what, ended=None):
    if not condition:
        raise AssertionError(f"{what}\n{ended or ''}")


def report_of(ended, code=0):
    expect(ended.code == code, f"exit code {ended.code}, not {code}", ended)
    report = ended.report
    expect(not faults_of_schema(report), faults_of_schema(report), ended)
    expect(not faults_of_conservation(report), faults_of_conservation(report), ended)
    return report


def passed(rig, sent, *arguments, window=64, patience=PATIENCE):
    """Forwards `sent` from each port to the other. Returns what came, by way, and the report."""
    bound = () if rig.loses_at_end else ("--packets", 2 * len(sent))
    run = rig.started("forward", "--workload", "none", *bound, "--json", *arguments)
    came = exchange([(rig.cables[0], rig.cables[1]), (rig.cables[1], rig.cables[0])], sent, window, patience)
    if not rig.loses_at_end:
        return came, report_of(run.finish())
    run.signal("INT")
    return came, report_of(run.finish(), 130)


def pass_both_ways(rig, sent, *arguments, window=64):
    """Forwards `sent` from each port to the other and compares every byte, the order, and what both ends counted."""
    came, report = passed(rig, sent, *arguments, window=window)
    for way, got in enumerate(came):
        wrong = next((i for i, (a, b) in enumerate(zip(sent, got)) if a != b), None)
        expect(got == sent, f"way {way}: {len(got)} of {len(sent)} frames came, the first wrong one is {wrong}: {report}")
    size = sum(map(len, sent))
    for side, counted in (("rx", size), ("tx", size - rig.uncounted * len(sent))):
        expect(report[side]["packets"] == 2 * len(sent), f"{side} is not {2 * len(sent)} packets: {report}")
        expect(rig.counted_bytes(report[side]["bytes"], 2 * counted), f"{side} is not {2 * counted} bytes: {report}")
        for port in report["ports"]:
            expect(port[side]["packets"] == len(sent), f"the device counted {port}")
            bytes_ = port[side]["bytes"]
            expect(bytes_ == 0 or rig.counted_bytes(bytes_, counted), f"the device counted {port}, not {counted} bytes")
    expect(not report["drops"], f"dropped {report['drops']}")
    return {"packets": 2 * len(sent), "bytes": 2 * size}


def forward(rig):
    return pass_both_ways(rig, some_frames(500))


def jumbo(rig):
    if rig.mtu <= 1500:
        ended = rig.run("forward", "--mtu", 2000, "--seconds", 1)
        refused = ended.code in (2, 3) and "MTU 2000" in ended.error
        expect(refused or ended.code == 0, "MTU 2000 is neither taken nor refused", ended)
        raise NotOffered(ended.error if refused else "taken, and not tried with frames: the rig names no larger MTU")
    sent = some_frames(200, [size for size in JUMBO if size <= rig.mtu + 14])
    # No more than a socket takes: QEMU drops what one refuses.
    return pass_both_ways(rig, sent, "--mtu", rig.mtu, window=8)


def without_hugepages(rig):
    """Buffers cross pages then, which need not be neighbours. A NIC that takes a buffer only in one piece sends the
    others, and counts no more."""
    sent = some_frames(200, [size for size in JUMBO if size <= max(rig.mtu, 1500) + 14])
    mtu = ("--mtu", rig.mtu) if rig.mtu else ()
    came, report = passed(rig, sent, "--no-hugepages", *mtu, window=8, patience=PATIENCE / 4 if rig.whole_buffers else PATIENCE)
    for got, port in zip(came, reversed(report["ports"])):
        left = iter(sent)
        expect(all(frame in left for frame in got), f"frames came changed or in another order: {report}")
        expect(rig.whole_buffers or len(got) == len(sent), f"{len(got)} of {len(sent)} frames came: {report}")
        expect(port["tx"]["packets"] == len(got), f"the device counted {port}, and {len(got)} frames came")
    return {"sent": 2 * len(sent), "came": sum(map(len, came))}


def engine(rig):
    return pass_both_ways(rig, some_frames(300), "--engine", "thread", "--share-cores", "--lcores", 2)


def several_queues(rig):
    if rig.queues < 2:
        ended = rig.run("forward", "--pipelines", 2, "--seconds", 1)
        expect(ended.code == 2 and "queues" in ended.error, "two queues are not refused", ended)
        raise NotOffered(ended.error)
    flows = [
        frames.ethernet(
            ELSEWHERE,
            STATION,
            frames.ETHERTYPE_IPV4,
            frames.ip("198.18.0.1", "198.19.0.2", frames.UDP, frames.udp("198.18.0.1", "198.19.0.2", 1024 + i, 9, bytes(64))),
        )
        for i in range(200)
    ]
    came, report = passed(rig, flows, "--pipelines", 2, "--lcores", 1, "--share-cores")
    for got in came:
        expect(sorted(got) == sorted(flows), f"{len(got)} of {len(flows)} frames: {report}")
    return {"refused": report.get("refused_offloads", [])}


def generate(rig):
    with relayed([(rig.cables[0], rig.cables[0])]):
        ended = rig.run(
            *("generate", "--packets", 1000, "--rate", "1kpps", "--size", "imix", "--drain", "5s", "--verify", "--json"),
            ports=rig.ports[:1],
        )
    report = report_of(ended)
    checked = report["verify"]
    expect(checked["checked"] == 1000 and checked["missing"] == checked["bad"] == 0, f"{checked}", ended)
    return checked


def spread(rig):
    """Packets of many flows come in every queue, by RSS."""
    if rig.queues < 2:
        raise NotOffered("there is one queue")
    with relayed([(rig.cables[0], rig.cables[0])]):
        ended = rig.run(
            *("generate", "--queues", rig.queues, "--flows", 64, "--packets", 1000, "--rate", "1kpps", "--drain", "5s"),
            *("--verify", "--share-cores", "--json"),
            ports=rig.ports[:1],
        )
    report = report_of(ended)
    expect(report["verify"]["missing"] == report["verify"]["bad"] == 0, "not all came", ended)
    came = [queue.get("rx", {"packets": 0})["packets"] for queue in report["queues"]]
    expect(all(came), f"packets by queue: {came}", ended)
    return {"packets by queue": came, "refused": report["refused_offloads"]}


def vectorised(rig):
    """The driver tells that it receives by its vectorised function."""
    ended = rig.run("forward", "--seconds", 1)
    expect(ended.code == 0 and "vectorized" in ended.stderr, "it does not receive by its vectorised function", ended)
    return next(line for line in ended.stderr.splitlines() if "vectorized" in line)


def answer(rig, cable, kind, seconds=20):
    """The next frame for which kind() is true."""
    while (frame := cable.receive(seconds)) is not None:
        if kind(frame):
            return frame
    raise AssertionError(f"{rig.name}: no answer")


def is_arp(frame):
    """ARP, but not an announcement (RFC 5227, 2.3: sender and target are the same), which a port sends at its start."""
    return frame[12:14] == b"\x08\x06" and frame[28:32] != frame[38:42]


def is_ipv4(frame):
    return frame[12:14] == b"\x08\x00"


def ask_for(rig, cable, own, address):
    """The MAC address that answers for an address."""
    cable.send(frames.arp_request(STATION, own, address).ljust(60, b"\0"))
    return answer(rig, cable, is_arp)[22:28]


def responder(rig):
    """ARP and echo."""
    run = rig.started("forward", "--address", "10.8.0.2/24", "--workload", "none", "--json", ports=rig.ports[:1])
    cable = rig.cables[0]
    mac = ask_for(rig, cable, "10.8.0.1", "10.8.0.2")
    for size in (0, 1, 56, 57, 1400):
        payload = bytes(i * 7 % 256 for i in range(size))
        request = frames.echo_request("10.8.0.1", "10.8.0.2", 77, 1, payload)
        packet = frames.ip("10.8.0.1", "10.8.0.2", frames.ICMP, request)
        cable.send(frames.ethernet(mac, STATION, frames.ETHERTYPE_IPV4, packet).ljust(60, b"\0"))
        reply = answer(rig, cable, is_ipv4)
        body = reply[34 : 34 + 8 + size]
        expect(reply[:12] == STATION + mac and body[0] == 0, f"no echo reply: {reply.hex()}")
        expect(body[8:] == payload and frames.checksum(body) == frames.checksum(reply[14:34]) == 0, f"{reply.hex()}")
    run.signal("INT")
    report_of(run.finish(), 130)


def l3forward(rig):
    """ARP on both sides, one hop, the checksum, and the payload as it was."""
    run = rig.started(
        *("l3forward", "--json", "--share-cores"), *("--address", "10.8.0.1/24", "--address", "10.8.1.1/24")
    )
    west, east = rig.cables
    router = ask_for(rig, west, "10.8.0.9", "10.8.0.1")
    packet = frames.ip("10.8.0.9", "10.8.1.9", frames.UDP, frames.udp("10.8.0.9", "10.8.1.9", 5, 6, b"over a hop" * 20))
    west.send(frames.ethernet(router, STATION, frames.ETHERTYPE_IPV4, packet))
    question = answer(rig, east, is_arp)
    expect(question[38:42] == bytes((10, 8, 1, 9)), f"asked for another: {question.hex()}")
    reply = question[20:22][:1] + b"\x02" + STATION + bytes((10, 8, 1, 9)) + question[22:32]
    east.send(frames.ethernet(question[6:12], STATION, frames.ETHERTYPE_ARP, question[14:20] + reply).ljust(60, b"\0"))
    routed = answer(rig, east, is_ipv4)
    expect(routed[:6] == STATION and routed[22] == 63, f"no hop: {routed.hex()}")
    expect(frames.checksum(routed[14:34]) == 0 and routed[34:] == packet[20:], f"damaged: {routed.hex()}")
    run.signal("INT")
    report_of(run.finish(), 130)


def link(rig):
    """Down in the middle of a run, and up again: what is sent then passes."""
    run = rig.started("forward", "--workload", "none", "--json")
    rig.set_link(0, up=False)
    rig.set_link(0, up=True)
    # A driver may take a while to see it.
    for number in range(200):
        rig.cables[1].send(stamped(number, 100))
        if rig.cables[0].receive(0.3) is not None:
            break
    else:
        raise AssertionError("nothing passes after the link was down")
    rig.cables[0].send(stamped(1, 100))
    expect(rig.cables[1].receive() is not None, "nothing passes the other way after the link was down")
    run.signal("INT")
    report_of(run.finish(), 130)


def link_down(rig):
    """Nothing is sent into nowhere."""
    rig.set_link(0, up=False)
    try:
        ended = rig.run("generate", "--packets", 100, "--json", ports=rig.ports[:1])
    finally:
        rig.set_link(0, up=True)
    expect(ended.code == 3 and "its link does not come up" in ended.error, "sent without a link", ended)


def too_large_mtu(rig):
    """The largest that the option takes is taken or refused with the largest that the device takes, which it does take."""
    ended = rig.run("forward", "--mtu", 9600, "--seconds", 1)
    if ended.code == 0:
        return "9600 is not too large"
    limit = re.search(r"use `--mtu (\d+)`", ended.error)
    expect(ended.code == 2 and limit, "an MTU that is too large is not refused", ended)
    expect(int(limit[1]) >= rig.mtu, f"the limit is {limit[1]}, and {rig.mtu} was taken", ended)
    taken = rig.run("forward", "--mtu", limit[1], "--seconds", 1)
    expect(taken.code == 0, "the largest MTU is not taken", taken)
    return ended.error


def interrupted(rig):
    run = rig.started("forward", "--json")
    run.signal("INT")
    report_of(run.finish(), 130)


def held_by_another(rig):
    """A second process does not get the device, and says so; the first one goes on."""
    run = rig.started("forward", "--workload", "none", "--json")
    ended = rig.run("forward", "--seconds", 1)
    expect(ended.code in (2, 3), "a device that another process has is taken", ended)
    came = exchange([tuple(rig.cables)], some_frames(20))
    expect(came == [some_frames(20)], "the first process does not go on")
    run.signal("INT")
    report_of(run.finish(), 130)
    return ended.error


def unplugged(rig):
    """The device goes in the middle of a run: it ends with a full report."""
    run = rig.started("forward", "--workload", "none", "--json")
    came = exchange([tuple(rig.cables)], some_frames(20))
    expect(came == [some_frames(20)], "nothing passes")
    rig.unplug(1)
    ended = run.finish()
    report = report_of(ended, 5)
    expect(report["rx"]["packets"] == 20, "what passed before is not in the report", ended)
    name = rig.ports[1].partition(",")[0]
    said = [note for note in report["notes"] if f"port {name}" in note]
    expect(said, "the report does not say which port is gone", ended)
    return said[-1]


def plugged_again(rig):
    """A device that went while it was in use comes back, and the next run takes it."""
    run = rig.started("forward", "--workload", "none", "--json")
    rig.unplug(1)
    report_of(run.finish(), 5)
    rig.plug(1)
    return pass_both_ways(rig, some_frames(100))


def reset(rig):
    """Somebody resets the device in the middle of a run, which goes on or ends, and says what passed; the next one works."""
    run = rig.started("forward", "--workload", "none", "--json")
    came = exchange([tuple(rig.cables)], some_frames(20))
    expect(came == [some_frames(20)], "nothing passes")
    ways = rig.reset(1)
    if not ways:
        raise NotOffered("the kernel knows no way to reset it")
    after = exchange([(rig.cables[1], rig.cables[0])], some_frames(20), window=1, patience=PATIENCE / 12)[0]
    run.signal("INT")
    ended = run.finish()
    report = report_of(ended, 5 if ended.code == 5 else 130)
    expect(report["rx"]["packets"] in (20 + len(after), 21 + len(after)), f"{len(after)} frames came behind it", ended)
    pass_both_ways(rig, some_frames(100))
    return {"way": ways[0], "passed behind it": f"{len(after)} of 20", "exit code": ended.code}


def only_its_own(rig):
    """A function that nobody trusts gets no frames of others, and may send none in their names."""
    foreign = [frames.mac("02:77:6c:00:00:07") + frame[6:] for frame in some_frames(20)]
    rig.trust(False)
    try:
        run = rig.started("forward", "--workload", "none", "--json")
        ways = [tuple(rig.cables)]
        got = exchange(ways, foreign, patience=PATIENCE / 12)[0]
        forged = exchange(ways, some_frames(20), patience=PATIENCE / 12)[0]
        run.signal("INT")
        ended = run.finish()
    finally:
        rig.trust(True)
    report = report_of(ended, 130)
    expect(not got, f"{len(got)} frames to others came", ended)
    expect(report["rx"]["packets"] == 20, "its own did not come, or others did", ended)
    return {"sent in another's name": len(forged), "refused": report["refused_offloads"]}


def parent_reset(rig):
    """The physical function goes down and comes up below a run: that goes on or ends, and the next one works."""
    run = rig.started("forward", "--workload", "none", "--json")
    came = exchange([tuple(rig.cables)], some_frames(20))
    expect(came == [some_frames(20)], "nothing passes")
    rig.reset_parent(1)
    after = exchange([tuple(rig.cables)], some_frames(20), window=1, patience=PATIENCE / 6)[0]
    run.signal("INT")
    ended = run.finish()
    # Not the device's counters: the function's registers begin again at zero, which the driver takes for a wrap at 2^32.
    expect(ended.code in (5, 130) and not faults_of_conservation(ended.report), "it does not say what passed", ended)
    pass_both_ways(rig, some_frames(100))
    return {"passed behind it": f"{len(after)} of 20", "exit code": ended.code}


def messages(rig):
    """Requests and their answers between two processes, each with one NIC, compared byte for byte."""
    server = rig.started(
        *("message", "server", "--address", "10.8.0.1/24", "--listen", "10.8.0.1:7000", "--share-cores"), ports=rig.ports[:1]
    )
    try:
        ended = rig.run(
            *("message", "client", "--address", "10.8.0.2/24", "--connect", "10.8.0.1:7000", "--verify", "--requests", 300),
            *("--length", 3000, "--json", "--share-cores"),
            ports=rig.ports[1:],
        )
    finally:
        server.signal("INT")
        gone = server.finish()
    expect(ended.code == 0, f"the client failed; its server:\n{gone}", ended)
    expect(gone.code == 130, "the server failed", gone)


def selftest(rig):
    """Two ports that a cable joins: no step fails, and each that did not come out ok says why."""
    ended = rig.start("selftest", "--quick", "--again", "--json").finish(SELFTEST_SECONDS)
    expect(ended.code == 0, f"exit code {ended.code}", ended)
    steps = {step["name"]: step for step in ended.report["steps"]}
    for name in ("link", "joined", "size 1514", "forward", "recycle direct", "ingest into host memory", "ports as they were"):
        expect(steps[name]["outcome"] == "ok", steps[name], ended)
    expect(all(step["outcome"] == "ok" or step["why"] for step in steps.values()), "no reason is given", ended)
    outcomes = {name: step["outcome"] + (f": {step['why']}" if "why" in step else "") for name, step in steps.items()}
    return {"steps": outcomes, "best": ended.report["best"]}


def doctor(rig):
    """It finds the devices, and says of each what has it."""
    ended = rig.run("doctor", "--json", ports=())
    found = {check["name"]: check for check in ended.report["checks"]}
    text = str(ended.report)
    for port in rig.ports:
        expect(port in text, f"doctor does not name {port}: {found}")
    return {name: check["found"] for name, check in found.items() if "network" in name or "vfio" in name or "iommu" in name}


def kernel_has_it(rig):
    ended = rig.run("forward", "--seconds", 1, ports=rig.ports[:1])
    expect(ended.code in (2, 3), "a device of the kernel's is taken", ended)
    expect(rig.ports[0] in ended.error and ";" in ended.error, "it does not say what to do", ended)
    missing = rig.run("forward", "--seconds", 1, ports=["0000:00:1e.0"])
    expect(missing.code in (2, 3) and "0000:00:1e.0" in missing.error, "a device that is not there is taken", missing)
    return [ended.error, missing.error]


def group_is_shared(rig):
    ended = rig.run("forward", "--seconds", 1, ports=rig.ports[:1])
    said = f"its IOMMU group has {rig.ports[1]} (virtio-pci), too"
    expect(ended.code == 3 and said in ended.error, "it does not say who is in the way", ended)
    return ended.error


# Of two ports whose cables the test holds.
ON_CABLES = (
    forward,
    jumbo,
    engine,
    several_queues,
    generate,
    responder,
    l3forward,
    too_large_mtu,
    interrupted,
    held_by_another,
    link,
    link_down,
)
