#!/usr/bin/env python3
"""A program linked against the vendor's libnccl.so.2 and CUDA runtime runs on ours, unmodified."""
import pathlib
import subprocess
import sys
import tempfile

from support import LIBRARY, SKIP, SOURCE, check, main, run

HOMES = [pathlib.Path(p) for p in ("/usr/local/cuda", "/usr/local/cuda-13.0", "/usr/local/cuda-13")]


def find(*names):
    for home in HOMES:
        for name in names:
            if (home / name).exists():
                return home / name
    return None


def build(folder, header, nccl, cudart):
    program = pathlib.Path(folder) / "drop_in"
    subprocess.run(["g++", "-std=c++17", "-O1", SOURCE / "tests/e2e/drop_in.cc", "-o", program, "-I", header.parent, nccl, cudart,
                    "-pthread"], check=True)
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    check("libnccl.so.2" in needed and "libcudart.so.13" in needed, needed)
    return program


def vendor_linked_program_runs_on_ours():
    header = find("include/nccl.h")
    nccl = find("lib64/libnccl.so.2", "lib/libnccl.so.2")
    cudart = find("lib64/libcudart.so.13", "lib/libcudart.so.13")
    if not (header and nccl and cudart):
        print("skipped: the vendor's nccl.h, libnccl.so.2 and libcudart.so.13 are not installed here")
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder, header, nccl, cudart)
        said = run(4, program, LD_PRELOAD=LIBRARY / "libnccl.so.2")
        check("version 23203, 4 devices: correct" in said, said)


if __name__ == "__main__":
    main(vendor_linked_program_runs_on_ours)
