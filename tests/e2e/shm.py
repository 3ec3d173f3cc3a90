#!/usr/bin/env python3
"""Collectives and messages between processes and threads whose devices reach each other through host memory only.

  shm.py              what the log says, what is refused, what is left behind
  shm.py RANKS        every algorithm and protocol, forced one by one, between RANKS processes
"""
import itertools
import pathlib
import re
import sys

from matrix import COMBINATIONS, MESSAGES, MESSAGE_PROTOCOLS, forced
from support import BUILD, check, main, run, run_for_code

BENCH = BUILD / "bench"
WAYS = {"processes": "-p", "threads": "-t"}
OVER_SHM = {"NCCL_P2P_DISABLE": 1}
THROUGH_SLOTS = {"NCCL_P2P_DIRECT_DISABLE": 1}


def measure(name, ranks, way, *options, **env):
    said = run(ranks, BENCH / f"{name}_perf", WAYS[way], ranks, "-n", "2", "-w", "1", *options, **OVER_SHM, **env)
    check("# Out of bounds values : 0 OK" in said, f"{name} {way} {env}:\n{said[-3000:]}")
    return said


def every_connection_goes_through_shared_memory():
    for way in WAYS:
        said = measure("all_reduce", 3, way, "-b", "4M", "-e", "4M", NCCL_DEBUG="INFO")
        lines = re.findall(r"Channel \d+/\d+ : .* via (.*)", said)
        check(lines and set(lines) == {"SHM/direct"}, f"{way}: {lines}:\n{said[-3000:]}")


def nothing_appears_in_the_file_system():
    folder = pathlib.Path("/dev/shm")
    before = set(folder.iterdir()) if folder.exists() else set()
    measure("all_reduce", 2, "processes", "-b", "1M", "-e", "1M")
    after = set(folder.iterdir()) if folder.exists() else set()
    check(not [name for name in after - before if "tutti" in name.name or "nccl" in name.name], after - before)


def nothing_goes_that_way_where_it_is_disabled():
    said = run_for_code(2, BENCH / "all_reduce_perf", "-p", "2", "-b", "8", "-e", "8", NCCL_SHM_DISABLE=1, NCCL_DEBUG="INFO",
                        **OVER_SHM)[1]
    check("via SHM" not in said and "via P2P" not in said, said[-3000:])


def calls_are_captured_in_graphs():
    for way in WAYS:
        measure("all_reduce", 2, way, "-b", "8", "-e", "256K", "-f", "32", "-G", "4")


def ways_of(protocol):
    return (THROUGH_SLOTS, {}) if protocol.lower() == "simple" else (THROUGH_SLOTS,)


def conform(ranks):
    """From a few bytes to several rounds of all slots; by the Simple protocol also where receivers read in place."""
    sizes = ("-b", "8", "-e", "8M", "-f", "64")
    for algorithm, protocol, names in COMBINATIONS:
        for name, way in itertools.product(names, ways_of(protocol)):
            measure(name, ranks, "processes", *sizes, **forced(algorithm, protocol, **way))
    for protocol, threshold in MESSAGE_PROTOCOLS.items():
        for name, way in itertools.product(MESSAGES, ways_of(protocol)):
            measure(name, ranks, "processes", *sizes, NCCL_P2P_LL_THRESHOLD=threshold, **way)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        conform(sys.argv[1])
    else:
        main(every_connection_goes_through_shared_memory, nothing_appears_in_the_file_system,
             nothing_goes_that_way_where_it_is_disabled, calls_are_captured_in_graphs)
