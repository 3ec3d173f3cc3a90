#!/usr/bin/env python3
"""tutti-info net on this machine, whatever it has: which network it names, and why.

  info_net.py FOLDER…   where the plugins for tests are (tests/plugin)
"""
import pathlib
import subprocess
import sys

from support import BUILD, RUN, check, environment, main

TOOL = BUILD / "tools/tutti_info/tutti-info"
PLUGIN = next(path for path in map(pathlib.Path, sys.argv[1:]) if path.name == "libnccl-net-testv12.so")


def net(*front, **env):
    """Exit status and what is said."""
    ended = subprocess.run([*front, TOOL, "net"], capture_output=True, text=True, timeout=60, env=environment(**env))
    check(ended.stderr == "", f"{ended.stderr}")
    return ended.returncode, ended.stdout


def works(*front, **env):
    code, said = net(*front, **env)
    check(code == 0, f"ended with {code}:\n{said}")
    return said


def socket_is_the_last_that_is_tried():
    said = works(NCCL_IB_DISABLE=1)
    check("  IB: not used: it has no devices\n" in said, said)
    check("  Socket: chosen, the first that can be used\n" in said, said)
    check("NICs with verbs that IB sees (NCCL_IB_HCA is not set)\n  not used: NCCL_IB_DISABLE is set\n" in said, said)
    check("GPUDirect RDMA" in said and "GPUs cannot be asked: " in said, said)


def every_interface_is_there():
    said = works()
    for folder in pathlib.Path("/sys/class/net").iterdir():
        check(not folder.is_dir() or f"\n  {folder.name} " in said, f"{folder.name} is missing:\n{said}")
    said = works(NCCL_SOCKET_IFNAME="lo")
    check("  lo 127.0.0.1: used: NCCL_SOCKET_IFNAME names it\n" in said, said)


def what_cannot_be_used_has_a_remedy():
    said = works(NCCL_IBVERBS_LIB="/nowhere/libibverbs.so.1")
    check("  not used: /nowhere/libibverbs.so.1" in said and "Install libibverbs1" in said, said)
    code, said = net(NCCL_NET="nosuch")
    check(code == 1 and "  Socket: not used: its network is Socket, wanted is nosuch\n" in said, said)
    check("None can be used" in said and "There is no network to ask" in said, said)


def a_plugin_comes_first():
    said = works(NCCL_NET_PLUGIN=PLUGIN)
    check(f"  testv12 ({PLUGIN}): chosen, the first that can be used\n" in said, said)
    check("  Socket: not asked: one before it was chosen" in said, said)
    said = works(NCCL_NET_PLUGIN=PLUGIN, TEST_NET_FAULT_V12="init")
    check(f"  testv12 ({PLUGIN}): not used: " in said and "  Socket: chosen" in said, said)


def gpus_are_asked_where_there_are_any():
    said = works(*RUN, "-n", "2", NCCL_IB_DISABLE=1)
    for ordinal in (0, 1):
        check(f"  GPU {ordinal} (" in said, said)
    check("the driver says that NICs do not reach its memory" in said, said)
    check("receives no: it takes no GPU memory, sends no: it takes no GPU memory\n" in said, said)
    said = works(*RUN, "-n", "1", NCCL_NET_PLUGIN=PLUGIN, TEST_NET_FAULT_V12="gdr", SOFTGPU_GDR="dmabuf")
    check("the driver says that NICs reach its memory; dma-bufs are given" in said, said)
    check("receives yes, by its address, sends yes, by its address\n" in said, said)
    said = works(*RUN, "-n", "1", NCCL_NET_PLUGIN=PLUGIN, TEST_NET_FAULT_V12="gdr", NCCL_NET_GDR_READ=0)
    check("receives yes, by its address, sends no: NCCL_NET_GDR_LEVEL or NCCL_NET_GDR_READ forbids it\n" in said, said)


main(socket_is_the_last_that_is_tried, every_interface_is_there, what_cannot_be_used_has_a_remedy, a_plugin_comes_first,
     gpus_are_asked_where_there_are_any)
