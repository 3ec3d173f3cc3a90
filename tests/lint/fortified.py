#!/usr/bin/env python3
"""Checks that results are looked at which the C library of a fortified build (_FORTIFY_SOURCE, Ubuntu's default) marks:
gcc warns there where nobody does, also in spite of a cast to void, and warnings are errors.

A result that does not matter is written `static_cast<void>(!::write(...))`, with a word why.
"""
import pathlib
import sys

import cpp
import sources

FOLDERS = ("src", "tests", "bench", "tools", "examples")
MARKED = set("""write read pwrite pread writev readv pwritev preadv ftruncate truncate fread fgets fscanf getline getdelim
    chdir fchdir chown fchown lchown fchownat link linkat symlink symlinkat readlink readlinkat pipe pipe2 dup lockf nice
    daemon chroot system popen fopen fdopen freopen tmpfile mkstemp mkostemp mkdtemp realpath getcwd asprintf vasprintf
    setuid setgid seteuid setegid setreuid setregid setresuid setresgid malloc calloc realloc posix_memalign
    aligned_alloc""".split())
TO_VOID = ["static_cast", "<", "void", ">", "("]
BEFORE_A_STATEMENT = (";", "{", "}", ")", "else")  # `)`: of a condition, or of a cast


def behind_call(words, at):
    """The place behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(words)):
        depth += {"(": 1, ")": -1}.get(words[place], 0)
        if depth == 0:
            return place + 1
    return len(words)


def dropped(text):
    """(function, line) of calls whose result goes nowhere."""
    found = list(cpp.tokens(text))
    words = [word for word, _ in found]
    for at in range(1, len(words) - 2):
        if words[at] != "::" or words[at + 1] not in MARKED or words[at + 2] != "(":
            continue
        end = words[behind_call(words, at + 2):][:1]
        if words[max(0, at - 5):at] == TO_VOID and end == [")"] or words[at - 1] in BEFORE_A_STATEMENT and end == [";"]:
            yield words[at + 1], found[at][1]


def check(root):
    for folder in FOLDERS:
        for path in sources.below(root, folder):
            for function, line in dropped(sources.text(root, path)):
                yield f"{path}:{line}: nobody looks at the result of {function}()"


def main():
    found = list(check(pathlib.Path(".")))
    print("\n".join(found) if found else "fortified: every result that must be looked at is")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
