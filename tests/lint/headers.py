#!/usr/bin/env python3
"""Compiles every header of the library, its tools and benchmarks alone: whoever includes one needs nothing before it.
Headers of tests are left out: they take the compiler longest, and nobody includes one but tests, which are compiled.

The build has done so with what is the first include of a source, so where its object is up to date nothing is left to
do. A header that comes after headers which it includes itself is as good as alone. So the others are ordered into as
few chains as possible, each header including the one before it, and a chain is one run of the compiler."""
import concurrent.futures
import json
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


def first_include(source):
    """The project's header that a source includes before anything else, or None."""
    for line in source.read_text().splitlines():
        if match := re.match(r'\s*#\s*include\s+[<"]([^">]+)[">]', line):
            places = [pathlib.Path(root, match.group(1)) for root in ROOTS]
            return next((place for place in places if place.exists()), None)
        if re.match(r"\s*#\s*(if|define)", line):
            return None
    return None


def compiled_alone(build, inner):
    """The headers that an object of the build, newer than all that it says, shows to need nothing before them."""
    found = set()
    for entry in json.loads(pathlib.Path(build, "compile_commands.json").read_text()):
        source, made = pathlib.Path(build, entry["file"]), pathlib.Path(build, entry["output"])
        if source.suffix != ".cc" or " -include " in entry["command"] or not made.exists() or not source.exists():
            continue
        header = first_include(source)
        if header in inner and all(part.stat().st_mtime <= made.stat().st_mtime
                                   for part in inner[header] | {header, source}):
            found.add(header)
    return found


def chains(headers, inner):
    """The fewest chains: a maximum matching of headers with successors that include them (paths through a DAG)."""
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
    # The build's folder; folders of others' headers: CUDA's, and LLVM's or "none".
    build, cuda, llvm, compiler = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    folders = [folder for folder in (cuda, llvm) if folder != "none"]
    headers = [p for folder in ("include", "src", "bench") for p in sorted(pathlib.Path(folder).rglob("*.h"))
               if p.name not in NEEDS_NVCC and "fixtures" not in p.parts]
    inner = closures(headers)
    if llvm == "none":
        headers = [header for header in headers if not needs_llvm(header, inner)]
    done = compiled_alone(build, inner) & set(headers)
    runs = chains([header for header in headers if header not in done], inner)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [f for f in pool.map(lambda chain: check(chain, compiler, folders), runs) if f]
    print("\n".join(found) if found else f"headers: {len(headers)} compile alone, {len(done)} of them in the build, "
          f"the others in {len(runs)} runs of the compiler")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
