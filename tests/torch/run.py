#!/usr/bin/env python3
"""Runs one of the tests beside this file with PyTorch on the software GPU.

usage: run.py SOFTGPU_RUN DEVICES TEST.py [ARGUMENT]...

Exit status 77 (skipped) where there is no PyTorch (tools/torch-venv) or the build has no software GPU.
"""
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
LIMIT = 2400


def main():
    launcher, devices, test, *arguments = sys.argv[1:]
    here = pathlib.Path(__file__).resolve().parent
    found = subprocess.run([here.parents[1] / "tools/torch-venv", "--no-install"], capture_output=True, text=True,
                           check=False)
    if found.returncode != 0:
        print(f"skipped: {found.stderr.strip()}")
        sys.exit(SKIPPED)
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(here))
    # What tutti.torch compiles once is not to count in the time that a test allows.
    subprocess.run([launcher, "-n", "1", "--torch", found.stdout.strip(), "-c", "import torch"], env=environment,
                   timeout=LIMIT, check=False)
    command = [launcher, "-n", devices, "--torch", found.stdout.strip(), here / test, *arguments]
    sys.exit(subprocess.run(command, env=environment, timeout=LIMIT, check=False).returncode)


if __name__ == "__main__":
    main()
