#!/usr/bin/env python3
"""Two ranks over the network IB, beside the network Socket, and perftest's programs as the roof, in one run.

usage: compare_verbs.py [--build BUILD] [--rounds N] [--seconds N] [--latency] [-o TABLE.md]

Runs in a virtual machine with two software RDMA NICs (tests/rdma/vm; `tools/install-deps --rdma` fetches what it needs,
perftest is a package of Debian's: without it its columns stay empty). Each rank is a process with a NIC of its own; for
Socket the same NICs' Ethernet ports. A round starts every program once, in turn; a cell is the median over rounds, of
the runs that did not fail.

  message   rank 0 -> rank 1 by a Broadcast: bytes / time of a call, calls back to back
  both ways SendRecv, each rank to the other: bytes one way / time of a call
  latency   SendRecv of 8 bytes: the time of a call, which waits for the other's
  alone     net_alone: a network without GPUs and kernels, messages of one direction and, of IB, half a round trip
  roof      ib_write_bw and ib_write_lat between the same NICs, with our settings of the queue pair

--latency measures what 8 bytes take alone, with and without what our network does beyond perftest's programs.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {"64K": 64 << 10, "256K": 256 << 10, "1M": 1 << 20, "4M": 4 << 20}
# What is not answered is repeated after 4 s: with 67 ms (14) the emulated NICs repeat, on a busy machine, messages that are
# only long, until one refuses them (IBV_WC_REM_INV_REQ_ERR).
COMMON = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_TIMEOUT": "20", "NCCL_IB_RETRY_CNT": "6",
          "NCCL_SOCKET_IFNAME": "roce"}
NETWORKS = ("IB", "Socket")


def said_by(command, name, **env):
    """What the command prints. None: it failed, which stderr says by the name, or ran for more than 200 s."""
    child = subprocess.Popen(command, env={**os.environ, **COMMON, **env}, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        said, _ = child.communicate(timeout=200)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        said = child.communicate()[0] + "\nstill running after 200 s"
    if child.returncode == 0:
        return said
    print(f"{name} ended with {child.returncode}:\n{said[-3000:]}", file=sys.stderr, flush=True)
    return None


def bench(build, program, network, size, iterations):
    """Microseconds of a call, median of five timings. None: the program has failed, and said why on stderr."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [build / "softgpu-run", "-n", "2", build / "bench" / f"{program}_perf", "-p", "2", "-b", str(size), "-e",
                   str(size), "-n", str(iterations), "-w", "5", "--repeat", "5", "-a", "3", "--json", out.name]
        if said_by(command, f"{program} of {size} bytes over {network}", NCCL_NET=network) is None:
            return None
        text = pathlib.Path(out.name).read_text()
    return json.loads(text)["results"][0]["out_of_place"]["time_us"]


def perftest(program, *options):
    """What it prints last: the row of numbers of its one size. None: it is not there, or failed."""
    if shutil.which(program) is None:
        return None
    server = subprocess.Popen([program, "-d", "rxe1", "-x", "1", "-F", *options], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        client = subprocess.run([program, "-d", "rxe0", "-x", "1", "-F", *options, "10.77.0.2"], capture_output=True,
                                text=True, timeout=60, check=False)
        rows = [line.split() for line in client.stdout.splitlines() if re.match(r"^ *\d+ +\d+ +[\d.]+", line)]
        return [float(word) for word in rows[-1]] if rows else None
    except subprocess.TimeoutExpired:
        return None
    finally:
        server.kill()
        server.wait()


def roof(size):
    """MB/s of writes of this size, as ib_write_bw's column of the average has it in MiB/s."""
    row = perftest("ib_write_bw", "-s", str(size), "-n", "200" if size > 1 << 20 else "500")
    return row[3] * 1.048576 if row else None


def latency_roof(program="ib_write_lat"):
    """Microseconds one way of 8 bytes, perftest's typical one."""
    row = perftest(program, "-s", "8", "-n", "500")
    return row[4] if row else None


def alone(build, network, sizes=(8, *SIZES.values()), *options):
    """A network without GPUs: {bytes: (microseconds one way, MB/s)}. Empty: it failed, and said why on stderr."""
    command = [build / "bench/net_alone", "--net", network, "--devices", "0,1", "--repeats", "1", *options, "--sizes",
               ",".join(map(str, sizes))]
    said = said_by(command, f"net_alone over {network}") or ""
    # Beside Socket stands plain TCP, which is not looked at here.
    rows = re.findall(r"^ *(\d+) +([\d.]+)(?: +([\d.]+))?(?: .*)?$", said, re.M)
    return {int(size): (float(us), float(rate) * 1000 if rate else None) for size, us, rate in rows}


PARTS = {"ib_write_lat: a write, whose target is watched in memory": None,
         "ib_send_lat: a message into a receive, a completion at each end": None,
         "the network IB": (),
         "the same, which never gives its processor away": ("--spin",),
         "the same, with each receive granted before it is waited for": ("--ahead",),
         "the same, with both": ("--spin", "--ahead")}


def taken_apart(build, rounds):
    """What 8 bytes take one way, by PARTS."""
    found = {}
    for _ in range(rounds):
        for name, options in PARTS.items():
            spent = latency_roof(name.split(":")[0]) if options is None else alone(build, "IB", (8,), *options).get(8, (None,))[0]
            found.setdefault(name, []).append(spent)
    return found


def parts_table(found):
    lines = [f"8 bytes one way, medians of {len(next(iter(found.values())))} rounds.", "", "| what | us |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {cell(median(values), 1)} |" for name, values in found.items()]) + "\n"


