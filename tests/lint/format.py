#!/usr/bin/env python3
"""Checks that clang-format has nothing to change in what git tracks; skipped without clang-format of the right version.

Other versions break lines elsewhere, so one of them decides: Debian 12 has it as clang-format.
"""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import sources

VERSION = 14
FOLDERS = ("include", "src", "tests", "bench", "examples", "tools")
SUFFIXES = (".h", ".cc", ".c", ".cu", ".cuh")
SKIPPED = 77
BATCH = 40  # files per process


def find_clang_format():
    """The program, or None; and why not."""
    why = "clang-format is not installed (tools/install-deps does that)"
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if program := shutil.which(name):
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return program, ""
            why = f"{program} is not version {VERSION}: {said.strip()}"
    return None, why


def formatted_files(root="."):
    return [str(path) for path in sources.tracked(root) if path.parts[0] in FOLDERS and path.suffix in SUFFIXES]


def over(files, run):
    """The results of run(batch) for all files, several at a time."""
    batches = [files[start:start + BATCH] for start in range(0, len(files), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run, batches))


def unclean(program, files, root="."):
    """Those of the files that clang-format would change."""
    def run(batch):
        command = [program, "--dry-run", "--Werror", "--ferror-limit=1", *batch]
        result = subprocess.run(command, capture_output=True, text=True, cwd=root)
        named = set(re.findall(r"^(.+?):\d+:\d+: error:", result.stderr, re.MULTILINE))
        if result.returncode != 0 and not named:
            raise RuntimeError(f"clang-format failed: {result.stderr[:500]}")
        return named

    return sorted(set().union(*over(files, run)))


def main():
    program, why = find_clang_format()
    if program is None:
        print(f"format: skipped: {why}")
        return SKIPPED
    found = unclean(program, formatted_files())
    for path in found:
        print(f"{path}: not as clang-format {VERSION} writes it")
    print(f"format: {len(found)} files: tools/format mends what is changed, tools/format --all everything" if found
          else "format: everything is as clang-format writes it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
