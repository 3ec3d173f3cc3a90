#!/usr/bin/env python3
"""Messages between nodes and within one: on how many channels and in which chunks they travel, and what becomes of ranks
whose settings differ."""
import re
import time

from support import BUILD, Process, check, free_port, main

# Eight channels, and messages long enough for all of them.
SHAPE = {"TUTTI_LAUNCH_SHAPE": "GPU", "NCCL_MIN_NCHANNELS": 8, "NCCL_BUFFSIZE": 262144, "NCCL_NTHREADS": 64,
         "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,P2P,ENV"}


def ranks(*environments, nodes=True):
    """One process per rank, each on a node of its own unless told otherwise. Exit codes and outputs."""
    address = f"127.0.0.1:{free_port()}"
    size = len(environments)
    processes = []
    try:
        for rank, own in enumerate(environments):
            node = {"NCCL_HOSTID": f"node{rank}"} if nodes else {}
            processes.append(Process(size, [BUILD / "tests/e2e/messages"], RANK=rank, SIZE=size, NCCL_COMM_ID=address,
                                     **SHAPE, **node, **own))
        return [(process.wait(120), process.output()) for process in processes]
    finally:
        for process in processes:
            process.close()


def succeed(*environments, **options):
    ended = ranks(*environments, **options)
    for rank, (code, said) in enumerate(ended):
        check(code == 0 and f"[Rank {rank}] Success" in said, said[-4000:])
    return [said for _, said in ended]


def channels_of_messages(said, peer):
    """Of connections of the kind Mesh to that rank."""
    return {int(c) for c in re.findall(rf"Channel (\d+)/1 : \d+\[-?\d+\] -> {peer}\[", said)}


def a_peer_on_another_node_takes_two_channels():
    for said in succeed({}, {}):
        check("8 coll channels, 0 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer" in said, said[:3000])
    check(len(channels_of_messages(said, 0)) == 2, said[-3000:])


def the_smallest_number_of_channels_counts():
    first, second = succeed({"NCCL_NCHANNELS_PER_NET_PEER": 4}, {"NCCL_NCHANNELS_PER_NET_PEER": 3})
    check(len(channels_of_messages(first, 1)) == 4, first[-3000:])
    first, second = succeed({"NCCL_NCHANNELS_PER_NET_PEER": 4}, {"NCCL_NCHANNELS_PER_NET_PEER": 1})
    check(len(channels_of_messages(first, 1)) == 1 and len(channels_of_messages(second, 0)) == 1, first[-3000:])
    check(re.search(r"NCCL_NCHANNELS_PER_NET_PEER .*: rank 1 \(.*\) has 1, this rank 4", first), first[:4000])
    first, second = succeed({"NCCL_MAX_P2P_NCHANNELS": 3}, {}, nodes=False)
    for said in (first, second):
        check(" 8 coll channels," in said and " 3 p2p channels, 3 p2p channels per peer" in said, said[:3000])


def slots_are_for_the_peers_that_there_will_be():
    # Slots of their own, for which there is little room.
    own = {"NCCL_NET_SHARED_BUFFERS": 0, "TUTTI_NET_MESSAGE_MB": 8, "NCCL_P2P_NET_CHUNKSIZE": 32768}

    def chunk(*peers):
        said = succeed(*[{**own, **({"NCCL_P2P_MAX_PEERS": most} if most else {})} for most in peers])
        chunks = {int(re.search(r"P2P Chunksize set to (\d+)", text).group(1)) for text in said}
        check(len(chunks) == 1, f"they differ: {chunks}")
        return chunks.pop(), said[0]

    all_peers, said = chunk(None, None, None, None)
    check("3 peers on 2 channels: an end of a connection" in said, said[:3000])
    one_peer, said = chunk(1, 1, 1, 1)
    check(one_peer > all_peers, f"{one_peer} bytes for one peer, {all_peers} for three")
    largest, said = chunk(1, None, 2, 1)
    check(re.search(r"NCCL_P2P_MAX_PEERS .*: rank 1 \(.*\) has 3, this rank 1: the largest number counts", said),
          said[:4000])
    check(largest == all_peers, f"{largest} bytes, {all_peers} for three")


def groups_of_any_size_exchange_the_same():
    succeed(*4 * [{"NCCL_P2P_SCHEDULE_GROUP_SIZE": 2}])
    succeed(*3 * [{"NCCL_P2P_SCHEDULE_GROUP_SIZE": 1}], nodes=False)
    for code, said in ranks({}, {"NCCL_P2P_SCHEDULE_GROUP_SIZE": 1}):
        check(code != 0 and "Mismatched NCCL_P2P_SCHEDULE_GROUP_SIZE" in said, said[-3000:])


def chunks_are_as_asked_for():
    for said in succeed(*2 * [{"NCCL_P2P_NET_CHUNKSIZE": 8192}]):
        check("P2P Chunksize set to 8192" in said, said[:3000])
    for said in succeed(*2 * [{"NCCL_P2P_NVL_CHUNKSIZE": 4096, "NCCL_P2P_PCI_CHUNKSIZE": 4096}], nodes=False):
        check("P2P Chunksize set to 4096" in said, said[:3000])


def different_chunks_are_refused_by_all():
    started = time.monotonic()
    for code, said in ranks({"NCCL_P2P_NET_CHUNKSIZE": 8192}, {"NCCL_P2P_NET_CHUNKSIZE": 16384}):
        check(code != 0 and re.search(r"ncclCommInitRank.*: 5\b", said), said[-3000:])
        check(re.search(r"Mismatched NCCL_P2P_NET_CHUNKSIZE : rank 0 \(.*\) has 8192, rank 1 \(.*\) has 16384", said), said[-3000:])
    check(time.monotonic() - started < 30, "it took too long")


if __name__ == "__main__":
    main(a_peer_on_another_node_takes_two_channels, the_smallest_number_of_channels_counts, chunks_are_as_asked_for,
         different_chunks_are_refused_by_all, slots_are_for_the_peers_that_there_will_be,
         groups_of_any_size_exchange_the_same)