def inside(build, rounds, seconds):
    found = {}
    begun = time.monotonic()
    for number in range(rounds):
        if number > 0 and time.monotonic() - begun > seconds * number / rounds * 1.5:
            break
        for name, size in SIZES.items():
            iterations = max(3, (8 << 20) // size)
            for network in NETWORKS:
                for kind, program in (("message", "broadcast"), ("both ways", "sendrecv")):
                    spent = bench(build, program, network, size, iterations)
                    found.setdefault(f"{kind} {network} {name}", []).append(size / spent if spent else None)
            found.setdefault(f"roof {name}", []).append(roof(size))
        for network in NETWORKS:
            without_gpus = alone(build, network)
            for name, size in SIZES.items():
                found.setdefault(f"alone {network} {name}", []).append(without_gpus.get(size, (None, None))[1])
            if network == "IB":
                found.setdefault("latency alone", []).append(without_gpus.get(8, (None, None))[0])
        for network in NETWORKS:
            found.setdefault(f"latency {network}", []).append(bench(build, "sendrecv", network, 8, 200))
        found.setdefault("latency roof", []).append(latency_roof())
        print(f"round {number + 1} after {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return found


def median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def cell(value, digits=0):
    return "" if value is None else f"{value:.{digits}f}"


def ratio(a, b):
    return "" if a is None or not b else f"{a / b:.2f}"


def table(found):
    m = {key: median(values) for key, values in found.items()}
    rounds = len(next(iter(found.values())))
    lines = [f"Median of {rounds} rounds; MB/s of one direction.", "",
             "| size | message, IB | Socket | IB / Socket | both ways, IB | Socket | IB / Socket |",
             "|---|---|---|---|---|---|---|"]
    for name in SIZES:
        cells = []
        for kind in ("message", "both ways"):
            ours, theirs = (m[f"{kind} {network} {name}"] for network in NETWORKS)
            cells += [cell(ours), cell(theirs), ratio(ours, theirs)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| size | alone, IB | Socket | IB / Socket | ib_write_bw | alone, IB / roof | roof / alone, Socket |",
              "|---|---|---|---|---|---|---|"]
    for name in SIZES:
        ours, theirs, top = m[f"alone IB {name}"], m[f"alone Socket {name}"], m[f"roof {name}"]
        lines.append(f"| {name} | {cell(ours)} | {cell(theirs)} | {ratio(ours, theirs)} | {cell(top)} | "
                     f"{ratio(ours, top)} | {ratio(top, theirs)} |")
    ours, theirs, bare, top = (m[f"latency {what}"] for what in ("IB", "Socket", "alone", "roof"))
    lines += ["", f"8 bytes: IB {cell(ours)} us, Socket {cell(theirs)} us, the network IB alone {cell(bare)} us, "
              f"ib_write_lat {cell(top, 1)} us; IB / roof {ratio(ours, top)}, alone / roof {ratio(bare, top)}."]
    missing = [f"{key} ({values.count(None)} of {len(values)})" for key, values in found.items()
               if None in values and "roof" not in key]
    if missing:
        lines += ["", f"Without runs that failed: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=1500, help="no round begins when that is likely to be passed")
    parser.add_argument("--latency", action="store_true", help="of 8 bytes alone, taken apart")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    build = asked.build.resolve()
    if asked.inside:
        found = taken_apart(build, asked.rounds) if asked.latency else inside(build, asked.rounds, asked.seconds)
        json.dump(found, sys.stdout)
        return 0
    command = [HERE.parent / "tests/rdma/vm", "--timeout", str(asked.seconds + 300), "--mem", "2048", "--", sys.executable,
               HERE / "compare_verbs.py", "--inside", "--build", build, "--rounds", str(asked.rounds), "--seconds",
               str(asked.seconds), *(["--latency"] if asked.latency else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    if done.returncode != 0:
        print(f"compare_verbs: the virtual machine ended with {done.returncode}", file=sys.stderr)
        return 1
    text = (parts_table if asked.latency else table)(json.loads(done.stdout))
    if asked.output:
        asked.output.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
