#!/usr/bin/env python3
"""Holds include/ against another description of the same interfaces, where there is one: the folder that is given, with
plugin_abi_all.h, which all its headers hang on, and layout_check.c, which knows the place of every member.

Every plugin of the tests, in each of its versions, becomes the same code with the headers of either side; and what
layout_check.c knows holds for include/. Without the folder: skipped, by name."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "tests/plugin"
NETWORK = PLUGIN / "network"
SKIPPED = 77

# The other headers by the names of ours, with what only the public header declares.
HEADERS = ("nccl_collnet.h", "nccl_env.h", "nccl_net.h", "nccl_net_types.h", "nccl_profiler.h",
           "nccl_profiler_events.h", "nccl_tuner.h")
OTHERS_HEADER = """
#ifndef OTHERS_H_
#define OTHERS_H_
#include "plugin_abi_all.h"
#define NCCL_PLUGIN_EXPORT __attribute__((visibility("default")))
typedef struct { char internal[128]; } ncclUniqueId;
#endif
"""
OUR_HEADERS = "".join(f'#include "{name}"\n' for name in HEADERS)

VERSIONS = {
    "network/test_net.c": ("TEST_NET_VERSION", range(6, 13)),
    "network/test_collnet.c": ("TEST_NET_VERSION", range(6, 13)),
    "test_env.c": ("TEST_ENV_VERSION", range(1, 3)),
    "test_profiler.c": ("TEST_PROFILER_VERSION", range(1, 7)),
    "test_tuner.c": ("TEST_TUNER_VERSION", range(2, 7)),
}
# Interfaces that tutti does not have.
NOT_OURS = re.compile(r"ncclGin|ncclRma|NCCL_GIN|NCCL_RMA")


def compiled(source, options):
    """The assembly of a source."""
    command = ["cc", "-std=c11", "-O1", "-fno-asynchronous-unwind-tables", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               "-D_GNU_SOURCE", "-DNCCL_NO_CUDA_HEADERS", f"-I{ROOT / 'tests'}", *options, "-S", "-o", "-", str(source)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{run.stderr}")
    return run.stdout


def sources():
    """Every source of a plugin, with the options of each version."""
    for path in sorted([*PLUGIN.glob("*.c"), *NETWORK.glob("*.c")]):
        macro, versions = VERSIONS.get(str(path.relative_to(PLUGIN)), (None, (0,)))
        for version in versions:
            yield path, [f"-D{macro}={version}"] if macro else []


def compare(path, options, theirs):
    ours = compiled(path, [f"-I{ROOT / 'include'}", *options])
    if ours != compiled(path, [*theirs, *options]):
        raise SystemExit(f"{path.relative_to(ROOT)} {' '.join(options)} is other code with the other headers")


def check_layout(folder, scratch):
    """What layout_check.c asserts of the interfaces that are ours; how much that is."""
    lines = (folder / "layout_check.c").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not NOT_OURS.search(line)]
    (scratch / "include").mkdir()
    (scratch / "include/plugin_abi_all.h").write_text(OUR_HEADERS)
    (scratch / "src").mkdir()
    (scratch / "src/layout_check.c").write_text("".join(kept))
    compiled(scratch / "src/layout_check.c", [f"-I{ROOT / 'include'}"])
    return sum("_Static_assert" in line for line in kept)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared/spec/abi"
    if not (folder / "plugin_abi_all.h").exists():
        print(f"skipped: no other description of the interfaces in {folder}")
        return SKIPPED
    folder = folder.resolve()
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        (scratch / "others").mkdir()
        for header in HEADERS:
            (scratch / "others" / header).write_text(OTHERS_HEADER)
        theirs = [f"-I{scratch / 'others'}", f"-I{folder}"]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(compare, path, options, theirs) for path, options in sources()]
            for job in jobs:
                job.result()
        asserted = check_layout(folder, scratch)
    if len(jobs) < 30 or asserted < 1000:
        raise SystemExit(f"only {len(jobs)} sources and {asserted} members were compared")
    print(f"{len(jobs)} sources are the same code with either headers; {asserted} facts about members hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
