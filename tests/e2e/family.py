#!/usr/bin/env python3
"""Communicators made from communicators, between processes: split over all transports, shrunk after kill -9, grown."""
import os
import re
import signal
import tempfile
import time

from support import BUILD, Process, check, free_port, main

FAMILY = BUILD / "tests/e2e/family"
WAYS = ({}, {"NCCL_P2P_DISABLE": 1}, {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1})
BOUND_SECONDS = 15


def finish(processes, seconds=60):
    deadline = time.monotonic() + seconds
    for name, process in processes.items():
        code = process.wait(max(deadline - time.monotonic(), 0.1))
        check(code == 0 and "done" in process.output(), f"{name} ended with {code}:\n{process.output()[-4000:]}")


def close(processes):
    for process in processes.values():
        process.close()


def split_works_over_every_transport():
    for way in WAYS:
        address = f"127.0.0.1:{free_port()}"
        processes = {r: Process(5, [FAMILY, "split", r, 5], NCCL_COMM_ID=address, **way) for r in range(5)}
        try:
            finish(processes)
        finally:
            close(processes)


def sixteen_processes_use_sixty_four_communicators():
    address = f"127.0.0.1:{free_port()}"
    processes = {r: Process(16, [FAMILY, "many", r, 16], NCCL_COMM_ID=address) for r in range(16)}
    try:
        finish(processes, 180)
    finally:
        close(processes)


def kill(process):
    os.kill(int(re.search(r"ready pid (\d+)", process.output()).group(1)), signal.SIGKILL)


def shrink_after(victims, size, how="shrink", **way):
    address = f"127.0.0.1:{free_port()}"
    listed = ",".join(str(v) for v in victims)
    processes = {r: Process(size, [FAMILY, how, r, size, listed], NCCL_COMM_ID=address, **way)
                 for r in range(size)}
    try:
        for process in processes.values():
            process.wait_for("ready")
        for victim in victims:
            kill(processes[victim])
            processes.pop(victim).close()
        killed = time.monotonic()
        finish(processes, BOUND_SECONDS)
        print(f"  {size - len(victims)} of {size} have computed again {time.monotonic() - killed:.2f} s after the kill")
    finally:
        close(processes)


def shrink_goes_on_without_one_that_was_killed():
    for victim, way in zip((3, 0, 7), WAYS):
        shrink_after([victim], 8, **way)


def shrink_goes_on_without_half_of_them():
    shrink_after([0, 2, 5, 6], 8)
    shrink_after([4, 5, 6, 7], 8, NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1)
    shrink_after([0, 1, 2, 3], 8)


def a_child_that_shares_loses_a_rank():
    for way in WAYS:
        shrink_after([1], 4, "share", **way)


def two_grow_to_four():
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "id")
            processes = {r: Process(4, [FAMILY, "grow", r, 2, 4, path], **way) for r in range(4)}
            try:
                finish(processes)
            finally:
                close(processes)


def who_was_killed_is_replaced():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "id")
        processes = {r: Process(4, [FAMILY, "regrow", r, 4, 1, path]) for r in range(4)}
        try:
            for process in processes.values():
                process.wait_for("ready")
            kill(processes[1])
            processes.pop(1).close()
            processes["new"] = Process(4, [FAMILY, "regrow", "new", 4, 1, path])
            finish(processes)
        finally:
            close(processes)


if __name__ == "__main__":
    main(split_works_over_every_transport, sixteen_processes_use_sixty_four_communicators,
         shrink_goes_on_without_one_that_was_killed,
         shrink_goes_on_without_half_of_them, a_child_that_shares_loses_a_rank,
         two_grow_to_four, who_was_killed_is_replaced)
