#!/usr/bin/env python3
"""CUDA graphs in one process per rank: replays, several graphs, the communicator destroyed first."""
from support import BUILD, Process, check, free_port, main


def replays_in(size, **environment):
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(size, [BUILD / "tests/e2e/graphs"], RANK=r, SIZE=size, NCCL_COMM_ID=address, **environment)
             for r in range(size)]
    try:
        for r, process in enumerate(ranks):
            check(process.wait(120) == 0 and f"[Rank {r}] Success" in process.output(), process.output())
    finally:
        for process in ranks:
            process.close()


def two_processes_replay_graphs():
    replays_in(2)


def three_processes_replay_graphs():
    replays_in(3)


def the_shape_of_gpus_replays_graphs():
    replays_in(2, TUTTI_LAUNCH_SHAPE="GPU")


def without_mixing_streams_keep_the_order():
    replays_in(2, NCCL_GRAPH_MIXING_SUPPORT=0)


if __name__ == "__main__":
    main(two_processes_replay_graphs, three_processes_replay_graphs, the_shape_of_gpus_replays_graphs,
         without_mixing_streams_keep_the_order)
