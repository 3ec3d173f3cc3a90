#!/usr/bin/env python3
"""What a relay costs: two hosts of two ranks over TCP, with PXN and without, in turn.

  TUTTI_BUILD=build TUTTI_SOURCE=. python3 bench/relayed.py [ROUNDS [SECONDS]]

messages: ranks 0 and 3 exchange 2 MB, each through the rank beside it, or directly; the two others do nothing else.
reduces: AllReduce of 4 MB by all four, whose ring goes through relays on every second channel, or does not.
"""
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))
from pxn import Job, check  # noqa: E402


def count(process, word):
    said = [line for line in process.output().splitlines() if line.startswith(word)]
    return int(said[-1].split()[1]) if said else 0


def cpu(process):
    """Seconds of all processes of its session."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == process.pid:
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure(mode, word, disable, seconds):
    """Calls a second, and processor seconds of all ranks a second."""
    with Job("", mode=mode, NCCL_NET="Socket", **({"NCCL_PXN_DISABLE": 1} if disable else {})) as job:
        job.ranks[0].wait_for(word + " 100\n", 60)
        relayed = "(1)" in "".join(line for line in job.ranks[0].output().splitlines() if "[send] via NET" in line)
        check(relayed != disable, "not the connections that are meant")
        first, used, began = count(job.ranks[0], word), sum(map(cpu, job.ranks)), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return (count(job.ranks[0], word) - first) / took, (sum(map(cpu, job.ranks)) - used) / took


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 8
    print("| | calls/s, direct | calls/s, relayed | relayed / direct | processors, direct | processors, relayed |")
    print("|---|---|---|---|---|---|")
    for name, mode, word in (("messages, 2 MB each way", ["across"], "exchanged"), ("AllReduce, 4 MB", [], "reduced")):
        found = {True: [], False: []}
        for _ in range(rounds):
            for disable in found:
                found[disable].append(measure(mode, word, disable, seconds))
        direct, relayed = ([statistics.median(column) for column in zip(*found[disable])] for disable in (True, False))
        spread = ", ".join(f"{100 * (max(c) - min(c)) / statistics.median(c):.0f} %" for c in
                           ([calls for calls, _ in found[disable]] for disable in (True, False)))
        print(f"| {name} | {direct[0]:.1f} | {relayed[0]:.1f} | {relayed[0] / direct[0]:.2f} | {direct[1]:.2f} | "
              f"{relayed[1]:.2f} |  <!-- spread {spread} -->")


if __name__ == "__main__":
    main()
