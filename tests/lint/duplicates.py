"""Finds places of sources that share lines: pairs of runs of the same lines, white space apart.

Blank lines, comments, includes and lone punctuation do not count. Two files, or two places of one, are a pair for each
run of at least LEAST lines that they share.
"""
import collections
import re

LEAST = 6
COMMON = 8  # lines that stand in more places than this are how things are written here, not copies
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)


def lines_that_count(text):
    """(line number, line without its white space)."""
    plain = COMMENT.sub(lambda match: match.group(1) or "\n" * match.group().count("\n"), text)
    for number, line in enumerate(plain.split("\n"), 1):
        line = "".join(line.split())
        if re.search(r"\w", line) and not re.match(r"#include|#pragmaonce|#endif|namespace\b.*\{$", line):
            yield number, line


def seeds(files):
    """Pairs of (file, index) where LEAST equal lines begin."""
    places = collections.defaultdict(list)
    for path, lines in files.items():
        for start in range(len(lines) - LEAST + 1):
            places[tuple(line for _, line in lines[start:start + LEAST])].append((path, start))
    for where in places.values():
        if 2 <= len(where) <= COMMON:
            for place, first in enumerate(where):
                yield from ((first, second) for second in where[place + 1:])


def pairs(texts):
    """(lines, place, place) of all duplicates, the longest first; a place is file:first-last."""
    files = {path: list(lines_that_count(text)) for path, text in texts.items()}
    found = set(seeds(files))
    result = []
    for (a, i), (b, j) in found:
        if ((a, i - 1), (b, j - 1)) in found:
            continue  # not where the run begins
        count = LEAST
        while ((a, i + count - LEAST + 1), (b, j + count - LEAST + 1)) in found:
            count += 1
        if a == b and j < i + count:
            continue  # a run that overlaps itself: rows of a table
        result.append((count, place(files[a], a, i, count), place(files[b], b, j, count)))
    return sorted(result, key=lambda row: (-row[0], row[1:]))


def place(lines, path, start, count):
    return f"{path}:{lines[start][0]}-{lines[start + count - 1][0]}"
