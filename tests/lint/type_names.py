#!/usr/bin/env python3
"""Checks that no two files of src/ define a type of one name in one namespace: the one-definition rule.

Types are classes, structs, enums, unions and aliases at namespace scope. Sources may each have a type of one name in
anonymous namespaces, but not the name that a named namespace around them has: whoever reads it takes one for the
other. A header's anonymous namespace is no way around: what it holds is a type of whoever includes it.
"""
import collections
import pathlib
import sys

import cpp
import sources

ANONYMOUS = "::(anonymous)"


def definitions(root, folder="src"):
    """{name: {file: line}} of all types, and the same of those in anonymous namespaces of sources."""
    named, hidden = collections.defaultdict(dict), collections.defaultdict(dict)
    for path in sources.below(root, folder):
        types, _ = cpp.read(sources.text(root, path))
        for found in types:
            spot = f"::{found.name}"
            where = hidden if ANONYMOUS in spot and path.suffix != ".h" else named
            where[spot.replace(ANONYMOUS, "").removeprefix("::")].setdefault(path, found.line)
    return named, hidden


def twins(files):
    """Whether it is one file for nvcc and one for g++, of which a compiler sees one: x_cuda.h and what stands for it."""
    cuda = [path for path in files if path.stem.endswith("_cuda")]
    return len(cuda) == 1 and len(files) == 2 and len({path.parent for path in files}) == 1


def clashes(root):
    """(name, places) of types defined twice."""
    named, hidden = definitions(root)
    for name, files in sorted(named.items()):
        if len(files) > 1 and not twins(files):
            yield name, [f"{path}:{line}" for path, line in sorted(files.items())]
        for path, line in hidden.get(name, {}).items():
            if path not in files:
                first = min(files)
                yield name, [f"{first}:{files[first]}", f"{path}:{line} (anonymous)"]


def check(root):
    for name, places in clashes(root):
        yield f"{places[0]}: {name} is also defined at {', '.join(places[1:])}"


def main():
    found = list(check(pathlib.Path(".")))
    print("\n".join(found) if found else "type_names: no type is defined twice")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
