#!/usr/bin/env python3
"""An init that does not go on says so: in which stage, for whom it waits, in which call of which plugin.

  silent_inits.py PLUGIN…   the plugins for tests (tests/plugin)
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

from support import BUILD, Process, check, environment, free_port, main

GIVEN = {path.name: path for path in map(pathlib.Path, sys.argv[1:])}
PLUGIN, ENV_PLUGIN, TUNER, PROFILER, MIXED = (GIVEN[f"libnccl-{name}.so"] for name in (
    "net-testv12", "env-testv2", "tuner-testv6", "profiler-testv6", "net-traced-v12"))
SURVIVOR = BUILD / "tests/e2e/survivor"
INFO = BUILD / "tools/tutti_info/tutti-info"
NETWORK = rf"network testv12 \(net v12 of {re.escape(str(PLUGIN))}\)"


@contextlib.contextmanager
def job(ranks, size, faults=None, **env):
    """Some ranks of a job of `size`, joined by the test plugin. `faults`: of ranks, by number."""
    port = free_port()
    processes = {}
    try:
        for rank in ranks:
            told = {"TEST_NET_FAULT": faults[rank]} if faults and rank in faults else {}
            processes[rank] = Process(size, [SURVIVOR, rank, size], NCCL_COMM_ID=f"127.0.0.1:{port}",
                                      TUTTI_STALL_SEC=1, TUTTI_PEER_TIMEOUT_MS=600000, NCCL_P2P_DISABLE=1,
                                      NCCL_SHM_DISABLE=1,
                                      **{"NCCL_NET_PLUGIN": PLUGIN, "NCCL_DEBUG": "WARN", **told, **env})
        yield processes
    finally:
        for process in processes.values():
            process.close()


def stall(process):
    """The first report of a stalled init."""
    process.wait_for("Stalled init: ")
    process.wait_for("TUTTI_STALL_SEC sets when this is said")
    return process.output()


def says(process, pattern):
    said = stall(process)
    check(re.search(pattern, said), f"{pattern} is missing:\n{said}")


def asked(process):
    pid = int(re.search(r"started pid (\d+)", process.output()).group(1))
    answer = subprocess.run([INFO, "stalls", str(pid)], capture_output=True, text=True, timeout=60, env=environment())
    check(answer.returncode == 0, answer.stdout + answer.stderr)
    return answer.stdout


def of(rank, size, stage):
    return rf"rank {rank} of {size} on host \S+, device {rank}: ncclCommInitRank has been in its stage \"{stage}\" for \d+\.\d s: "


def a_plugin_sleeps_in_its_init():
    with job([0, 1], 2, {0: "init-sleeps=60000", 1: "init-sleeps=60000"}) as ranks:
        for rank in ranks:
            expected = of(rank, 2, "network") + rf"it is in the call init of {NETWORK}, which does not return"
            says(ranks[rank], "Stalled init: " + expected)
            said = asked(ranks[rank])
            check(re.search(expected, said), said)


def an_env_plugin_sleeps_in_its_init():
    with job([0], 2, NCCL_ENV_PLUGIN=ENV_PLUGIN, TEST_ENV_FAULT="sleeps") as ranks:
        expected = (rf"process \d+ on host \S+: the start of the library has been in its stage \"env plugin\" for \d+\.\d s: "
                    rf"it is in the call init of Env plugin testenv2 \(v2 of {re.escape(str(ENV_PLUGIN))}\), which does not return")
        says(ranks[0], "Stalled init: " + expected)
        said = asked(ranks[0])
        check(re.search(expected, said), said)


def a_tuner_sleeps_in_its_init():
    with job([0, 1], 2, NCCL_TUNER_PLUGIN=TUNER, TEST_TUNER="sleeps") as ranks:
        for rank in ranks:
            says(ranks[rank], "Stalled init: " + of(rank, 2, "plugins") +
                 rf"it is in the call init of tuner tunerv6 \(v6 of {re.escape(str(TUNER))}\), which does not return")


def a_profiler_sleeps_in_its_init():
    with job([0, 1], 2, NCCL_PROFILER_PLUGIN=PROFILER, TEST_PROFILER_SLEEPS=1) as ranks:
        says(ranks[1], "Stalled init: " + of(1, 2, "plugins") +
             rf"it is in the call init of profiler TestProfiler \(v6 of {re.escape(str(PROFILER))}\), "
             "which does not return")


def a_library_does_not_come_out_of_its_constructors():
    """Whichever kind it is loaded as."""
    opened = f"it is in the call dlopen of {re.escape(str(MIXED))}, which does not return"
    for setting, stage in (("NCCL_NET_PLUGIN", "network"), ("NCCL_PROFILER_PLUGIN", "plugins"),
                           ("NCCL_TUNER_PLUGIN", "plugins")):
        with job([0, 1], 2, **{"MIXED_LOAD_SLEEPS": 1, "MIXED_TRACE": os.devnull, setting: MIXED}) as ranks:
            says(ranks[0], "Stalled init: " + of(0, 2, stage) + opened)
    with job([0], 2, MIXED_LOAD_SLEEPS=1, MIXED_TRACE=os.devnull, NCCL_ENV_PLUGIN=MIXED) as ranks:
        says(ranks[0], r"Stalled init: process \d+ on host \S+: the start of the library has been in its stage "
             r"\"env plugin\" for \d+\.\d s: " + opened)


def a_network_does_not_return_from_a_call_of_the_init():
    for call, stage, device in (("devices", "network", ""), ("listen", "connections", ", device 0"),
                                ("accept", "connections", ""), ("regMr", "connections", "")):
        with job([0, 1], 2, {0: f"{call}-sleeps=60000"}) as ranks:
            expected = of(0, 2, stage) + rf"it is in the call {call} of {NETWORK}{device}, which does not return"
            says(ranks[0], "Stalled init: " + expected)
            says(ranks[1], r"Stalled init: .* it waits for rank 0 \(host ")
            said = asked(ranks[0])
            check(re.search(expected, said), said)


def a_plugin_does_not_return_from_connect():
    with job([0, 1], 2, {0: "connect-sleeps=60000"}) as ranks:
        says(ranks[0], "Stalled init: " + of(0, 2, "connections") + rf"it is in the call connect of {NETWORK}, device 0, which does not")
        says(ranks[1], "Stalled init: " + of(1, 2, "connections") + r"it waits for rank 0 \(host \S+, pid \d+\): ")


def a_connection_never_comes():
    with job([0, 1], 2, {0: "no-connection", 1: "no-connection"}) as ranks:
        for rank in ranks:
            expected = (of(rank, 2, "connections") + rf"it waits for rank {1 - rank} \(host \S+, pid \d+\): .*; "
                        rf"its last call of a plugin was (connect|accept) of {NETWORK}")
            says(ranks[rank], "Stalled init: " + expected)
            said = asked(ranks[rank])
            check(re.search(expected, said), said)


def a_rank_never_comes():
    with job([0, 1], 3) as ranks:
        ranks[0].wait_for("Stalled init: the bootstrap waits for rank 2 of 3: were all processes started")
        says(ranks[1], "Stalled init: " + of(1, 3, "bootstrap") + "it waits for the root's word that all ranks have come")
        said = asked(ranks[1])
        check("the root's word that all ranks have come" in said, said)


def a_rank_is_stopped():
    with job([0, 1], 2, {1: "init-sleeps=60000"}, NCCL_DEBUG="INFO") as ranks:
        ranks[1].wait_for("Loaded net plugin testv12")
        os.kill(int(re.search(r"started pid (\d+)", ranks[1].output()).group(1)), signal.SIGSTOP)
        says(ranks[0], "Stalled init: " + of(0, 2, "exchange of facts") + r"it waits for rank 1 \(host \S+, pid \d+\): allGather")


if __name__ == "__main__":
    main(a_plugin_sleeps_in_its_init, an_env_plugin_sleeps_in_its_init, a_tuner_sleeps_in_its_init,
         a_profiler_sleeps_in_its_init, a_library_does_not_come_out_of_its_constructors,
         a_network_does_not_return_from_a_call_of_the_init, a_plugin_does_not_return_from_connect,
         a_connection_never_comes, a_rank_never_comes,
         a_rank_is_stopped)
