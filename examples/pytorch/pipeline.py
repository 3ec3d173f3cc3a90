#!/usr/bin/env python3
"""A network that is cut into stages, one for each rank, which send one another what is between them.

    build/softgpu-run -n 4 --torch torchrun --nproc-per-node 4 examples/pytorch/pipeline.py --compare

Nothing in it knows of tutti: on a machine with GPUs it runs by `torchrun` alone. Each step's images are cut into small
batches, which follow each other through the stages, forward and then back, so that all ranks are busy at once (GPipe).
With --compare, rank 0 then learns all of it by itself on the processor, and the losses must be the same but for
rounding.
"""
import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

from digits import BAR, BATCH, HELD_BACK, digits

WIDTH = 48  # numbers for each image between two stages
SMALL = 16  # images of a small batch


class Thought(nn.Module):
    """Adds something to what is known of an image."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        return x + self.inner(x)


def stage(number, stages):
    """One of the stages of the network; the first takes images, the last says what they show."""
    torch.manual_seed(5 + number)
    first = [nn.Linear(64, WIDTH)] if number == 0 else []
    last = [nn.Linear(WIDTH, 10)] if number == stages - 1 else []
    return nn.Sequential(*first, Thought(), *last)


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def batches():
    """The images of one epoch, step by step."""
    images, labels = (one[HELD_BACK:] for one in digits())
    for first in range(0, len(images) - BATCH + 1, BATCH):
        yield images[first:first + BATCH], labels[first:first + BATCH]


def step(model, rank, ranks, images, labels, device):
    """Forward and back through this rank's stage. Returns the loss of the batch, which only the last rank knows: the
    others return 0."""
    total = torch.zeros((), device=device)
    parts = BATCH // SMALL
    under_way = []
    for part in range(parts):
        mine = slice(part * SMALL, (part + 1) * SMALL)
        if rank == 0:
            given = images[mine].to(device)
        else:
            given = torch.empty(SMALL, WIDTH, device=device)
            dist.recv(given, rank - 1)
            given.requires_grad_()
        made = model(given)
        if rank < ranks - 1:
            dist.send(made.detach(), rank + 1)
        else:
            made = nn.functional.cross_entropy(made, labels[mine].to(device)) / parts
            total += made.detach()
        under_way.append((given, made))
    for given, made in under_way:
        if rank < ranks - 1:
            slope = torch.empty_like(made)
            dist.recv(slope, rank + 1)
            made.backward(slope)
        else:
            made.backward()
        if rank > 0:
            dist.send(given.grad, rank - 1)
    return total


def learn(rank, ranks, device, epochs, each):
    """Calls `each(epoch, loss)` after every epoch."""
    model = stage(rank, ranks).to(device)
    optimizer = optimizer_of(model)
    for epoch in range(epochs):
        losses = []
        for images, labels in batches():
            optimizer.zero_grad()
            losses.append(step(model, rank, ranks, images, labels, device))
            optimizer.step()
        mean = torch.stack(losses).mean()
        dist.broadcast(mean, ranks - 1)
        each(epoch, mean.item())


def learn_alone(stages, epochs):
    """The loss after every epoch, of all stages in one process on the processor."""
    model = nn.Sequential(*(stage(number, stages) for number in range(stages)))
    optimizer = optimizer_of(model)
    for _ in range(epochs):
        losses = []
        for images, labels in batches():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        yield torch.stack(losses).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--compare", action="store_true", help="learn on the processor as well, and compare")
    given = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    begun = time.monotonic()
    losses = []

    def show(epoch, loss):
        losses.append(loss)
        if rank == 0:
            done = BAR * (epoch + 1) // given.epochs
            print(f"[{'#' * done}{'.' * (BAR - done)}] epoch {epoch + 1:2}: loss {loss:.4f}", flush=True)

    learn(rank, ranks, device, given.epochs, show)
    dist.barrier()
    dist.destroy_process_group()
    if rank != 0:
        return 0
    print(f"{ranks} stages: {time.monotonic() - begun:.1f} s")
    if not given.compare:
        return 0
    apart = max(abs(one - other) / other for one, other in zip(losses, learn_alone(ranks, given.epochs)))
    print(f"One process on the processor: losses at most {apart:.1e} apart")
    return 0 if apart < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
