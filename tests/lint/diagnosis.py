#!/usr/bin/env python3
"""Checks that the tests which docs/diagnosis.md names exist, and that what it says of its complaints adds up.

A test is `Suite.Name` of GoogleTest, a script or source by its path, or a script's path and functions in it. A complaint
is a section `### 1. Title: state` with the points Elsewhere, Here and Shown by, or a line of a table whose last column
is "shown by"; each names a test there, or says "not yet", as its state then does.
"""
import pathlib
import re
import sys

import sources

DOCUMENT = "docs/diagnosis.md"
STATES = ("better", "partly", "not yet")
POINTS = ("Elsewhere", "Here", "Shown by")
NOT_YET = "not yet"
CODE = re.compile(r"`([^`]+)`")
GTEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
SECTION = re.compile(r"### (\d+)\. (.+): ([a-z ]+)$")
SUMS = re.compile(r"(\d+) complaints; (\d+) of them are better, (\d+) partly, (\d+) not yet\.")


def gtests(root, files):
    """The names Suite.Name of all tests."""
    found = set()
    for path in files:
        if path.parts[0] == "tests" and path.suffix in (".cc", ".h"):
            found |= {f"{suite}.{name}" for suite, name in GTEST.findall(sources.text(root, path))}
    return found


def missing(root, files, tests, code):
    """What is wrong with a name in backticks, or None."""
    if re.fullmatch(r"\w+\.[A-Z]\w+", code):
        return None if code in tests else f"there is no test {code}"
    path, *functions = code.split()
    if pathlib.Path(path) not in files:
        return f"there is no {path}"
    text = sources.text(root, pathlib.Path(path))
    for name in functions:
        if not re.search(rf"^def {re.escape(name)}\(", text, re.M):
            return f"{path} has no function {name}"
    return None


def sections(lines):
    """(line, number, state, points) of each complaint with a section; points by name."""
    found, point = [], None
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            match = SECTION.match(line)
            point = {} if match else None
            if match:
                found.append((number, int(match.group(1)), match.group(3), point))
        elif point is not None and (match := re.match(r"\* ([A-Z][a-z ]+): (.*)", line)):
            name = match.group(1)
            point[name] = match.group(2)
        elif point and line.startswith("  "):
            point[name] += " " + line.strip()
    return found


def rows(lines):
    """(line, last cell) of the tables' lines under a heading that ends with "shown by"."""
    inside = False
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[-1] == "shown by":
            inside = True
        elif not cells:
            inside = False
        elif inside and not set(cells[-1]) <= {"-"}:
            yield number, cells[-1]


def shown(root, files, tests, where, text, wanted):
    """Problems of what a complaint is shown by. `wanted`: it must name a test; None: a test or "not yet"."""
    codes = CODE.findall(text)
    for code in codes:
        if problem := missing(root, files, tests, code):
            yield f"{where}: {problem}"
    if wanted is None and not codes and text != NOT_YET:
        yield f"{where}: names no test and does not say \"{NOT_YET}\""
    elif wanted and not codes:
        yield f"{where}: names no test"
    elif wanted is False and text != NOT_YET:
        yield f"{where}: is shown by something, and says \"{NOT_YET}\""


def check(root):
    root = pathlib.Path(root)
    files = set(sources.tracked(root))
    if pathlib.Path(DOCUMENT) not in files:
        return
    tests = gtests(root, files)
    text = (root / DOCUMENT).read_text()
    lines = text.split("\n")
    complaints = sections(lines)
    for position, (line, number, state, points) in enumerate(complaints, 1):
        where = f"{DOCUMENT}:{line}"
        if number != position:
            yield f"{where}: is number {position}, not {number}"
        if state not in STATES:
            yield f"{where}: \"{state}\" is none of {', '.join(STATES)}"
        if tuple(points) != POINTS:
            yield f"{where}: wants the points {', '.join(POINTS)}"
        else:
            yield from shown(root, files, tests, where, points["Shown by"], state != NOT_YET)
    for line, cell in rows(lines):
        yield from shown(root, files, tests, f"{DOCUMENT}:{line}", cell, None)
    sums = tuple(len([c for c in complaints if c[2] == state]) for state in STATES)
    said = SUMS.search(text)
    if not said or tuple(map(int, said.groups())) != (len(complaints), *sums):
        yield f"{DOCUMENT}: should say \"{len(complaints)} complaints; {sums[0]} of them are better, {sums[1]} partly, " \
              f"{sums[2]} not yet.\""


def main():
    found = list(check("."))
    print("\n".join(found) if found else f"diagnosis: all tests that {DOCUMENT} names exist")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
