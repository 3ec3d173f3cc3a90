#!/usr/bin/env python3
"""A rank is killed, strangers knock: the others learn who and go on or leave within bounds."""
import os
import pathlib
import re
import signal
import socket
import tempfile
import time

from support import BUILD, Failure, Process, check, free_port, main

SURVIVOR = BUILD / "tests/e2e/survivor"
BOUND_SECONDS = 10
REPETITIONS = 20


def start(ranks, size, port, **env):
    return {r: Process(4, [SURVIVOR, r, size], NCCL_COMM_ID=f"127.0.0.1:{port}", **env) for r in ranks}


def close(processes):
    for process in processes.values():
        process.close()


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
        close(processes)


def killed_during_all_reduce_is_named_whatever_carries_it():
    for way in ({"NCCL_CUMEM_ENABLE": 1}, {"NCCL_P2P_DISABLE": 1}, {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}):
        processes = start(range(4), 4, free_port(), **way)
        try:
            for process in processes.values():
                process.wait_for("reduced 8")
            kill(processes[2])
            del processes[2]
            expect_errors(processes, 2)
        finally:
            close(processes)


def stopped_during_all_reduce_is_named_by_the_others():
    """A process that is stopped keeps its sockets: only its silence tells."""
    processes = start(range(3), 3, free_port(), NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1, TUTTI_PEER_TIMEOUT_MS=2000)
    try:
        for process in processes.values():
            process.wait_for("reduced 8")
        os.kill(int(re.search(r"started pid (\d+)", processes[1].output()).group(1)), signal.SIGSTOP)
        stopped = processes.pop(1)
        try:
            expect_errors(processes, 1)
        finally:
            stopped.close()
    finally:
        close(processes)


def a_plugin_that_fails_ends_the_job_with_its_words():
    """The network of every rank fails in that call: whoever meets it says so, the others hear of it."""
    plugin = BUILD / "tests/plugin/libnccl-net-testv12.so"
    faults = [(fault, "") for fault in ("connect", "accept", "isend@100", "irecv@100", "test@200")]
    for fault, proto in faults + [("short@40", proto) for proto in ("", "LL", "Simple")]:
        processes = start(range(3), 3, free_port(), NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1, NCCL_NET_PLUGIN=plugin,
                          TEST_NET_FAULT=fault, NCCL_PROTO=proto)
        try:
            deadline = time.monotonic() + 30
            for rank, process in processes.items():
                code = process.wait(max(deadline - time.monotonic(), 0.1))
                said = process.output()
                check(code == 42 and "aborted 0" in said, f"{fault}: rank {rank} ended with {code}:\n{said}")
                check(re.search(r"error [1-6] .*\brank \d", said), f"{fault}: rank {rank} names nobody:\n{said}")
            # Who met the fault has the plugin's words; a message cut short is seen by us.
            everything = "".join(process.output() for process in processes.values())
            words = "what comes next|cut the message short" if fault.startswith("short") else "told to fail"
            check(re.search(words, everything), f"{fault}: nobody says why:\n{everything[-3000:]}")
        finally:
            close(processes)


def a_plugin_finds_in_its_environment_what_a_settings_file_says():
    """Everything that makes this job fail, the plugin's own setting included, stands in the file."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write("NCCL_P2P_DISABLE=1\nNCCL_SHM_DISABLE=1\nTEST_NET_FAULT=connect\n"
                   f"NCCL_NET_PLUGIN={BUILD / 'tests/plugin/libnccl-net-testv12.so'}\n")
        conf.flush()
        processes = start(range(2), 2, free_port(), NCCL_CONF_FILE=conf.name)
        try:
            for rank, process in processes.items():
                check(process.wait(30) == 42, f"rank {rank}:\n{process.output()}")
            everything = "".join(process.output() for process in processes.values())
            check("told to fail" in everything, everything[-3000:])
        finally:
            close(processes)


def a_full_disk_for_the_log_stops_nobody():
    processes = start(range(2), 2, free_port(), NCCL_DEBUG="INFO", NCCL_DEBUG_FILE="/dev/full")
    try:
        for process in processes.values():
            process.wait_for("reduced 8")
        kill(processes[1])
        del processes[1]
        expect_errors(processes, 1)
    finally:
        close(processes)


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
        close(processes)


def microseconds_of_a_healthy_init():
    """How long ncclCommInitRank takes for the last rank to call it."""
    port = free_port()
    processes = start(range(3), 4, port)
    try:
        for process in processes.values():
            process.wait_for("started")
        time.sleep(0.1)
        processes.update(start([3], 4, port))
        processes[3].wait_for("init done after")
        return int(re.search(r"init done after (\d+) us", processes[3].output()).group(1))
    finally:
        close(processes)


def somebody_failed(processes):
    return any(p.child.poll() is not None or "error" in p.output() for p in processes.values())


def job_goes_on(survivors, replacement):
    """Whether all of them reduce together; else the replacement has gone, and a survivor has only now come to say that
    it misses the one before: on a busy machine that takes a while."""
    together = survivors | replacement
    deadline = time.monotonic() + BOUND_SECONDS
    try:
        while not all("reduced 4" in p.output() for p in together.values()):
            if somebody_failed(survivors):
                return False
            check(time.monotonic() < deadline, "\n".join(p.output() for p in together.values()))
            time.sleep(0.01)
        return True
    finally:
        close(replacement)


def connections_at(port):
    """How many clients the process has that listens there."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(local.endswith(f":{port:04X}") and state == "01" for _, local, _, state, *_ in rows)


