#!/usr/bin/env python3
"""Processes that map each other's device memory by file descriptors of it (NCCL_CUMEM_ENABLE=1)."""
import re

from matrix import MESSAGES
from support import BUILD, check, main, run

BENCH = BUILD / "bench"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


def measure(name, *options, ranks=3, way="-p", **env):
    said = run(ranks, BENCH / f"{name}_perf", way, ranks, "-n", "2", "-w", "1", *options, **env)
    check("# Out of bounds values : 0 OK" in said, f"{name} {env}:\n{said[-3000:]}")
    return said


def ways(way="-p", **env):
    said = measure("all_reduce", "-b", "4M", "-e", "4M", way=way, NCCL_DEBUG="INFO", **env)
    found = set(re.findall(r"Channel \d+/\d+ : .* via (.*)", said))
    check(found, said[-3000:])
    return found


def only_processes_share_by_descriptors_and_only_where_they_are_told_to():
    check(ways(NCCL_CUMEM_ENABLE=1) == {"P2P/CUMEM"}, "processes, 1")
    check(ways("-t", NCCL_CUMEM_ENABLE=1) == {"P2P/direct pointer"}, "threads, 1")
    for value in (0, -2):
        check(ways(NCCL_CUMEM_ENABLE=value) == {"P2P/IPC"}, f"processes, {value}")


def collectives_and_messages_are_right():
    """From a few bytes to several rounds of all slots; also where receivers read in place."""
    for name in (*COLLECTIVES, *MESSAGES):
        for direct in (0, 1):
            measure(name, "-b", "8", "-e", "8M", "-f", "64", NCCL_CUMEM_ENABLE=1, NCCL_P2P_DIRECT_DISABLE=direct)


def every_protocol_and_many_channels_fit_into_shared_allocations():
    for protocol in ("LL", "LL128", "Simple"):
        for channels in (1, 5, 16):
            env = {"NCCL_PROTO": protocol, "NCCL_ALGO": "Ring", "NCCL_MIN_NCHANNELS": channels,
                   "NCCL_MAX_NCHANNELS": channels, "NCCL_P2P_DIRECT_DISABLE": 1}
            for cumem in (0, 1):
                measure("all_reduce", "-b", "8", "-e", "1M", "-f", "128", NCCL_CUMEM_ENABLE=cumem, **env)


if __name__ == "__main__":
    main(only_processes_share_by_descriptors_and_only_where_they_are_told_to, collectives_and_messages_are_right,
         every_protocol_and_many_channels_fit_into_shared_allocations)
