#!/usr/bin/env python3
"""The plugin profiler_json writes a time line in which every event lies below the right one."""
import collections
import json
import pathlib
import tempfile

import pxn
import support
from support import BUILD, check

PLUGIN = BUILD / "examples/libnccl-profiler-json.so"
SWITCH = BUILD / "examples/libnccl-net-switch.so"

ABOVE = {"Coll": "Call", "KernelCh": "Coll", "ProxyOp": "Coll", "ProxyStep": "ProxyOp", "Launch": "Group",
         "Call": "Group"}


def events_of(folder, **env):
    support.run(2, BUILD / "bench/all_reduce_perf", "-b", 4096, "-e", 4096, "-g", 2, "-n", 5, "-w", 1,
                NCCL_PROFILER_PLUGIN=PLUGIN, PROFILER_JSON_PREFIX=f"{folder}/line",
                NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1, **env)
    return drawn(folder)


def drawn(folder):
    """The events of all processes, each of which counts its own."""
    files = sorted(pathlib.Path(folder).glob("line.*.json"))
    check(files, "no file was written")
    events = []
    for file in files:
        for event in json.loads(file.read_text()):
            if event.get("ph") != "X":
                continue
            args = event["args"]
            args.update({key: (file.name, args[key]) for key in ("id", "parent") if key in args})
            events.append(event)
    return events


def check_steps(events):
    steps = collections.Counter(event["args"].get("parent") for event in events if event["name"] == "ProxyStep")
    for event in events:
        if event["name"] == "ProxyOp":
            found = steps[event["args"]["id"]]
            check(found == event["args"]["steps"], f"{event} has {found} steps")


def draws_every_event_below_the_right_one():
    with tempfile.TemporaryDirectory() as folder:
        events = events_of(folder)
    by_id = {event["args"]["id"]: event for event in events}
    for name, parents in ABOVE.items():
        mine = [event for event in events if event["name"] == name]
        check(len(mine) >= 2 * 6, f"{len(mine)} events {name} of two ranks and six calls")
        for event in mine:
            parent = by_id.get(event["args"].get("parent"))
            check(parent is not None and parent["name"] == parents, f"{event} lies below {parent}")
            ours = parents == "Group" or parent["pid"] == event["pid"]  # a group may be of several communicators
            check(parent["ts"] <= event["ts"] and ours, f"{event} lies below {parent}")
    check_steps(events)


def draws_what_heads_have_the_network_do():
    """A collective in the network is a send and a receive of each head, whose other end is no rank."""
    with tempfile.TemporaryDirectory() as folder:
        for algorithm in ("CollNetDirect", "CollNetChain"):
            said = support.run(2, BUILD / "tests/e2e/conformance", "--ranks", 4, "--hosts", 2, "--only", "all_reduce",
                               "--types", "float", "--quick", seconds=120, NCCL_ALGO=algorithm,
                               NCCL_NET_PLUGIN=SWITCH, NCCL_COLLNET_ENABLE=1, SWITCH_COLLNET_DEVICES=1,
                               NCCL_PROFILER_PLUGIN=PLUGIN, PROFILER_JSON_PREFIX=f"{folder}/line",
                               PROFILER_JSON_MASK="0x5a")
            check(", 0 wrong" in said, said[-2000:])
        events = drawn(folder)
    by_id = {event["args"]["id"]: event for event in events}
    ops = [event for event in events if event["name"] == "ProxyOp" and -1 in
           (event["args"].get("to"), event["args"].get("from"))]
    heads = {event["pid"] for event in ops}
    check(heads == {0, 2}, f"the heads are the first ranks of two hosts, not {heads}")
    for end in ("to", "from"):
        for algorithm in ("COLLNET_DIRECT", "COLLNET_CHAIN"):
            found = [event for event in ops if end in event["args"]
                     and by_id[event["args"]["parent"]]["args"]["algorithm"] == algorithm]
            check(found, f"nothing goes {end} the network by {algorithm}")
    check_steps(events)


def draws_what_the_mask_asks_for():
    with tempfile.TemporaryDirectory() as folder:
        names = {event["name"] for event in events_of(folder, PROFILER_JSON_MASK="0x800")}
    check(names == {"Group", "Launch"}, names)


def draws_what_other_ranks_send():
    with tempfile.TemporaryDirectory() as folder:
        _, lines = pxn.conform(2, "", only="all_reduce,sendrecv", NCCL_NET="Socket", NCCL_PROFILER_PLUGIN=PLUGIN,
                               PROFILER_JSON_PREFIX=f"{folder}/line", PROFILER_JSON_MASK="0x18")
        events = drawn(folder)
    check_steps(events)
    sends = {(event["pid"], event["args"]["to"]) for event in events if "to" in event["args"]}
    relayed = {(sender, receiver) for _, sender, receiver, _, relay in lines if relay is not None}
    check(relayed & sends, f"relayed: {relayed}, told: {sends}")


support.main(draws_every_event_below_the_right_one, draws_what_heads_have_the_network_do, draws_what_the_mask_asks_for, draws_what_other_ranks_send)
