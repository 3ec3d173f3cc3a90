#!/usr/bin/env python3
"""The program everybody writes first: ranks from the environment, the root's address from NCCL_COMM_ID."""
from support import BUILD, Process, check, free_port, main


def two_processes_succeed():
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(2, [BUILD / "tests/e2e/hello"], RANK=r, SIZE=2, NCCL_COMM_ID=address) for r in (0, 1)]
    try:
        for r, process in enumerate(ranks):
            check(process.wait(120) == 0 and f"[Rank {r}] Success" in process.output(), process.output())
    finally:
        for process in ranks:
            process.close()


if __name__ == "__main__":
    main(two_processes_succeed)
