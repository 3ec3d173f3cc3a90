#!/usr/bin/env python3
"""Checks what must not stand in the sources: marks of unfinished work, stray getenv, ways to end the host
process, descriptors without an owner."""
import pathlib
import re
import subprocess
import sys

RULES = [
    # (what, pattern, folders, files that may)
    ("a mark of unfinished work", re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), ("include", "src", "tests", "bench", "examples", "tools"),
     {"tests/lint/words.py"}),
    ("getenv outside the settings", re.compile(r"\b(secure_)?getenv\s*\("), ("src",),
     {"src/base/environment.cc", "src/base/settings/params.cc", "src/softgpu/device/settings.cc"}),
    ("a way to end the host process", re.compile(r"(?<![\w.:>_])(std::)?(exit|abort|quick_exit|terminate)\s*\(\s*[\w]*\s*\)\s*;"), ("src",), set()),
    ("a descriptor made outside Fd(...), which keeps it off the standard streams",
     re.compile(r"^(?!.*\bFd(?: \w+)?\(::).*(?<![\w>])::(open|openat|creat|socket|socketpair|accept4?|epoll_create1?|eventfd|"
                r"memfd_create|timerfd_create|signalfd|pipe2?|dup[23]?|inotify_init1?|shm_open|mkostemp|mkstemp)\("),
     ("src",), set()),
    ("goto", re.compile(r"^\s*goto\b"), ("src", "tests", "bench"), set()),
    ("a tab", re.compile(r"\t"), ("include", "src", "tests", "bench", "examples"), set()),
    ("a path of somebody's machine", re.compile(r"/work/|\.\./shared\b"), ("include", "src", "bench", "examples", "docs"), set()),
]


def main():
    files = [f for f in subprocess.run(["git", "ls-files"], capture_output=True, text=True).stdout.split("\n") if f]
    found = []
    for name in files:
        path = pathlib.Path(name)
        if path.suffix not in (".h", ".cc", ".c", ".cu", ".py", ".def", ".md", ".sh") or not path.is_file():
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            for what, pattern, folders, exempt in RULES:
                if path.parts[0] in folders and name not in exempt and pattern.search(line):
                    found.append(f"{name}:{number}: {what}: {line.strip()[:90]}")
    print("\n".join(found) if found else "words: nothing that must not be there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
