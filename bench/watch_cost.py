#!/usr/bin/env python3
"""What everything that watches costs, in one run: all_reduce_perf as it is and with one thing more or less, in turn.

  bench/watch_cost.py [--build build] [--rounds 15] [--bytes 65536] [--times 1000]

Prints a table of 2 and 4 ranks over memory and over TCP: the medians, over rounds, of the time with something divided
by the time of the same round with nothing set. `NCCL_RAS_ENABLE=0` and `TUTTI_STALL_SEC=0` take away what is always on.
"""
import os
import random
import statistics
import tempfile

from ratios import microseconds, options_of

JOINED = {"memory": {}, "TCP": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}}


def watchers(build, folder):
    empty = {"NCCL_PROFILER_PLUGIN": str((build / "bench/libnccl-profiler-empty.so").resolve())}
    return {
        "a trace (`TUTTI_TRACE`)": {"TUTTI_TRACE": f"{folder}/%p.trace"},
        "a profiler plugin that asks for nothing": empty | {"EMPTY_PROFILER_MASK": "0"},
        "a profiler plugin, every event": empty | {"EMPTY_PROFILER_MASK": "0x7fff"},
        "calls compared before each launch (`TUTTI_CHECK_CALLS=1`)": {"TUTTI_CHECK_CALLS": "1"},
        "no RAS (`NCCL_RAS_ENABLE=0`)": {"NCCL_RAS_ENABLE": "0"},
        "no reports of stalls (`TUTTI_STALL_SEC=0`)": {"TUTTI_STALL_SEC": "0"},
        "nothing, once more": {},
    }


def main():
    parser = options_of(__doc__, ranks=None)
    parser.set_defaults(times=1000)
    options = parser.parse_args()
    columns = [(ranks, way) for way in JOINED for ranks in (2, 4)]
    with tempfile.TemporaryDirectory() as folder:
        found = watchers(options.build, folder)
        ratios = {(name, column): [] for name in found for column in columns}
        plain = {column: [] for column in columns}
        for _ in range(options.rounds):
            for column in columns:
                options.ranks, way = column
                order = [None, *found]
                random.shuffle(order)
                took = {}
                for name in order:
                    took[name] = microseconds(options, JOINED[way] | (found[name] if name else {}))
                    for trace in os.listdir(folder):
                        os.unlink(f"{folder}/{trace}")
                plain[column].append(took[None])
                for name in found:
                    ratios[name, column].append(took[name] / took[None])
    print(f"{options.bytes} bytes, {options.rounds} rounds of {options.times} operations, load "
          f"{os.getloadavg()[0]:.1f}\n")
    print("| with | " + " | ".join(f"{ranks} ranks, {way}" for ranks, way in columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    print("| time of an operation with nothing set, us | "
          + " | ".join(f"{statistics.median(plain[column]):.1f}" for column in columns) + " |")
    for name in found:
        medians = [f"{statistics.median(ratios[name, column]):.3f}" for column in columns]
        print(f"| {name} | " + " | ".join(medians) + " |")


if __name__ == "__main__":
    main()
