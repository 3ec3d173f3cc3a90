#!/usr/bin/env python3
"""Five collectives of float on one machine: tutti on the software GPU beside Open MPI, MPICH and gloo, in one run.

usage: compare_peers.py [--build BUILD] [--peers FOLDER] [--runs N] [--quick]
                        [--worlds two_processes,four_devices] [--collectives AllReduce,...] [--sizes 8,1K,...]
                        [--in-place] [--raw FILE] [-o TABLES.md]
       compare_peers.py --tables RAW [-o TABLES.md]          only the tables of earlier runs

FOLDER (default BUILD/peers) holds what `make -C bench/peers OUT=FOLDER` builds: openmpi, mpich, gloo, each if the
library is installed, reference and sockets. Debian's packages: libopenmpi-dev openmpi-bin; libmpich-dev mpich;
libgloo-dev. What is not there is skipped with a line that says so; what fails is marked in the tables, with the reason
below, and the others go on: the exit status is 1 if one of ours failed in this run, else 0. A peer takes --op NAME
--sizes LIST --algo NAME --budget SECONDS, checks the result of its first call and prints one JSON object a line with
bytes and time_us_b2b (calls back to back, slowest rank, median of chunks). MPI's are started by mpirun, the others by
bench/peers/launch.py.

SendRecv, in which each rank sends to the next and receives from the one before, is run when named. Two worlds more are
run when named: two_processes_shm, where our ranks do without P2P, and two_processes_tcp, where ours, Open MPI's and
gloo's have nothing but TCP over the loopback interface.

Worlds: two_processes is 2 ranks (ours: -p 2), four_devices is 4 ranks (ours: 4 devices of one process, once driven by
one thread in a group, -g 4, once by 4 threads, -t 4); peers always have a process for each rank. `size` is
nccl-tests': the bytes of a rank's larger buffer. Out of place, but Broadcast in place everywhere (MPI_Bcast has one
buffer), and gloo's ReduceScatter and its AllReduce by halving and doubling only work in place. Every call of ours is
waited for (-z), slowest rank (-a 3), median of timings. A round starts every program once, in turn; a cell is the
median over rounds.

--in-place: AllReduce, AllGather and ReduceScatter in place, ours and those of MPI (MPI_IN_PLACE); others are left out.
A column more has the time of ours out of place, measured by the same processes at the same sizes, in turn.

reference: user buffers lie in shared memory and ranks read their peers' inputs directly; a bound, not a library. In
AllReduce every rank sums up its share of all inputs and stores it in all outputs, so no byte is touched twice.

sockets, in two_processes_tcp: plain sockets that move what the collective must move at least, both ways at once; the
fastest of several manners, with and without a core for each rank. The column has tutti's time / theirs.
"""
import argparse
import contextlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from peer_tables import ours_failed, tables

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
ALL_SIZES = "8,64,1K,16K,64K,256K,1M,4M,16M,64M,256M"
QUICK_SIZES = "8,64K,1M,16M"
PROGRAMS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
            "Broadcast": "broadcast", "AlltoAll": "alltoall", "SendRecv": "sendrecv"}
DEFAULT_COLLECTIVES = "AllReduce,AllGather,ReduceScatter,Broadcast,AlltoAll"
IN_PLACE = ("AllReduce", "AllGather", "ReduceScatter")
IN_PLACE_PEERS = ("openmpi", "mpich")
WORLDS = {"two_processes": (2, {"tutti -p 2": ["-p", "2"]}),
          "four_devices": (4, {"tutti -g 4": ["-g", "4"], "tutti -t 4": ["-t", "4"]}),
          "two_processes_shm": (2, {"tutti -p 2": ["-p", "2"]}),
          "two_processes_tcp": (2, {"tutti -p 2": ["-p", "2"]})}
