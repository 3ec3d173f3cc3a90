#!/usr/bin/env python3
"""A job that loses a rank in the middle of learning, and goes on with the others.

    build/softgpu-run -n 4 --torch python examples/pytorch/elastic.py

Nothing in it knows of tutti: on a machine with GPUs it runs by `python` alone. It starts its ranks itself, for torchrun
ends all of them where one dies. Rank 2 is killed in the third epoch. The others get an error that names it, shrink the
process group (torch.distributed.shrink_group, PyTorch 2.10 and later), go back to the beginning of the epoch, and share
the images among three. In the end rank 0 learns all of it by itself on the processor: the losses must be the same but
for rounding, for nothing was lost with the rank but time.
"""
import argparse
import os
import re
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from digits import BAR, BATCH, HELD_BACK, digits, network

LOST_IN, LOST_AT = 2, 5  # the epoch and the step in which a rank is killed


class Learner:
    """The network and what it has learnt so far, equal on all ranks."""

    def __init__(self, device):
        self.device = device
        self.model = network().to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.images, self.labels = (one[HELD_BACK:].to(device) for one in digits())

    def epoch(self, rank=0, ranks=1, before_step=lambda _: None):
        """Learns from all images once, of which this rank has its share. The mean loss of all ranks."""
        steps = len(self.images) // BATCH
        total = torch.zeros(1, device=self.device)
        for step in range(steps):
            before_step(step)
            mine = slice(step * BATCH + rank, (step + 1) * BATCH, ranks)
            loss = nn.functional.cross_entropy(self.model(self.images[mine]), self.labels[mine], reduction="sum")
            self.optimizer.zero_grad()
            (loss / BATCH).backward()
            if ranks > 1:
                self.add_gradients()
            self.optimizer.step()
            total += loss.detach() / BATCH / steps
        return all_sum(total).item() if ranks > 1 else total.item()

    def add_gradients(self):
        """Those of all ranks, which each have a part of the batch: in one message."""
        gradients = [parameter.grad for parameter in self.model.parameters()]
        whole = all_sum(torch.cat([gradient.flatten() for gradient in gradients]))
        for gradient, part in zip(gradients, whole.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(part.view_as(gradient))

    def snapshot(self):
        momentum = [state["momentum_buffer"].clone() for state in self.optimizer.state.values()]
        return {name: value.clone() for name, value in self.model.state_dict().items()}, momentum

    def restore(self, snapshot):
        model, momentum = snapshot
        self.model.load_state_dict(model)
        self.optimizer.state.clear()
        for parameter, buffer in zip(self.model.parameters(), momentum):
            self.optimizer.state[parameter]["momentum_buffer"] = buffer.clone()


def all_sum(tensor, op=dist.ReduceOp.SUM):
    """Over all ranks. Where one of them is lost this raises, or the next call does, and then it has no result."""
    dist.all_reduce(tensor, op=op, async_op=True).wait()
    return tensor


def lost_rank(error):
    """The rank whose end an error tells of; any other error is raised again."""
    found = re.search(r"rank (\d+) \(host [^)]*\) died", str(error))
    if found is None:
        raise error
    return int(found.group(1))


def kill_oneself_at(epoch, step):
    if (epoch, step) == (LOST_IN, LOST_AT):
        os.kill(os.getpid(), signal.SIGKILL)


def go_on_without(gone, learner, losses, snapshots):
    """All that are left come to this, some of them perhaps after one epoch more than others."""
    dist.shrink_group([gone], shrink_flags=1)  # SHRINK_ABORT: what is under way is given up
    done = all_sum(torch.tensor([len(losses)], device=learner.device), dist.ReduceOp.MIN).item()
    del losses[done:], snapshots[done + 1:]
    learner.restore(snapshots[done])


def learn(given, learner, doomed):
    """All epochs, with whoever is left. The losses."""
    losses, snapshots = [], [learner.snapshot()]
    while len(losses) < given.epochs:
        epoch, ranks, rank = len(losses), dist.get_world_size(), dist.get_rank()
        try:
            loss = learner.epoch(rank, ranks, lambda step: doomed and kill_oneself_at(epoch, step))
            dist.barrier()  # which is refused where a call before it has failed
        except RuntimeError as error:
            begun = time.monotonic()
            gone = lost_rank(error)
            go_on_without(gone, learner, losses, snapshots)
            if dist.get_rank() == 0:
                print(f"{error}\nRank {gone} is lost. {dist.get_world_size()} ranks go on after "
                      f"{time.monotonic() - begun:.1f} s, from the beginning of epoch {len(losses) + 1}", flush=True)
            continue
        losses.append(loss)
        snapshots.append(learner.snapshot())
        if rank == 0:
            done = BAR * (epoch + 1) // given.epochs
            print(f"[{'#' * done}{'.' * (BAR - done)}] epoch {epoch + 1:2}, {ranks} ranks: loss {loss:.4f}", flush=True)
    return losses


def work(rank, given, port):
    """One rank, from its beginning to its end."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank),
                   "WORLD_SIZE": str(given.ranks),
                   # A failure is an error of the call that waits, and not the end of the process.
                   "TORCH_NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    losses = learn(given, Learner(device), rank == given.lose)
    first = dist.get_rank() == 0
    dist.destroy_process_group()
    if not first:
        return
    alone = Learner(torch.device("cpu"))
    apart = max(abs(loss - alone.epoch()) / loss for loss in losses)
    print(f"One process on the processor: losses at most {apart:.1e} apart")
    if apart > 1e-3:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lose", type=int, default=2, help="the rank that is killed")
    given = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    ranks = [context.Process(target=work, args=(rank, given, port)) for rank in range(given.ranks)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    return 1 if any(process.exitcode != 0 for rank, process in enumerate(ranks) if rank != given.lose) else 0


if __name__ == "__main__":
    sys.exit(main())
