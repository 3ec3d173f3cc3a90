#!/usr/bin/env python3
"""What functions of a communicator's life answer: docs/lifecycle.md has what they shall answer and how often that was
seen, docs/measurements/lifecycle_table.md what was seen in each way.

  table_document.py PROGRAM           says whether both are of the entries that PROGRAM (lifecycle_table) compares with
  table_document.py PROGRAM --write   writes the table of docs/lifecycle.md
  table_document.py PROGRAM --see     first lets PROGRAM carry out everything and writes the other page
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HEADING = "## What each function answers\n"
RANKS = ("threads", "processes")
TRANSPORTS = ("P2P", "SHM", "TCP")
BLOCKING = ("blocking", "non-blocking")
WAYS = [(ranks, transport) for ranks in RANKS for transport in TRANSPORTS]
INTRODUCTION = """# What life-cycle functions were seen to answer

Each function in each situation, blocking and not, by ranks that are threads and by ranks that are processes, over each
transport, on the software GPU: what it shall answer ([lifecycle.md](../lifecycle.md) says why) and what was seen. A
function of a communicator that does not block ends with what its state came to. "wrong": the answer was another one,
something that must hold afterwards did not, or it took more than ten seconds. What is not defined is not tried.

```
python3 tests/lifecycle/table_document.py build/tests/lifecycle/lifecycle_table --see
```

"""

Entry = collections.namedtuple("Entry", "function situation codes words")


def entries(program):
    text = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return [Entry(*line.split("\t")) for line in text.splitlines()]


def see(program):
    """(function, situation, blocking, ranks, transport) -> what was seen."""
    build = pathlib.Path(program).resolve().parents[2]
    with tempfile.NamedTemporaryFile("r") as file:
        done = subprocess.run([build / "softgpu-run", "-n", "4", program, "--seen", file.name], stderr=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True)
        print("\n".join(re.findall(r"^(?:WRONG: |\d+ cells are|left out).*", done.stdout, re.M)))
        return {tuple(cells[:5]): cells[5] for cells in (line.split("\t") for line in file.read().splitlines())}


def page(table, seen):
    """The page of what was seen, from what `see` gives."""
    lines = ["| function | situation | | shall | " + " | ".join(" ".join(way) for way in WAYS) + " |",
             "|---" * (4 + len(WAYS)) + "|"]
    for entry in table:
        for blocking in BLOCKING if entry.codes else ():
            answers = [seen.get((entry.function, entry.situation, blocking, *way), "wrong") for way in WAYS]
            lines.append("| " + " | ".join([entry.function, entry.situation, blocking, entry.codes, *answers]) + " |")
    return INTRODUCTION + "\n".join(lines) + "\n"


def read_page(text):
    """What `see` gave, and by function and situation what it shall be, from the page."""
    seen, shall = {}, {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| ") or len(cells) != 4 + len(WAYS) or cells[2] not in BLOCKING:
            continue
        shall[cells[0], cells[1]] = cells[3]
        for way, answer in zip(WAYS, cells[4:]):
            seen[(*cells[:3], *way)] = answer
    return seen, shall


def as_they_shall(entry, answers):
    codes = entry.codes.split(" or ")
    return [answer for answer in answers if all(one in codes for one in answer.split(" and "))]


def cell(entry, seen):
    """An entry for the reader: codes, words, and in how many ways it was seen."""
    if not entry.codes:
        return "not defined: " + entry.words
    answers = [answer for key, answer in seen.items() if key[:2] == (entry.function, entry.situation)]
    right = collections.Counter(as_they_shall(entry, answers))
    total = f"{right.total()} of {len(answers)}"
    if " or " in entry.codes:
        total = ", ".join(f"{answer}: {count}" for answer, count in sorted(right.items())) + f" of {len(answers)}"
    return f"**{entry.codes}** {entry.words} ({total})"


def markdown(table, seen):
    situations = list(dict.fromkeys(entry.situation for entry in table))
    lines = ["| | " + " | ".join(situations) + " |", "|---" * (1 + len(situations)) + "|"]
    for function in dict.fromkeys(entry.function for entry in table):
        cells = [cell(entry, seen) for entry in table if entry.function == function]
        lines.append(f"| {function} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def complaints(table, seen, shall):
    """What is missing or not as it shall be on the page of what was seen."""
    for entry in table:
        name = f"{entry.function}, {entry.situation}"
        if shall.get((entry.function, entry.situation), "") != entry.codes:
            yield f"{name}: the page does not say {entry.codes or 'that it is not defined'}"
        elif entry.codes:
            answers = [answer for key, answer in seen.items() if key[:2] == (entry.function, entry.situation)]
            if len(as_they_shall(entry, answers)) != len(BLOCKING) * len(WAYS):
                yield f"{name}: not seen {entry.codes} in every way"


def main():
    program = sys.argv[1]
    docs = pathlib.Path(os.environ.get("TUTTI_SOURCE", ".")) / "docs"
    document, found = docs / "lifecycle.md", docs / "measurements/lifecycle_table.md"
    table = entries(program)
    if "--see" in sys.argv:
        found.write_text(page(table, see(program)))
    seen, shall = read_page(found.read_text())
    wrong = list(complaints(table, seen, shall))
    before, heading, after = document.read_text().partition(HEADING)
    written = re.search(r"(^\|.*\n)+", after, re.M)
    if not heading or not written:
        wrong.append(f"{document} has no table below {HEADING.strip()!r}")
    elif "--see" in sys.argv or "--write" in sys.argv:
        document.write_text(before + heading + after[:written.start()] + markdown(table, seen) + after[written.end():])
    elif written.group() != markdown(table, seen):
        wrong.append(f"the table of {document} is another one than that of tests/lifecycle/table.cc and {found}; run "
                     f"tests/lifecycle/table_document.py {program} --write")
    print("\n".join(f"lifecycle: {one}" for one in wrong) or "lifecycle: the documents are of the table of the tests")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
