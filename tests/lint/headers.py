#!/usr/bin/env python3
"""Compiles every header alone: whoever includes one needs nothing before it.

A header that comes after headers which it includes itself is as good as alone. So the headers are ordered into as few
chains as possible, each header including the one before it, and a chain is one run of the compiler."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

NEEDS_NVCC = {"simt_cuda.h", "number_cuda.h"}
ROOTS = ("include", "src", ".", "tests", "tools")


def includes(path):
    """The project's headers that a header includes whatever the macros are."""
    depth, found = 0, set()
    for line in path.read_text().splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        elif depth == 0 and (match := re.match(r'\s*#\s*include\s+[<"]([^">]+)[">]', line)):
            places = [pathlib.Path(root, match.group(1)) for root in ROOTS]
            found.update(place for place in places if place.exists())
    return found


def closures(headers):
    """For each header what it includes, directly or not."""
    direct, whole = {h: includes(h) for h in headers}, {}
    for header in headers:
        reached, todo = set(), [header]
        while todo:
            for inner in direct.get(todo.pop(), ()):
                if inner not in reached:
                    reached.add(inner)
                    todo.append(inner)
        whole[header] = reached - {header}
    return whole


def chains(headers):
    """The fewest chains: a maximum matching of headers with successors that include them (paths through a DAG)."""
    inner = closures(headers)
    outer = {h: sorted(o for o in headers if h in inner[o]) for h in headers}
    before = {}

    def match(header, tried):
        for after in outer[header]:
            if after not in tried:
                tried.add(after)
                if after not in before or match(before[after], tried):
                    before[after] = header
                    return True
        return False

    for header in headers:
        match(header, set())
    following = {b: a for a, b in before.items()}
    result = []
    for first in (h for h in headers if h not in before):
        chain = [first]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        result.append(chain)
    return result


def needs_llvm(header, inner):
    return any("<llvm/" in path.read_text() for path in inner[header] | {header})


def check(chain, compiler, folders):
    """The errors of a chain, or None. Warnings are left to the build, which compiles everything with them."""
    source = "".join(f'#include "{path}"\n' for path in chain)
    command = compiler + ["-x", "c++", "-std=c++20", "-fsyntax-only", "-w"]
    command += ["-I" + root for root in ROOTS] + [word for folder in folders for word in ("-isystem", folder)] + ["-"]
    result = subprocess.run(command, input=source, capture_output=True, text=True)
    return None if result.returncode == 0 else f"{' then '.join(map(str, chain))}:\n{result.stderr[:2000]}"


def main():
    # Folders of others' headers: CUDA's, and LLVM's or "none".
    cuda, llvm, compiler = sys.argv[1], sys.argv[2], sys.argv[3:]
    folders = [folder for folder in (cuda, llvm) if folder != "none"]
    headers = [p for folder in ("include", "src", "tests", "bench") for p in sorted(pathlib.Path(folder).rglob("*.h"))
               if p.name not in NEEDS_NVCC and "fixtures" not in p.parts]
    if llvm == "none":
        inner = closures(headers)
        headers = [header for header in headers if not needs_llvm(header, inner)]
    runs = chains(headers)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [f for f in pool.map(lambda chain: check(chain, compiler, folders), runs) if f]
    print("\n".join(found) if found else f"headers: {len(headers)} compile alone, in {len(runs)} runs of the compiler")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
