#!/usr/bin/env python3
"""Ranks whose processes end by exit(), without ncclCommDestroy: peers that wait for nobody go on in peace, those that
wait for such a rank, or need it later, learn at once who it was."""
import re
import signal
import time

from leaving_ranks import AT_ONCE_SECONDS, Job, TRANSPORTS, soon
from support import check, main


def who_exits_idle_leaves_in_peace():
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "exit:0"], ["init", "reduce", "FILEgo", "state", "destroy"], **transport) as job:
            job.ends(0)
            time.sleep(2.5)   # longer than the grace of a connection that ends before its peer's farewell comes
            job.let("go")
            job.ends(1)
            job.is_quiet(1)
            check(job.took(1, "destroy") < 1000, job.ranks[1].output())


def all_but_one_leave_and_the_last_destroys():
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "return:0"], ["init", "reduce", "FILEone", "state", "exit:0"],
                 ["init", "reduce", "FILEtwo", "state", "destroy"], **transport) as job:
            job.ends(0)
            job.let("one")
            job.ends(1)
            time.sleep(0.5)
            job.let("two")
            job.ends(2)
            for rank in (1, 2):
                job.is_quiet(rank)


def four_leave_one_after_the_other():
    """Rank 0 first, through which the others would hear of each other."""
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "exit:0"], ["init", "reduce", "FILEone", "state", "exit:0"],
                 ["init", "reduce", "FILEtwo", "send:3", "FILEthree", "state", "recv:3", "exit:0"],
                 ["init", "reduce", "FILEtwo", "recv:2", "FILEthree", "state", "send:2", "state", "destroy"],
                 **transport) as job:
            job.ends(0)
            job.let("one")
            job.ends(1)
            job.let("two")
            job.ranks[2].wait_for("send:3 0")
            job.ranks[3].wait_for("recv:2 0")
            time.sleep(2.5)   # longer than the grace of a connection that ends before its peer's farewell comes
            job.let("three")
            for rank in (2, 3):
                job.ends(rank)
            for rank in (1, 2, 3):
                job.is_quiet(rank)


def who_waits_for_it_is_told_at_once():
    for name, transport in TRANSPORTS.items():
        for protocol in ("LL", "LL128", "Simple"):
            waited = []
            for _ in range(3):
                with Job(["init", "reduce", "FILEgo", "exit:0"], ["init", "reduce", "reduce"],
                         ["init", "reduce", "reduce"], NCCL_PROTO=protocol, **transport) as job:
                    for rank in (1, 2):
                        job.ranks[rank].wait_for("reduce 0")
                    time.sleep(0.3)
                    job.let("go")
                    job.ends(0)
                    since = time.monotonic()
                    waited.append(max(job.fails_at_once(rank, "reduce", 0, since) for rank in (1, 2)))
            soon(f"{name} {protocol}", *waited)


def who_needs_it_later_is_told_at_once():
    for name, transport in TRANSPORTS.items():
        waited = []
        for _ in range(3):
            with Job(["init", "reduce", "FILEgo", "state", "reduce"], ["init", "reduce", "exit:0"], **transport) as job:
                job.ends(1)
                time.sleep(0.5)
                job.let("go")
                waited.append(job.fails_at_once(0, "reduce", 1, time.monotonic()))
                check("state 0" in job.ranks[0].output(), job.ranks[0].output())
        soon(name, *waited)


def a_message_that_nobody_sends_any_more_is_told():
    """Connected before or not, and whatever the rank that has gone has sent before."""
    for name, transport in TRANSPORTS.items():
        waited = []
        for before in ([], ["recv:1"]):
            theirs = ["send:0"] if before else []
            with Job(["init", "reduce", *before, "FILEgo", "state", "recv:1"], ["init", "reduce", *theirs, "exit:0"],
                     **transport) as job:
                job.ends(1)
                job.let("go")
                waited.append(job.fails_at_once(0, "recv:1", 1, time.monotonic()))
        soon(name, *waited)


def memory_that_waits_to_be_freed_ends_in_peace():
    """A graph's kernels run when another communicator is destroyed, and still when the process ends."""
    with Job(["init", "reduce", "graph", "destroy", "comm:1", "init", "reduce", "play", "destroy", "static:FILEend",
              "exit:0"],
             ["init", "reduce", "graph", "destroy", "comm:1", "init", "reduce", "destroy", "FILEgo", "exit:0"]) as job:
        job.ranks[0].wait_for("static:")
        time.sleep(0.5)   # the end of main() has come
        job.let("end")
        job.let("go")
        for rank in (0, 1):
            job.ends(rank)
            job.is_quiet(rank)


