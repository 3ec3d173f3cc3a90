#!/usr/bin/env python3
"""Cables are cut, hosts freeze, processes die, descriptors run out: every rank is told who is gone, and in time."""
import re
import signal
import time

from jobs import Survivors
from namespaces import Lab, Weather, check, run_in_sandbox

PATIENCE_MS = 2000
BOUND_SECONDS = 10


def survivors(lab, **options):
    return Survivors(lab, **{"TUTTI_PEER_TIMEOUT_MS": PATIENCE_MS, **options})


def cut_cable_is_noticed_on_both_sides():
    with Lab(2) as lab, survivors(lab, per_host=2) as ranks:
        ranks.interrupted_reduction()
        lab.hosts[1].cut()
        # Each half of the job is told of a rank of the other one.
        ranks.expect_errors({0: ranks.of(1), 1: ranks.of(1), 2: ranks.of(0), 3: ranks.of(0)}, BOUND_SECONDS)


def cut_cable_of_one_host_of_three_is_noticed():
    with Lab(3) as lab, survivors(lab) as ranks:
        ranks.interrupted_reduction()
        lab.hosts[2].cut()
        ranks.expect_errors({0: [2], 1: [2], 2: [0, 1]}, BOUND_SECONDS)


def cut_cable_of_one_interface_of_two_is_noticed():
    """The other one carries the bootstrap, which misses nobody."""
    with Lab(2, nics=2) as lab, survivors(lab, NCCL_SOCKET_IFNAME="eth", NCCL_MIN_NCHANNELS=2,
                                          TUTTI_LAUNCH_SHAPE="GPU") as ranks:
        ranks.interrupted_reduction()
        lab.hosts[1].cut(1)
        ranks.expect_errors({0: [1], 1: [0]}, BOUND_SECONDS)


def cable_that_is_healed_in_time_does_no_harm():
    with Lab(2) as lab, Survivors(lab, TUTTI_PEER_TIMEOUT_MS=20000) as ranks:
        ranks.interrupted_reduction()
        lab.hosts[1].cut()
        time.sleep(1)
        said = [process.output().count("reduced") for process in ranks.ranks.values()]
        lab.hosts[1].heal()
        for process, lines in zip(ranks.ranks.values(), said):
            process.wait_for(f"reduced {4 * (lines + 2)}", BOUND_SECONDS)


def way_that_swallows_long_packets_alone_is_noticed():
    """Short ones pass: keep-alive and the bootstrap miss nothing. The senders do."""
    with Lab(2, weather=Weather(longest=9000)) as lab, survivors(lab) as ranks:
        ranks.interrupted_reduction()
        lab.relays[0].weather = Weather(longest=400)
        took = ranks.expect_errors({0: [1], 1: [0]}, BOUND_SECONDS)
        said = "".join(process.output() for process in ranks.ranks.values())
        check("smaller MTU than eth0" in said, f"the MTU is not named:\n{said}")
        print(f"  noticed after {took:.1f} s")


def frozen_host_is_noticed():
    with Lab(2) as lab, survivors(lab, per_host=2) as ranks:
        ranks.interrupted_reduction()
        frozen = {rank: ranks.ranks[rank] for rank in ranks.of(1)}
        ranks.signal(frozen, signal.SIGSTOP)
        try:
            for rank in frozen:
                del ranks.ranks[rank]
            ranks.expect_errors(list(frozen), BOUND_SECONDS)
        finally:
            ranks.ranks.update(frozen)


def started(lab, missing, **options):
    """Ranks that wait in init, because the last one has not been started."""
    ranks = survivors(lab, missing=[missing], **options)
    ranks.wait_for("started")
    time.sleep(1)
    return ranks


def cut_cable_is_noticed_during_init():
    with Lab(3) as lab, started(lab, 2, TUTTI_BOOTSTRAP_TIMEOUT_SEC=60) as ranks:
        lab.hosts[1].cut()
        ranks.expect_errors({0: [1], 1: [0]}, BOUND_SECONDS)


def frozen_host_is_noticed_during_init():
    with Lab(3) as lab, started(lab, 2, TUTTI_BOOTSTRAP_TIMEOUT_SEC=60) as ranks:
        frozen = ranks.ranks.pop(1)
        frozen.kill(signal.SIGSTOP)
        try:
            ranks.start(2)
            ranks.expect_errors([1], 2 * BOUND_SECONDS)
        finally:
            ranks.ranks[1] = frozen


def killed_rank_is_named_on_all_hosts():
    with Lab(2) as lab, survivors(lab, per_host=2) as ranks:
        ranks.interrupted_reduction()
        ranks.drop([3])
        ranks.expect_errors([3], BOUND_SECONDS)


def killed_host_is_named():
    with Lab(3) as lab, survivors(lab) as ranks:
        ranks.interrupted_reduction()
        ranks.drop([0])
        ranks.expect_errors([0], BOUND_SECONDS)


def too_few_descriptors_are_an_error():
    """Of some number of descriptors the job runs; of every smaller one it ends with an error, and never hangs."""
    outcomes = {}
    for limit in (8, *range(10, 16), 20):
        with Lab(2) as lab:
            prefix = {1: ["prlimit", f"--nofile={limit}:{limit}"]}
            with Survivors(lab, prefix=prefix, TUTTI_PEER_TIMEOUT_MS=PATIENCE_MS, TUTTI_BOOTSTRAP_TIMEOUT_SEC=5) as ranks:
                outcomes[limit] = how_it_ended(ranks, limit)
    print(f"  by the limit of descriptors: {outcomes}")
    check("error" in outcomes.values(), f"no limit was reached: {outcomes}")


def how_it_ended(ranks, limit):
    poor, other = ranks.ranks[1], ranks.ranks[0]
    for _ in range(BOUND_SECONDS * 50):
        if poor.child.poll() is not None or "reduced 4" in poor.output():
            break
        time.sleep(0.02)
    said = poor.output()
    if poor.child.poll() is None:
        check("reduced 4" in said, f"{limit} descriptors: neither an error nor a result:\n{said}\n{other.output()}")
        return "works"
    if poor.child.returncode != 42:
        return f"ended with {poor.child.returncode}"  # the program itself could not start
    check(re.search(r"(?i)too many open files|descriptor", said), f"{limit} descriptors: the reason is not named:\n{said}")
    check(other.wait(BOUND_SECONDS) == 42, f"{limit} descriptors: the other rank ended well:\n{other.output()}")
    return "error"


if __name__ == "__main__":
    run_in_sandbox(cut_cable_is_noticed_on_both_sides, cut_cable_of_one_host_of_three_is_noticed,
                   cut_cable_of_one_interface_of_two_is_noticed, cable_that_is_healed_in_time_does_no_harm,
                   way_that_swallows_long_packets_alone_is_noticed, frozen_host_is_noticed,
                   cut_cable_is_noticed_during_init, frozen_host_is_noticed_during_init, killed_rank_is_named_on_all_hosts,
                   killed_host_is_named, too_few_descriptors_are_an_error)
