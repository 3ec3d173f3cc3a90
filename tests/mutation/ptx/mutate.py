#!/usr/bin/env python3
"""Proves that tests of GPU code notice what only GPU code can have wrong: a release or an acquire that is none, a line
that is not written as one, a warp that is not together, an access that names the wrong space. The PTX of three kernels
is run on the software GPU in weak memory and random order; spoilt it must fail, and as it is it must not.

  mutate.py MUTANT_LIBRARY TEXT
"""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TUTTI_SOURCE"], "tests/e2e"))
from support import BUILD, SKIP, check, main, run_for_code  # pylint: disable=wrong-import-position

LIBRARY, TEXT = sys.argv[1:3]
TRANSLATOR = BUILD / "src/softgpu/libsoftgpu-ptx.so"
PROTOCOLS = ("LL", "LL128", "Simple")
SEEDS = 8  # a mutant is noticed under one of them


def run(mutant, protocol, seed, iterations=5):
    """The exit status and the words of AllReduce by this protocol. Each launch has a seed of its own, which follows
    from this one."""
    return run_for_code(3, BUILD / "bench/all_reduce_perf", "-g", 3, "-b", "4K", "-e", "64K", "-f", 16,
                        "-n", iterations, "-w", 1, "-c", 1, seconds=200, NCCL_ALGO="Ring", NCCL_PROTO=protocol,
                        SOFTGPU_KERNELS="PTX", SOFTGPU_PTX_LIBRARY=LIBRARY, TUTTI_MUTANT_OF=TRANSLATOR,
                        TUTTI_MUTANT=mutant, TUTTI_MUTANT_TEXT=TEXT, SOFTGPU_WEAK_MEMORY=seed,
                        SOFTGPU_SCHEDULE=f"random:{seed}", NCCL_DEBUG="WARN")


def noticed(mutant, protocol):
    for seed in range(1, SEEDS + 1):
        code, words = run(mutant, protocol, seed)
        check("places" in words and " 0 places" not in words, f"nothing was spoilt: {words}")
        if code != 0:
            return words
    check(False, f"{mutant} was not noticed with {protocol} under {SEEDS} seeds")


def kernels_are_right_as_they_are():
    for protocol in PROTOCOLS:
        code, words = run("none", protocol, 1, iterations=20)
        check(code == 0 and "Out of bounds values : 0 OK" in words, f"{protocol}: {words}")


def a_release_that_is_none_is_noticed():
    check("FAILED" in noticed("release", "Simple"), "no wrong values")


def an_acquire_that_is_none_is_noticed():
    check("FAILED" in noticed("acquire", "Simple"), "no wrong values")


def a_line_that_is_not_written_as_one_is_noticed():
    check("FAILED" in noticed("width", "LL128"), "no wrong values")


def a_warp_that_is_taken_to_be_together_is_noticed():
    check("FAILED" in noticed("together", "LL128"), "no wrong values")


def an_access_that_names_the_wrong_space_is_noticed():
    check("so low an address" in noticed("global", "Simple"), "it is not told what is wrong")


if __name__ == "__main__":
    code_, words_ = run("none", "LL", 1)
    if code_ != 0 and ("without GPU kernels" in words_ or "machine code only" in words_):
        print("skipped: this build has no GPU kernels with PTX")
        sys.exit(SKIP)
    main(kernels_are_right_as_they_are, a_release_that_is_none_is_noticed, an_acquire_that_is_none_is_noticed,
         a_line_that_is_not_written_as_one_is_noticed, a_warp_that_is_taken_to_be_together_is_noticed,
         an_access_that_names_the_wrong_space_is_noticed)
