#!/usr/bin/env python3
"""The kernels that nvcc makes, with their inline assembly, run on the software GPU and give the right results."""
import os
import sys
import tempfile

from support import BUILD, SKIP, check, main, run, run_for_code

CONFORMANCE = BUILD / "tests/e2e/conformance"
PERF = BUILD / "bench/all_reduce_perf"
PROTOCOLS = ("LL", "LL128", "Simple")
# Translated code is kept for the next program, and for the next run of this test where the machine keeps /tmp.
CACHE = tempfile.mkdtemp(prefix="tutti-gpu-kernels-")


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


def halves_and_small_floats():
    conforms(2, "--only", "all_reduce", "--types", "half,bfloat16,f8e4m3", NCCL_ALGO="Ring", NCCL_PROTO="Simple")


def threads_in_any_order():
    for seed in range(1, 21):
        for protocol in PROTOCOLS:
            said = ptx(3, PERF, "-g", 3, "-b", 64, "-e", "16K", "-f", 16, "-n", 2, "-w", 1, "-c", 1, NCCL_ALGO="Ring",
                       NCCL_PROTO=protocol, SOFTGPU_SCHEDULE=f"random:{seed}")
            check("Out of bounds values : 0 OK" in said, f"seed {seed}, {protocol}:\n{said}")


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
    try:
        main(every_protocol_of_ring_and_tree, what_is_chosen_for_each_collective, halves_and_small_floats,
             threads_in_any_order, kernels_for_the_host_are_not_needed)
    finally:
        for name in os.listdir(CACHE):
            os.remove(os.path.join(CACHE, name))
        os.rmdir(CACHE)
