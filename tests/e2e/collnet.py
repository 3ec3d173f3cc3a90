#!/usr/bin/env python3
"""Collectives that run in the network: over examples/plugins/switch_collnet, ranks of several hosts on one machine.

  collnet.py direct PLUGIN     conformance of CollNetDirect: hosts of one to four ranks, with one head or all
  collnet.py chain PLUGIN      the same of CollNetChain
  collnet.py versions PLUGIN…  plugins of every version of the interface
  collnet.py traffic PLUGIN    what a host sends is what it must: its vector, once
  collnet.py registered PLUGIN  registered buffers are read and written by the network, whatever other ranks have done
  collnet.py failures PLUGIN   what fails while it is set up turns it off everywhere; what fails later is told
  collnet.py stalls PLUGIN     a network that does not finish is named, one that is slow is not
  collnet.py settings PLUGIN   what turns it on and off, and who says so
"""
import pathlib
import re
import sys
import tempfile

from support import BUILD, check, run, run_for_code

OFF = "Cannot initialize CollNet, using point-to-point network instead"


def env_of(plugin, devices, **more):
    return {"NCCL_NET_PLUGIN": plugin, "NCCL_COLLNET_ENABLE": 1, "SWITCH_COLLNET_DEVICES": devices,
            "SWITCH_COLLNET_CONNECT_MS": 60000, **more}


def command(hosts, per_host, only, *options):
    ranks = hosts * per_host
    return [per_host, BUILD / "tests/e2e/conformance", "--ranks", ranks, "--hosts", hosts, "--only", only, *options]


def conform(hosts, per_host, only, env, *options):
    """All cases are right; returns what was said."""
    said = run(*command(hosts, per_host, only, *options), seconds=300, **env)
    check(re.search(rf"^conformance: [1-9]\d* cases on {hosts * per_host} ranks, 0 wrong$", said, re.M), said[-3000:])
    return said


# Hosts, ranks of each, devices (and so heads) of each: one or all, and once half of them.
SHAPES = [(hosts, per_host, devices) for hosts in (2, 3, 4) for per_host in (1, 2, 4)
          for devices in sorted({1, per_host})] + [(2, 4, 2)]
FEW = ("--quick", "--types", "int8,bfloat16,float")


def direct(plugin):
    for hosts, per_host, devices in SHAPES:
        only = "all_reduce,all_gather,reduce_scatter" if devices == per_host else "all_reduce"
        conform(hosts, per_host, only, env_of(plugin, devices, NCCL_ALGO="CollNetDirect"), "--quick")
    conform(2, 2, "all_reduce", env_of(plugin, 2, NCCL_ALGO="CollNetDirect", TUTTI_LAUNCH_SHAPE="GPU"), *FEW)
    conform(2, 2, "all_reduce,all_gather,reduce_scatter",
            env_of(plugin, 2, NCCL_ALGO="CollNetDirect", NCCL_BUFFSIZE=8 * 4096, SOFTGPU_SCHEDULE="random:3",
                   SOFTGPU_WEAK_MEMORY=3), *FEW)
    conform(2, 2, "all_reduce", env_of(plugin, 2, NCCL_ALGO="CollNetDirect", SWITCH_COLLNET_CUDA=1), *FEW)


def chain(plugin):
    for hosts, per_host, devices in SHAPES:
        conform(hosts, per_host, "all_reduce", env_of(plugin, devices, NCCL_ALGO="CollNetChain"), "--quick")
    conform(2, 3, "all_reduce", env_of(plugin, 2, NCCL_ALGO="CollNetChain", TUTTI_LAUNCH_SHAPE="GPU"), *FEW)


def versions(*plugins):
    """From the oldest on, version 6. Windows came with version 8; before, who wants nothing else is told."""
    for version, plugin in enumerate(plugins, 6):
        only = "all_reduce,all_gather,reduce_scatter" if version >= 8 else "all_reduce"
        conform(2, 2, only, env_of(plugin, 2, NCCL_ALGO="CollNetDirect"), *FEW)
        conform(2, 1, "all_reduce", env_of(plugin, 1, NCCL_ALGO="CollNetChain"), *FEW)
        if version >= 8:
            continue
        conform(2, 1, "all_gather,reduce_scatter", env_of(plugin, 1), *FEW)
        for missing in ("all_gather", "reduce_scatter"):
            code, said = run_for_code(*command(2, 1, missing, *FEW), seconds=120,
                                      **env_of(plugin, 1, NCCL_ALGO="CollNetDirect", NCCL_DEBUG="WARN"))
            check(code != 0 and "CollNetDirect" in said, f"version {version}: {missing}:\n{said[-3000:]}")


