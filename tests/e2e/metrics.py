#!/usr/bin/env python3
"""Counters of running processes: printed, served by HTTP, and as the table of top."""
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

import ras_job
from support import BUILD, Process, check, environment, free_port, main

SURVIVOR = BUILD / "tests/e2e/survivor"
INFO = BUILD / "tools/tutti_info/tutti-info"
SIZE = 2


def info(*arguments):
    asked = subprocess.run([INFO, *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment())
    return asked.returncode, asked.stdout, asked.stderr


class Job:
    """Two processes that reduce over TCP without end."""

    def __enter__(self):
        port = free_port()
        self.ranks = [Process(SIZE, [SURVIVOR, r, SIZE], NCCL_COMM_ID=f"127.0.0.1:{port}", NCCL_ALGO="Ring",
                              NCCL_PROTO="Simple", NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1) for r in range(SIZE)]
        for rank in self.ranks:
            rank.wait_for("reduced 4")
        self.pids = [int(re.search(r"started pid (\d+)", rank.output()).group(1)) for rank in self.ranks]
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.close()

    def value(self, text, name, rank, rest=""):
        found = re.search(rf'^{name}{{host="[^"]+",pid="{self.pids[rank]}",comm="0x[0-9a-f]+",name="",rank="{rank}",'
                          rf'ranks="{SIZE}",device="{rank}"{rest}}} (\S+)$', text, re.M)
        check(found, f"no {name} of rank {rank} in\n{text}")
        return float(found.group(1))


def what_was_done_is_counted_and_grows():
    with Job() as job:
        code, before, said = info("metrics", *job.pids)
        check(code == 0 and said == "", said)
        code, after, said = info("metrics", *job.pids)
        check(before.count("# TYPE tutti_calls_total counter") == 1, before)
        for rank in range(SIZE):
            calls = job.value(before, "tutti_calls_total", rank, ',collective="AllReduce"')
            check(calls >= 4, before)
            check(job.value(after, "tutti_calls_total", rank, ',collective="AllReduce"') >= calls, after)
            check(job.value(before, "tutti_launched_total", rank, ',algorithm="RING",protocol="SIMPLE"') >= 4, before)
            check(job.value(before, "tutti_host_bytes_total", rank, ',transport="NET/Socket/0"') > 0, before)
            check(job.value(before, "tutti_failed", rank) == 0, before)


def they_are_served_on_loopback():
    with Job() as job:
        server = subprocess.Popen([INFO, "metrics", "--serve", "0"], stderr=subprocess.PIPE, text=True, env=environment())
        try:
            port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stderr.readline()).group(1))
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                check(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), str(answer.headers))
                text = answer.read().decode()
            for rank in range(SIZE):
                job.value(text, "tutti_kernels_run", rank)
            # Strangers: one who says nothing, and one who asks for something else.
            with socket.create_connection(("127.0.0.1", port)):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/secret", timeout=30)
                    check(False, "there is a /secret")
                except urllib.error.HTTPError as error:
                    check(error.code == 404, str(error))
        finally:
            server.kill()
            server.wait()


def top_shows_a_line_for_each_rank():
    with Job() as job:
        code, table, said = info("top", "-n", 1, "-d", 0.5, *job.pids)
        check(code == 0 and said == "", said)
        lines = table.splitlines()
        check(len(lines) == 1 + SIZE and lines[0].split()[:3] == ["HOST", "PID", "COMM"], table)
        for rank, line in enumerate(sorted(lines[1:], key=lambda l: l.split()[4])):
            check(f" {job.pids[rank]} " in line and f" {rank}/{SIZE} " in line, table)


def waits_in(text):
    """The ranks that wait, where the last one is among those that they wait for and none has moved for a while."""
    waits = re.findall(r'^tutti_wait_seconds{.*,rank="(\d)",.*,operation="AllReduce",peer="(\d)"} (\S+)$', text, re.M)
    check(all(float(seconds) >= 0.2 for *_, seconds in waits), text)
    return {rank for rank, _, _ in waits} if "2" in {peer for _, peer, _ in waits} else set()


def asks_until_told(command, told):
    """A loaded machine may not look twice in time."""
    deadline = time.monotonic() + 60
    while True:
        code, text, said = info(*command)
        check(code == 0 and time.monotonic() < deadline, text + said)
        if told(text):
            return


def a_late_rank_is_named_by_those_that_wait_for_it():
    with ras_job.Job(3) as ranks:
        ras_job.init(ranks)
        ras_job.all_do(ranks, "reduce 2")
        pids = [rank.pid for rank in ranks]
        ras_job.all_do(ranks[:2], "reduce 1")
        asks_until_told(["metrics", *pids], lambda text: waits_in(text) == {"0", "1"})
        waits = r"  kernels run, AllReduce waits [\d.]+ s for ranks? [\d, ]*2"
        asks_until_told(["top", "-n", 1, "-d", 0.5, *pids], lambda table: re.search(waits, table))
        ranks[2].do("reduce 1")
        ras_job.all_do(ranks, "sync")
        code, text, said = info("metrics", *pids)
        check(code == 0 and "# TYPE tutti_wait_seconds" in text and "tutti_wait_seconds{" not in text, text)


def who_cannot_be_asked_is_named():
    code, _, said = info("metrics", os.getpid())
    check(code == 1 and f"process {os.getpid()} has no communicator of tutti" in said, said)
    code, _, said = info("top", "-n", 1, 2 ** 30)
    check(code == 1 and f"there is no process {2 ** 30}" in said, said)


if __name__ == "__main__":
    main(a_late_rank_is_named_by_those_that_wait_for_it, what_was_done_is_counted_and_grows,
         they_are_served_on_loopback, top_shows_a_line_for_each_rank, who_cannot_be_asked_is_named)
