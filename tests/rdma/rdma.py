#!/usr/bin/env python3
"""The network IB over software RDMA NICs, in a virtual machine of our own (tests/rdma/vm).

  rdma.py NAME    runs the cases of that name of inside.py there

Skipped by name where the packages for the machine are missing (tools/install-deps --rdma).
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
SECONDS = 240


def main():
    name = sys.argv[1]
    vm = HERE / "vm"
    asked = subprocess.run([vm, "--check"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        print(f"skipped: no virtual machine with RDMA NICs:\n{asked.stderr}")
        return SKIP
    done = subprocess.run([vm, "--timeout", str(SECONDS), "--mem", "2048", "--", sys.executable, HERE / "inside.py", name],
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
