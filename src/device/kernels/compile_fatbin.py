#!/usr/bin/env python3
"""Compiles one kernel source to a fatbin and keeps what ptxas says of registers and spills, and the time, beside it.

  compile_fatbin.py [--quick] NVCC ARCHS INCLUDE SOURCE OUTPUT DEPFILE

ARCHS as in the option gpu_archs: sm_XX for machine code, ptx_XX for PTX, comma separated. Writes OUTPUT,
OUTPUT.ptxas (read by tools/kernel-report) and DEPFILE. --quick: with few optimisations, in a third of the time.
"""
import subprocess
import sys
import time


def target_flags(archs):
    flags = []
    for arch in archs.split(","):
        kind, _, number = arch.strip().partition("_")
        if kind not in ("sm", "ptx") or not number:
            sys.exit(f"compile_fatbin.py: gpu_archs has '{arch}'; write sm_XX for machine code or ptx_XX for PTX")
        code = f"sm_{number}" if kind == "sm" else f"compute_{number}"
        flags += ["-gencode", f"arch=compute_{number},code={code}"]
    return flags


def main():
    quick = ["-Ofc=max"] if sys.argv[1] == "--quick" else []
    nvcc, archs, include, source, output, depfile = sys.argv[1 + len(quick):]
    command = [nvcc, "-std=c++20", "-O3", "-fmad=false", "--fatbin", "-Xptxas=-v", "-x", "cu", "-MD", "-MF", depfile,
               "-I" + include, "-o", output, source] + quick + target_flags(archs)
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    with open(output + ".ptxas", "w", encoding="utf-8") as log:
        log.write(done.stdout)
        log.write(f"compiled in {time.monotonic() - begin:.1f} s\n")
    if done.returncode != 0:
        sys.stderr.write(" ".join(command) + "\n" + done.stdout)
    warnings = [line for line in done.stdout.splitlines() if "warning" in line.lower()]
    if warnings:
        sys.stderr.write("\n".join(warnings) + "\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
