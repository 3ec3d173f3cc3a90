#!/usr/bin/env python3
"""Which interfaces are used: the right one beside a wrong one, both of two, those with IPv6 alone, a short MTU."""
import re

from jobs import Survivors, conform
from namespaces import Lab, check, run_in_sandbox

# Bytes that bootstrap alone does not send.
MUCH = 2_000_000


def add_dead_ends(lab, name):
    for number, host in enumerate(lab.hosts, 1):
        host.add_dead_end(name, f"10.9.9.{number}/24")


def wrong_interface_is_passed_over_when_another_is_named():
    for choice in ("eth0", "=eth0", "^dead,lo", "eth"):
        with Lab(2) as lab:
            add_dead_ends(lab, "dead0")
            conform(lab, only="sendrecv", NCCL_SOCKET_IFNAME=choice)


def wrong_interface_is_passed_over_by_the_subnet_of_the_root():
    with Lab(2) as lab:
        add_dead_ends(lab, "dead0")
        conform(lab, only="sendrecv", NCCL_COMM_ID=lab.root())


def interfaces_of_containers_come_last():
    for name in ("docker0", "virbr0"):
        with Lab(2) as lab:
            add_dead_ends(lab, name)
            conform(lab, only="sendrecv")


def wrong_interface_that_was_named_is_an_error_in_time():
    with Lab(2) as lab:
        add_dead_ends(lab, "dead0")
        with Survivors(lab, NCCL_SOCKET_IFNAME="dead0", TUTTI_BOOTSTRAP_TIMEOUT_SEC=5) as ranks:
            for rank, process in ranks.ranks.items():
                code, said = process.wait(30), process.output()
                check(code == 42 and re.search(r"^error \d .*", said, re.MULTILINE), f"rank {rank} ended with {code}:\n{said}")


def loopback_that_a_host_took_is_named():
    with Lab(2) as lab:
        lo = ["env", "NCCL_SOCKET_IFNAME=lo"]
        with Survivors(lab, per_host=2, prefix={2: lo, 3: lo}) as ranks:
            for rank in ranks.of(0):
                process = ranks.ranks[rank]
                code, said = process.wait(60), process.output()
                check(code == 42 and re.search(r"^error 6 .*rank [23] \(host b.*It listens on the loopback interface, where no "
                                               r"other host reaches it; rank [01] \(host a\) listens at 10\.0\.0\.1", said,
                                               re.MULTILINE), f"rank {rank} ended with {code}:\n{said}")


def two_interfaces_share_the_work():
    with Lab(2, nics=2) as lab:
        # The software GPU's own shape takes one channel for everything, where GPUs take several.
        shape = {"NCCL_MIN_NCHANNELS": 2, "TUTTI_LAUNCH_SHAPE": "GPU", "NCCL_SOCKET_IFNAME": "eth"}
        conform(lab, **shape)
        with Survivors(lab, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="NET,INIT", **shape) as ranks:
            ranks.wait_for("reduced 4")
            for name in ("eth0", "eth1"):
                said = ranks.ranks[0].output()
                check(re.search(rf"NET/Socket : Using .*{name}:", said), f"{name} is not used:\n{said[:4000]}")
            sent = [host.bytes_sent(nic) for host in lab.hosts for nic in (0, 1)]
            check(min(sent) > MUCH, f"bytes sent by a's eth0 and eth1 and b's: {sent}\n{said}")


def hosts_with_different_interfaces_work_together():
    with Lab(2, nics=2) as lab:
        one = ["env", "NCCL_SOCKET_IFNAME=eth1"]
        with Survivors(lab, per_host=2, prefix={2: one, 3: one}, NCCL_SOCKET_IFNAME="eth", NCCL_MIN_NCHANNELS=2,
                       TUTTI_LAUNCH_SHAPE="GPU", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="NET,INIT") as ranks:
            ranks.wait_for("reduced 4")
            for rank, names in ((0, r"\[0\]eth0:\S+ \[1\]eth1:"), (2, r"\[0\]eth1:\S+$")):
                said = ranks.ranks[rank].output()
                check(re.search(rf"NET/Socket : Using {names}", said, re.MULTILINE), f"rank {rank}:\n{said[:4000]}")


def ipv6_alone_is_enough():
    with Lab(2, family=6) as lab:
        conform(lab)
        conform(lab, only="sendrecv", NCCL_COMM_ID=lab.root(), NCCL_SOCKET_FAMILY="AF_INET6")


def short_mtu_on_one_side_does_no_harm():
    with Lab(2) as lab:
        lab.hosts[1].set_mtu(1300)
        conform(lab)


if __name__ == "__main__":
    run_in_sandbox(wrong_interface_is_passed_over_when_another_is_named,
                   wrong_interface_is_passed_over_by_the_subnet_of_the_root, interfaces_of_containers_come_last,
                   wrong_interface_that_was_named_is_an_error_in_time,
                   loopback_that_a_host_took_is_named, two_interfaces_share_the_work,
                   hosts_with_different_interfaces_work_together, ipv6_alone_is_enough,
                   short_mtu_on_one_side_does_no_harm)
