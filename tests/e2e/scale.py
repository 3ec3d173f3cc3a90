#!/usr/bin/env python3
"""Hundreds of ranks in one process, and dozens of processes on few processors, meet and compute in bounded time.

Bounds are seconds of processor time, three times the most that was seen on busy machines: they are for work that grows
faster than the number of pairs of ranks.
"""
import resource
import sys

from support import BUILD, SKIP, check, main, run

PERF = BUILD / "bench" / "all_reduce_perf"
ONCE = ["-n", "1", "-w", "0"]
DESCRIPTORS = 10  # of a rank, while all ranks of a process meet
HUNDREDS = 256


def possible_ranks(wanted):
    """As many as there are descriptors for, after raising the limit as far as it goes."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard // DESCRIPTORS - 10)


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def succeeds(devices, size, ranks, bound):
    """One AllReduce of `size`, checked, that takes at most `bound` seconds of processor time with its init."""
    before = processor_time()
    said = run(devices, PERF, "-b", size, "-e", size, *ONCE, *ranks, seconds=300)
    check("# Out of bounds values : 0 OK" in said, said)
    used = processor_time() - before
    check(used < bound, f"{' '.join(ranks)}: {used:.1f} s of processor time, at most {bound} s were expected")


def hundreds_of_ranks_in_a_process_meet():
    ranks = possible_ranks(HUNDREDS)
    succeeds(ranks, "8", ["-g", str(ranks)], 36)


def dozens_of_processes_meet():
    succeeds(64, "8", ["-p", "64"], 15)


def dozens_of_processes_connect_all_with_all():
    succeeds(64, "1M", ["-p", "64"], 36)


if __name__ == "__main__":
    main(hundreds_of_ranks_in_a_process_meet, dozens_of_processes_meet, dozens_of_processes_connect_all_with_all)
    if possible_ranks(HUNDREDS) < HUNDREDS:
        print(f"skipped: descriptors (ulimit -Hn) for {HUNDREDS} ranks in a process")
        sys.exit(SKIP)