def traffic(plugin):
    """Four hosts: a ring sends one and a half times the vector, and here it is sent once, by the plugin's own count.
    tests/hosts/collnet.py has the kernel count both."""
    megabytes = 2
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "statistics"
        said = run(1, BUILD / "tests/e2e/conformance", "--ranks", 4, "--hosts", 4, "--only", "all_reduce", "--types", "float",
                   "--counts", megabytes << 18, seconds=120, **env_of(plugin, 1, NCCL_ALGO="CollNetDirect",
                                                                   SWITCH_COLLNET_STATISTICS=file))
        cases = int(re.search(r"^conformance: (\d+) cases", said, re.M)[1])
        lines = file.read_text().splitlines()
        check(len(lines) == 4, f"four hosts have one connection each: {lines}")
        for line in lines:
            sent = int(re.search(r"bytes_out=(\d+)", line)[1])
            vectors = cases * (megabytes << 20)
            check(vectors <= sent < 1.05 * vectors, f"{sent / vectors:.2f} vectors were sent: {line}")


def registrations(hosts, per_host, only, env, *options):
    """{node: how many the network was asked for}, of one head a host."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "statistics"
        conform(hosts, per_host, only, {**env, "SWITCH_COLLNET_STATISTICS": file}, *options)
        found = [re.search(r"node=(\d+) .* registrations=(\d+)", line) for line in file.read_text().splitlines()]
        counts = {}
        for match in found:
            counts[int(match[1])] = counts.get(int(match[1]), 0) + int(match[2])
        return counts


def registered(plugin):
    for hosts in (2, 3, 4):
        for algorithm in ("CollNetDirect", "CollNetChain"):
            only = "all_reduce,all_gather,reduce_scatter" if algorithm == "CollNetDirect" else "all_reduce"
            env = env_of(plugin, 1, NCCL_ALGO=algorithm)
            own = registrations(hosts, 1, only, env, *FEW)
            for ranks in ("all", "odd"):
                with_user = registrations(hosts, 1, only, env, *FEW, "--registered", ranks)
                for node, count in own.items():
                    more = 2 if ranks == "all" or node % 2 == 1 else 0  # where to send from and to receive into
                    check(with_user[node] == count + more, f"{hosts} hosts, {algorithm}, {ranks}: {own}, {with_user}")
    # What is cut into many calls, a setting, and nodes of several ranks.
    env = env_of(plugin, 1, NCCL_ALGO="CollNetDirect")
    conform(2, 1, "all_reduce", {**env, "SWITCH_COLLNET_MAX_COLL_BYTES": 8192}, *FEW, "--registered", "odd")
    own = registrations(2, 1, "all_reduce", env, *FEW)
    check(own == registrations(2, 1, "all_reduce", {**env, "NCCL_LOCAL_REGISTER": 0, "NCCL_GRAPH_REGISTER": 0}, *FEW,
                               "--registered", "all"), "NCCL_LOCAL_REGISTER=0 registers")
    for devices in (1, 2):
        only = "all_reduce,all_gather,reduce_scatter" if devices == 2 else "all_reduce"
        conform(3, 2, only, env_of(plugin, devices, NCCL_ALGO="CollNetDirect"), *FEW, "--registered", "odd")


def falls_back(plugin, devices, words, **more):
    """Nobody uses it, all results are right, and one line says why."""
    env = env_of(plugin, devices, NCCL_DEBUG="WARN", **more)
    said = conform(2, 2, "all_reduce", env, *FEW)
    lines = [line for line in said.splitlines() if OFF in line]
    check(len(lines) == 1 and re.search(words, lines[0]), f"not one line with {words!r}: {lines or said[-3000:]}")


def fails(plugin, words, **more):
    code, said = run_for_code(*command(2, 1, "all_reduce", *FEW), seconds=120,
                              **env_of(plugin, 1, NCCL_ALGO="CollNetDirect", NCCL_DEBUG="WARN", **more))
    check(code != 0, f"ended without an error:\n{said[-3000:]}")
    check(re.search(words, said), f"nobody says {words!r}:\n{said[-4000:]}")


def failures(plugin):
    falls_back(plugin, 1, r"rank 2 on host .*connect", SWITCH_COLLNET_FAULTS="refuse-connect@1",
               SWITCH_COLLNET_CONNECT_MS=2000)
    falls_back(plugin, 1, r"rank 2 on host .*gave no connection", SWITCH_COLLNET_FAULTS="no-collnet@1")
    falls_back(plugin, 2, r"rank \d on host .*registering memory", SWITCH_COLLNET_FAULTS="refuse-register=2@0")
    fails(plugin, r"CollNet of rank 1 .*\(AllReduce .*told to fail", SWITCH_COLLNET_FAULTS="post-error=3@1")
    fails(plugin, r"CollNet.*rank \d", SWITCH_COLLNET_FAULTS="test-error=3@1")
    fails(plugin, r"CollNet.*rank \d", SWITCH_COLLNET_FAULTS="die=4")
    conform(2, 1, "all_reduce", env_of(plugin, 1, NCCL_ALGO="CollNetDirect", SWITCH_COLLNET_FAULTS="null-request=40"), *FEW)


def stalls(plugin):
    env = env_of(plugin, 1, NCCL_ALGO="CollNetDirect", NCCL_DEBUG="WARN", TUTTI_STALL_SEC=1)
    code, said = run_for_code(*command(2, 1, "all_reduce", *FEW), seconds=120,
                              **{**env, "SWITCH_COLLNET_FAULTS": "lost=3", "SWITCH_COLLNET_OPERATION_MS": 6000})
    check(code != 0, said[-3000:])
    stalled = [line for line in said.splitlines() if "Stall:" in line]
    for rank in (0, 1):
        named = rf"Stall: rank {rank} of 2 .* waits for the network in which it runs \(CollNet\).*" \
                r"CollNet call \d+ \(AllReduce .*\) of rail 0 by COLLNET/switch/0: waits for the network"
        check(any(re.search(named, line) for line in stalled), f"rank {rank}: {stalled or said[-3000:]}")
    # Eight of 64 calls at a time, each of which takes 400 ms: operations of some seconds that move all the time.
    said = run(*command(2, 1, "all_gather", "--types", "double", "--counts", 65536), seconds=240,
               **{**env, "SWITCH_COLLNET_FAULTS": "late=400", "SWITCH_COLLNET_MAX_COLL_BYTES": 16384})
    check("Stall:" not in said, said[-3000:])


def settings(plugin):
    def said_of(hosts, per_host, env, only="all_reduce"):
        return conform(hosts, per_host, only, {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,TUNING", **env}, *FEW)

    said = said_of(2, 2, env_of(plugin, 2))
    check("CollNet 00/1 : 0 [send] via COLLNET/switch/0" in said, said[:4000])
    check("Rank 0: 2 CollNet devices" in said, said[:4000])
    said = said_of(2, 2, env_of(plugin, 2, NCCL_COLLNET_NODE_THRESHOLD=3))
    check("Communicator has 2 nodes which is less than CollNet node threshold 3, disabling CollNet" in said, said[:4000])
    said = said_of(2, 2, env_of(plugin, 2, NCCL_COLLNET_ENABLE=0))
    check("via COLLNET/" not in said and "CollNet is not used" not in said, said[:4000])
    said = said_of(2, 1, {**env_of(plugin, 1), "NCCL_NET_PLUGIN": "none"})
    check("has no collNet plugin with a device (NCCL_NET_PLUGIN)" in said, said[:4000])
    code, said = run_for_code(*command(2, 1, "all_reduce", *FEW), NCCL_ALGO="CollNetDirect", NCCL_DEBUG="WARN")
    check(code != 0 and "CollNet is not enabled" in said, said[-3000:])
    # A type that the network does not take goes another way, where that is allowed.
    said = said_of(2, 1, env_of(plugin, 1, NCCL_ALGO="Ring,CollNetDirect", SWITCH_COLLNET_FAULTS="no-support=bfloat16:*"))


TESTS = {"direct": direct, "chain": chain, "versions": versions, "traffic": traffic, "registered": registered, "failures": failures, "stalls": stalls,
         "settings": settings}

if __name__ == "__main__":
    TESTS[sys.argv[1]](*sys.argv[2:])
