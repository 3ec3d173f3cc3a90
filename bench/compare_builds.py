#!/usr/bin/env python3
"""Is this build as fast as an earlier one? Both run compare_peers.py's cells of ours in turn.

usage: compare_builds.py --before BUILD --now BUILD [--rounds N] [--worlds ...] [--collectives ...] [--sizes ...]
                         [--in-place] [-o TABLE.md]

A round runs every program of one build and then of the other; the next round begins with the other. A cell of the table
is the median over rounds of the time of now divided by that of before, taken in the same round, and in brackets the
quartiles of that ratio: where 1.05 lies between them, the cell says nothing. Cells whose lower quartile is above the
limit are listed below the table, and the exit status is 1 if there are any.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="build folder of the earlier version")
    parser.add_argument("--now", required=True, help="build folder of this version")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--worlds", default="two_processes,four_devices")
    parser.add_argument("--collectives", default="AllReduce,AllGather,ReduceScatter,Broadcast,AlltoAll")
    parser.add_argument("--sizes", default="8,1K,16K,64K,256K,1M,4M,16M")
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--limit", type=float, default=1.05, help="slower than this is a finding (default 1.05)")
    parser.add_argument("-o", "--output", help="where the table goes besides standard output")
    return parser.parse_args()


def times_of(build, chosen):
    """{(world, collective, program, bytes): microseconds} of one run of a build's programs."""
    with tempfile.NamedTemporaryFile(suffix=".raw") as raw, tempfile.NamedTemporaryFile(suffix=".md") as table:
        command = [os.path.join(HERE, "compare_peers.py"), "--build", build, "--only", "tutti", "--runs", "1",
                   "--worlds", chosen.worlds, "--collectives", chosen.collectives, "--sizes", chosen.sizes,
                   "--raw", raw.name, "-o", table.name]
        done = subprocess.run(command + ["--in-place"] * chosen.in_place, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        with open(raw.name, encoding="utf-8") as lines:
            runs = [json.loads(line) for line in lines]
    return {(run["world"], run["collective"], run["name"], int(size)): microseconds
            for run in runs for size, microseconds in run["times"].items()}


def ratios_of(chosen):
    """The ratios of all rounds, and the times of both builds, by cell."""
    ratios, before_times, now_times = {}, {}, {}
    for round_number in range(chosen.rounds):
        order = ("before", "now") if round_number % 2 == 0 else ("now", "before")
        times = {which: times_of(getattr(chosen, which), chosen) for which in order}
        for cell in times["before"].keys() & times["now"].keys():
            ratios.setdefault(cell, []).append(times["now"][cell] / times["before"][cell])
            before_times.setdefault(cell, []).append(times["before"][cell])
            now_times.setdefault(cell, []).append(times["now"][cell])
        print(f"round {round_number + 1} of {chosen.rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return ratios, before_times, now_times


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, upper


def size_name(size):
    for unit, name in ((1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def table_of(ratios, before_times, now_times):
    rows = ["| world, collective, program, size | before, us | now, us | now / before (quartiles) |", "|---|---|---|---|"]
    for cell in sorted(ratios, key=lambda key: (key[0], key[1], key[2], key[3])):
        lower, upper = quartiles(ratios[cell])
        rows.append(f"| {cell[0]}, {cell[1]}, {cell[2]}, {size_name(cell[3])} "
                    f"| {statistics.median(before_times[cell]):.1f} | {statistics.median(now_times[cell]):.1f} "
                    f"| {statistics.median(ratios[cell]):.2f} ({lower:.2f} to {upper:.2f}) |")
    return rows


def main():
    chosen = options()
    ratios, before_times, now_times = ratios_of(chosen)
    slower = [cell for cell in ratios if quartiles(ratios[cell])[0] > chosen.limit]
    medians = [statistics.median(values) for values in ratios.values()]
    lines = table_of(ratios, before_times, now_times)
    lines += ["", f"{len(medians)} cells, {chosen.rounds} rounds: median of all {statistics.median(medians):.2f}, "
              f"least {min(medians):.2f}, most {max(medians):.2f}; "
              f"{len(slower)} slower than {chosen.limit} in three of four rounds"]
    lines += [f"* {world}, {collective}, {name}, {size_name(size)}"
              for world, collective, name, size in sorted(slower)]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if chosen.output:
        with open(chosen.output, "w", encoding="utf-8") as output:
            output.write(text)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
