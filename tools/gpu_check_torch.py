#!/usr/bin/env python3
"""torch.distributed with the NCCL backend, on however many GPUs there are (one rank on one GPU)."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, size):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=size)
    tensor = torch.full((1 << 20,), float(rank + 1), device="cuda")
    dist.all_reduce(tensor)
    assert torch.all(tensor == size * (size + 1) / 2), "all_reduce is wrong"
    gathered = [torch.empty(1000, device="cuda") for _ in range(size)]
    dist.all_gather(gathered, torch.full((1000,), float(rank), device="cuda"))
    assert all(torch.all(part == i) for i, part in enumerate(gathered)), "all_gather is wrong"
    dist.barrier()
    if rank == 0:
        print(f"torch {torch.__version__}, nccl {torch.cuda.nccl.version()}, {size} ranks: correct")
    dist.destroy_process_group()


if __name__ == "__main__":
    count = torch.cuda.device_count()
    mp.spawn(run, args=(count,), nprocs=count)
