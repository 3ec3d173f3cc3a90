#!/usr/bin/env python3
"""Writes a libnccl whose functions do nothing but say that they were called, and fail: what a program is linked
against that ours replaces at run time.

  generate.py EXPORTS OUTPUT     EXPORTS: names without their prefix
"""
import pathlib
import sys

TEXTS = {"GetErrorString", "GetLastError"}
HEAD = """#include <stdio.h>

static int say(const char* name) {
  fprintf(stderr, "the stub was called: %s\\n", name);
  return 2;
}
"""


def main():
    names = pathlib.Path(sys.argv[1]).read_text().split()
    source = [HEAD]
    for name in names:
        result = 'const char* nccl{0}(void) {{ return say("nccl{0}") ? "stub" : ""; }}' if name in TEXTS else \
            'int nccl{0}(void) {{ return say("nccl{0}"); }}'
        source.append(f"int nccl{name}(void);".replace("int", "const char*" if name in TEXTS else "int"))
        source.append(result.format(name))
    pathlib.Path(sys.argv[2]).write_text("\n".join(source) + "\n")


if __name__ == "__main__":
    main()
