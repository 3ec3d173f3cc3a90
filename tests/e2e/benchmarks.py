#!/usr/bin/env python3
"""The benchmarks run in one process, in threads and in processes, print the known columns, and find nothing wrong."""
import json
import tempfile

from support import BUILD, check, main, run, run_for_code

BENCH = BUILD / "bench"
COLUMNS = ["size", "count", "type", "redop", "root"] + 2 * ["time", "algbw", "busbw", "#wrong"]
WAYS = {"gpus": ["-g", "8"], "threads": ["-t", "4", "-g", "2"], "processes": ["-p", "4"]}


def every_way_of_running_is_correct():
    for way, options in WAYS.items():
        said = run(8, BENCH / "all_reduce_perf", "-b", "8", "-e", "4M", "-f", "8", "-n", "2", "-w", "1", *options, seconds=300)
        check("# Out of bounds values : 0 OK" in said, f"{way}: {said}")
        columns = [line.split()[1:] for line in said.splitlines() if line.startswith("#") and "busbw" in line]
        check(columns == [COLUMNS], f"{way}: the columns are {columns}: {said}")
        rows = [line.split() for line in said.splitlines() if line.strip() and not line.startswith("#")]
        sizes = [8 ** i for i in range(1, 8)]
        check([int(row[0]) for row in rows] == sizes and all(len(row) == len(COLUMNS) for row in rows), f"{way}: {said}")


def every_collective_is_correct():
    for name in ("all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv", "alltoall", "gather", "scatter"):
        said = run(4, BENCH / f"{name}_perf", "-b", "8", "-e", "1M", "-f", "32", "-g", "4", "-n", "2", "-w", "1", "-r", "0")
        check("# Out of bounds values : 0 OK" in said, f"{name}: {said}")


def every_root_gathers_and_scatters():
    for name in ("gather", "scatter", "broadcast", "reduce"):
        for root in (1, 2):
            said = run(3, BENCH / f"{name}_perf", "-b", "12", "-e", "1200K", "-f", "100", "-t", "3", "-n", "2", "-w", "1", "-r", root)
            check("# Out of bounds values : 0 OK" in said, f"{name} from rank {root}: {said}")


def random_schedules_change_nothing():
    for seed in range(1, 21):
        way = list(WAYS.values())[seed % 3]
        said = run(8, BENCH / "all_reduce_perf", "-b", "8", "-e", "1M", "-f", "32", "-n", "1", "-w", "0", *way,
                   seconds=300, SOFTGPU_SCHEDULE=f"random:{seed}")
        check("# Out of bounds values : 0 OK" in said, f"seed {seed}: {said}")


def several_ranks_share_one_device():
    said = run(1, BENCH / "all_reduce_perf", "-b", "8", "-e", "256K", "-f", "32", "-n", "2", "-w", "1", "-t", "2", "-g", "2")
    check("# Out of bounds values : 0 OK" in said, said)
    said = run(1, BENCH / "all_reduce_perf", "-b", "8", "-e", "256K", "-f", "32", "-n", "2", "-w", "1", "-p", "2")
    check("# Out of bounds values : 0 OK" in said, said)
    for way in (["-t", "2"], ["-p", "2"], ["-g", "2"]):
        code, said = run_for_code(1, BENCH / "all_reduce_perf", "-b", "8", *way, NCCL_MULTI_RANK_GPU_ENABLE=0)
        check(code != 0 and "NCCL_MULTI_RANK_GPU_ENABLE is 0" in said, f"{way}: ended with {code}: {said}")


def json_holds_the_figures():
    with tempfile.NamedTemporaryFile() as file:
        run(2, BENCH / "all_reduce_perf", "-b", "1K", "-e", "4K", "-f", "2", "-g", "2", "-n", "2", "--repeat", "3", "--json", file.name)
        figures = json.load(open(file.name))
    check(figures["wrong"] == 0 and [r["bytes"] for r in figures["results"]] == [1024, 2048, 4096], figures)
    check(all(r["out_of_place"]["time_us"] > 0 for r in figures["results"]), figures)


def calls_can_be_timed_in_graphs():
    for way in (["-g", "2"], ["-t", "2"], ["-p", "2"]):
        said = run(2, BENCH / "all_reduce_perf", "-b", "8", "-e", "256K", "-f", "32", "-n", "3", "-w", "1", "-G", "4", *way)
        check("# Out of bounds values : 0 OK" in said, f"{way}: {said}")


def copies_within_a_device_are_timed():
    said = run(1, BENCH / "device_copy_perf", "-b", "64K", "-e", "256K", "-n", "2")
    check(len([line for line in said.splitlines() if not line.startswith("#")]) == 2, said)


def bad_options_are_refused():
    for options, text in ((["-b", "many"], "'many' is not a size"), (["-d", "float99"], "'float99' is no data type"),
                          (["-o", "xor"], "'xor' is no reduction"), (["-r", "7"], "one of the 1 ranks"),
                          (["-n", "0"], "not in range"), (["--sizes", "8"], "not expected")):
        code, said = run_for_code(1, BENCH / "broadcast_perf", *options)
        check(code > 1 and text in said, f"{options} ended with {code}: {said}")


if __name__ == "__main__":
    main(every_way_of_running_is_correct, every_collective_is_correct, every_root_gathers_and_scatters,
         random_schedules_change_nothing, several_ranks_share_one_device, json_holds_the_figures, calls_can_be_timed_in_graphs,
         copies_within_a_device_are_timed, bad_options_are_refused)
