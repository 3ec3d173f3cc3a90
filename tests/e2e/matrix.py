#!/usr/bin/env python3
"""Conformance over every algorithm and protocol that exists, forced one by one.

  matrix.py proof            the log proves that what was forced is what ran
  matrix.py full RANKS       every collective, type, operation, count, alignment, in and out of place
  matrix.py brief RANKS      the same with fewer counts
  matrix.py slots RANKS      every count, a type of each kind, with small slots: many counts fill the FIFOs several times
  matrix.py shape RANKS      few counts, a type of each kind, in the launch shape of GPUs
  matrix.py shm RANKS        every type with few counts, through host memory instead of P2P
  matrix.py arithmetic RANKS what reductions promise of bits, in both launch shapes
  matrix.py seeds FIRST LAST random schedules together with weak memory, one seed each
"""
import re
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
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
MESSAGES = ("sendrecv", "alltoall", "gather", "scatter")
# Bytes up to which a message goes by LL: none, and all.
MESSAGE_PROTOCOLS = {"SIMPLE": 0, "LL": 1 << 30}
SMALL_SLOTS = {"NCCL_BUFFSIZE": 8 * 4096, "NCCL_LL_BUFFSIZE": 8 * 2048, "NCCL_LL128_BUFFSIZE": 8 * 4096}


def forced(algorithm, protocol, **env):
    return {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol, **env}


def prove(program, ranks, names, *options, seconds=600, **env):
    said = run(ranks, BUILD / "tests/e2e" / program, "--ranks", ranks, "--only", ",".join(names), *options,
               seconds=seconds, **env)
    check(re.search(rf"^{program}: [1-9][0-9]* cases on {ranks} ranks, 0 wrong$", said, re.MULTILINE), said[-2000:])


def conform(ranks, *options, **env):
    """Everything, and messages by both protocols."""
    for algorithm, protocol, names in COMBINATIONS:
        prove("conformance", ranks, names, *options, **forced(algorithm, protocol, **env))
    for threshold in MESSAGE_PROTOCOLS.values():
        prove("conformance", ranks, MESSAGES, *options, NCCL_P2P_LL_THRESHOLD=threshold, **env)


def logged(name, pattern, **env):
    """The lines of the tuner's log that match, of a few calls of one benchmark on two ranks."""
    said = run(2, BUILD / f"bench/{name}_perf", "-b", "1K", "-e", "1M", "-f", "32", "-g", "2", "-n", "1", "-w", "0",
               NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="TUNING", **env)
    check("# Out of bounds values : 0 OK" in said, said[-2000:])
    lines = [line for line in said.splitlines() if re.search(pattern, line)]
    check(lines, f"{name} {env}: no choice was logged:\n{said[-2000:]}")
    return lines


def proof():
    for algorithm, protocol, names in COMBINATIONS:
        for name in names:
            wanted = f"-> Algo {algorithm} proto {protocol} ".upper()
            chosen = logged(name, "-> Algo ", **forced(algorithm, protocol))
            strangers = [line for line in chosen if wanted not in line.upper()]
            check(not strangers, f"{name}: {algorithm} {protocol} was forced, but the log says {strangers[:3]}")
    for protocol, threshold in MESSAGE_PROTOCOLS.items():
        wanted = {"LL": r"-> [1-9]\d* by LL, 0 by SIMPLE", "SIMPLE": r"-> 0 by LL, [1-9]\d* by SIMPLE"}[protocol]
        chosen = logged("sendrecv", "SendRecv: .* -> ", NCCL_P2P_LL_THRESHOLD=threshold)
        strangers = [line for line in chosen if not re.search(wanted, line)]
        check(not strangers, f"messages: {protocol} was forced, but the log says {strangers[:3]}")


def full(ranks):
    conform(ranks)


def brief(ranks):
    conform(ranks, "--quick")


def slots(ranks):
    conform(ranks, "--types", "int8,int64,bfloat16,float", **SMALL_SLOTS)


def shape(ranks):
    conform(ranks, "--quick", "--types", "int8,int64,bfloat16,float", TUTTI_LAUNCH_SHAPE="GPU")


def shm(ranks):
    conform(ranks, "--quick", NCCL_P2P_DISABLE=1)


def arithmetic(ranks):
    for algorithm, protocol, names in COMBINATIONS:
        reducing = [name for name in names if name in REDUCING]
        if not reducing:
            continue
        # How threads share a slot's elements is up to the protocol, whatever the algorithm.
        layouts = algorithm in ("Ring", "Direct")
        prove("arithmetic", ranks, reducing, *([] if layouts else ["--quick"]), **forced(algorithm, protocol))
        if layouts:
            prove("arithmetic", ranks, ("all_reduce",), "--quick",
                  **forced(algorithm, protocol, TUTTI_LAUNCH_SHAPE="GPU"))


def seeds(first, last):
    for seed in range(int(first), int(last) + 1):
        conform(3, "--quick", SOFTGPU_SCHEDULE=f"random:{seed}", SOFTGPU_WEAK_MEMORY=seed)


if __name__ == "__main__":
    {"proof": proof, "full": full, "brief": brief, "slots": slots, "shape": shape, "shm": shm, "arithmetic": arithmetic,
     "seeds": seeds}[sys.argv[1]](*sys.argv[2:])
