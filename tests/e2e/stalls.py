#!/usr/bin/env python3
"""A process is stopped in the middle of all-reduces: the others say who it is, and tutti-info asks them."""
import os
import re
import signal
import subprocess

from support import BUILD, Process, check, environment, free_port, main

SURVIVOR = BUILD / "tests/e2e/survivor"
INFO = BUILD / "tools/tutti_info/tutti-info"
SIZE = 4
STOPPED = 2


def start(env_of):
    """`env_of`: what a rank's environment has beside what all have."""
    port = free_port()
    return [Process(SIZE, [SURVIVOR, r, SIZE], NCCL_COMM_ID=f"127.0.0.1:{port}", NCCL_ALGO="Ring", NCCL_PROTO="Simple",
                    TUTTI_PEER_TIMEOUT_MS=600000, TUTTI_STALL_SEC=1, **env_of(r)) for r in range(SIZE)]


def pid_of(process):
    return int(re.search(r"started pid (\d+)", process.output()).group(1))


def ask(pid):
    asked = subprocess.run([INFO, "stalls", str(pid)], capture_output=True, text=True, timeout=60, env=environment())
    return asked.returncode, asked.stdout + asked.stderr


def stopped_process_is_named_and_everything_goes_on_after_it():
    ranks = start(lambda _: {"NCCL_DEBUG": "WARN"})
    try:
        for process in ranks:
            process.wait_for("reduced 4")
        os.kill(pid_of(ranks[STOPPED]), signal.SIGSTOP)
        others = [r for r in range(SIZE) if r != STOPPED]
        for r in others:
            ranks[r].wait_for("Stall: ")
            said = ranks[r].output()
            check(re.search(rf"Stall: rank {r} of {SIZE} on host \S+, device {r}: operation AllReduce \(kernel tutti_AllReduce_",
                            said), said)
            check(re.search(rf"\. rank {STOPPED} \(host \S+, device {STOPPED}, pid \d+\) does not answer: its process is "
                            "stopped or its host is not reachable", said), said)
        code, said = ask(pid_of(ranks[0]))
        check(code == 0 and f"rank {STOPPED} (host" in said and "does not answer" in said, said)
        check("channel 0, from rank" in said, said)
        counts = [ranks[r].output().count("reduced ") for r in range(SIZE)]
        os.kill(pid_of(ranks[STOPPED]), signal.SIGCONT)
        for r in range(SIZE):
            ranks[r].wait_for(f"reduced {4 * (counts[r] + 2)}\n")
        for r in others:
            check(ranks[r].output().count("Stall: ") == 1, ranks[r].output())
    finally:
        for process in ranks:
            process.close()


def who_asks_for_nothing_hears_of_a_stall_that_lasts():
    """The time is short for rank 0 alone; the others report at once, to nobody."""
    ranks = start(lambda rank: {"NCCL_DEBUG": ""} | ({"TUTTI_STALL_ALARM_SEC": 4} if rank == 0 else {}))
    try:
        for process in ranks:
            process.wait_for("reduced 4")
        os.kill(pid_of(ranks[STOPPED]), signal.SIGSTOP)
        ranks[0].wait_for("Stall: ")
        said = ranks[0].output()
        told = re.search(r"NCCL WARN Stall: rank 0 of 4 .* has been under way for ([0-9.]+) s and does not move\. "
                         rf"rank {STOPPED} \(", said)
        check(told and float(told.group(1)) >= 4, said)
        for r in range(1, SIZE):
            check("Stall: " not in ranks[r].output(), ranks[r].output())
        before = ranks[0].output().count("reduced ")
        os.kill(pid_of(ranks[STOPPED]), signal.SIGCONT)
        ranks[0].wait_for(f"reduced {4 * (before + 2)}\n")
        check(ranks[0].output().count("Stall: ") == 1, ranks[0].output())
    finally:
        for process in ranks:
            process.close()


def idle_processes_are_told_apart():
    code, said = ask(os.getpid())
    check(code == 1 and f"process {os.getpid()} has no communicator of tutti" in said, said)
    ended = subprocess.Popen(["true"])
    ended.wait()
    code, said = ask(ended.pid)
    check(code == 1 and f"there is no process {ended.pid}" in said, said)


if __name__ == "__main__":
    main(stopped_process_is_named_and_everything_goes_on_after_it, who_asks_for_nothing_hears_of_a_stall_that_lasts,
         idle_processes_are_told_apart)
