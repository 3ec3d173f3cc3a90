#!/usr/bin/env python3
"""Compiles every header alone: whoever includes one needs nothing before it."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys

NEEDS_NVCC = {"simt_cuda.h", "number_cuda.h"}


def check(path, compiler, cuda_include):
    language = ["-x", "c++", "-std=c++20"]
    command = compiler + language + ["-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header", "-Iinclude",
                                     "-Isrc", "-I.", "-Itests", "-isystem", cuda_include, "-include", str(path), "/dev/null"]
    result = subprocess.run(command, capture_output=True, text=True)
    return None if result.returncode == 0 else f"{path}:\n{result.stderr[:2000]}"


def main():
    cuda_include, compiler = sys.argv[1], sys.argv[2:]
    headers = [p for folder in ("include", "src", "tests", "bench") for p in sorted(pathlib.Path(folder).rglob("*.h"))
               if p.name not in NEEDS_NVCC and "fixtures" not in p.parts]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [f for f in pool.map(lambda p: check(p, compiler, cuda_include), headers) if f]
    print("\n".join(found) if found else f"headers: {len(headers)} compile alone")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
