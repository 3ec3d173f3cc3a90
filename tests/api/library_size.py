#!/usr/bin/env python3
"""Checks that libnccl.so.2 of a release build does not grow unnoticed: it goes into every process of a job, and into
every container image.

Counted is what is loaded (the segments in the file), without the kernels for GPUs, and these by themselves. Whoever adds
something worth more room raises the bound in the same commit.

usage: library_size.py LIBRARY TARGETS FATBIN...

TARGETS: for how many GPU targets the fatbins were compiled, with few optimisations as ./check does it; 0: they were
compiled otherwise, or there are none, and are not bounded.
"""
import os
import struct
import sys

MIB = 1 << 20
HOST = 7.5 * MIB  # 6.2 when this was written
KERNELS = 10 * MIB  # of one target; 8.0 when this was written
PT_LOAD = 1


def loaded(path):
    """Bytes of the file that are loaded, of a 64-bit little-endian ELF."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit little-endian ELF"
    table, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    total = 0
    for i in range(count):
        kind, _, _, _, _, in_file = struct.unpack_from("<IIQQQQ", data, table + i * size)
        if kind == PT_LOAD:
            total += in_file
    return total


def main():
    library, targets, fatbins = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    kernels = sum(os.path.getsize(path) for path in fatbins)
    host = loaded(library) - kernels
    failed = False
    for what, bytes_, bound in [("without kernels for GPUs", host, HOST)] + (
            [(f"in kernels for {targets} GPU target(s)", kernels, targets * KERNELS)] if targets else []):
        print(f"{library}: {bytes_ / MIB:.2f} MiB {what}, at most {bound / MIB:.2f}")
        failed |= not 0 < bytes_ <= bound
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
