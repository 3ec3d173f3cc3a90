"""Finds places of sources that repeat one another: runs of lines that are the same, or that have the same shape.

Blank lines, comments, includes, lone punctuation and white space do not count. Two places are a pair if they share at
least LEAST lines to the letter; or if they share LEAST lines once names, numbers and texts are made equal, and these
lines weigh at least LEAST_WEIGHT. A run's weight is its tokens, where lines of one shape count once: rows of a table,
members of a struct, and cases of a switch that give names are alike because they are lists, and nothing would say them
shorter. Such a switch weighs 22 to 27, however many names it has; what weighs more has statements or declarations in
common, which a function, a template or a table could say once.
"""
import collections
import itertools
import re

LEAST = 6
LEAST_WEIGHT = 30
COMMON = 8  # runs that stand in more places than this are how things are written here, not copies
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
TOKEN = re.compile(r'''"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+'|[A-Za-z_]\w*|\d[\w.']*|<<|>>|->|::|&&|\|\||[-+*/%&|^=!<>]=|\S''')
KEYWORDS = frozenset("""auto bool break case catch char class const constexpr continue default delete do double else enum
    explicit final float for friend if inline int long mutable namespace new noexcept nullptr operator override private
    protected public return short sizeof static struct switch template this throw true false try typename unsigned using
    virtual void while""".split())

Line = collections.namedtuple("Line", "number tokens shape")
Pair = collections.namedtuple("Pair", "lines first second")  # a place is (path, number of the first line, of the last)


def shape_of(token):
    """What is left of a token when names, numbers and texts are made equal."""
    if token[0] in "\"'":
        return "text"
    if token[0].isdigit():
        return "0"
    return "name" if re.match(r"\w", token) and token not in KEYWORDS else token


def lines_that_count(text):
    plain = COMMENT.sub(lambda match: match.group(1) or "\n" * match.group().count("\n"), text)
    for number, line in enumerate(plain.split("\n"), 1):
        if re.search(r"\w", line) and not re.match(r"\s*(#include|#pragma once|#endif|namespace\b.*\{$)", line):
            tokens = tuple(TOKEN.findall(line))
            yield Line(number, tokens, tuple(map(shape_of, tokens)))


def seeds(files, key):
    """Pairs of (path, index) where LEAST lines begin whose keys are equal."""
    places = collections.defaultdict(list)
    for path, lines in files.items():
        for start in range(len(lines) - LEAST + 1):
            places[tuple(key(line) for line in lines[start:start + LEAST])].append((path, start))
    for where in places.values():
        if 2 <= len(where) <= COMMON:
            yield from itertools.combinations(where, 2)


def runs(files, key):
    """(lines, (path, index), (path, index)) of all runs with equal keys that no longer run contains."""
    found = set(seeds(files, key))
    for (a, i), (b, j) in found:
        if ((a, i - 1), (b, j - 1)) in found:
            continue  # not where the run begins
        count = LEAST
        while ((a, i + count - LEAST + 1), (b, j + count - LEAST + 1)) in found:
            count += 1
        if a != b or j >= i + count:  # a run that overlaps itself is the rows of a table
            yield count, (a, i), (b, j)


def weight(lines):
    return sum(map(len, {line.shape for line in lines}))


def pairs(texts):
    """All duplicates, the longest first."""
    files = {path: list(lines_that_count(text)) for path, text in texts.items()}

    def pair(count, *starts):
        return Pair(count, *((path, files[path][start].number, files[path][start + count - 1].number)
                             for path, start in starts))

    same = [pair(*run) for run in runs(files, lambda line: line.tokens)]
    alike = [pair(*run) for run in runs(files, lambda line: line.shape)
             if weight(files[run[1][0]][run[1][1]:run[1][1] + run[0]]) >= LEAST_WEIGHT]
    same = [one for one in same if not any(contains(other, one) for other in alike)]
    return sorted(same + alike, key=lambda one: (-one.lines, one))


def contains(pair, other):
    return all(ours[0] == theirs[0] and ours[1] <= theirs[1] and theirs[2] <= ours[2]
               for ours, theirs in zip(pair[1:], other[1:]))


def shown(place):
    path, first, last = place
    return f"{path}:{first}-{last}"
