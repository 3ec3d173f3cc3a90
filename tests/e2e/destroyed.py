#!/usr/bin/env python3
"""Ranks that have destroyed their communicator while others still need them: those learn soon who it was."""
import re
import time

from leaving_ranks import Job, TRANSPORTS
from support import check, main

TRIES = 3
# What most tries take half of, and what a busy machine may make of one.
SOON_MS = 1000
LATEST_MS = 5000


def who_has_destroyed_is_named_whatever_the_protocol():
    for transport in TRANSPORTS.values():
        for protocol in ("LL", "LL128", "Simple"):
            with Job(["init", "reduce", "FILEgo", "state", "reduce"], ["init", "reduce", "destroy", "FILEend"],
                     NCCL_PROTO=protocol, **transport) as job:
                job.ranks[1].wait_for("destroy 0")
                job.let("go")
                job.ends(0, 42)
                said = job.ranks[0].output()
                words = rf"reduce 5 after .*rank 1 (\(host \S+, pid {job.pid(1)}\) )?has left the communicator"
                check("state 0" in said and re.search(words, said), said)


def who_has_a_graph_hears_of_no_error():
    """Nobody replays it any more when a rank leaves, over whatever connections its operations go."""
    for transport in TRANSPORTS.values():
        begin = ["init", "reduce", "graph", "replay"]
        with Job([*begin, "FILEgo", "state", "destroy"], [*begin, "destroy", "exit:0"],
                 [*begin, "FILEgo", "state", "destroy"], **transport) as job:
            job.ends(1)
            time.sleep(0.5)
            job.let("go")
            for rank in (0, 2):
                job.ends(rank)
            for rank in range(3):
                said = job.ranks[rank].output()
                check("NCCL ERROR" not in said and (rank == 1 or "state 0" in said), said)
                job.is_quiet(rank)


def says_who_has_left(job, rank, step, gone):
    """That step of the rank fails with word of the one that has gone; how many milliseconds it took."""
    job.ends(rank, 42)
    said = job.ranks[rank].output()
    words = rf"^{step} [56] after [^(]*rank {gone} \(host \S+, pid {job.pid(gone)}\) has left the communicator"
    check(re.search(words, said, re.M), f"rank {rank} does not say who has left:\n{said}")
    return job.took(rank, rf"{step}(?= [1-9])")


def is_soon(what, waited):
    check(max(waited) < LATEST_MS and sorted(waited)[len(waited) // 2] < SOON_MS, f"{what}: took {waited} ms")


def who_has_destroyed_and_exited_is_named_within_a_second():
    """In a collective, of few bytes or more, and in a first message, for which a connection would have to be made."""
    for name, transport in TRANSPORTS.items():
        collectives, messages = [], []
        for number in range(TRIES):
            begin = ["init", f"count:{(1024, 4096)[number % 2]}", "reduce"]
            with Job([*begin, "FILEgo", "state", "reduce"], [*begin, "destroy", "exit:0"],
                     [*begin, "FILEgo", "state", "reduce"], **transport) as job:
                job.ends(1)
                time.sleep(0.5)
                job.let("go")
                collectives += [says_who_has_left(job, rank, "reduce", 1) for rank in (0, 2)]
            with Job([*begin, "FILEgo", "recv:1"], [*begin, "destroy", "exit:0"],
                     [*begin, "FILEend", "state", "destroy"], **transport) as job:
                job.ends(1)
                time.sleep(0.5)
                job.let("go")
                messages.append(says_who_has_left(job, 0, "recv:1", 1))
                job.let("end")
                job.ends(2)
                job.is_quiet(2)
        is_soon(f"{name}, a collective", collectives)
        is_soon(f"{name}, a message", messages)


if __name__ == "__main__":
    main(who_has_destroyed_is_named_whatever_the_protocol, who_has_a_graph_hears_of_no_error,
         who_has_destroyed_and_exited_is_named_within_a_second)
