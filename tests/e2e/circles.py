#!/usr/bin/env python3
"""Processes that share communicators and call them in another order each: reports of stalls name the circle, from
communicator to communicator, and the remedy. Where one is only late nobody speaks of a circle."""
import pathlib
import re
import subprocess
import tempfile

from support import BUILD, Process, check, environment, free_port, main

CIRCLE = BUILD / "tests/e2e/circle"
INFO = BUILD / "tools/tutti_info/tutti-info"
WAYS = {"P2P": {}, "SHM": {"NCCL_P2P_DISABLE": 1}, "TCP": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}}
RANK = r"rank \d \(host [^,]+, device \d, pid \d+\)"
CALL = r"AllReduce number 1 of communicator 0x[0-9a-f]+"


def start(size, how, *more, **env):
    address = f"127.0.0.1:{free_port()}"
    return [Process(size, [CIRCLE, rank, size, how, *more], NCCL_COMM_ID=address, NCCL_DEBUG="WARN", TUTTI_STALL_SEC=2,
                    TUTTI_PEER_TIMEOUT_MS=600000, **env) for rank in range(size)]


def close(ranks):
    for process in ranks:
        process.close()


def ask(process):
    # softgpu-run becomes the program: they are one process.
    asked = subprocess.run([INFO, "stalls", str(process.pid)], capture_output=True, text=True, timeout=60,
                           env=environment())
    return asked.stdout + asked.stderr


def lines(said, part):
    return [line for line in said.splitlines() if part in line]


def told(size, behind="is queued behind"):
    text = f"a circle: {RANK} waits in {CALL} for {RANK}"
    for place in range(size):
        text += f", whose call of {'that' if place else 'it'} {behind} {CALL}"
        text += f", which waits for {RANK}" if place < size - 1 else ""
    return re.compile(text + r"\. Call the communicators in the same order on all ranks")


def named(size, **settings):
    ranks = start(size, "stream", **settings)
    try:
        for rank, process in enumerate(ranks):
            process.wait_for("a circle: ")
            process.wait_for("whose call of AllReduce number 1 of communicator")
            said = process.output()
            check(told(size).search(said), said)
            check(len(lines(said, "Stall: ")) == 2, said)
            for other in ranks:
                if size == 2 or other is process:
                    check(f"pid {other.pid})" in said, said)
        said = ask(ranks[0])
        check(len(lines(said, "a circle: ")) == 2, said)
    finally:
        close(ranks)


def two_processes_are_named():
    for settings in WAYS.values():
        named(2, **settings)


def three_processes_are_named():
    for settings in WAYS.values():
        named(3, **settings)


def streams_that_wait_for_each_other_are_named():
    ranks = start(2, "streams")
    try:
        for process in ranks:
            process.wait_for("it seems to be a circle: ")
            said = process.output()
            check(told(2, "has not begun, on another stream, and seems to be behind").search(said), said)
    finally:
        close(ranks)


def none_gets_out_of_its_call(ranks, call, remedy):
    """Each says that the next one's thread waits in `call`."""
    try:
        for process in ranks:
            process.wait_for("a circle: ")
            said = process.output()
            check("called" not in said and remedy in said, said)
            check(len(re.findall(f"was not made, for its thread waits in the call of {call}", said)) == len(ranks), said)
    finally:
        close(ranks)


def calls_that_wait_on_the_host_are_named():
    for size in (2, 3):
        none_gets_out_of_its_call(start(size, "host"), "AlltoAll number 1",
                                  "with NCCL_RUNTIME_CONNECT=0 they are connected at init")


def calls_that_are_compared_before_they_are_launched_are_named():
    none_gets_out_of_its_call(start(2, "stream", TUTTI_CHECK_CALLS=1), "AllReduce number 1",
                              "Call the communicators in the same order on all ranks")


def with_connections_made_at_init_the_host_does_not_wait():
    ranks = start(2, "host", NCCL_RUNTIME_CONNECT=0)
    try:
        for process in ranks:
            process.wait_for("called\n")
    finally:
        close(ranks)


def who_is_late_is_in_no_circle():
    for size, way in ((2, "P2P"), (3, "TCP")):
        with tempfile.TemporaryDirectory() as folder:
            now = pathlib.Path(folder) / "now"
            ranks = start(size, "late", now, **WAYS[way])
            try:
                ranks[0].wait_for("has not called AllReduce yet")
                now.touch()
                for process in ranks:
                    code, said = process.wait(120), process.output()
                    check(code == 0 and "done" in said, f"ended with {code}:\n{said}")
                    check("circle" not in said, said)
            finally:
                close(ranks)


if __name__ == "__main__":
    main(two_processes_are_named, three_processes_are_named, streams_that_wait_for_each_other_are_named,
         calls_that_wait_on_the_host_are_named,
         calls_that_are_compared_before_they_are_launched_are_named, with_connections_made_at_init_the_host_does_not_wait,
         who_is_late_is_in_no_circle)