def the_others_go_on_with_each_other():
    """Messages need nobody but their two ranks."""
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "FILEgo", "send:1", "state", "destroy"],
                 ["init", "reduce", "recv:0", "state", "destroy"], ["init", "reduce", "exit:0"], **transport) as job:
            job.ends(2)
            time.sleep(1.5)
            job.let("go")
            for rank in (0, 1):
                job.ends(rank)
                job.is_quiet(rank)


def what_it_has_sent_arrives():
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "recv:1", "FILEgo", "recv:1", "state", "destroy"],
                 ["init", "reduce", "send:0", "send:0", "exit:0"], NCCL_P2P_LL_THRESHOLD=1 << 20, **transport) as job:
            job.ranks[0].wait_for("recv:1 0")
            job.ends(1)
            job.let("go")
            job.ends(0)
            job.is_quiet(0)


def an_exit_within_an_operation_is_told():
    """Its kernels cannot end: peers that run none do not care, those that wait do."""
    with Job(["init", "reduce", "launch", "exit:0"], ["init", "reduce", "FILEgo", "state", "destroy"]) as job:
        since = time.monotonic()
        job.ends(0)
        check(time.monotonic() - since < 10, "the end of a process is held up")
        time.sleep(0.5)
        job.let("go")
        job.ends(1)
        job.is_quiet(1)
    with Job(["init", "reduce", "thread:0", "reduce"], ["init", "reduce", "FILEgo", "destroy"],
             ["init", "reduce", "reduce"]) as job:
        job.ends(0)
        job.fails_at_once(2, "reduce", 0, time.monotonic())


def graphs_that_wait_for_it_fail():
    with Job(["init", "reduce", "graph", "FILEgo", "state", "replay"], ["init", "reduce", "graph", "exit:0"]) as job:
        job.ends(1)
        job.let("go")
        check(job.fails_at_once(0, "replay", 1, time.monotonic()) < 15, "it takes too long")


def slow_work_before_an_operation_is_no_wait_for_who_has_gone():
    """Where graphs hide what ranks have done, stillness decides; it has to last longer than an application's kernel."""
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "graph", "FILEgo", "busy:1500", "recv:1", "state", "destroy"],
                 ["init", "reduce", "graph", "send:0", "exit:0"], **transport) as job:
            job.ranks[0].wait_for("graph 0")
            job.let("go")
            job.ends(1)
            job.ends(0)
            job.is_quiet(0)


def whatever_the_order_of_exit_handlers():
    """The application's handlers and static objects may use and destroy their communicator, before ours and after."""
    for steps in (["handler:destroy", "init", "reduce", "exit:0"], ["init", "reduce", "handler:destroy", "exit:0"],
                  ["init", "reduce", "static:destroy", "return:0"]):
        with Job(steps, ["init", "reduce", "FILEgo", "state", "destroy"]) as job:
            job.ends(0)
            check("destroy 0" in job.ranks[0].output(), job.ranks[0].output())
            job.let("go")
            job.ends(1)
            job.is_quiet(1)
            job.is_quiet(0)
    for steps in (["handler:reduce", "init", "reduce", "exit:0"], ["init", "reduce", "handler:reduce", "exit:0"],
                  ["init", "reduce", "static:reduce", "return:0"]):
        with Job(steps, ["init", "reduce", "reduce", "state", "destroy"]) as job:
            for rank in (0, 1):
                job.ends(rank)
                job.is_quiet(rank)


def a_child_by_fork_is_not_its_parent():
    with Job(["init", "reduce", "fork", "reduce", "destroy"], ["init", "reduce", "reduce", "destroy"]) as job:
        for rank in (0, 1):
            job.ends(rank)
            job.is_quiet(rank)


def what_ends_without_exit_is_a_death_for_who_needs_it():
    for transport in TRANSPORTS.values():
        for needs in (["reduce"], ["send:0"], ["recv:0"]):
            with Job(["init", "reduce", "FILEend", "_exit:3"], ["init", "reduce", "FILEgo", "state", *needs],
                     **transport) as job:
                job.all_reduced()
                job.let("end")
                job.ends(0, 3)
                time.sleep(0.5)
                job.let("go")
                since = time.monotonic()
                job.ends(1, 42)
                check(time.monotonic() - since < AT_ONCE_SECONDS, "it takes too long")
                words = rf"state 0 .*\n(.*\n)*{needs[0]} 6 .*rank 0 \(host \S+, pid {job.pid(0)}\) died or lost its network"
                check(re.search(words, job.ranks[1].output()), job.ranks[1].output())


