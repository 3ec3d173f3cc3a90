#!/usr/bin/env python3
"""Buffers that the application registers, and those of graphs, over a network that has to know what it sends from:
what the plugin was told, and from where it sent."""
import re
import sys

from support import BUILD, check, free_port, main, Process, run

PLUGIN = next(argument for argument in sys.argv[1:] if "testv12" in argument)
MULTI = next(argument for argument in sys.argv[1:] if "nccl-net-multi" in argument)
ALONE = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_NET_PLUGIN": PLUGIN, "NCCL_PROTO": "Simple",
         "NCCL_ALGO": "Ring", "NCCL_P2P_LL_THRESHOLD": 0}
# Memory of the host's, and of the GPU's; buffers of the library's that connections share, and their own.
KINDS = ({}, {"TEST_NET_FAULT": "gdr"}, {"NCCL_NET_SHARED_BUFFERS": 0}, {"TEST_NET_FAULT": "busy,reorder,delay=50"})


def threads(case, ranks, **env):
    said = run(ranks, BUILD / "tests/e2e/registered", case, ranks, **{**ALONE, **env})
    for rank in range(ranks):
        check(f"[Rank {rank}] Success" in said, said[-3000:])
    return said


def processes(case, ranks, **env):
    address = f"127.0.0.1:{free_port()}"
    started = [Process(ranks, [BUILD / "tests/e2e/registered", case, ranks], RANK=rank, NCCL_COMM_ID=address,
                       **{**ALONE, **env}) for rank in range(ranks)]
    try:
        for rank, process in enumerate(started):
            check(process.wait(120) == 0 and f"[Rank {rank}] Success" in process.output(), process.output()[-3000:])
    finally:
        for process in started:
            process.close()


def messages_are_sent_from_registered_buffers():
    for kind in KINDS:
        threads("messages", 2, **kind)
    threads("messages", 4)
    processes("messages", 3)


def collectives_are_sent_from_registered_buffers():
    for kind in KINDS:
        threads("collectives", 2, **kind)
    threads("collectives", 4)
    processes("collectives", 3)


def what_is_not_registered_goes_through_slots():
    threads("slots", 2)
    threads("slots", 2, NCCL_LOCAL_REGISTER=0)
    processes("slots", 2, NCCL_LOCAL_REGISTER=0)
    threads("slots", 2, NCCL_P2P_USE_CUDA_MEMCPY=1)


def memory_that_the_network_refuses_goes_through_slots():
    for kind in KINDS:
        said = threads("refused", 2, NCCL_DEBUG="WARN", **kind)
        warnings = [line for line in said.splitlines() if "NCCL WARN" in line and "is not a setting" not in line]
        check(0 < len(warnings) <= 4, f"not once for each buffer: {warnings}")
        check(all(re.search(r"the network does not take the \d+ bytes at 0x\w+ that are registered", line)
                  and "told to fail" in line for line in warnings), f"{warnings}")


def buffers_may_be_taken_back_while_their_message_is_under_way():
    for kind in KINDS:
        threads("early", 2, **kind)
    threads("early", 4)
    processes("early", 2)


def graphs_register_what_they_use_as_long_as_they_live():
    for kind in KINDS:
        threads("graphs", 2, **kind)
    threads("graphs", 2, NCCL_LOCAL_REGISTER=0)
    processes("graphs", 3)
    threads("graphs", 2, NCCL_GRAPH_REGISTER=0)


def graphs_go_on_when_their_buffers_are_taken_back():
    for kind in KINDS:
        threads("stale", 2, **kind)
        threads("stale", 2, NCCL_GRAPH_REGISTER=0, **kind)
    processes("stale", 2, NCCL_GRAPH_REGISTER=0)


def connections_that_share_one_of_the_network_have_one_registration():
    grouped = {"NCCL_NET_PLUGIN": MULTI, "TUTTI_LAUNCH_SHAPE": "GPU", "NCCL_BUFFSIZE": 8 * 32768}
    for env in ({}, {"MULTI_NET": "busy,gdr"}, {"SOFTGPU_SCHEDULE": "random:7", "SOFTGPU_WEAK_MEMORY": 7}):
        for case in ("messages", "collectives", "refused", "early", "stale"):
            threads(case, 2, **grouped, **env)
    threads("messages", 4, **grouped)


def graphs_outlive_their_communicator():
    for env in ({}, {"NCCL_GRAPH_REGISTER": 0}):
        threads("orphans", 2, **env)


def an_abort_leaves_buffers_alone():
    for kind in KINDS:
        threads("aborted", 2, **kind)
    processes("aborted", 2)


if __name__ == "__main__":
    sys.exit(main(messages_are_sent_from_registered_buffers, collectives_are_sent_from_registered_buffers,
                  what_is_not_registered_goes_through_slots, memory_that_the_network_refuses_goes_through_slots,
                  buffers_may_be_taken_back_while_their_message_is_under_way,
                  graphs_register_what_they_use_as_long_as_they_live, graphs_go_on_when_their_buffers_are_taken_back,
                  connections_that_share_one_of_the_network_have_one_registration,
                  graphs_outlive_their_communicator, an_abort_leaves_buffers_alone))
