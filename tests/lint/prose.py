#!/usr/bin/env python3
"""Lines of Markdown: which are prose, and how paragraphs with too long ones are filled again."""
import re
import sys
import textwrap

import sources

COLUMNS = 120
# Written by a program, as it pleases.
GENERATED = {"docs/env.md"}
POINT = re.compile(r"^(\s*)([*+-]|\d+\.)(\s+)")


def kinds(text):
    """(line, kind) of a document: "prose", "point" (prose that begins a point of a list) or "other"."""
    fenced = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        if fence:
            fenced = not fenced
        if fenced or fence or not line.strip() or re.match(r"\s*(\||#|>|<|!\[)|\s{4,}\S(?!.*[.,;]$)|-{3,}$", line):
            yield line, "other"
        else:
            yield line, "point" if POINT.match(line) else "prose"


def paragraphs(text):
    """The lines of a document in groups: (lines, whether they are a paragraph)."""
    group, fillable = [], False
    for line, kind in kinds(text):
        if kind == "other" or kind == "point" or not fillable:
            if group:
                yield group, fillable
            group, fillable = [], kind != "other"
        group.append(line)
    if group:
        yield group, fillable


def too_long(text):
    """The numbers of the lines of prose that are too long and could be broken."""
    for number, (line, kind) in enumerate(kinds(text), 1):
        if kind != "other" and len(line) > COLUMNS and " " in line.strip():
            yield number


def fill(lines):
    point = POINT.match(lines[0])
    first = point.group() if point else re.match(r"\s*", lines[0]).group()
    later = re.match(r"\s*", lines[1]).group() if len(lines) > 1 else " " * len(first) if point else first
    words = " ".join([lines[0][len(first):].strip(), *(line.strip() for line in lines[1:])])
    # A span of code may stand at the end of a line, but not a word that would begin a list, a heading or a table there.
    broken = textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=later, break_long_words=False,
                           break_on_hyphens=False)
    return broken if not any(re.match(r"\s*([*+#|>-]|\d+\.)(\s|$)", line) for line in broken[1:]) else lines


def filled(text):
    """The document with those paragraphs filled again that have a line that is too long."""
    result = []
    for lines, fillable in paragraphs(text):
        result += fill(lines) if fillable and max(map(len, lines)) > COLUMNS else lines
    return "\n".join(result)


def main():
    found = []
    for path in sources.tracked():
        if path.suffix == ".md" and str(path) not in GENERATED:
            found += [f"{path}:{number}: more than {COLUMNS} columns" for number in too_long(path.read_text())]
    print("\n".join([*found, "prose: tools/format --all fills these paragraphs again"]) if found
          else "prose: no line is too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
