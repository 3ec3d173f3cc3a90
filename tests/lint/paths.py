#!/usr/bin/env python3
"""Checks that the paths of the project which README.md, CONTRIBUTING.md and docs/ name exist, and linked headings too.

A path is what stands in backticks or is the target of a link, and begins like a folder or has a file's ending; sources
may be named from src/ (`comm/links.h`), and with a glob or a line (`x.cc:12`).
"""
import pathlib
import re
import sys

import sources

CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"\.?[\w.*-]+(?:/[\w.*{},-]+)+/?|[\w-]+\.(?:md|h|cc|py|cu|def)")
FOLDERS_OF_NAMES = ("", "src", "docs", "include", "tests")
MADE = ("build", ".deps", "dist")  # what only a build has


def prose_lines(text):
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(text):
    """The anchors that GitHub gives a document's headings."""
    found = set()
    for _, line in prose_lines(text):
        if match := re.match(r"#+ (.*)", line):
            found.add(re.sub(r"[^\w -]", "", match.group(1).lower()).replace(" ", "-"))
    return found


def names(text, tops):
    """The paths of the project that a document names in backticks: (line, path)."""
    for number, line in prose_lines(text):
        for code in CODE.findall(line):
            for word in code.split():
                word = re.sub(r":\d+(-\d+)?$", "", word).removeprefix("./")
                if PATH.fullmatch(word) and (word.split("/")[0] in tops or "/" not in word):
                    yield number, word


def exists(tree, word):
    pattern = word.rstrip("/")
    if "/" not in pattern:
        return pattern in tree.names
    options = [pattern]
    if match := re.search(r"\{([^}]*)\}", pattern):
        options = [pattern.replace(match.group(), option) for option in match.group(1).split(",")]
    return all(any(tree.has(str(pathlib.PurePath(folder, option))) for folder in FOLDERS_OF_NAMES)
               for option in options)


class Tree:
    """All that there is, as paths relative to the root."""

    def __init__(self, root):
        self.files = sources.tracked(root)
        self.paths = {str(part) for path in self.files for part in (path, *path.parents)}
        self.names = {path.name for path in self.files}
        self.tops = {path.parts[0] for path in self.files}
        self.tops |= {path.parts[1] for path in self.files if path.parts[0] == "src" and len(path.parts) > 2}

    def has(self, pattern):
        if "*" not in pattern:
            return pattern in self.paths
        expression = re.compile(re.escape(pattern).replace(r"\*", "[^/]*"))
        return any(expression.fullmatch(path) for path in self.paths)


def link_problem(root, path, target):
    if re.match(r"\w+:", target):
        return None
    file, _, anchor = target.partition("#")
    aim = (root / path).parent / file if file else root / path
    if not aim.exists():
        return f"the link to {target} leads nowhere"
    if anchor and anchor not in anchors(aim.read_text()):
        return f"{file or path} has no heading #{anchor}"
    return None


def check(root):
    root = pathlib.Path(root)
    tree = Tree(root)
    for path in tree.files:
        if path.suffix != ".md" or not (str(path) in ("README.md", "CONTRIBUTING.md") or path.parts[0] == "docs"):
            continue
        text = (root / path).read_text()
        for number, word in names(text, tree.tops):
            if not word.startswith(MADE) and not exists(tree, word):
                yield f"{path}:{number}: there is no {word}"
        for number, line in prose_lines(text):
            for target in LINK.findall(CODE.sub("", line)):
                if problem := link_problem(root, path, target):
                    yield f"{path}:{number}: {problem}"


def main():
    found = list(check("."))
    print("\n".join(found) if found else "paths: all that the documents name exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
