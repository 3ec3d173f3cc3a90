#!/usr/bin/env python3
"""The network IB over software RDMA NICs, in virtual machines of our own (tests/rdma/vm).

  rdma.py NAME...    runs the cases of each name of inside.py in a machine of its own, all at the same time

Skipped by name where the packages for the machine are missing (tools/install-deps --rdma).
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
SECONDS = 400  # of a machine; two share the processors


def main():
    vm = HERE / "vm"
    asked = subprocess.run([vm, "--check"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        print(f"skipped: no virtual machine with RDMA NICs:\n{asked.stderr}")
        return SKIP
    machines = []
    for name in sys.argv[1:]:
        command = [vm, "--timeout", str(SECONDS), "--mem", "2048", "--", sys.executable, HERE / "inside.py", name]
        machines.append((name, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})))
    failed = []
    for name, machine in machines:
        said, _ = machine.communicate()
        print(f"{name}: exit status {machine.returncode}\n{said}", flush=True)
        if machine.returncode != 0:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
