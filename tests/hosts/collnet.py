#!/usr/bin/env python3
"""Collectives that run in the network, on hosts that a network joins: examples/plugins/switch_collnet is the network."""
import contextlib
import re
import subprocess

from jobs import CONFORMANCE, conform
from namespaces import BUILD, Lab, Process, check, run_in_sandbox

PLUGIN = BUILD / "examples/libnccl-net-switch.so"
SWITCH = BUILD / "examples/switch_collnet_switch"


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


@contextlib.contextmanager
def switch_on(host):
    """The network's switch as a program there; its address."""
    program = subprocess.Popen(host.enter(SWITCH, "--host", host.address()), stdout=subprocess.PIPE, text=True)
    try:
        said = program.stdout.readline()
        check("listening at " in said, f"the switch said {said!r}")
        yield said.split()[-1]
    finally:
        program.kill()
        program.communicate()


def vectors_sent(hosts, **env):
    """What an AllReduce of 2 MB takes: the bytes of all that each host's interface sends for the job, counted by the
    kernel, in vectors."""
    inside = ",".join(str(host.pid) for host in hosts)
    before = [host.bytes_sent() for host in hosts]
    process = Process(1, [CONFORMANCE, "--ranks", len(hosts), "--only", "all_reduce", "--types", "float", "--counts",
                          2 << 18, "--inside", inside], NCCL_DEBUG="WARN", **env)
    try:
        code, said = process.wait(120), process.output()
    finally:
        process.close()
    cases = re.search(rf"^conformance: ([1-9]\d*) cases on {len(hosts)} ranks, 0 wrong$", said, re.M)
    check(code == 0 and cases, f"ended with {code}:\n{said[-4000:]}")
    return [(host.bytes_sent() - sent) / int(cases[1]) / (2 << 20) for host, sent in zip(hosts, before)]


def four_hosts_send_at_most_seven_tenths_of_what_a_ring_sends():
    """Two thirds, by theory. The switch has a fifth host: what it sends is not the hosts'."""
    with Lab(5) as lab, switch_on(lab.hosts[4]) as address:
        hosts = lab.hosts[:4]
        ring = vectors_sent(hosts, NCCL_ALGO="Ring", NCCL_PROTO="Simple")
        check(min(ring) > 1.45, f"a ring of four sends one and a half vectors, not {ring}")
        for algorithm in ("CollNetDirect", "CollNetChain"):
            sent = vectors_sent(hosts, NCCL_NET_PLUGIN=PLUGIN, NCCL_COLLNET_ENABLE=1, NCCL_ALGO=algorithm,
                                SWITCH_COLLNET_HOST="eth0", SWITCH_COLLNET_ADDRESS=address)
            ratios = [ours / rings for ours, rings in zip(sent, ring)]
            print(f"{algorithm}: {sum(sent) / 4:.3f} vectors, {sum(ring) / 4:.3f} of a ring, ratio {max(ratios):.3f}")
            check(max(ratios) <= 0.70 and min(sent) >= 1, f"{algorithm}: {sent} vectors, a ring {ring}")


if __name__ == "__main__":
    run_in_sandbox(hosts_of_one_rank, hosts_of_two_ranks_with_one_head_or_two, hosts_of_four_ranks,
                   four_hosts_send_at_most_seven_tenths_of_what_a_ring_sends)
