#!/usr/bin/env python3
"""Handwritten digits, learnt by a small network on several ranks with DistributedDataParallel.

    build/softgpu-run -n 4 --torch torchrun --nproc-per-node 4 examples/pytorch/digits.py --compare

Nothing in it knows of tutti: on a machine with GPUs it runs by `torchrun` alone. With --compare, rank 0 then learns all
of it by itself on the processor, and the losses must be the same but for rounding.
"""
import argparse
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "data/digits.csv"
BATCH = 128  # images of a step, over all ranks
HELD_BACK = 261  # images that are not learnt from; what is left is 12 batches
BAR = 24


def digits():
    """The images as rows of 64 numbers from 0 to 1, and what they show."""
    rows = torch.tensor([[int(value) for value in line.split(",")] for line in DIGITS.read_text().splitlines()])
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1))
    return rows[order, :64].float() / 16, rows[order, 64]


def network():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def learn(model, device, epochs, rank=0, ranks=1, each=lambda *_: None):
    """Calls `each(epoch, loss, right)` after every epoch: the mean loss of what was learnt, and the part of the images
    held back that is told right. Both are of all ranks."""
    images, labels = (one.to(device) for one in digits())
    seen, unseen = slice(HELD_BACK, None), slice(0, HELD_BACK)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    share = BATCH // ranks
    for epoch in range(epochs):
        total = torch.zeros((), device=device)
        steps = len(images[seen]) // BATCH
        for step in range(steps):
            first = step * BATCH + rank * share
            mine = slice(first, first + share)
            loss = nn.functional.cross_entropy(model(images[seen][mine]), labels[seen][mine])
            optimizer.zero_grad()
            loss.backward()  # which averages the gradients of all ranks
            optimizer.step()
            total += loss.detach() / steps
        if ranks > 1:
            dist.all_reduce(total, op=dist.ReduceOp.AVG)
        with torch.no_grad():
            right = (model(images[unseen]).argmax(1) == labels[unseen]).float().mean()
        each(epoch, total.item(), right.item())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--compare", action="store_true", help="learn on the processor as well, and compare")
    given = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if BATCH % ranks != 0:
        parser.error(f"{ranks} ranks cannot share a batch of {BATCH} images equally")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    begun = time.monotonic()
    losses = []

    def show(epoch, loss, right):
        losses.append(loss)
        if rank == 0:
            done = BAR * (epoch + 1) // given.epochs
            print(f"[{'#' * done}{'.' * (BAR - done)}] epoch {epoch + 1:2}: loss {loss:.4f}, {right:.1%} of the digits "
                  "right", flush=True)

    learn(DistributedDataParallel(network().to(device), device_ids=[device]), device, given.epochs, rank, ranks, show)
    dist.barrier()
    dist.destroy_process_group()
    if rank != 0:
        return 0
    print(f"{ranks} ranks: {time.monotonic() - begun:.1f} s")
    if not given.compare:
        return 0
    alone = []
    learn(network(), torch.device("cpu"), given.epochs, each=lambda _, loss, __: alone.append(loss))
    apart = max(abs(one - other) / other for one, other in zip(losses, alone))
    print(f"One process on the processor: losses at most {apart:.1e} apart")
    return 0 if apart < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
