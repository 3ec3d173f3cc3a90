#!/usr/bin/env python3
"""Conformance over every algorithm and protocol that exists, forced one by one.

  matrix.py proof            the log proves that what was forced is what ran
  matrix.py full RANKS       every collective, type, operation, count, alignment, in and out of place
  matrix.py shape RANKS      the same with fewer counts, in the launch shape of GPUs
  matrix.py seeds FIRST LAST random schedules together with weak memory, one seed each
"""
import sys

from support import BUILD, check, run

RING = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
COMBINATIONS = [
    ("Ring", "LL", RING),
    ("Ring", "LL128", RING),
    ("Ring", "Simple", RING),
    ("Tree", "LL", ("all_reduce",)),
    ("Tree", "LL128", ("all_reduce",)),
    ("Tree", "Simple", ("all_reduce",)),
    ("OneShot", "LL", ("all_reduce",)),
    ("OneShot", "Simple", ("all_reduce",)),
    ("Direct", "LL", ("all_reduce", "all_gather", "reduce_scatter")),
    ("Direct", "Simple", ("all_reduce", "all_gather", "reduce_scatter")),
    ("PAT", "Simple", ("all_gather", "reduce_scatter")),
]
MESSAGES = ("sendrecv", "AlltoAll", "Gather", "Scatter")


def conform(ranks, names, *options, seconds=600, **env):
    said = run(ranks, BUILD / "tests/e2e/conformance", "--ranks", ranks, "--only", ",".join(names), *options,
               seconds=seconds, **env)
    check(" 0 wrong" in said, said[-2000:])


def proof():
    for algorithm, protocol, names in COMBINATIONS:
        for name in names:
            said = run(2, BUILD / f"bench/{name}_perf", "-b", "1K", "-e", "1M", "-f", "32", "-g", "2", "-n", "1", "-w", "0",
                       NCCL_ALGO=algorithm, NCCL_PROTO=protocol, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING")
            check("# Out of bounds values : 0 OK" in said, said[-2000:])
            chosen = [line for line in said.splitlines() if "-> Algo " in line]
            check(chosen, f"{name} {algorithm} {protocol}: no choice was logged:\n{said[-2000:]}")
            wanted = f"-> Algo {algorithm} proto {protocol} ".upper()
            strangers = [line for line in chosen if wanted not in line.upper()]
            check(not strangers, f"{name}: {algorithm} {protocol} was forced, but the log says {strangers[:3]}")


def full(ranks):
    for algorithm, protocol, names in COMBINATIONS:
        conform(ranks, names, NCCL_ALGO=algorithm, NCCL_PROTO=protocol)
    conform(ranks, MESSAGES)


def shape(ranks):
    for algorithm, protocol, names in COMBINATIONS:
        conform(ranks, names, "--quick", NCCL_ALGO=algorithm, NCCL_PROTO=protocol, TUTTI_LAUNCH_SHAPE="GPU")
    conform(ranks, MESSAGES, "--quick", TUTTI_LAUNCH_SHAPE="GPU")


def seeds(first, last):
    for seed in range(int(first), int(last) + 1):
        disorder = {"SOFTGPU_SCHEDULE": f"random:{seed}", "SOFTGPU_WEAK_MEMORY": seed}
        for algorithm, protocol, names in COMBINATIONS:
            conform(3, names, "--quick", NCCL_ALGO=algorithm, NCCL_PROTO=protocol, **disorder)
        conform(3, MESSAGES, "--quick", **disorder)


if __name__ == "__main__":
    {"proof": proof, "full": full, "shape": shape, "seeds": seeds}[sys.argv[1]](*sys.argv[2:])
