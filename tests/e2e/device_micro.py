#!/usr/bin/env python3
"""The benchmark of one GPU works on the software GPU: it has every figure, its kernels move the right bytes, and its
search for torn lines and stale data finds none, but does where nothing orders them."""
import json
import pathlib
import sys
import tempfile

from support import BUILD, SKIP, check, main, run_for_code

MICRO = BUILD / "bench/device_micro/device_micro"
ITEMS = ("clocks", "stress", "pingpong", "fence", "launch", "copy", "reduce")
FOLDER = tempfile.TemporaryDirectory(prefix="tutti-device-micro-")


def micro(*arguments, seconds=300, **env):
    """Exit code, output, and the figures of a quick run."""
    file = pathlib.Path(FOLDER.name, "figures.json")
    file.unlink(missing_ok=True)
    code, said = run_for_code(1, MICRO, "--quick", "--seconds", seconds, "--json", file, *arguments, seconds=400,
                              SOFTGPU_PTX_CACHE=FOLDER.name, **env)
    return code, said, json.loads(file.read_text()) if file.exists() else None


def of(figures, item):
    return [result for result in figures["results"] if result["item"] == item]


def every_item_has_figures():
    code, said, figures = micro()
    check(code == 0 and figures["error"] == "" and not figures["failures"] and not figures["skipped"], said)
    for item in ITEMS:
        check(of(figures, item) and f"({item} took" in said, f"{item} is missing:\n{said}")
    check(len({result["kernel"] for result in of(figures, "copy")}) == 17, said)
    check(len({result["kernel"] for result in of(figures, "reduce")}) == 12, said)
    check(all(result["gb_per_s"] > 0 for result in of(figures, "copy") + of(figures, "reduce")), said)
    check({result["protocol"] for result in of(figures, "pingpong")} == {"LL", "LL128", "Simple", "word"}, said)
    check(all(result["one_way_ns"] > 0 for result in of(figures, "pingpong")), said)
    tests = of(figures, "stress")
    check(len(tests) == 6 and all(test["fresh"] > 0 for test in tests), said)
    check(all(test["torn"] == 0 for test in tests if test["must_hold"]), said)


def what_nothing_orders_is_found_stale_in_weak_memory():
    code, said, figures = micro("--only", "stress", SOFTGPU_WEAK_MEMORY=5, SOFTGPU_SCHEDULE="random:5")
    check(code == 0, said)
    for test in of(figures, "stress"):
        check((test["torn"] == 0) == test["must_hold"], f"{test}\n{said}")


def a_missing_gpu_is_said_with_its_remedy():
    code, said, figures = micro(CUDA_VISIBLE_DEVICES="")
    check(code == 2 and figures is None, said)
    check("CUDA_ERROR_NO_DEVICE" in said and "CUDA_VISIBLE_DEVICES" in said, said)


def items_are_chosen_and_checked():
    code, said, figures = micro("--only", "clocks,launch")
    check(code == 0 and {result["item"] for result in figures["results"]} == {"clocks", "launch"}, said)
    code, said, _ = micro("--only", "lunch")
    check(code not in (0, 1, 2) and "lunch" in said, said)


def no_measurement_begins_after_the_limit():
    code, said, figures = micro(seconds=0.000001)
    check(code == 0 and not figures["results"] and len(figures["skipped"]) == len(ITEMS), said)


if __name__ == "__main__":
    if not (BUILD / "src/softgpu/libsoftgpu-ptx.so").exists():
        print("skipped: the software GPU was built without LLVM")
        sys.exit(SKIP)
    code, said, _ = micro("--only", "clocks")
    if code == 2 and "CUDA_ERROR_NO_BINARY_FOR_GPU" in said:
        print("skipped: this build has no GPU kernels with PTX")
        sys.exit(SKIP)
    main(every_item_has_figures, what_nothing_orders_is_found_stale_in_weak_memory,
         a_missing_gpu_is_said_with_its_remedy, items_are_chosen_and_checked, no_measurement_begins_after_the_limit)
