#!/usr/bin/env python3
"""torch.distributed with the NCCL backend: `gpu_check_torch.py [RANKS]`; ranks beyond the GPUs share them.

Collectives, messages, a replicated model that learns, and an AllReduce in a CUDA graph; every result is compared.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def check_collectives(rank, size):
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        tensor = torch.full((1 << 20,), rank + 1, device="cuda", dtype=dtype)
        dist.all_reduce(tensor)
        assert torch.all(tensor == size * (size + 1) // 2), f"all_reduce of {dtype} is wrong"
    gathered = [torch.empty(1000, device="cuda") for _ in range(size)]
    dist.all_gather(gathered, torch.full((1000,), float(rank), device="cuda"))
    assert all(torch.all(part == i) for i, part in enumerate(gathered)), "all_gather is wrong"
    mine = torch.empty(1000, device="cuda")
    dist.reduce_scatter_tensor(mine, torch.arange(1000.0 * size, device="cuda"))
    expected = size * torch.arange(1000.0 * rank, 1000.0 * (rank + 1), device="cuda")
    assert torch.equal(mine, expected), "reduce_scatter is wrong"
    received = torch.empty(1000, device="cuda")
    requests = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, torch.full((1000,), float(rank), device="cuda"), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size)])
    for request in requests:
        request.wait()
    assert torch.all(received == (rank - 1) % size), "messages are wrong"


def check_training(rank, size):
    torch.manual_seed(1)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    inputs, targets = torch.randn(128, 64, device="cuda"), torch.randint(10, (128,), device="cuda")
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], f"the model does not learn: {losses}"
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    every = [torch.empty_like(weights) for _ in range(size)]
    dist.all_gather(every, weights)
    assert all(torch.equal(weights, other) for other in every), "the ranks' models differ"


def check_graph(size):
    tensor = torch.ones(4096, device="cuda")
    dist.all_reduce(tensor)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dist.all_reduce(tensor)
    tensor.fill_(1)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.all(tensor == size ** 3), "all_reduce in a graph is wrong"


def run(rank, size):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("nccl", rank=rank, world_size=size)
    check_collectives(rank, size)
    check_training(rank, size)
    check_graph(size)
    dist.barrier()
    if rank == 0:
        print(f"torch {torch.__version__}, nccl {torch.cuda.nccl.version()}, {size} ranks: correct")
    dist.destroy_process_group()


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else torch.cuda.device_count()
    mp.spawn(run, args=(count,), nprocs=count)
