#!/usr/bin/env python3
"""What a tool hears that listens to NVTX: each call of the API as a range, with its arguments.

  nvtx.py TOOL    TOOL: the library of nvtx_tool.c
"""
import os
import re
import sys

from support import BUILD, check, free_port, main, run

TOOL = os.path.abspath(sys.argv.pop(1))


def hello(**env):
    return run(1, BUILD / "tests/e2e/hello", RANK=0, SIZE=1, NCCL_COMM_ID=f"127.0.0.1:{free_port()}", **env)


def every_call_is_a_range_with_its_arguments():
    said = hello(NVTX_INJECTION64_PATH=TOOL)
    lines = [line for line in said.splitlines() if line.startswith("nvtx ")]
    check(lines[0] == "nvtx domain NCCL", said)
    pushed = [line.removeprefix("nvtx push ") for line in lines if line.startswith("nvtx push ")]
    names = [line.split(" ")[0] for line in pushed]
    check(names == ["ncclGetUniqueId", "ncclCommInitRank", "ncclAllReduce", "ncclCommDestroy"], said)
    check(len(pushed) == lines.count("nvtx pop"), "ranges are left open:\n" + said)
    check(re.fullmatch(r"ncclAllReduce NCCL communicator ID=[1-9]\d* Message size \[bytes\]=134217728 Count=33554432 "
                       r"Data type=ncclFloat32 Reduction operation=Sum Root or peer=-1", pushed[2]), pushed[2])


def roots_and_peers_are_told_and_questions_are_none():
    said = run(2, BUILD / "bench/broadcast_perf", "-g", "2", "-b", 8, "-e", 8, "-n", 1, "-w", 0, NVTX_INJECTION64_PATH=TOOL)
    check(re.search(r"push ncclBroadcast .* Count=2 Data type=ncclFloat32 Reduction operation=-1 Root or peer=0$", said,
                    re.M), said)
    said = run(2, BUILD / "bench/sendrecv_perf", "-g", "2", "-b", 8, "-e", 8, "-n", 1, "-w", 0, NVTX_INJECTION64_PATH=TOOL)
    for call in ["Send", "Recv"]:
        for peer in [0, 1]:
            check(re.search(rf"push nccl{call} .* Root or peer={peer}$", said, re.M), said)
    check("push ncclGroupStart" in said and "push ncclGetVersion" not in said, said)


def the_setting_switches_ranges_off():
    said = hello(NVTX_INJECTION64_PATH=TOOL, NCCL_NVTX_DISABLE=1)
    check("nvtx domain known destroyed" in said and "nvtx push" not in said, said)


def without_a_tool_nobody_is_told():
    check("nvtx" not in hello(), "a line of NVTX without a tool")


if __name__ == "__main__":
    main(every_call_is_a_range_with_its_arguments, roots_and_peers_are_told_and_questions_are_none,
         the_setting_switches_ranges_off, without_a_tool_nobody_is_told)
