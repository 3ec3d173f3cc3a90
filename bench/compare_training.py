#!/usr/bin/env python3
"""A training step with DistributedDataParallel: the software GPU and tutti beside CPU tensors and gloo, in one run.

usage: compare_training.py [--build BUILD] [--python PYTHON] [--ranks N] [--rounds N] [--steps N] [-o TABLE.md]

The models are those of examples/pytorch, with the batches that the examples have. In each round every model is trained
once in either way, in turn; each rank is a process with one thread for operators (OMP_NUM_THREADS=1), so the operators
of both ways are the same. A step is: the batch, forward, loss, backward with the gradients' all-reduce, the optimizer,
and the loss as a number. A cell is the median over rounds of a round's median step.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
ROOT = HERE.parents[1]
MODELS = ("digits", "transformer")
WAYS = ("softgpu", "gloo")
WARM_UP = 20  # steps
LIMIT = 300  # seconds of one run


def batches_of(name, device, rank, ranks):
    """The model, and what gives a rank's next inputs and labels."""
    import torch
    sys.path.insert(0, str(ROOT / "examples/pytorch"))
    draw = torch.Generator().manual_seed(4)
    if name == "digits":
        import digits
        share = digits.BATCH // ranks
        images, labels = (one.to(device) for one in digits.digits())

        def batch():
            first = int(torch.randint(len(images) - digits.BATCH, (), generator=draw)) + rank * share
            return images[first:first + share], labels[first:first + share]

        return digits.network().to(device), batch
    import transformer
    share, length = transformer.BATCH // ranks, transformer.LENGTH
    text, _ = transformer.letters()

    def batch():
        begins = torch.randint(len(text) - length - 1, (transformer.BATCH,), generator=draw)[rank * share:][:share]
        pieces = torch.stack([text[begin:begin + length + 1] for begin in begins]).to(device)
        return pieces[:, :-1], pieces[:, 1:]

    return transformer.writer(device), batch


def train(name, way, steps):
    """One rank. Rank 0 prints the median step, in microseconds."""
    import torch
    import torch.distributed as dist
    from torch.nn import functional
    from torch.nn.parallel import DistributedDataParallel
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if way == "gloo":
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    else:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    model, batch = batches_of(name, device, rank, ranks)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    took = []
    for _ in range(WARM_UP + steps):
        begun = time.perf_counter()
        inputs, labels = batch()
        loss = functional.cross_entropy(model(inputs).flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
        took.append(time.perf_counter() - begun)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(json.dumps({"us": statistics.median(took[WARM_UP:]) * 1e6, "loss": loss.item()}), flush=True)


def run(asked, name, way):
    """Microseconds of a step."""
    command = [asked.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", asked.ranks, HERE,
               "--train", name, way, "--steps", asked.steps]
    if way == "softgpu":
        command = [asked.build / "softgpu-run", "-n", asked.ranks, "--torch", *command]
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, env=dict(os.environ, OMP_NUM_THREADS="1"), start_new_session=True)
    try:
        said, _ = child.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said = child.communicate()[0] + f"\nstill running after {LIMIT} s"
    found = [line for line in said.splitlines() if line.startswith("{")]
    if child.returncode != 0 or len(found) != 1:
        sys.exit(f"compare_training: {name} by {way} ended with {child.returncode}:\n{said[-3000:]}")
    return json.loads(found[0])["us"]


def table(asked, found):
    lines = [f"{asked.ranks} ranks, {asked.rounds} rounds of {asked.steps} steps, load {os.getloadavg()[0]:.1f}; "
             "microseconds of a step.", "", "| model | software GPU, tutti | CPU tensors, gloo | ratio |", "|---|---|---|---|"]
    for name in MODELS:
        ours, theirs = found[name, "softgpu"], found[name, "gloo"]
        ratio = statistics.median(one / other for one, other in zip(ours, theirs))
        lines.append(f"| {name} | {statistics.median(ours):.0f} | {statistics.median(theirs):.0f} | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--python", help="with PyTorch; default: that of tools/torch-venv")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--train", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.train:
        train(*asked.train, asked.steps)
        return
    asked.build = asked.build.resolve()
    if asked.python is None:
        venv = subprocess.run([ROOT / "tools/torch-venv", "--no-install"], capture_output=True, text=True, check=False)
        if venv.returncode != 0:
            sys.exit(f"compare_training: {venv.stderr.strip()}")
        asked.python = venv.stdout.strip()
    found = {(name, way): [] for name in MODELS for way in WAYS}
    for _ in range(asked.rounds):
        for name in MODELS:
            for way in random.sample(WAYS, len(WAYS)):
                found[name, way].append(run(asked, name, way))
    text = table(asked, found)
    if asked.output:
        asked.output.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
