#!/usr/bin/env python3
"""What a trace costs: all_reduce_perf with and without TUTTI_TRACE in turn, in one run, as a ratio of medians.

  bench/trace_cost.py [--build build] [--ranks 4] [--rounds 15] [--bytes 65536] [--times 2000]
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile


def microseconds(options, trace):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "TUTTI_"))}
    env["LD_LIBRARY_PATH"] = str(options.build / "src")
    if trace:
        env["TUTTI_TRACE"] = trace
    command = [options.build / "softgpu-run", "-n", options.ranks, options.build / "bench/all_reduce_perf", "-b", options.bytes,
               "-e", options.bytes, "-g", options.ranks, "-n", options.times, "-w", options.times // 10, "-c", 0]
    said = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, check=True, timeout=300)
    row = next(line.split() for line in said.stdout.splitlines() if line.split()[:1] == [str(options.bytes)])
    return float(row[5])


def quartile(times):
    return statistics.quantiles(times, n=4)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--bytes", type=int, default=65536)
    parser.add_argument("--times", type=int, default=2000)
    options = parser.parse_args()
    without, with_trace = [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(options.rounds):
            pair = [(without, None), (with_trace, f"{folder}/%p.trace")]
            for times, trace in pair if i % 2 == 0 else reversed(pair):
                times.append(microseconds(options, trace))
            for name in os.listdir(folder):
                os.unlink(f"{folder}/{name}")
    ratios = [b / a for a, b in zip(without, with_trace)]
    print(f"{options.ranks} ranks, {options.bytes} bytes, {options.rounds} rounds of {options.times}: "
          f"{statistics.median(without):.2f} us without, {statistics.median(with_trace):.2f} us with a trace; "
          f"ratio of lower quartiles {quartile(with_trace) / quartile(without):.3f}, ratio of medians {statistics.median(with_trace) / statistics.median(without):.3f}, "
          f"median of ratios {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    main()
