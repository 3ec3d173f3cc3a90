#!/usr/bin/env python3
"""A small transformer that learns to write, its parameters sharded over several ranks with FSDP2 (fully_shard).

    build/softgpu-run -n 4 --torch torchrun --nproc-per-node 4 examples/pytorch/transformer.py --compare

Nothing in it knows of tutti: on a machine with GPUs it runs by `torchrun` alone. It learns the letters of a text, here
of the license of this project. With --compare, rank 0 then learns all of it by itself on the processor, and the losses
must be the same but for rounding.
"""
import argparse
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional

TEXT = pathlib.Path(__file__).resolve().parents[2] / "LICENSE"
LENGTH = 48  # letters that the network sees at once
WIDTH = 32
HEADS = 4
BATCH = 16  # pieces of text of a step, over all ranks
BAR = 24


class Block(nn.Module):
    """Attention to the letters before, then a small network for each letter."""

    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.attention = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.thought = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(),
                                     nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        batch, length, _ = x.shape
        query, key, value = self.attention(self.before(x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.thought(x)


class Writer(nn.Module):
    """For each letter of a text how likely each letter is the next one."""

    def __init__(self, letters, blocks=2):
        super().__init__()
        self.letter = nn.Embedding(letters, WIDTH)
        self.place = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.next = nn.Linear(WIDTH, letters)

    def forward(self, text):
        return self.next(self.blocks(self.letter(text) + self.place))


def letters():
    """The text as numbers of letters, and how many there are."""
    text = TEXT.read_text()
    alphabet = {letter: number for number, letter in enumerate(sorted(set(text)))}
    return torch.tensor([alphabet[letter] for letter in text]), len(alphabet)


def writer(device):
    torch.manual_seed(3)
    return Writer(letters()[1]).to(device)


def sharded(device):
    """The same on all ranks, each of which keeps its part of every parameter, of the gradients and of the optimizer."""
    model = writer(device)
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)


def learn(model, device, steps, rank=0, ranks=1, each=lambda *_: None):
    """Calls `each(step, loss)` after every step, with the mean loss of all ranks before it."""
    text, _ = letters()
    draw = torch.Generator().manual_seed(4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    share = BATCH // ranks
    for step in range(steps):
        begins = torch.randint(len(text) - LENGTH - 1, (BATCH,), generator=draw)[rank * share:(rank + 1) * share]
        pieces = torch.stack([text[begin:begin + LENGTH + 1] for begin in begins]).to(device)
        loss = functional.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # which averages the gradients of all ranks, and leaves each its part
        optimizer.step()
        mean = loss.detach()
        if ranks > 1:
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        each(step, mean.item())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--compare", action="store_true", help="learn on the processor as well, and compare")
    given = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if BATCH % ranks != 0:
        parser.error(f"{ranks} ranks cannot share a batch of {BATCH} pieces equally")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    begun = time.monotonic()
    losses = []

    def show(step, loss):
        losses.append(loss)
        if rank == 0 and (step + 1) % 10 == 0:
            done = BAR * (step + 1) // given.steps
            print(f"[{'#' * done}{'.' * (BAR - done)}] step {step + 1:3}: loss {loss:.4f}", flush=True)

    model = sharded(device)
    mine = sum(parameter.to_local().numel() for parameter in model.parameters())
    whole = sum(parameter.numel() for parameter in model.parameters())
    learn(model, device, given.steps, rank, ranks, show)
    dist.barrier()
    dist.destroy_process_group()
    if rank != 0:
        return 0
    print(f"{ranks} ranks: {time.monotonic() - begun:.1f} s; rank 0 keeps {mine} of {whole} parameters")
    if not given.compare:
        return 0
    alone = []
    processor = torch.device("cpu")
    learn(writer(processor), processor, given.steps, each=lambda _, loss: alone.append(loss))
    apart = max(abs(one - other) / other for one, other in zip(losses, alone))
    print(f"One process on the processor: losses at most {apart:.1e} apart")
    return 0 if apart < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
