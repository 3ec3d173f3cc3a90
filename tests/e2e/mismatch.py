#!/usr/bin/env python3
"""Ranks whose calls do not match: whatever differs, in every collective, by every way between ranks, and whether calls
are compared before they are launched or after. Every rank gets an error that names two ranks and both calls."""
import re

from support import BUILD, Process, check, free_port, main, run

MISMATCH = BUILD / "tests/e2e/mismatch"
WAYS = {"P2P": {}, "SHM": {"NCCL_P2P_DISABLE": 1}, "TCP": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}}
CELLS = 30


def matrix(ranks, seconds=300, **env):
    for way, settings in WAYS.items():
        said = run(8, MISMATCH, "threads", *ranks, seconds=seconds, TUTTI_STALL_SEC=5, **settings, **env)
        for number in ranks:
            check(f"{CELLS} cells of {number} ranks" in said, f"{way}: {said}")
        check("all named" in said, f"{way}: {said}")


def every_difference_is_named():
    matrix((2, 4, 8))


def every_difference_is_named_before_anything_is_launched():
    matrix((2, 4, 8), TUTTI_CHECK_CALLS=1)


def a_rank_that_leaves_without_a_call_is_named():
    for settings in WAYS.values():
        check("all named" in run(8, MISMATCH, "left", 2, 4, 8, **settings), "")


def a_rank_that_does_not_call_is_named_by_a_report_of_a_stall():
    for way, checked in (("P2P", 0), ("SHM", 0), ("TCP", 0), ("SHM", 1)):
        waiting = Process(2, [MISMATCH, "idle", 2], TUTTI_STALL_SEC=1, TUTTI_CHECK_CALLS=checked, NCCL_DEBUG="WARN",
                          **WAYS[way])
        try:
            for call in ("AllReduce of 4096 ncclInt32, sum", "Reduce of 4096 ncclInt32, sum, root 0", "AllGather of 4096 ncclInt32",
                         "Broadcast of 4096 ncclInt32, root 1", "ReduceScatter of 4096 ncclInt32, sum"):
                waiting.wait_for(f"it has not called {call.split()[0]} yet ({call})")
            said = waiting.output()
            check(len(re.findall(r"Stall: rank 0 of 2 .*rank 1 \(host \S+, device 1, pid \d+\) has launched 1 collective "
                                 r"operation, this one is the 2nd", said)) == 5, f"{way}: {said}")
        finally:
            waiting.close()


def messages_of_two_lengths_are_named():
    for way, settings in WAYS.items():
        said = run(8, MISMATCH, "messages", 2, 4, TUTTI_STALL_SEC=5, **settings)
        check("4 messages between 4 ranks" in said and "all named" in said, f"{way}: {said}")


def processes_name_one_another():
    for cell, size, way in ((0, 2, "P2P"), (9, 4, "SHM"), (17, 2, "TCP"), (26, 4, "TCP")):
        address = f"127.0.0.1:{free_port()}"
        ranks = [Process(size, [MISMATCH, "process", rank, size, cell], NCCL_COMM_ID=address, **WAYS[way])
                 for rank in range(size)]
        try:
            for process in ranks:
                check(process.wait(60) == 0 and "all named" in process.output(), process.output())
        finally:
            for process in ranks:
                process.close()


if __name__ == "__main__":
    main(every_difference_is_named, every_difference_is_named_before_anything_is_launched,
         a_rank_that_leaves_without_a_call_is_named, a_rank_that_does_not_call_is_named_by_a_report_of_a_stall,
         messages_of_two_lengths_are_named, processes_name_one_another)