DEFAULT_WORLDS = "two_processes,four_devices"
# What takes from ours, and from Open MPI, every way between processes but one.
WAYS = {"two_processes_shm": ({"NCCL_P2P_DISABLE": "1"}, []),
        "two_processes_tcp": ({"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"},
                              ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"])}
TCP_PEERS = ("openmpi", "gloo", "sockets")  # that have TCP between processes of one host
REALTIME = ["chrt", "-f", "1"]
# Program in FOLDER -> what starts it beside bench/peers/launch.py, Debian's packages.
PEERS = {"openmpi": ("mpirun.openmpi", "libopenmpi-dev openmpi-bin"), "mpich": ("mpirun.mpich", "libmpich-dev mpich"),
         "gloo": (None, "libgloo-dev"), "reference": (None, ""), "sockets": (None, "")}
LAUNCHER = pathlib.Path(__file__).resolve().parent / "peers/launch.py"
PEER_SECONDS = 600  # one program, all its sizes


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def peers_present(folder):
    """The peers that can be run; says what is missing of the others."""
    present = []
    for name, (starter, packages) in PEERS.items():
        missing = [str(folder / name)] if not (folder / name).exists() else []
        missing += [starter] if starter and not shutil.which(starter) else []
        if missing:
            remedy = f"make -C bench/peers OUT={folder}" + (f"; Debian packages: {packages}" if packages else "")
            print(f"{name} is skipped: there is no {' and no '.join(missing)} ({remedy})", file=sys.stderr)
        else:
            present.append(name)
    return present


def peer_commands(folder, present, world, collective):
    """name -> (command, extra environment) of the peers, a peer for each of a library's algorithms."""
    ranks = WORLDS[world][0]
    crowded = ranks > os.cpu_count()
    launch = [sys.executable, LAUNCHER, "-n", ranks, "--seconds", PEER_SECONDS]
    bound = launch + ([] if crowded else ["--bind"])
    open_mpi = ["mpirun.openmpi", "-np", ranks]
    open_mpi += ["--oversubscribe", "--bind-to", "none"] if crowded else ["--bind-to", "core"]
    open_mpi += WAYS.get(world, ({}, []))[1]
    tcp = world.endswith("_tcp")
    present = [name for name in present if (name in TCP_PEERS if tcp else name != "sockets")]
    mpich = ["mpirun.mpich", "-np", ranks, "-bind-to", "none" if crowded else "core"]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    commands = {"openmpi": (open_mpi + [folder / "openmpi"], root), "mpich": (mpich + [folder / "mpich"], {})}
    if collective == "AllReduce":
        for algorithm in ("ring", "bcube", "halving_doubling"):
            commands[f"gloo {algorithm}"] = (launch + ["--", folder / "gloo", "--algo", algorithm], {})
    else:
        commands["gloo"] = (launch + ["--", folder / "gloo"], {})
    for stores in ("direct", "nt"):
        commands[f"reference {stores}"] = (bound + ["--", folder / "reference", "--algo", stores], {})
    commands["sockets free"] = (launch + ["--", folder / "sockets"], {})
    commands["sockets bound"] = (bound + ["--", folder / "sockets"], {})
    return {name: ([str(part) for part in command], extra) for name, (command, extra) in commands.items()
            if name.split()[0] in present}


class Failed(Exception):
    """A program did not come to its end, or said what is wrong."""

    def __init__(self, why, output=""):
        super().__init__(" ".join(why.split()))
        self.output = output  # what it had said until then


def run(command, extra, seconds):
    """What the program says."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "SOFTGPU_")) or k in extra}
    env.update(extra)
    try:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise Failed(f"{command[0]} does not start: {error}") from error
    try:
        out, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # what starts ranks ends them then
        try:
            out, _ = process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            out = ""
        raise Failed(f"`{' '.join(command)}` still ran after {seconds} s", out)
    if process.returncode != 0:
        raise Failed(f"`{' '.join(command)}` ended with {process.returncode}: {errors[-500:]}", out)
    return out


def time_tutti(options, build, command, seconds, budget, ways={}):
    """The JSON row of a run, if a call takes about `seconds`: as many timings of 10 ms as the budget allows."""
    calls = max(1, min(500, int(10e-3 / seconds)))
    repeats = max(3, min(100, int(budget / seconds / calls)))
    counts = ["-n", str(calls), "-w", str(max(3, min(calls, 50))), "--repeat", str(repeats)]
    out = run(REALTIME * options.realtime + command + counts, {"LD_LIBRARY_PATH": str(build / "src"), **ways}, 300)
    try:
        return json.loads(out)["results"][0]
    except (ValueError, LookupError, TypeError) as error:
        raise Failed(f"`{' '.join(command)}` said no result: {out[-300:]}") from error


def run_tutti(options, build, collective, world, ways, sizes, times, out_of_place):
    """Adds to `times` what each size takes, to `out_of_place` what it takes so if that is something else."""
    ranks, env = WORLDS[world][0], WAYS.get(world, ({}, []))[0]
    place = "in_place" if collective == "Broadcast" or options.in_place else "out_of_place"
    for size in sizes:
        command = [str(build / "softgpu-run"), "-n", str(ranks), str(build / f"bench/{PROGRAMS[collective]}_perf")]
        command += [*ways, "-b", str(size), "-e", str(size), "-z", "-a", "3", "-c", "0", "--json", "-"]
        seconds = 20e-6 + size * ranks / 4e9
        if size < 4 << 20:   # the peers' programs, too, see for themselves how many calls are enough
            seconds = time_tutti(options, build, command, seconds, options.budget / 5, env)[place]["time_us"] / 1e6
        row = time_tutti(options, build, command, seconds, options.budget, env)
        times[row["bytes"]] = row[place]["time_us"]
        if options.in_place:
            out_of_place[row["bytes"]] = row["out_of_place"]["time_us"]


def rows_of(output):
    """The lines that are whole: a program that was killed may have ended within one."""
    rows = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and {"bytes", "time_us_b2b"} <= row.keys():
                rows.append(row)
    return rows


def run_peer(options, command, extra, collective, sizes, realtime, times):
    """Adds to `times` what each size takes."""
    command = REALTIME * realtime + command + ["--op", collective.lower(), "--sizes", ",".join(map(str, sizes)),
                                               "--budget", str(options.budget)]
    command += ["--place", "in"] * options.in_place
    failure, output = None, ""
    try:
        output = run(command, extra, PEER_SECONDS + 10)
    except Failed as caught:
        failure, output = caught, caught.output
    rows = rows_of(output)
    times.update({row["bytes"]: row["time_us_b2b"] for row in rows if not row.get("errors")})
    wrong = [row["bytes"] for row in rows if row.get("errors")]
    if wrong:
        raise Failed(f"`{' '.join(command)}`: wrong results at {wrong} bytes")
    if failure:
        raise failure
    if not rows:
        raise Failed(f"`{' '.join(command)}` said no result")


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


def line_time(build):
    """Nanoseconds of a cache line between two processors; None: there is one, or the program was not built, or is kept
    waiting."""
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        said = subprocess.run([build / "bench/cache_line"], capture_output=True, text=True, timeout=60).stdout.strip()
        return int(said) if said.isdigit() else None
    return None


def run_program(options, build, what, program, sizes):
    """The row of one program in one round; where processors are to be near each other, of a run in which they were, if
    there is one among a few."""
    for _ in range(8 if options.near else 1):
        before = line_time(build)
        row = run_once(options, build, what, program, sizes)
        row["line_ns"] = max((t for t in (before, line_time(build)) if t is not None), default=None)
        if not options.near or row["line_ns"] is None or row["line_ns"] <= options.near:
            break
    return row


def run_once(options, build, what, program, sizes):
    """`what`: world, collective and name; `program`: options of ours, or a peer's command and environment."""
    ranks, times = WORLDS[what["world"]][0], {}
    wait_until_quiet(options.wait_quiet)
    began, busy, own = time.time(), busy_seconds(), child_seconds()
    row = {**what, "times": times, **({"in_place": True, "out_of_place": {}} if options.in_place else {})}
    try:
        if what["name"] in WORLDS[what["world"]][1]:
            run_tutti(options, build, what["collective"], what["world"], program, sizes, times,
                      row.get("out_of_place"))
        else:
            alone = options.realtime and ranks <= os.cpu_count()
            run_peer(options, *program, what["collective"], sizes, alone, times)
    except Failed as why:
        row["failed"] = str(why)
        print(f"{what['name']}, {what['collective']}, {what['world']}: {why}", file=sys.stderr, flush=True)
    others = (busy_seconds() - busy - (child_seconds() - own)) / (time.time() - began) / os.cpu_count()
    return {**row, "others": round(max(others, 0), 3), "load": round(os.getloadavg()[0], 2)}


def measure(options, raw):
    """The rows of this run, which it writes to `raw` as they come."""
    rows = []
    build, folder = options.build.resolve(), (options.peers or options.build / "peers").resolve()
    present = peers_present(folder)
    sizes = [size_of(s) for s in (options.sizes or (QUICK_SIZES if options.quick else ALL_SIZES)).split(",")]
    for number in range(options.runs):
        for world in options.worlds.split(","):
            ranks, ours = WORLDS[world]
            for collective in options.collectives.split(","):
                # The smallest size of a collective in blocks is one element for each rank.
                least = 4 if collective in ("AllReduce", "Broadcast", "SendRecv") else 4 * ranks
                wanted = sorted({max(size, least) for size in sizes})
                programs = {**ours, **peer_commands(folder, present, world, collective)}
                # Each round begins with another one: none is always the first after an idle time.
                turn = number % len(programs)
                for name, program in (list(programs.items()) * 2)[turn:turn + len(programs)]:
                    if options.in_place and name not in (*ours, *IN_PLACE_PEERS):
                        continue
                    if options.only and not any(part in name for part in options.only.split(",")):
                        continue
                    what = {"world": world, "collective": collective, "name": name, "round": number}
                    rows.append(run_program(options, build, what, program, wanted))
                    raw.write(json.dumps(rows[-1]) + "\n")
                    raw.flush()
        print(f"round {number + 1} of {options.runs} done at {time.strftime('%H:%M:%S')}", file=sys.stderr, flush=True)
    return rows


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--peers", type=pathlib.Path, help="what make -C bench/peers built; default BUILD/peers")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help=f"only sizes {QUICK_SIZES}, one round, short timings")
    parser.add_argument("--sizes", help=f"default {ALL_SIZES}")
    parser.add_argument("--worlds", default=DEFAULT_WORLDS)
    parser.add_argument("--collectives", default=DEFAULT_COLLECTIVES, help=f"default {DEFAULT_COLLECTIVES}; SendRecv")
    parser.add_argument("--in-place", action="store_true", help=f"of {', '.join(IN_PLACE)}; see above")
    parser.add_argument("--only", help="comma separated parts of program names, such as tutti,gloo")
    parser.add_argument("--budget", type=float, default=0.2, help="seconds of timed calls for one size of one program")
    parser.add_argument("--wait-quiet", type=float, default=0,
                        help="seconds to wait at most, before each program, for an idle machine")
    parser.add_argument("--near", type=int, default=0, metavar="NS",
                        help="repeat a program, a few times at most, while a cache line takes longer between processors")
    parser.add_argument("--realtime", action="store_true",
                        help="on a machine that others use: real-time priority for ours, and for peers with a core "
                        "for each rank")
    parser.add_argument("--raw", type=pathlib.Path,
                        help="append what every program said, one JSON object a line; tables are of all that is there")
    parser.add_argument("--tables", type=pathlib.Path, help="a file that --raw wrote: print its tables, run nothing")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    if options.in_place:
        options.collectives = ",".join(name for name in options.collectives.split(",") if name in IN_PLACE)
    if options.quick:
        options.runs, options.budget = 1, min(options.budget, 0.05)
    raw_path = options.tables or options.raw or pathlib.Path(tempfile.mkstemp(suffix=".jsonl")[1])
    measured = []
    if not options.tables:
        with open(raw_path, "a") as raw:
            measured = measure(options, raw)
    rows = [row for row in read_lines(raw_path) if row["world"] in options.worlds.split(",")]
    text = tables(rows)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")
    return 1 if ours_failed(measured) else 0


if __name__ == "__main__":
    sys.exit(main())
