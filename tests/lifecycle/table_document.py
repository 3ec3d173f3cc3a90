#!/usr/bin/env python3
"""The table of docs/lifecycle.md is the one that lifecycle_table compares the library with.

  table_document.py PROGRAM           says whether it is
  table_document.py PROGRAM --write   makes it so
"""
import os
import pathlib
import re
import subprocess
import sys

HEADING = "## What each function answers\n"


def main():
    document = pathlib.Path(os.environ.get("TUTTI_SOURCE", ".")) / "docs/lifecycle.md"
    table = subprocess.run([sys.argv[1], "--markdown"], capture_output=True, text=True, check=True).stdout
    before, heading, after = document.read_text().partition(HEADING)
    written = re.search(r"(^\|.*\n)+", after, re.M)
    if not heading or not written:
        print(f"lifecycle: {document} has no table below {HEADING.strip()!r}")
        return 1
    if written.group() == table:
        print("lifecycle: the document's table is that of the tests")
        return 0
    if "--write" in sys.argv:
        document.write_text(before + heading + after[:written.start()] + table + after[written.end():])
        return 0
    print(f"lifecycle: the table of {document} is another one than that of tests/lifecycle/table.cc; run "
          f"tests/lifecycle/table_document.py {sys.argv[1]} --write")
    return 1


if __name__ == "__main__":
    sys.exit(main())
