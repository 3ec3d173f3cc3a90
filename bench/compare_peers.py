#!/usr/bin/env python3
"""Five collectives of float on one machine: tutti on the software GPU beside Open MPI, MPICH and gloo, in one run.

usage: compare_peers.py --build BUILD --peers FOLDER [--runs N] [--quick] [--worlds two_processes,four_devices]
                        [--collectives AllReduce,...] [--sizes 8,1K,...] [--raw FILE] [-o TABLES.md]
       compare_peers.py --tables RAW [-o TABLES.md]          only the tables of an earlier run

FOLDER holds peer_openmpi, peer_mpich, peer_gloo, peer_shmref and launch.py, which starts N processes, and what
`make -C bench/peers OUT=FOLDER` puts there. A peer takes --op NAME --sizes LIST --algo NAME --budget SECONDS and prints one JSON
object a line with bytes and time_us_b2b (calls back to back, slowest rank, median of chunks).

Worlds: two_processes is 2 ranks (ours: -p 2), four_devices is 4 ranks (ours: 4 devices of one process, once driven by one thread
in a group, -g 4, once by 4 threads, -t 4); peers always have a process for each rank. `size` is nccl-tests': the bytes of a
rank's larger buffer. Out of place, but Broadcast in place everywhere (MPI_Bcast has one buffer), and gloo's ReduceScatter only
works in place. Every call of ours is waited for (-z), slowest rank (-a 3), median of timings. A round starts every program once,
in turn; a cell is the median over rounds.

reference: user buffers lie in shared memory and ranks read their peers' inputs directly; a bound, not a library.
"""
import argparse
import collections
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
ALL_SIZES = "8,64,1K,16K,64K,256K,1M,4M,16M,64M,256M"
QUICK_SIZES = "8,64K,1M,16M"
PROGRAMS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
            "AlltoAll": "alltoall"}
WORLDS = {"two_processes": (2, {"tutti -p 2": ["-p", "2"]}),
          "four_devices": (4, {"tutti -g 4": ["-g", "4"], "tutti -t 4": ["-t", "4"]})}
REALTIME = ["chrt", "-f", "1"]
LIBRARIES = ("openmpi", "mpich", "gloo")  # what must be beaten; variants of one ("gloo ring") count by their fastest


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def size_text(size):
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def peer_commands(folder, ranks, collective):
    """name -> (command, extra environment) of the peers that have the collective."""
    crowded = ranks > os.cpu_count()
    start = [sys.executable, str(folder / "launch.py"), "-n", str(ranks)] + ([] if crowded else ["--bind"]) + ["--"]
    unbound = [sys.executable, str(folder / "launch.py"), "-n", str(ranks), "--"]
    open_mpi = ["mpirun.openmpi", "-np", str(ranks)] + (["--oversubscribe", "--bind-to", "none"] if crowded else ["--bind-to", "core"])
    mpich = ["mpirun.mpich", "-np", str(ranks), "-bind-to", "none" if crowded else "core"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    own = "more" if collective == "AlltoAll" else "peer"
    reference = "peer_shmref" if collective == "AllReduce" else "reference"
    commands = {"openmpi": (open_mpi + [folder / f"{own}_openmpi"], root), "mpich": (mpich + [folder / f"{own}_mpich"], {})}
    for algorithm in ("ring", "bcube", "halving_doubling") if collective == "AllReduce" else ("ring",):
        commands[f"gloo {algorithm}"] = (unbound + [folder / f"{own}_gloo", "--algo", algorithm], {})
    for stores in ("direct", "nt"):
        commands[f"reference {stores}"] = (start + [folder / reference, "--algo", stores], {})
    commands = {name: ([str(c) for c in command], extra) for name, (command, extra) in commands.items()}
    program = lambda command: next(c for c in command if c.startswith(str(folder)) and not c.endswith(".py"))
    return {name: found for name, found in commands.items() if pathlib.Path(program(found[0])).exists()}


def run(command, extra, seconds):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SOFTGPU_")) or k in extra}
    result = subprocess.run(command, env=dict(env, **extra), capture_output=True, text=True, timeout=seconds)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}: {result.stderr[-500:]}")
    return result.stdout


