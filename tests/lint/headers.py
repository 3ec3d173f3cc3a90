#!/usr/bin/env python3
"""Compiles every header alone: whoever includes one needs nothing before it.

A header that its own source includes first is compiled alone by the build already."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

NEEDS_NVCC = {"simt_cuda.h", "number_cuda.h"}


def check(path, compiler, cuda_include):
    language = ["-x", "c++", "-std=c++20"]
    command = compiler + language + ["-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header", "-Iinclude",
                                     "-Isrc", "-I.", "-Itests", "-isystem", cuda_include, "-include", str(path), "/dev/null"]
    result = subprocess.run(command, capture_output=True, text=True)
    return None if result.returncode == 0 else f"{path}:\n{result.stderr[:2000]}"


def leads_its_source(header):
    """Whether the source of the same name includes it before anything else."""
    source = header.with_suffix(".cc")
    if not source.exists():
        return False
    first = re.search(r'^#\s*include\s+[<"]([^">]+)[">]', source.read_text(), re.MULTILINE)
    return first is not None and header.as_posix().endswith("/" + first.group(1))


def main():
    cuda_include, compiler = sys.argv[1], sys.argv[2:]
    headers = [p for folder in ("include", "src", "tests", "bench") for p in sorted(pathlib.Path(folder).rglob("*.h"))
               if p.name not in NEEDS_NVCC and "fixtures" not in p.parts]
    alone = [p for p in headers if not leads_its_source(p)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [f for f in pool.map(lambda p: check(p, compiler, cuda_include), alone) if f]
    print("\n".join(found) if found else f"headers: {len(alone)} compile alone, {len(headers) - len(alone)} lead their sources")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
