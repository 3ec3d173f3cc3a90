#!/usr/bin/env python3
"""Writes a C++ source that holds a fatbin as data.

  embed.py FATBIN OUTPUT
"""
import sys

TEXT = """// Written by embed.py.
#include "bench/device_micro/gpu.h"

asm(".section .rodata.micro_fatbin, \\"a\\", @progbits\\n.balign 64\\n"
    ".hidden microFatbin\\n.globl microFatbin\\nmicroFatbin:\\n.incbin \\"{path}\\"\\n.byte 0\\n.previous\\n");
extern "C" const char microFatbin[];

namespace micro {{

const void* embeddedKernels() {{
  return microFatbin;
}}

}}  // namespace micro
"""

if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(TEXT.format(path=sys.argv[1]))
