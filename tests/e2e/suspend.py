#!/usr/bin/env python3
"""Communicators that give their memory back for a while, one process per rank.

  suspend.py            the tests
  suspend.py figures    what is in docs/measurements/lifecycle.md
"""
import re
import statistics
import sys

from pxn import Machine
from support import BUILD, Process, check, free_port, main, ranks_succeed

TRANSPORTS = {"P2P": {}, "SHM": {"NCCL_P2P_DISABLE": 1}, "TCP": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}}


def over(transport, size=3, **more):
    ranks_succeed("suspend", size, **TRANSPORTS[transport], **more)


def direct_access_between_processes():
    over("P2P")


def memory_that_passes_as_descriptors():
    over("P2P", NCCL_CUMEM_ENABLE=1)


def shared_host_memory():
    over("SHM")


def a_network():
    over("TCP")


def slots_of_their_own_over_a_network():
    over("TCP", NCCL_NET_SHARED_BUFFERS=0)


def the_shape_of_gpus():
    over("P2P", size=2, TUTTI_LAUNCH_SHAPE="GPU")


def start(size, *arguments, devices=None, own=lambda rank: {}, **env):
    address = f"127.0.0.1:{free_port()}"
    return [Process(devices or size, [BUILD / "tests/e2e/suspend", *arguments], RANK=r, SIZE=size, NCCL_COMM_ID=address, **env,
                    **own(r)) for r in range(size)]


def finish(ranks, seconds=120):
    try:
        return [(process.wait(seconds), process.output()) for process in ranks]
    finally:
        for process in ranks:
            process.close()


def ranks_that_send_for_others():
    machine = Machine(2)
    env = machine.env("", NCCL_NET="Socket", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET")
    ends = finish(start(4, devices=2, own=lambda rank: {"NCCL_HOSTID": f"host{rank // 2}"}, **env))
    for r, (code, said) in enumerate(ends):
        check(code == 0 and f"[Rank {r}] Success" in said, said[-3000:])
    check("use ring PXN 1" in ends[0][1] or "use ring PXN 1" in ends[1][1], "nobody sends for another rank")


def a_rank_that_dies_meanwhile_is_named():
    ends = finish(start(3, "die", NCCL_DEBUG="WARN"))
    for r in (0, 2):
        code, said = ends[r]
        check(code == 0 and f"[Rank {r}] Success" in said, said[-3000:])
        check(re.search(r"resume failed: .*rank 1", said), said[-3000:])


def figures():
    for size in (2, 4, 8):
        for name, env in TRANSPORTS.items():
            for shape in ("SOFTGPU", "GPU"):
                texts = [said for _, said in finish(start(size, TUTTI_LAUNCH_SHAPE=shape, **env), 600)]
                lines = re.findall(r"(\d+) bytes, (\d+) while suspended; Suspend ([\d.]+) ms, Resume ([\d.]+) ms", "".join(texts))
                check(len(lines) == 5 * size, "".join(texts))
                total, left = (max(int(line[i]) for line in lines) for i in (0, 1))
                down, up = (statistics.median(float(line[i]) for line in lines) for i in (2, 3))
                print(f"| {size} | {name} | {shape} | {total / 2**20:.2f} | {left / 2**20:.2f} | {down:.1f} | {up:.1f} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["figures"]:
        figures()
    else:
        main(direct_access_between_processes, memory_that_passes_as_descriptors, shared_host_memory, a_network,
             slots_of_their_own_over_a_network, the_shape_of_gpus, ranks_that_send_for_others,
             a_rank_that_dies_meanwhile_is_named)
