#!/usr/bin/env python3
"""AllReduce of float between two processes: tutti on the software GPU beside MPI and gloo, in one run.

usage: compare_peers.py --build BUILD --peers FOLDER [--runs N] [--sizes 8,1K,...] [--peer NAME ...] [-o TABLE.md]

FOLDER holds peer programs (peer_openmpi, peer_mpich, peer_gloo and launch.py, which starts N processes) that take
--op allreduce --sizes LIST --algo NAME and print one JSON object a line with bytes, time_us (median of single calls) and
time_us_b2b (calls back to back). Every round starts each of them once, in turn; a cell is the median over rounds. All calls
are synchronous: tutti runs with -z (each call is waited for), the peers' figure is time_us_b2b.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

DEFAULT_SIZES = "8,1K,64K,1M,16M,256M"
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def peer_commands(folder):
    mpi = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    launch = [sys.executable, str(folder / "launch.py"), "-n", "2", "--"]
    gloo = lambda algo: (launch + [str(folder / "peer_gloo"), "--algo", algo], {})
    return {
        "openmpi": (["mpirun.openmpi", "-np", "2", "--bind-to", "core", str(folder / "peer_openmpi")], mpi),
        "mpich": (["mpirun.mpich", "-np", "2", "-bind-to", "core", str(folder / "peer_mpich")], {}),
        "gloo ring": gloo("ring"),
        "gloo bcube": gloo("bcube"),
        "gloo halving": gloo("halving_doubling"),
    }


def run_tutti(build, sizes):
    times = {}
    for size in sizes:
        iterations = max(5, min(2000, (64 << 20) // max(size, 1 << 15)))
        command = [str(build / "softgpu-run"), "-n", "2", str(build / "bench/all_reduce_perf"), "-p", "2", "-b", str(size),
                   "-e", str(size), "-n", str(iterations), "-w", str(max(2, iterations // 10)), "-z", "-c", "0", "--json", "-"]
        env = dict(os.environ, LD_LIBRARY_PATH=str(build / "src"))
        out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=True).stdout
        times[size] = json.loads(out)["results"][0]["out_of_place"]["time_us"]
    return times


def run_peer(command, extra, sizes, job):
    env = dict(os.environ, PEERBENCH_JOB=job, **extra)
    command = command + ["--op", "allreduce", "--sizes", ",".join(str(s) for s in sizes)]
    out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=True).stdout
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return {row["bytes"]: row["time_us_b2b"] for row in rows}


def table(samples, sizes, runs, load):
    names = list(samples)
    lines = [f"Median over {runs} rounds, microseconds per call (in brackets: this peer's time / tutti's). "
             f"1-minute load at the start: {load:.2f}.", "",
             "| size | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for size in sizes:
        median = {n: statistics.median(r[size] for r in samples[n]) for n in names}
        cells = [f"{median[n]:.1f}" + ("" if n == "tutti" else f" ({median[n] / median['tutti']:.2f})") for n in names]
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sizes", default=DEFAULT_SIZES)
    parser.add_argument("--peer", action="append", help="only these peers (default: all whose program is there)")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    sizes = [size_of(s) for s in options.sizes.split(",")]
    build, folder = options.build.resolve(), options.peers.resolve()
    peers = {n: c for n, c in peer_commands(folder).items() if not options.peer or n in options.peer}
    samples = {n: [] for n in ["tutti", *peers]}
    load = os.getloadavg()[0]
    for run in range(options.runs):
        samples["tutti"].append(run_tutti(build, sizes))
        for name, (command, extra) in peers.items():
            samples[name].append(run_peer(command, extra, sizes, f"compare-{os.getpid()}-{run}-{name.replace(' ', '-')}"))
        print(f"round {run + 1} of {options.runs} done at {time.strftime('%H:%M:%S')}", file=sys.stderr)
    text = table(samples, sizes, options.runs, load)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
