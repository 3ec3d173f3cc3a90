#!/usr/bin/env python3
"""A rank is killed, strangers knock: the others learn who and go on or leave within bounds."""
import os
import re
import signal
import socket
import time

from support import BUILD, Process, check, free_port, main

SURVIVOR = BUILD / "tests/e2e/survivor"
BOUND_SECONDS = 10


def start(ranks, size, port):
    return {r: Process(4, [SURVIVOR, r, size], NCCL_COMM_ID=f"127.0.0.1:{port}") for r in ranks}


def kill(process):
    pid = int(re.search(r"started pid (\d+)", process.output()).group(1))
    os.kill(pid, signal.SIGKILL)


def expect_errors(processes, dead):
    """Every survivor reports ncclRemoteError with the dead rank's number and comes back from its abort."""
    deadline = time.monotonic() + BOUND_SECONDS
    for rank, process in processes.items():
        code = process.wait(max(deadline - time.monotonic(), 0.1))
        said = process.output()
        check(code == 42, f"rank {rank} ended with {code}:\n{said}")
        check(re.search(rf"error 6 .*\brank {dead}\b", said), f"rank {rank} does not name rank {dead}:\n{said}")
        check("aborted 0" in said, f"rank {rank}: abort failed:\n{said}")


def killed_during_all_reduce_is_named_by_every_survivor():
    processes = start(range(4), 4, free_port())
    try:
        for process in processes.values():
            process.wait_for("reduced 8")
        kill(processes[2])
        del processes[2]
        expect_errors(processes, 2)
    finally:
        for process in processes.values():
            process.close()


def killed_during_init_is_named_by_every_survivor():
    # Rank 3 never starts, so the others wait in init when rank 1 dies.
    processes = start(range(3), 4, free_port())
    try:
        for process in processes.values():
            process.wait_for("started")
        time.sleep(1)
        check(all("init done" not in p.output() for p in processes.values()), "init ended without rank 3")
        kill(processes[1])
        del processes[1]
        expect_errors(processes, 1)
    finally:
        for process in processes.values():
            process.close()


def killed_root_is_noticed():
    processes = start(range(3), 4, free_port())
    try:
        for process in processes.values():
            process.wait_for("started")
        time.sleep(1)
        kill(processes[0])
        del processes[0]
        for rank, process in processes.items():
            check(process.wait(BOUND_SECONDS) == 42, f"rank {rank}:\n{process.output()}")
            check("error 6" in process.output(), process.output())
    finally:
        for process in processes.values():
            process.close()


def knock(port, payload):
    deadline = time.monotonic() + 20
    while True:
        try:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=5)
            break
        except ConnectionRefusedError:
            check(time.monotonic() < deadline, "nobody listens at the root's address")
            time.sleep(0.05)
    if payload:
        stranger.sendall(payload)
    return stranger


def strangers_do_not_disturb():
    port = free_port()
    processes = start([0], 3, port)
    strangers = []
    try:
        for payload in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", bytes(4096), os.urandom(100000), b"\x01", bytes(range(40))):
            strangers.append(knock(port, payload))
        processes.update(start([1, 2], 3, port))
        for process in processes.values():
            process.wait_for("reduced 4")
    finally:
        for stranger in strangers:
            stranger.close()
        for process in processes.values():
            process.close()


if __name__ == "__main__":
    main(killed_during_all_reduce_is_named_by_every_survivor, killed_during_init_is_named_by_every_survivor,
         killed_root_is_noticed, strangers_do_not_disturb)