def who_waits_for_one_that_dies_is_told_soon():
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "FILEgo", "_exit:3"], ["init", "reduce", "reduce"], ["init", "reduce", "FILEend",
                 "state", "destroy"], **transport) as job:
            job.all_reduced()
            time.sleep(0.3)
            job.let("go")
            job.ends(0, 3)
            since = time.monotonic()
            job.ends(1, 42)
            check(time.monotonic() - since < AT_ONCE_SECONDS, "it takes too long")
            check("died or lost its network" in job.ranks[1].output(), job.ranks[1].output())
            job.let("end")
            job.ends(2)
            job.is_quiet(2)


def a_death_that_concerns_nobody_disturbs_nobody():
    for transport in TRANSPORTS.values():
        with Job(["init", "reduce", "FILEend", "_exit:3"],
                 ["init", "reduce", "FILEgo", "state", "finalize", "destroy"], ["init", "reduce", "FILEgo", "state", "exit:0"],
                 ["init", "reduce", "FILEgo", "state", "destroy"], **transport) as job:
            job.all_reduced()
            job.let("end")
            job.ends(0, 3)
            time.sleep(2.5)
            job.let("go")
            for rank in (1, 2, 3):
                job.ends(rank)
                job.is_quiet(rank)
            check(job.took(1, "destroy") < 1500, job.ranks[1].output())


def who_is_stopped_while_nobody_waits_goes_on_with_all():
    """For longer than a silence that counts as death: at the top of the tree, and below."""
    for stopped in (0, 3):
        with Job(*[["init", "reduce", "FILEgo", "state", "reduce", "state", "destroy"]] * 4,
                 TUTTI_PEER_TIMEOUT_MS=800) as job:
            job.all_reduced()
            job.ranks[stopped].kill(signal.SIGSTOP)
            time.sleep(4)
            job.ranks[stopped].kill(signal.SIGCONT)
            time.sleep(1)
            job.let("go")
            for rank in range(4):
                job.ends(rank)
                job.is_quiet(rank)


def who_waits_for_one_that_is_stopped_is_told():
    """Whether it was silent before or not; neither of the two is its neighbour in the tree."""
    for before in (0, 3):
        with Job(["init", "reduce", "FILEend", "state", "destroy"], ["init", "reduce", "FILEgo", "reduce"],
                 ["init", "reduce", "recv:3", "FILEgo", "recv:3"], ["init", "reduce", "send:2", "FILEend"],
                 TUTTI_PEER_TIMEOUT_MS=800) as job:
            job.all_reduced()
            job.ranks[2].wait_for("recv:3 0")
            job.ranks[3].wait_for("send:2 0")
            job.ranks[3].kill(signal.SIGSTOP)
            time.sleep(before)
            job.let("go")
            since = time.monotonic()
            for rank in (1, 2):
                job.ends(rank, 42)
                words = rf" 6 .*rank 3 \(host \S+, pid {job.pid(3)}\) has given rank 0 no sign of life"
                check(re.search(words, job.ranks[rank].output()), job.ranks[rank].output())
            check(time.monotonic() - since < 10, "it takes too long")
            job.let("end")
            job.ends(0)


def a_peer_that_is_stopped_does_not_hold_up_the_end():
    with Job(["init", "reduce", "FILEgo", "exit:0"], ["init", "reduce", "FILEgo"]) as job:
        for process in job.ranks:
            process.wait_for("reduce 0")
        job.ranks[1].kill(signal.SIGSTOP)
        since = time.monotonic()
        job.let("go")
        job.ends(0)
        check(time.monotonic() - since < 8, f"it took {time.monotonic() - since} s")


if __name__ == "__main__":
    main(who_exits_idle_leaves_in_peace, all_but_one_leave_and_the_last_destroys, four_leave_one_after_the_other,
         who_waits_for_it_is_told_at_once,
         who_needs_it_later_is_told_at_once,
         a_message_that_nobody_sends_any_more_is_told, memory_that_waits_to_be_freed_ends_in_peace,
         the_others_go_on_with_each_other, what_it_has_sent_arrives, an_exit_within_an_operation_is_told,
         graphs_that_wait_for_it_fail, slow_work_before_an_operation_is_no_wait_for_who_has_gone,
         whatever_the_order_of_exit_handlers, a_child_by_fork_is_not_its_parent,
         what_ends_without_exit_is_a_death_for_who_needs_it, who_waits_for_one_that_dies_is_told_soon,
         a_death_that_concerns_nobody_disturbs_nobody, who_is_stopped_while_nobody_waits_goes_on_with_all,
         who_waits_for_one_that_is_stopped_is_told, a_peer_that_is_stopped_does_not_hold_up_the_end)
