#!/usr/bin/env python3
"""Ranks on two to four hosts compute what they should, with one rank or several on each."""
from jobs import conform
from namespaces import Lab, check, run_in_sandbox


def two_hosts_of_one_rank():
    with Lab(2) as lab:
        conform(lab)
        sent = [host.bytes_sent() for host in lab.hosts]
        check(min(sent) > 50_000, f"too little for having gone over the network: {sent} bytes")


def two_hosts_of_two_ranks():
    with Lab(2) as lab:
        conform(lab, per_host=2)


def three_hosts_of_one_rank():
    with Lab(3) as lab:
        conform(lab)


def four_hosts_of_two_ranks():
    with Lab(4) as lab:
        conform(lab, per_host=2)


def two_hosts_of_four_ranks():
    with Lab(2) as lab:
        conform(lab, per_host=4)


def many_channels_and_few_towards_other_hosts():
    with Lab(2) as lab:
        conform(lab, per_host=2, only="sendrecv,alltoall", TUTTI_LAUNCH_SHAPE="GPU", NCCL_MIN_NCHANNELS=8, NCCL_NTHREADS=64,
                NCCL_BUFFSIZE=65536, NCCL_NCHANNELS_PER_NET_PEER=4)


def large_vectors():
    with Lab(2) as lab:
        conform(lab, quick=False)


def address_of_the_root_may_be_given():
    with Lab(2) as lab:
        conform(lab, NCCL_COMM_ID=lab.root())


if __name__ == "__main__":
    run_in_sandbox(two_hosts_of_one_rank, two_hosts_of_two_ranks, three_hosts_of_one_rank, four_hosts_of_two_ranks,
                   two_hosts_of_four_ranks, many_channels_and_few_towards_other_hosts, large_vectors, address_of_the_root_may_be_given)
