#!/usr/bin/env python3
"""Whoever is told of a failure is told whose it was: by its rank, host and process, and nobody else's comes first."""
import contextlib
import os
import re
import signal

from leaving_ranks import Job, TRANSPORTS
from support import check, main

# What takes a moment; the machine may be busy.
SOON_SECONDS = 10


def blames(job, rank, step, gone, words, device=None):
    """The step's error begins with the rank that failed, its host and pid, and then these words."""
    said = job.ranks[rank].output()
    where = rf"(, device {gone})?" if device is None else f", device {device}"
    text = rf"^{step} \d after \d+ ms (Bootstrap: )?rank {gone} \(host \S+, pid {job.pid(gone)}{where}\) {words}"
    check(re.search(text, said, re.M), f"rank {rank} does not say that rank {gone} {words}:\n{said}")


def all_have_begun(job):
    for process in job.ranks:
        process.wait_for("reduce 0")


def what_fails_on_one_rank_is_told_in_its_name():
    """It runs out of descriptors at some point of its init, unless it cannot even say that it is there."""
    for transport in TRANSPORTS.values():
        told = 0
        for descriptors in range(4, 10):
            steps = ["init", "reduce", "destroy"]
            # RAS would take the first few.
            with Job(steps, [f"files:{descriptors}", *steps], steps, TUTTI_BOOTSTRAP_TIMEOUT_SEC=4, NCCL_RAS_ENABLE=0,
                     **transport) as job:
                codes = [process.wait(30) for process in job.ranks]
                if codes == [0, 0, 0] or "rank 1 of 3 did not come" in job.ranks[0].output():
                    continue
                check(codes[1] == 42, f"rank 1 of {codes} is the one that fails:\n{job.ranks[1].output()}")
                # Where it cannot even accept a connection, those who wait for that may run out of time before it does.
                silent = r"at \S+ has not answered rank \d for \d+ ms, .* has it no file descriptors left"
                for rank in (0, 2):
                    blames(job, rank, "(init|reduce)", 1, f"((failed|gave up): |{silent})")
                told += "Too many open files" in job.ranks[0].output()
        check(told > 0, "no run failed in its midst for want of descriptors")


def a_rank_without_threads_is_told_in_its_name():
    if os.geteuid() != 0:
        return print("skipped: only root's processes can become another user's, whose threads are counted")
    told = 0
    for threads in range(1, 6):
        begin, rest = ["device"], ["init", "reduce", "destroy"]
        with Job([*begin, *rest], [*begin, f"threads:{threads}", *rest], [*begin, *rest],
                 TUTTI_BOOTSTRAP_TIMEOUT_SEC=4, **TRANSPORTS["TCP"]) as job:
            codes = [process.wait(30) for process in job.ranks]
            if codes == [0, 0, 0] or "rank 1 of 3 did not come" in job.ranks[0].output():
                continue
            check(codes[1] == 42, f"rank 1 of {codes} is the one that fails:\n{job.ranks[1].output()}")
            for rank in (0, 2):
                blames(job, rank, "(init|reduce)", 1, "failed: ", device=1)
            told += "thread" in job.ranks[0].output()
    check(told > 0, "no run failed in its midst for want of threads")


def a_failure_of_cuda_is_told_in_its_ranks_name():
    steps = ["init", "reduce", "reduce"]
    for call in ("cuLaunchKernelEx", "cuEventCreate", "cuStreamCreate"):
        with Job(steps, steps, steps, own={1: {"SOFTGPU_FAIL": f"{call}:2"}}) as job:
            for rank in range(3):
                job.ends(rank, 42, 30)
            for rank in (0, 2):
                blames(job, rank, "(init|reduce)", 1, f"failed: Cuda failure 999 .* in {call} ", device=1)


def rank_zero_without_descriptors_says_so():
    """It runs the root. With none at all, not even its device can be opened."""
    steps = ["init", "reduce", "destroy"]
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(Job([f"files:{number}", *steps], steps, steps, TUTTI_BOOTSTRAP_TIMEOUT_SEC=6))
                for number in range(1, 11)]
        for job in jobs:
            for rank in range(3):
                job.ends(rank, 42, 60)
            said = job.ranks[0].output()
            check(re.search(r"^init [26] .*(Too many open files|no file descriptors left).*ulimit -n", said, re.M), said)
            for rank in (1, 2):
                said = job.ranks[rank].output()
                check(not re.search(r"\bdied\b(?! or gave up)", said), f"rank 0 has not died:\n{said}")


def an_abort_because_of_another_communicator_names_who_failed():
    """Rank 0 aborts the second one as soon as the first one has failed; rank 2 looks at the second one only."""
    begin = ["init", "reduce", "comm:1", "init", "reduce"]
    for number, words in ((signal.SIGKILL, "died or lost its network"), (signal.SIGSTOP, "(has given|gives) .*sign of life")):
        for _ in range(3):
            with Job(begin + ["comm:0", "launch", "both", "watch", "comm:1", "abort", "comm:0", "abort"],
                     begin + ["both", "FILEnever"], begin + ["launch", "both", "watch"],
                     TUTTI_PEER_TIMEOUT_MS=1500) as job:
                for process in job.ranks:
                    process.wait_for("both 0")
                job.ranks[1].kill(number)
                job.ends(0)
                job.ends(2)
                blames(job, 0, "watched", 1, words)
                blames(job, 2, "watched", 1, words)


def a_rank_of_whose_farewell_nothing_is_heard_is_named_soon():
    """Rank 0, through which the others hear of each other, leaves first; ranks 1 and 3 share no connection."""
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "destroy"], ["init", "reduce", "FILEone", "destroy"],
                 ["init", "reduce", "FILEtwo", "state", "destroy"], ["init", "reduce", "FILEone", "FILEtwo", "recv:1"],
                 **transport) as job:
            all_have_begun(job)
            job.ends(0)
            job.let("one")
            job.ends(1)
            job.let("two")
            job.ends(3, 42, SOON_SECONDS)
            said = job.ranks[3].output()
            check(re.search(rf"^recv:1 [56] after \d+ ms [^0-9]*rank 1 \(host \S+, pid {job.pid(1)}\)", said, re.M), said)


def a_death_behind_a_rank_that_has_left_is_told():
    """The same, and ranks 1 and 3 have exchanged messages before."""
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "destroy"], ["init", "reduce", "send:3", "FILEnever"],
                 ["init", "reduce", "FILEtwo", "destroy"], ["init", "reduce", "recv:1", "FILEone", "recv:1"],
                 NCCL_P2P_LL_THRESHOLD=1 << 20, **transport) as job:
            job.ends(0)
            job.ranks[3].wait_for("recv:1 0")
            job.ranks[1].wait_for("send:3 0")
            job.let("one")
            job.ranks[1].kill()
            job.ends(3, 42, SOON_SECONDS)
            # A network notices for itself, and knows the rank by its device.
            check(re.search(r"recv:1 6 after \d+ ms [^0-9]*rank 1 \(host ", job.ranks[3].output()), job.ranks[3].output())
            job.let("two")


if __name__ == "__main__":
    main(what_fails_on_one_rank_is_told_in_its_name, a_rank_without_threads_is_told_in_its_name,
         a_failure_of_cuda_is_told_in_its_ranks_name, rank_zero_without_descriptors_says_so, an_abort_because_of_another_communicator_names_who_failed,
         a_rank_of_whose_farewell_nothing_is_heard_is_named_soon, a_death_behind_a_rank_that_has_left_is_told)
