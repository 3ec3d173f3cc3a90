#!/usr/bin/env python3
"""Checks the size limits: in src/ 350 lines a file and 60 a function (80 in device code), elsewhere 600 and 80; 120
columns a meson.build."""
import pathlib
import re
import sys

COLUMN_LIMIT = 120
# Lines of a file and of a function, by folder: the first that matches counts.
LIMITS = [("src/device", 350, 80), ("src", 350, 60), ("", 600, 80)]
FOLDERS = ("include", "src", "tests", "bench", "examples", "tools")
# Not written by hand, or tables.
EXEMPT = {
    "include/nccl.h": "the public header is one file by contract",
}
START = re.compile(r"^(\s*)(?!namespace|class|struct|enum|union|extern|else|if|for|while|switch|do|try|case|#|//)\S.*\)"
                   r"(\s*(const|noexcept|override|final|->\s*[\w:<>]+|mutable))*\s*(:\s.*)?\{$")
KEYWORDS = re.compile(r"^\s*(if|for|while|switch|else|do|try|catch|\})\b")


def functions(lines):
    """Yields (first line, length) of everything that looks like a function body, by indentation."""
    for number, line in enumerate(lines):
        match = START.match(line)
        if not match or KEYWORDS.match(line):
            continue
        indent = match.group(1)
        # A constructor's initializers are indented by four more than what they belong to.
        end = (indent[:-4] if line.lstrip().startswith(":") else indent) + "}"
        for last in range(number + 1, len(lines)):
            if lines[last].startswith(end) and not lines[last].startswith(end + " "):
                yield number + 1, last - number + 1
                break


def long_lines():
    """What clang-format does for sources nobody does for build files."""
    of_folders = (path for folder in FOLDERS for path in sorted(pathlib.Path(folder).rglob("meson.build")))
    for path in [pathlib.Path("meson.build"), *of_folders]:
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > COLUMN_LIMIT:
                yield f"{path}:{number}: {len(line)} columns, at most {COLUMN_LIMIT}"


def main():
    found = list(long_lines())
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".c", ".cu", ".py") or not path.is_file():
                continue
            lines = path.read_text().split("\n")
            file_limit, limit = next((f, n) for place, f, n in LIMITS if path.is_relative_to(place))
            if len(lines) > file_limit and str(path) not in EXEMPT:
                found.append(f"{path}: {len(lines)} lines, at most {file_limit}: split it by concept")
            if path.suffix != ".py":
                found.extend(f"{path}:{first}: a function of {length} lines, at most {limit}"
                             for first, length in functions(lines) if length > limit)
    print("\n".join(found) if found else "sizes: all files and functions within their limits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