def run_tutti(options, build, collective, ways, ranks, sizes):
    times = {}
    budget = options.budget
    for size in sizes:
        guess = 20e-6 + size * ranks / 4e9
        calls = max(1, min(500, int(10e-3 / guess)))
        repeats = max(3, min(40, int(budget / guess / calls)))
        command = [str(build / "softgpu-run"), "-n", str(ranks), str(build / f"bench/{PROGRAMS[collective]}_perf"), *ways, "-b", str(size),
                   "-e", str(size), "-n", str(calls), "-w", str(max(3, min(calls, 50))), "--repeat", str(repeats), "-z", "-a", "3", "-c", "0",
                   "--json", "-"]
        out = run(REALTIME * options.realtime + command, {"LD_LIBRARY_PATH": str(build / "src")}, 300)
        row = json.loads(out)["results"][0]
        times[row["bytes"]] = row["in_place" if collective == "Broadcast" else "out_of_place"]["time_us"]
    return times


def run_peer(options, command, extra, collective, sizes, job, realtime):
    command = REALTIME * realtime + command + ["--op", collective.lower(), "--sizes", ",".join(map(str, sizes)), "--budget", str(options.budget)]
    rows = [json.loads(line) for line in run(command, dict(extra, PEERBENCH_JOB=job), 600).splitlines() if line.startswith("{")]
    wrong = [row for row in rows if row.get("errors")]
    if wrong:
        raise RuntimeError(f"{command}: wrong results: {wrong}")
    return {row["bytes"]: row["time_us_b2b"] for row in rows}


def busy_seconds():
    with open("/proc/stat") as file:
        return sum(int(x) for x in file.readline().split()[1:4]) / os.sysconf("SC_CLK_TCK")


def child_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_until_quiet(limit):
    end = time.time() + limit
    while time.time() < end:
        before = busy_seconds()
        time.sleep(0.25)
        if (busy_seconds() - before) / 0.25 / os.cpu_count() < 0.1:
            return


def measure(options, raw):
    build, folder = options.build.resolve(), options.peers.resolve()
    sizes = [size_of(s) for s in (options.sizes or (QUICK_SIZES if options.quick else ALL_SIZES)).split(",")]
    for number in range(options.runs):
        for world in options.worlds.split(","):
            ranks, ours = WORLDS[world]
            for collective in options.collectives.split(","):
                # The smallest size of a collective in blocks is one element for each rank.
                least = 4 if collective in ("AllReduce", "Broadcast") else 4 * ranks
                wanted = sorted({max(size, least) for size in sizes})
                peers = peer_commands(folder, ranks, collective)
                for name in [*ours, *peers]:
                    if options.only and not any(part in name for part in options.only.split(",")):
                        continue
                    wait_until_quiet(options.wait_quiet)
                    began, busy, own = time.time(), busy_seconds(), child_seconds()
                    if name in ours:
                        times = run_tutti(options, build, collective, ours[name], ranks, wanted)
                    else:
                        job = f"compare-{os.getpid()}-{time.time_ns()}"
                        alone = options.realtime and ranks <= os.cpu_count()
                        times = run_peer(options, *peers[name], collective, wanted, job, alone)
                    others = (busy_seconds() - busy - (child_seconds() - own)) / (time.time() - began) / os.cpu_count()
                    raw.write(json.dumps({"world": world, "collective": collective, "name": name, "round": number, "times": times,
                                          "others": round(max(others, 0), 3), "load": round(os.getloadavg()[0], 2)}) + "\n")
                    raw.flush()
        print(f"round {number + 1} of {options.runs} done at {time.strftime('%H:%M:%S')}", file=sys.stderr, flush=True)


