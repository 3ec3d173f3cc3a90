"""Every operation of c10d with each of the backends on NCCL, on 2 and 4 ranks."""
import unittest

import ranks
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d


def value(rank, shape=(6,), dtype=torch.float32):
    """What a rank gives: different for each, and exact in every type."""
    return torch.full(shape, rank + 1, dtype=dtype, device="cuda")


def expect(actual, wanted):
    torch.testing.assert_close(actual.cpu(), torch.as_tensor(wanted, dtype=actual.dtype).expand(actual.shape))


def all_reduce(rank, size):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
        given = value(rank, dtype=dtype)
        dist.all_reduce(given)
        expect(given, size * (size + 1) // 2)
    for op, wanted in ((dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, (size + 1) / 2),
                       (dist.ReduceOp.PRODUCT, 2 if size == 2 else 24)):
        given = value(rank)
        dist.all_reduce(given, op=op)
        expect(given, wanted)
    flags = torch.tensor([rank == 0, True], device="cuda")
    dist.all_reduce(flags, op=dist.ReduceOp.MIN)
    expect(flags, [False, True])


def in_the_background(rank, size):
    given = [value(rank, (1 << 16,)) for _ in range(8)]
    works = [dist.all_reduce(one, async_op=True) for one in given]
    for work in works:
        work.wait()
    for one in given:
        expect(one + 0, size * (size + 1) // 2)


def coalesced(rank, size):
    given = [value(rank, (count,)) for count in (1, 100, 3000)]
    with dist._coalescing_manager(device=torch.device("cuda", rank)):
        for one in given:
            dist.all_reduce(one)
    for one in given:
        expect(one, size * (size + 1) // 2)


def broadcast_and_reduce(rank, size):
    for root in range(size):
        given = value(rank)
        dist.broadcast(given, root)
        expect(given, root + 1)
        given = value(rank)
        dist.reduce(given, root)
        if rank == root:
            expect(given, size * (size + 1) // 2)


def all_gather(rank, size):
    pieces = [torch.empty(6, device="cuda") for _ in range(size)]
    dist.all_gather(pieces, value(rank))
    for number, one in enumerate(pieces):
        expect(one, number + 1)
    whole = torch.empty(6 * size, device="cuda")
    dist.all_gather_into_tensor(whole, value(rank))
    expect(whole, torch.arange(1, size + 1).repeat_interleave(6))
    uneven = [torch.empty(2 + number, device="cuda") for number in range(size)]
    dist.all_gather(uneven, value(rank, (2 + rank,)))
    for number, one in enumerate(uneven):
        expect(one, number + 1)


def reduce_scatter(rank, size):
    mine = torch.empty(6, device="cuda")
    dist.reduce_scatter(mine, [value(rank) * (number + 1) for number in range(size)])
    expect(mine, (rank + 1) * size * (size + 1) // 2)
    dist.reduce_scatter_tensor(mine, value(rank, (6 * size,)))
    expect(mine, size * (size + 1) // 2)


def all_to_all(rank, size):
    got = [torch.empty(6, device="cuda") for _ in range(size)]
    dist.all_to_all(got, [value(rank) * 10 + number for number in range(size)])
    for number, one in enumerate(got):
        expect(one, (number + 1) * 10 + rank)
    whole = torch.empty(size * 3, device="cuda")
    dist.all_to_all_single(whole, value(rank, (size * 3,)))
    expect(whole, torch.arange(1, size + 1).repeat_interleave(3))


def gather_and_scatter(rank, size):
    pieces = [torch.empty(6, device="cuda") for _ in range(size)] if rank == 1 else None
    dist.gather(value(rank), pieces, dst=1)
    for number, one in enumerate(pieces or ()):
        expect(one, number + 1)
    mine = torch.empty(6, device="cuda")
    dist.scatter(mine, [value(number) for number in range(size)] if rank == 0 else None, src=0)
    expect(mine, rank + 1)


def messages(rank, size):
    if rank == 0:
        for peer in range(1, size):
            dist.send(value(peer), peer)
    else:
        got = torch.empty(6, device="cuda")
        dist.recv(got, 0)
        expect(got, rank + 1)
    left, right = (rank - 1) % size, (rank + 1) % size
    got = torch.empty(6, device="cuda")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, value(rank), right), dist.P2POp(dist.irecv, got, left)]):
        work.wait()
    expect(got, left + 1)


def objects(rank, size):
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank})
    assert everything == [{"rank": number} for number in range(size)], everything
    words = [["a", 1] if rank == 0 else None]
    dist.broadcast_object_list(words)
    assert words == [["a", 1]], words
    dist.barrier()


def groups(rank, size):
    pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    given = value(rank)
    dist.all_reduce(given, group=pairs[rank // 2])
    expect(given, (rank // 2) * 4 + 3)


def graphs(rank, size):
    given = value(rank)
    dist.all_reduce(given.clone())
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = given * 2
        dist.all_reduce(doubled)
    for replay in range(2):
        given.fill_(rank + replay)
        graph.replay()
        expect(doubled, 2 * (size * (size - 1) // 2 + replay * size))


def backends():
    """PyTorch's engines over NCCL: one before 2.15, three since."""
    return ["nccl", "nccl-lazy", "nccl-legacy"] if hasattr(c10d, "_create_nccl_lazy_process_group") else ["nccl"]


class Collectives(unittest.TestCase):
    def test_every_operation_gives_what_it_should(self):
        operations = (all_reduce, in_the_background, coalesced, broadcast_and_reduce, all_gather, reduce_scatter,
                      all_to_all, gather_and_scatter, messages, objects, groups, graphs)
        for backend in backends():
            for size in (2, 4):
                with self.subTest(backend=backend, ranks=size):
                    ranks.run(size, ranks.InTurn(operations), backend)


if __name__ == "__main__":
    unittest.main()
