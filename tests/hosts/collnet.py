#!/usr/bin/env python3
"""Collectives that run in the network, on hosts that a network joins: examples/plugins/switch_collnet is the network."""
import contextlib
import re
import subprocess

from jobs import CONFORMANCE, conform
from namespaces import BUILD, Lab, Process, check, run_in_sandbox

PLUGIN = BUILD / "examples/libnccl-net-switch.so"
SWITCH = BUILD / "examples/switch_collnet_switch"


TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3",
         "f8e5m2")


def conform_in_network(lab, hosts, per_host, heads, algorithm, types):
    """All operations of these types, as far as the algorithm has them where so many ranks of a host are heads."""
    only = "all_reduce,all_gather,reduce_scatter" if algorithm == "CollNetDirect" and heads == per_host else "all_reduce"
    before = [host.bytes_sent() for host in lab.hosts[:hosts]]
    conform(lab, per_host=per_host, hosts=hosts, only=only, types=",".join(types), NCCL_NET_PLUGIN=PLUGIN,
            NCCL_COLLNET_ENABLE=1, NCCL_ALGO=algorithm, SWITCH_COLLNET_DEVICES=heads, SWITCH_COLLNET_HOST="eth0",
            SWITCH_COLLNET_CONNECT_MS=60000)
    sent = [host.bytes_sent() - earlier for host, earlier in zip(lab.hosts, before)]
    check(min(sent) > 20_000, f"too little for having gone over the network: {sent} bytes")


def every_shape(algorithm, more=()):
    """Two to four hosts of one, two and four ranks, all of which are heads, and `more` shapes with fewer: hosts, ranks
    and heads of each. The types take turns: all numbers of hosts have each, and so have all numbers of ranks."""
    shapes = [(hosts, per_host, per_host) for hosts in (2, 3, 4) for per_host in (1, 2, 4)]
    with Lab(4) as lab:
        for hosts, per_host, heads in [*shapes, *more]:
            turn = (hosts - 2 + (1, 2, 4).index(per_host)) % 3
            conform_in_network(lab, hosts, per_host, heads, algorithm, TYPES[4 * turn:4 * turn + 4])


def every_shape_direct():
    every_shape("CollNetDirect", more=[(2, 2, 1), (3, 4, 2)])


def every_shape_in_chains():
    every_shape("CollNetChain", more=[(2, 4, 2), (4, 2, 1)])


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
                                SWITCH_COLLNET_HOST="eth0", SWITCH_COLLNET_ADDRESS=address,
                                SWITCH_COLLNET_CONNECT_MS=60000)
            ratios = [ours / rings for ours, rings in zip(sent, ring)]
            print(f"{algorithm}: {sum(sent) / 4:.3f} vectors, {sum(ring) / 4:.3f} of a ring, ratio {max(ratios):.3f}")
            check(max(ratios) <= 0.70 and min(sent) >= 1, f"{algorithm}: {sent} vectors, a ring {ring}")


if __name__ == "__main__":
    run_in_sandbox(every_shape_direct, every_shape_in_chains,
                   four_hosts_send_at_most_seven_tenths_of_what_a_ring_sends)
