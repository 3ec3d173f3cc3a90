#!/usr/bin/env python3
"""Collectives that run in the network, on hosts that a network joins: examples/plugins/switch_collnet is the network."""
from jobs import conform
from namespaces import BUILD, Lab, check, run_in_sandbox

PLUGIN = BUILD / "examples/libnccl-net-switch.so"


def conform_in_network(hosts, per_host=1, heads=1, algorithm="CollNetDirect"):
    only = "all_reduce,all_gather,reduce_scatter" if algorithm == "CollNetDirect" and heads == per_host else "all_reduce"
    with Lab(hosts) as lab:
        conform(lab, per_host=per_host, only=only, NCCL_NET_PLUGIN=PLUGIN, NCCL_COLLNET_ENABLE=1, NCCL_ALGO=algorithm,
                SWITCH_COLLNET_DEVICES=heads, SWITCH_COLLNET_HOST="eth0")
        sent = [host.bytes_sent() for host in lab.hosts]
        check(min(sent) > 50_000, f"too little for having gone over the network: {sent} bytes")


def hosts_of_one_rank():
    for hosts in (2, 3, 4):
        conform_in_network(hosts)
        conform_in_network(hosts, algorithm="CollNetChain")


def hosts_of_two_ranks_with_one_head_or_two():
    for heads in (1, 2):
        conform_in_network(2, 2, heads)
    conform_in_network(3, 2, 2)
    conform_in_network(2, 2, 2, "CollNetChain")


def hosts_of_four_ranks():
    conform_in_network(2, 4, 2)
    conform_in_network(4, 4, 1, "CollNetChain")


if __name__ == "__main__":
    run_in_sandbox(hosts_of_one_rank, hosts_of_two_ranks_with_one_head_or_two, hosts_of_four_ranks)
