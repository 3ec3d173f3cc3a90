#!/usr/bin/env python3
"""Checks what libnccl.so.2 shows to the world.

Names without prefix are in the library twice, as ncclX and pncclX; those with it once.

usage: exports.py LIBRARY NAMES_FILE
"""
import re, subprocess, sys

library, names_file = sys.argv[1:3]
run = lambda *command: subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
expected = set(open(names_file).read().split())
problems = []

symbols = {}
for line in run("nm", "-D", "--defined-only", library).splitlines():
    address, kind, name = line.split()
    symbols[name] = (address, kind)
for name in sorted(expected):
    if name.startswith("nccl"):  # has one form
        if symbols.pop(name, (0, ""))[1] != "T":
            problems.append(f"{name}: missing")
        continue
    weak, strong = symbols.pop("nccl" + name, None), symbols.pop("pnccl" + name, None)
    if weak is None or strong is None:
        problems.append(f"{name}: nccl or pnccl form missing")
        continue
    if weak[1] != "W" or strong[1] != "T":
        problems.append(f"{name}: nccl form is {weak[1]} (want W), pnccl form is {strong[1]} (want T)")
    if weak[0] != strong[0]:
        problems.append(f"{name}: the two forms have different addresses")
problems += [f"{name}: must not be visible" for name in sorted(symbols)]

# libstdc++ draws random numbers with it; whoever does not need those needs glibc 2.36 for nothing.
if "arc4random" in run("nm", "-D", "--undefined-only", library):
    problems.append("needs arc4random, which glibc has only from 2.36 on")

dynamic = run("readelf", "-dW", library)
if "Library soname: [libnccl.so.2]" not in dynamic:
    problems.append("SONAME is not libnccl.so.2")
GLIBC = r"lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux[\w-]*\.so\.\d+"
for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
    if not re.fullmatch(GLIBC, needed):
        problems.append(f"needs {needed}, which is not part of glibc")

print(f"{len(expected)} functions, {len(problems)} problems")
print("\n".join(problems))
sys.exit(1 if problems else 0)