def wait_until_they_have_come(port, ranks):
    """To rank 0: who comes after its end is told nothing, and goes on looking for it until time is up."""
    deadline = time.monotonic() + BOUND_SECONDS
    while connections_at(port) < ranks:
        check(time.monotonic() < deadline, f"{connections_at(port)} of {ranks} ranks have come to rank 0")
        time.sleep(0.01)


def die_during_init(victim, microseconds):
    """Ranks wait in init for the victim, which is killed so long after its own call. Returns what became of the job."""
    port = free_port()
    # Who has not reached rank 0 when it dies goes on looking for it until time is up: another could come.
    bound = {"TUTTI_BOOTSTRAP_TIMEOUT_SEC": 4} if victim == 0 else {}
    processes = start((r for r in range(4) if r != victim), 4, port, **bound)
    try:
        for process in processes.values():
            process.wait_for("started")
        if victim != 0:
            wait_until_they_have_come(port, len(processes))
        time.sleep(0.1)
        doomed = Process(4, [SURVIVOR, victim, 4, microseconds], NCCL_COMM_ID=f"127.0.0.1:{port}")
        processes[victim] = doomed
        check(doomed.wait(BOUND_SECONDS) == -signal.SIGKILL, f"rank {victim} was not killed:\n{doomed.output()}")
        processes.pop(victim).close()
        time.sleep(0.3)
        # Where it died before it had said who it was nobody can miss it yet, and another may take its place.
        if not somebody_failed(processes) and job_goes_on(processes, start([victim], 4, port)):
            return "replaced"
        expect_errors(processes, victim)
        return "named after init" if any("init done" in p.output() for p in processes.values()) else "named"
    finally:
        close(processes)


def killed_at_any_moment_of_init_is_named_or_replaced():
    whole = microseconds_of_a_healthy_init()
    outcomes = {}
    for i in range(REPETITIONS):
        microseconds = int(1.2 * whole * i / REPETITIONS)
        victim = (3, 1, 0, 2, 3)[i % 5]
        try:
            outcome = die_during_init(victim, microseconds)
        except Failure as failure:
            raise Failure(f"rank {victim} killed {microseconds} of {whole} us after its call: {failure}") from None
        outcomes.setdefault(outcome, []).append(microseconds)
    print(f"  init takes {whole} us; died after (us): {outcomes}")
    check("named" in outcomes, f"no victim died in the midst of init: {outcomes}")


def missing_rank_is_named_when_time_is_up():
    # Long enough for three processes to start on a busy machine: who comes after the end hears of no names.
    patience = 6
    processes = start(range(3), 4, free_port(), TUTTI_BOOTSTRAP_TIMEOUT_SEC=patience)
    try:
        for rank, process in processes.items():
            check(process.wait(patience + BOUND_SECONDS) == 42, f"rank {rank}:\n{process.output()}")
            check(re.search(r"error \d .*\b3\b", process.output()), f"rank {rank} does not name rank 3:\n{process.output()}")
    finally:
        close(processes)


def killed_root_is_named():
    processes = start(range(3), 4, free_port())
    try:
        for process in processes.values():
            process.wait_for("started")
        time.sleep(1)
        kill(processes[0])
        del processes[0]
        expect_errors(processes, 0)
    finally:
        close(processes)


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
        close(processes)


if __name__ == "__main__":
    main(killed_during_all_reduce_is_named_by_every_survivor, killed_during_all_reduce_is_named_whatever_carries_it,
         stopped_during_all_reduce_is_named_by_the_others, a_plugin_that_fails_ends_the_job_with_its_words,
         a_plugin_finds_in_its_environment_what_a_settings_file_says, a_full_disk_for_the_log_stops_nobody, killed_during_init_is_named_by_every_survivor,
         killed_at_any_moment_of_init_is_named_or_replaced, missing_rank_is_named_when_time_is_up,
         killed_root_is_named, strangers_do_not_disturb)
