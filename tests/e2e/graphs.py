#!/usr/bin/env python3
"""CUDA graphs in one process per rank: replays, several graphs, the communicator destroyed first."""
from support import main, ranks_succeed


def replays_in(size, **environment):
    ranks_succeed("graphs", size, **environment)


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