def verdict(size, mine, others, reference):
    """What is missed of: under 15 us up to 1 KB, ahead of all from 64 KB, within twice the reference from 16 MB."""
    missed = []
    if size <= 1024 and mine >= 15:
        missed.append("not under 15 us")
    if size >= 64 << 10:
        missed += [f"behind {name} ({time / mine:.2f})" for name, time in others.items() if time < mine]
    if size >= 16 << 20 and reference and mine > 2 * reference:
        missed.append(f"{mine / reference:.1f} x the reference")
    return ", ".join(missed) or "met"


def fastest(medians, prefix, size):
    times = [by_size[size] for name, by_size in medians.items() if name.split()[0] == prefix and size in by_size]
    return min(times, default=None)


def table(world, collective, rows):
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        for size, value in row["times"].items():
            samples[row["name"]][int(size)].append(value)
    medians = {name: {size: statistics.median(v) for size, v in by_size.items()} for name, by_size in samples.items()}
    ours = [name for name in WORLDS[world][1] if name in medians]
    lines = [f"### {collective}, {world.replace('_', ' ')}", "",
             "| size | " + " | ".join(ours) + " | " + " | ".join(LIBRARIES) + " | reference | goal |",
             "|---" * (len(ours) + len(LIBRARIES) + 3) + "|"]
    for size in sorted({s for by_size in medians.values() for s in by_size}):
        mine = min((medians[name][size] for name in ours if size in medians[name]), default=None)
        if mine is None:
            continue
        libraries = {name: t for name in LIBRARIES if (t := fastest(medians, name, size)) is not None}
        reference = fastest(medians, "reference", size)
        cell = lambda t: "-" if t is None else f"{t:.1f} ({t / mine:.2f})"
        lines.append(f"| {size_text(size)} | " + " | ".join(f"{medians[n][size]:.1f}" if size in medians[n] else "-" for n in ours) + " | "
                     + " | ".join(cell(libraries.get(n)) for n in LIBRARIES) + f" | {cell(reference)} | "
                     + verdict(size, mine, libraries, reference) + " |")
    return "\n".join(lines)


def tables(rows):
    rounds = len({row["round"] for row in rows})
    taken, load = [100 * row["others"] for row in rows], [row["load"] for row in rows]
    text = [f"Microseconds per call, median over rounds ({rounds}); in brackets that time / tutti's (the faster of its columns): below 1 it "
            f"is ahead of us. Where a library has several algorithms, its fastest. CPU taken by other processes: median "
            f"{statistics.median(taken):.0f}%, most {max(taken):.0f}% of the machine; 1-minute load {min(load):.1f} to {max(load):.1f}, our "
            f"own ranks included."]
    for world, collective in dict.fromkeys((row["world"], row["collective"]) for row in rows):
        text.append(table(world, collective, [r for r in rows if (r["world"], r["collective"]) == (world, collective)]))
    return "\n\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help=f"only sizes {QUICK_SIZES}, one round, short timings")
    parser.add_argument("--sizes", help=f"default {ALL_SIZES}")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--collectives", default=",".join(PROGRAMS))
    parser.add_argument("--only", help="comma separated parts of program names, such as tutti,gloo")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of timed calls for one size of one program")
    parser.add_argument("--wait-quiet", type=float, default=0, help="before each program wait at most so long for an idle machine")
    parser.add_argument("--realtime", action="store_true",
                        help="on a machine that others use: real-time priority for ours, and for peers with a core for each rank")
    parser.add_argument("--raw", type=pathlib.Path, help="append what every program said, one JSON object a line")
    parser.add_argument("--tables", type=pathlib.Path, help="a file that --raw wrote: print its tables, run nothing")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    if options.quick:
        options.runs, options.budget = 1, min(options.budget, 0.05)
    raw_path = options.tables or options.raw or pathlib.Path(tempfile.mkstemp(suffix=".jsonl")[1])
    if not options.tables:
        if not options.peers:
            parser.error("--peers is missing")
        with open(raw_path, "a") as raw:
            measure(options, raw)
    rows = [json.loads(line) for line in open(raw_path)]
    text = tables([row for row in rows if row["world"] in options.worlds.split(",")])
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
