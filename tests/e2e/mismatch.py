#!/usr/bin/env python3
"""Ranks whose calls do not match: whatever differs, in every collective, by every way between ranks, and whether calls
are compared before they are launched or after. Every rank gets an error that names two ranks and both calls."""
import contextlib
import re
import time

from support import BUILD, Process, check, free_port, main

MISMATCH = BUILD / "tests/e2e/mismatch"
WAYS = {"P2P": {}, "SHM": {"NCCL_P2P_DISABLE": 1}, "TCP": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}}
CELLS = 30
# By difference: a collective, and a way between the processes that call it.
OF_PROCESSES = {"count": ("AllReduce", "P2P"), "type": ("AllGather", "SHM"), "operator": ("ReduceScatter", "TCP"),
                "root": ("Reduce", "P2P"), "kind": ("Broadcast", "SHM"), "order": ("Reduce", "TCP")}
CALLS = ("AllReduce of 4096 ncclInt32, sum", "Reduce of 4096 ncclInt32, sum, root 0", "AllGather of 4096 ncclInt32",
         "Broadcast of 4096 ncclInt32, root 1", "ReduceScatter of 4096 ncclInt32, sum")


def start(stack, *what, **env):
    process = Process(8, [MISMATCH, *what], **env)
    stack.callback(process.close)
    return process


def every_way(what, ranks, seconds=120, **env):
    """Side by side. Yields for each way what it said; all ranks were told."""
    with contextlib.ExitStack() as stack:
        started = {way: start(stack, what, *ranks, TUTTI_STALL_SEC=5, **settings, **env)
                   for way, settings in WAYS.items()}
        for way, process in started.items():
            code = process.wait(seconds)
            said = process.output()
            check(code == 0 and "all named" in said, f"{way}: ended with {code}: {said[-4000:]}")
            yield way, said


def matrix(ranks, what="threads", **env):
    for way, said in every_way(what, ranks, seconds=300, **env):
        for number in ranks:
            check(f"{CELLS} cells of {number} ranks" in said, f"{way}: {said}")


def every_difference_is_named():
    matrix((2, 4, 8))


def every_difference_is_named_before_anything_is_launched():
    matrix((2, 4, 8), TUTTI_CHECK_CALLS=1)


def the_watch_names_every_difference_within_the_time_of_a_stall():
    matrix((2,), what="watched")


def a_rank_that_leaves_without_a_call_is_named(**env):
    for way, said in every_way("left", (2, 4, 8), **env):
        for number in (2, 4, 8):
            check(f"5 cells of {number} ranks" in said, f"{way}: {said}")


def a_rank_that_leaves_without_a_call_is_named_by_ranks_that_check():
    a_rank_that_leaves_without_a_call_is_named(TUTTI_CHECK_CALLS=1)


def named_by_a_report(said):
    """(ranks, who holds them up, the call it has not made): what rank 0 has said of its second call."""
    found = re.findall(r"Stall: rank 0 of (\d) .*? rank (\d) \(host \S+, device \d, pid \d+\) has launched 1 "
                       r"collective operation, this one is the 2nd: it has not called \w+ yet \((.*?)\)", said)
    return {(int(ranks), int(rank), call) for ranks, rank, call in found}


def a_rank_that_does_not_call_is_named_by_a_report_of_a_stall():
    expected = {(ranks, ranks - 1, call) for ranks in (2, 4, 8) for call in CALLS}
    with contextlib.ExitStack() as stack:
        waiting = [(way, checked, start(stack, "idle", 2, 4, 8, TUTTI_STALL_SEC=1, TUTTI_CHECK_CALLS=checked,
                                        NCCL_DEBUG="WARN", **settings))
                   for way, settings in WAYS.items() for checked in (0, 1)]
        deadline = time.monotonic() + 50
        for way, checked, process in waiting:
            while (found := named_by_a_report(process.output())) != expected:
                check(time.monotonic() < deadline and process.child.poll() is None and found < expected,
                      f"{way}, checked: {checked}: {found ^ expected}: {process.output()[-4000:]}")
                time.sleep(0.05)
            process.close()


def messages_of_two_lengths_are_named():
    for way, said in every_way("messages", (2, 4)):
        check("4 messages between 4 ranks" in said, f"{way}: {said}")


def messages_of_two_lengths_are_named_by_eight_ranks_and_by_ranks_that_check():
    with contextlib.ExitStack() as stack:
        cases = [(ranks, start(stack, "messages", *ranks, TUTTI_CHECK_CALLS=checked, TUTTI_STALL_SEC=5, **WAYS["SHM"]))
                 for checked, ranks in ((0, (8,)), (1, (2, 4, 8)))]
        for ranks, process in cases:
            code = process.wait(60)
            said = process.output()
            for number in ranks:
                check(code == 0 and f"4 messages between {number} ranks" in said, said)


def processes_name_one_another():
    cells = [(2, func, difference, way, checked) for difference, (func, way) in OF_PROCESSES.items()
             for checked in (0, 1)]
    cells += [(4, "Reduce", "root", "SHM", 0), (4, "ReduceScatter", "operator", "TCP", 0)]
    with contextlib.ExitStack() as stack:
        started = []
        for size, func, difference, way, checked in cells:
            address = f"127.0.0.1:{free_port()}"
            ranks = [start(stack, "process", rank, size, func, difference, NCCL_COMM_ID=address, TUTTI_STALL_SEC=5,
                           TUTTI_CHECK_CALLS=checked, **WAYS[way]) for rank in range(size)]
            started.append((f"{func}, {difference}, {way}, checked: {checked}", ranks, checked))
        for where, ranks, checked in started:
            for process in ranks:
                check(process.wait(60) == 0 and "all named" in process.output(), f"{where}: {process.output()}")
            told = sum("was told" in process.output() for process in ranks)
            check(told == len(ranks) if checked else told > 0, f"{where}: {told} ranks were told")


if __name__ == "__main__":
    main(every_difference_is_named, every_difference_is_named_before_anything_is_launched,
         the_watch_names_every_difference_within_the_time_of_a_stall, a_rank_that_leaves_without_a_call_is_named,
         a_rank_that_leaves_without_a_call_is_named_by_ranks_that_check,
         a_rank_that_does_not_call_is_named_by_a_report_of_a_stall, messages_of_two_lengths_are_named,
         messages_of_two_lengths_are_named_by_eight_ranks_and_by_ranks_that_check, processes_name_one_another)
