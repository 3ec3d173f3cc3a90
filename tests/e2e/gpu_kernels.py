#!/usr/bin/env python3
"""What nvcc makes runs on the software GPU and gives the right results: the library's kernels, with their inline
assembly, and a program's own."""
import os
import sys
import tempfile

from failures import close, expect_errors, kill, start
from support import BUILD, SKIP, Process, check, free_port, main, run, run_for_code
from trace_file import WHOLE, Kind, TraceFile

CONFORMANCE = BUILD / "tests/e2e/conformance"
PERF = BUILD / "bench/all_reduce_perf"
PROTOCOLS = ("LL", "LL128", "Simple")
# Each program finds what those before it have translated.
FOLDER = tempfile.TemporaryDirectory(prefix="tutti-gpu-kernels-")
CACHE = FOLDER.name


def ptx(devices, *command, **env):
    return run(devices, *command, seconds=400, SOFTGPU_KERNELS="PTX", SOFTGPU_PTX_CACHE=CACHE, NCCL_DEBUG="WARN", **env)


def conforms(ranks, *arguments, **env):
    said = ptx(ranks, CONFORMANCE, "--ranks", ranks, "--quick", *arguments, **env)
    check(" 0 wrong" in said, said[-2000:])


def every_protocol_of_ring_and_tree():
    for algorithm in ("Ring", "Tree"):
        for protocol in PROTOCOLS:
            conforms(3, "--only", "all_reduce", "--types", "float", NCCL_ALGO=algorithm, NCCL_PROTO=protocol)


def what_is_chosen_for_each_collective():
    conforms(2, "--types", "float")


def over_shared_memory_and_tcp():
    for disabled in ({"NCCL_P2P_DISABLE": 1}, {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}):
        conforms(2, "--types", "float", **disabled)
        # Long enough for what kernels for the host do past their slots.
        said = ptx(2, PERF, "-g", 2, "-b", "1M", "-e", "4M", "-f", 4, "-n", 2, "-w", 1, "-c", 1, **disabled)
        check("Out of bounds values : 0 OK" in said, said)


def kernels_of_both_forms_do_not_meet():
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(2, [BUILD / "tests/e2e/hello"], RANK=r, SIZE=2, NCCL_COMM_ID=address, NCCL_DEBUG="WARN",
                     SOFTGPU_PTX_CACHE=CACHE, **({"SOFTGPU_KERNELS": "PTX"} if r == 1 else {})) for r in (0, 1)]
    try:
        for process in ranks:
            check(process.wait(60) != 0, process.output())
            check("Mismatched SOFTGPU_KERNELS" in process.output(), process.output())
    finally:
        for process in ranks:
            process.close()


def halves_and_small_floats():
    conforms(2, "--only", "all_reduce", "--types", "half,bfloat16,f8e4m3", NCCL_ALGO="Ring", NCCL_PROTO="Simple")


def threads_in_any_order():
    # Each launch has an order of its own, which follows from the seed.
    for seed in range(1, 5):
        for protocol in PROTOCOLS:
            said = ptx(3, PERF, "-g", 3, "-b", 64, "-e", "16K", "-f", 16, "-n", 5, "-w", 1, "-c", 1, NCCL_ALGO="Ring",
                       NCCL_PROTO=protocol, SOFTGPU_SCHEDULE=f"random:{seed}")
            check("Out of bounds values : 0 OK" in said, f"seed {seed}, {protocol}:\n{said}")


def kernels_of_survivors_end_when_a_rank_is_killed():
    for protocol in ("LL128", "Simple"):
        processes = start(range(4), 4, free_port(), SOFTGPU_KERNELS="PTX", SOFTGPU_PTX_CACHE=CACHE, NCCL_PROTO=protocol)
        try:
            for process in processes.values():
                process.wait_for("reduced 8", 300)
            kill(processes[2])
            del processes[2]
            expect_errors(processes, 2)
        finally:
            close(processes)


def channels_are_timed_by_the_clock_of_their_kernel():
    # Calls that follow each other within 4 ms are not timed, nor are those of a device that is too busy to say its time.
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            ptx(2, PERF, "-g", 2, "-b", "64K", "-e", "64K", "-n", 20, "-w", 1, "-c", 0, NCCL_ALGO="Ring",
                TUTTI_TRACE=f"{folder}/a.trace")
            told = TraceFile(os.path.join(folder, "a.trace")).of(Kind.KERNEL)
        kernels = {(one.comm, one.number): one for one in told if one.a == WHOLE}
        channels = [one for one in told if one.a != WHOLE]
        if len({comm for comm, _ in kernels}) == 2:
            break
    check(len({comm for comm, _ in kernels}) == 2, f"{len(kernels)} kernels, not of both ranks")
    for launch, kernel in kernels.items():
        own = [one for one in channels if (one.comm, one.number) == launch]
        check(len({one.a for one in own}) == len(own) > 0, f"channels of launch {launch}: {own}")
        check(all(kernel.begin <= one.begin < one.end <= kernel.end for one in own), f"{kernel}\n{own}")
    check({(one.comm, one.number) for one in channels} == set(kernels), "each channel has its kernel")


def training_with_kernels_of_its_own_ends_with_the_weights_of_the_host():
    said = run(4, BUILD / "examples/05_own_kernels", 4, 100, SOFTGPU_PTX_CACHE=CACHE)
    check("4 devices: weights differ by at most" in said, said)
    losses = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("loss")]
    check(len(losses) == 2 and losses[1] < 0.9 * losses[0], said)


def kernels_for_the_host_are_not_needed():
    ptx(2, PERF, "-g", 2, "-b", 64, "-e", 64, "-n", 1, "-w", 1, "-c", 1, TUTTI_KERNELS_PATH="/nowhere/kernels.so")


if __name__ == "__main__":
    if not (BUILD / "src/softgpu/libsoftgpu-ptx.so").exists():
        print("skipped: the software GPU was built without LLVM")
        sys.exit(SKIP)
    code, words = run_for_code(2, PERF, "-g", 2, "-b", 64, "-e", 64, "-n", 1, "-w", 1, SOFTGPU_KERNELS="PTX",
                               SOFTGPU_PTX_CACHE=CACHE, NCCL_DEBUG="WARN", seconds=120)
    if code != 0 and ("without GPU kernels" in words or "machine code only" in words):
        print("skipped: this build has no GPU kernels with PTX")
        sys.exit(SKIP)
    main(every_protocol_of_ring_and_tree, what_is_chosen_for_each_collective, over_shared_memory_and_tcp,
         kernels_of_both_forms_do_not_meet, halves_and_small_floats, threads_in_any_order,
         kernels_of_survivors_end_when_a_rank_is_killed, kernels_for_the_host_are_not_needed,
         channels_are_timed_by_the_clock_of_their_kernel,
         training_with_kernels_of_its_own_ends_with_the_weights_of_the_host)
