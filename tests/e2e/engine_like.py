#!/usr/bin/env python3
"""A program that uses the library as a framework's engine does, and that is linked against a libnccl.so.2 which fails:
LD_PRELOAD puts ours in its place, for every function that is called."""
import subprocess
import tempfile

from support import BUILD, LIBRARY, Process, check, main, run_for_code

PROGRAM = BUILD / "tests/e2e/engine_like"


def live(size, **env):
    with tempfile.TemporaryDirectory() as folder:
        ranks = [Process(size, [PROGRAM, rank, size, folder], LD_PRELOAD=LIBRARY / "libnccl.so.2", **env)
                 for rank in range(size)]
        try:
            for rank, process in enumerate(ranks):
                code, said = process.wait(120), process.output()
                check(code == 0 and f"rank {rank}: done" in said, f"rank {rank} ended with {code}:\n{said}")
                check("the stub was called" not in said, said)
        finally:
            for process in ranks:
                process.close()


def two_processes_live():
    live(2)


def four_processes_live():
    live(4)


def four_processes_live_over_tcp():
    live(4, NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1)


def without_ours_the_stub_answers():
    """So it is the stub that the program is linked against, and this test would notice it."""
    needed = subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout
    check("libnccl.so.2" in needed, needed)
    code, said = run_for_code(1, PROGRAM, 0, 1, "/nowhere", LD_LIBRARY_PATH=PROGRAM.parent / "vendor_stub")
    check(code == 1 and "is the stub's" in said, f"it ended with {code}:\n{said}")


if __name__ == "__main__":
    main(without_ours_the_stub_answers, two_processes_live, four_processes_live, four_processes_live_over_tcp)
