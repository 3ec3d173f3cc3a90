#!/usr/bin/env python3
"""What profilers of each version hear of messages that another rank sends in a rank's stead (PXN).

  profilers.py PLUGIN…     one of each version, in their order
"""
import pathlib
import re
import sys
import tempfile

import pxn
from support import check

COLL, P2P, PROXY_OP, PROXY_STEP = 2, 4, 8, 16
OP = re.compile(r"pid=(\d+) channel=\d+ peer=(\d+) steps=(\d+) chunk=\d+ send=([01])$")


def heard(file):
    """The ProxyOps that a process was told of: its rank, the peer, whether it sends. All of them are whole."""
    types, open_events, steps, ops = {}, set(), {}, {}
    for line in file.read_text().splitlines():
        call, _, kind, handle, parent, rank, text = line.split("\t")
        if call == "start":
            types[handle] = int(kind)
            open_events.add(handle)
            if int(kind) == PROXY_STEP:
                steps[parent] = steps.get(parent, 0) + 1
                check(types.get(parent) == PROXY_OP, f"a step is part of {types.get(parent)}: {line}")
            if int(kind) == PROXY_OP:
                found = OP.match(text)
                check(found and file.name.endswith("." + found[1]), f"not a ProxyOp of this process: {line}")
                check(types.get(parent) in (COLL, P2P), f"a ProxyOp is part of {types.get(parent)}: {line}")
                ops[handle] = (int(rank), int(found[2]), int(found[3]), found[4] == "1")
        elif call == "stop":
            check(handle in open_events, f"what has not begun ends: {line}")
            open_events.remove(handle)
    check(not open_events, f"{len(open_events)} events do not end")
    for handle, (*_, expected, _) in ops.items():
        check(steps.get(handle, 0) == expected, f"{ops[handle]} has {steps.get(handle, 0)} steps")
    return {(rank, peer, sends) for rank, peer, _, sends in ops.values()}


def main(plugins):
    for version, plugin in enumerate(plugins, 1):
        with tempfile.TemporaryDirectory() as folder:
            _, lines = pxn.conform(2, "", only="all_reduce,sendrecv", NCCL_NET="Socket", NCCL_PROFILER_PLUGIN=plugin,
                                   TEST_PROFILER_FILE=f"{folder}/heard", TEST_PROFILER_MASK="0x18")
            files = sorted(pathlib.Path(folder).glob("heard.*"))
            check(len(files) == 4, f"four processes, and files {files}")
            ops = set().union(*(heard(file) for file in files))
        relayed = {(sender, receiver, True) for _, sender, receiver, _, relay in lines if relay is not None}
        check(relayed and relayed & ops, f"version {version}: relayed {relayed}, told {ops}")
        print(f"ok version {version}: {len(ops)} connections, {len(relayed & ops)} of them relayed")


main(sys.argv[1:])
