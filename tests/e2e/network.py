#!/usr/bin/env python3
"""Ranks that only a network joins, on one host: P2P and shared memory are switched off.

  network.py proof             the log proves that the network carries everything, and which one
  network.py sockets RANKS     conformance of every algorithm and protocol over the built-in network
  network.py shapes            the same with fewer counts where slots are small, blocks large, schedules random
  network.py plugins FOLDER…   conformance over plugins of every version of the interface
  network.py fusion FOLDER…    ports of an adapter become one device where a plugin offers that
  network.py gpu_direct FOLDER…  slots in GPU memory, which a plugin reads and writes
  network.py shared            messages whose connections share slots, so few that all wait for them
  network.py grouped PLUGIN    the same where channels share connections of a network that receives several at once
  network.py graphs            captured operations, replayed
  network.py undelivered       what nobody receives holds up the end of a process for a while, and is told
  network.py parting FOLDER…   communicators end while others of the process go on, over one endpoint of a plugin
  network.py waits FOLDER…     plugins that wait in their calls for the peer, and do not say what has come
  network.py settings FOLDER…  what a plugin sets in its init is obeyed
  network.py leftovers         idle communicators cost nothing; a thousand leave nothing behind, their children too
  network.py many              64 ranks, a process each
"""
import pathlib
import re
import signal
import sys
import tempfile
import time

import matrix
from support import BUILD, Process, check, free_port, ranks_succeed, run

OFF = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}
COMBINATIONS = [c for c in matrix.COMBINATIONS if c[0] not in ("OneShot", "Direct")]

SOME = [c for c in COMBINATIONS if c[:2] in (("Ring", "LL"), ("Ring", "LL128"), ("Ring", "Simple"), ("Tree", "Simple"))]


def conform(ranks, *options, combinations=COMBINATIONS, **env):
    for algorithm, protocol, names in combinations:
        matrix.prove("conformance", ranks, names, *options, **matrix.forced(algorithm, protocol, **OFF, **env))
    for threshold in matrix.MESSAGE_PROTOCOLS.values():
        matrix.prove("conformance", ranks, matrix.MESSAGES, *options, NCCL_P2P_LL_THRESHOLD=threshold, **OFF, **env)


def connections(ranks, names, **env):
    said = run(ranks, BUILD / "tests/e2e/conformance", "--ranks", ranks, "--quick", "--only", names, NCCL_DEBUG="INFO",
               NCCL_DEBUG_SUBSYS="INIT,NET,P2P,SHM", **OFF, **env)
    lines = [line for line in said.splitlines() if re.search(r"Channel \d+/\d+ : \d+\[", line)]
    check(lines, f"no connection was logged:\n{said[-2000:]}")
    return said, lines


def proof():
    said, lines = connections(3, "all_reduce,sendrecv")
    strangers = [line for line in lines if not re.search(r"\[(send|receive)\] via NET/Socket/\d+$", line)]
    check(not strangers, f"not by the network: {strangers[:3]}")
    check(said.count("Using network Socket") == 3, said[:3000])
    check(any("[send]" in line for line in lines) and any("[receive]" in line for line in lines), "one side is silent")


def sockets(ranks):
    # Counts meet slots in the same way whatever the number of ranks, and types whatever the number of peers.
    options = {"2": [], "8": ["--quick", "--types", "int8,bfloat16,float"]}
    conform(ranks, *options.get(ranks, ["--quick"]))
    if ranks == "2":
        in_place()


def in_place():
    """Two ranks reduce what is long over their connections for messages."""
    def reduce(types, counts, **env):
        said = run(2, BUILD / "tests/e2e/conformance", "--ranks", 2, "--only", "all_reduce", "--types", types, "--counts",
                   counts, **OFF, **env)
        check(re.search(r"^conformance: [1-9]\d* cases on 2 ranks, 0 wrong$", said, re.M), said[-3000:])
        return said

    said = reduce("bfloat16,float,double", "262145,400001", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET")
    check(re.search(r"Channel 00/1 : 0\[\d+\] -> 1\[\d+\] \[send\] via NET/Socket", said), f"not that way: {said[:3000]}")
    reduce("float", "300001", SOFTGPU_SCHEDULE="random:5", SOFTGPU_WEAK_MEMORY=5)
    reduce("float", "300001", TUTTI_LAUNCH_SHAPE="GPU")
    reduce("float", "300001", TUTTI_NET_SHARED_SLOTS=1)
    said = reduce("float", "300001", NCCL_NET_SHARED_BUFFERS=0, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET")
    check(not re.search(r"Channel 00/1 : ", said), f"without shared slots there is nothing in place: {said[:3000]}")


def shapes():
    conform(3, "--quick", combinations=SOME, **matrix.SMALL_SLOTS)
    conform(2, "--quick", combinations=SOME, TUTTI_LAUNCH_SHAPE="GPU")
    conform(3, "--quick", combinations=SOME, SOFTGPU_SCHEDULE="random:7", SOFTGPU_WEAK_MEMORY=7)
    # A connection of several sockets, with threads of its own.
    conform(2, "--quick", combinations=SOME[2:3], NCCL_SOCKET_NTHREADS=2, NCCL_NSOCKS_PERTHREAD=2)


def plugins(*files):
    for file in files:
        name = pathlib.Path(file).name
        said, lines = connections(2, "all_reduce", NCCL_NET_PLUGIN=file)
        check(all(" via NET/" in line and "/Socket/" not in line for line in lines), f"{name}: {lines[:3]}")
        check(f"Successfully loaded external network plugin" in said, f"{name}: {said[:2000]}")
        ranks = 2 if "test" in name else 8
        conform(ranks, "--quick", combinations=SOME[:3:2], NCCL_NET_PLUGIN=file)
        if "testv12" in name:  # slow, out of order, without room: anything but wrong
            conform(2, "--quick", combinations=SOME[:3:2], NCCL_NET_PLUGIN=file, TEST_NET_FAULT="busy,reorder,delay=50")


def fusion(*files):
    # Four ports of two adapters; the topology and the connections get to see what they become.
    for file in files:
        name = pathlib.Path(file).name
        if "testv" not in name:
            continue
        fuses = int(re.search(r"testv(\d+)", name).group(1)) >= 9
        said, lines = connections(2, "all_reduce", NCCL_NET_PLUGIN=file, TEST_NET_FAULT="ports=4")
        used = {int(re.search(r"via NET/\w+/(\d+)", line).group(1)) for line in lines}
        check(("test0, test1 are used as one device, number 4" in said) == fuses, f"{name}: {said[:3000]}")
        check(used and used <= ({4, 5} if fuses else {0, 1, 2, 3}), f"{name}: devices {used}")
        plugin = re.search(r"Using network (\w+)", said).group(1)
        check((f"COLLNET/{plugin} : test2, test3 are used as one device, number 5" in said) == fuses, said[:3000])
        report = "test0+1, test2+1" if fuses else "test0, test1, test2, test3"
        check(f"COLLNET/{plugin} : collectives can run in the network of {report}" in said, said[:3000])
        if fuses:
            collnets(file, plugin)
        if "testv12" not in name:
            continue
        said, lines = connections(2, "all_reduce", NCCL_NET_PLUGIN=file, TEST_NET_FAULT="ports=4", NCCL_NET_FORCE_MERGE="test0,test2")
        check("test0, test2 are used as one device, number 4" in said and "number 5" not in said, said[:3000])
        said, lines = connections(2, "all_reduce", NCCL_NET_PLUGIN=file, TEST_NET_FAULT="ports=4,fuse")
        check("test0, test1 stay devices of their own" in said, said[:3000])
        conform(2, "--quick", combinations=SOME[2:3], NCCL_NET_PLUGIN=file, TEST_NET_FAULT="ports=4")


def collnets(file, plugin):
    # One list of the library for both tables: what the net has fused is not asked of its collNet again.
    said, lines = connections(2, "all_reduce", NCCL_NET_PLUGIN=file, TEST_NET_FAULT="ports=4,one-list")
    check(f"COLLNET/{plugin} : test0" not in said, said[:3000])
    check("can run in the network of test0+1, test2+1" in said and "number 6" not in said, said[:3000])
    # A collNet that fuses nothing has no device of the network's, not even where the user names them.
    for force in ({}, {"NCCL_NET_FORCE_MERGE": "test0,test1;test2,test3"}):
        said, lines = connections(2, "all_reduce", NCCL_NET_PLUGIN=file, TEST_NET_FAULT="ports=4,coll-fuse", **force)
        used = {int(re.search(r"via NET/\w+/(\d+)", line).group(1)) for line in lines}
        check(used <= {4, 5} and f"NET/{plugin} : test0, test1 are used as one device" in said, said[:3000])
        words = "NCCL_NET_FORCE_MERGE=test0,test1;test2,test3: test0, test1 cannot become one device: network" if force \
            else "test0, test1, test2, test3 not used: the network, which must have devices of the same names, has test0+1"
        check(f"COLLNET/{plugin} " in said and words in said, said[:3000])
        warnings = [line for line in said.splitlines() if "NCCL WARN" in line]
        complaints = [line for line in warnings if re.search("collNet|makeVDevice|MERGE", line)]
        check(not complaints, f"a communicator does without a collNet: {complaints}")


def settings(*files):
    # What a network sets in its init holds for the first communicator as for later ones, also what is read only once.
    file = next(f for f in files if "testv12" in f)

    def chosen(**env):
        said = run(2, BUILD / "tests/e2e/conformance", "--ranks", 2, "--quick", "--only", "all_reduce", "--types", "float",
                   "--counts", "1000", NCCL_NET_PLUGIN=file, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET,ENV,TUNING",
                   **OFF, **env)
        return said, set(re.findall(r"Algo \w+ proto (\w+)", said))

    _, usual = chosen()
    check("LL" not in usual, f"the test proves nothing: {usual}")
    said, protocols = chosen(TEST_NET_SETS="NCCL_PROTO=LL;NCCL_BUFFSIZE=65536")
    check(said.count("NCCL_PROTO set by network testv12 to LL") == 1, f"nothing tells of it:\n{said[:3000]}")
    check(protocols == {"LL"}, f"chosen were {protocols}:\n{said[:3000]}")
    check("share 16 slots of 8 KB" in said, f"NCCL_BUFFSIZE has no effect:\n{said[:3000]}")
    said, protocols = chosen(TEST_COLLNET_SETS="NCCL_PROTO=LL")
    check(protocols == {"LL"}, f"what the plugin's collNet sets has no effect: {protocols}:\n{said[:3000]}")
    _, protocols = chosen(TEST_NET_SETS="NCCL_PROTO=LL", NCCL_PROTO="Simple")
    check(protocols == {"SIMPLE"}, f"the user said Simple, chosen were {protocols}")
    said = run(2, BUILD / "tests/e2e/leftovers", "cycles", 10, NCCL_NET_PLUGIN=file, TEST_NET_SETS="NCCL_PROTO=LL", **OFF)
    check("after 10 cycles" in said, said)


def waits(*files):
    # accept() waits for a connect, and the first test() of a send for the accept: as the plugin FastSocket does, which
    # does not write sizes either, and wants to be asked for the oldest request.
    file = next(f for f in files if "testv6" in f)
    here = dict(NCCL_NET_PLUGIN=file, TEST_NET_FAULT="waits,no-sizes,in-order", **OFF)
    for ranks in (2, 4):
        ranks_succeed("hello", ranks, **here)
        ranks_succeed("messages", ranks, **here)
    ranks_succeed("hello", 4, **here, NCCL_RUNTIME_CONNECT=0, NCCL_MIN_NCHANNELS=8, TUTTI_LAUNCH_SHAPE="GPU")
    said, _ = connections(2, "all_reduce", **{k: v for k, v in here.items() if k not in OFF})
    check("network testv06 does not say how much it has received" in said, said[:3000])
    conform(2, "--quick", combinations=SOME[:3], **{k: v for k, v in here.items() if k not in OFF})


def parting(*files):
    # All connections of a process need one endpoint, which goes where one is closed with requests under way.
    for version in ("testv6", "testv12"):
        here = dict(NCCL_NET_PLUGIN=next(f for f in files if version in f), TEST_NET_FAULT="one-endpoint", **OFF)
        quiet_end("threads", **here)
        for ranks, faults in ((2, ""), (3, ""), (4, ",busy,reorder,delay=50")):
            quiet_end("processes", ranks, **{**here, "TEST_NET_FAULT": "one-endpoint" + faults})
    # The same where another rank sends, and where messages have slots of their own.
    quiet_end("processes", 2, NCCL_NET_SHARED_BUFFERS=0, **here)
    quiet_end("processes", 2, TUTTI_LAUNCH_SHAPE="GPU", **here)
    # Built-in networks close what is posted.
    quiet_end("processes", 2, **OFF)


def quiet_end(how, ranks=1, **env):
    """Runs the program, in a process or several, which must succeed, complain of nothing, and wait for nobody in vain."""
    address = f"127.0.0.1:{free_port()}"
    processes = [Process(max(ranks, 4), [BUILD / "tests/e2e/parting", how], RANK=r, SIZE=ranks, NCCL_COMM_ID=address,
                         NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="NET,DESTROY", **env) for r in range(ranks)]
    try:
        for r, process in enumerate(processes):
            check(process.wait(120) == 0 and f"[Rank {r}] Success" in process.output(), process.output())
            said = [line for line in process.output().splitlines() if "TUTTI_BUILD" not in line and "TUTTI_SOURCE" not in line]
            wrong = [line for line in said if re.search("NCCL WARN|NCCL ERROR|does not take part", line)]
            check(not wrong, f"{wrong}\n{process.output()}")
    finally:
        for process in processes:
            process.close()


def gpu_direct(*files):
    # The plugin says that it reads and writes GPU memory; on the software GPU any plugin can.
    file = next(f for f in files if "testv12" in f)
    here = dict(NCCL_NET_PLUGIN=file, TEST_NET_FAULT="gdr")
    said, lines = connections(2, "all_reduce,sendrecv", **here)
    check(lines and all(re.search(r"via NET/testv12/0/GDRDMA$", line) for line in lines), f"{lines[:3]}")
    check("use ring PXN 0 GDR 1" in said, said[:3000])
    said, lines = connections(2, "all_reduce", NCCL_NET_GDR_READ=0, **here)
    check(all(("[receive]" in line) == ("/GDRDMA" in line) for line in lines), f"reading is forbidden: {lines[:4]}")
    for off in ({"NCCL_NET_GDR_LEVEL": "LOC"}, {"TEST_NET_FAULT": ""}):
        said, lines = connections(2, "all_reduce", **{**here, **off})
        check("GDRDMA" not in said and "use ring PXN 0 GDR 0" in said, f"{off}: {lines[:3]}")
    # What devices say of GPU memory is not what they take.
    said, lines = connections(2, "all_reduce", SOFTGPU_GDR="dmabuf",
                              **{**here, "TEST_NET_FAULT": "gdr,dma-buf,no-dma-bufs"})
    check(lines and all(line.endswith("/GDRDMA") for line in lines), f"{lines[:3]}")
    check("by their address, for as a dma-buf they cannot be: " in said and "told to fail" in said, said[-3000:])
    refused = {**here, "TEST_NET_FAULT": "gdr,no-gpu-memory"}
    said, lines = connections(2, "all_reduce,sendrecv", **refused)
    check(lines and "GDRDMA" not in "".join(lines) and not re.search("NCCL WARN (?!TUTTI_)", said), f"{lines[:3]}")
    check("slots lie in host memory, for the network refuses those in GPU memory: " in said, said[-3000:])
    conform(4, "--quick", combinations=SOME[2:3], **refused)
    for combination in (dict(), dict(NCCL_NET_FORCE_FLUSH=1), dict(SOFTGPU_SCHEDULE="random:5", SOFTGPU_WEAK_MEMORY=5)):
        conform(2, "--quick", combinations=SOME[2:], **here, **combination)
    conform(4, "--quick", combinations=SOME[2:3], **here)


def shared():
    simple = dict(NCCL_P2P_LL_THRESHOLD=0, **OFF)
    said = run(8, BUILD / "bench/alltoall_perf", "-p", "8", "-b", "64K", "-e", "1M", "-f", "4", "-n", "2", "-w", "1",
               NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", TUTTI_NET_SHARED_SLOTS=1, **simple)
    check("# Out of bounds values : 0 OK" in said, said[-2000:])
    check("share 1 slots of 512 KB per channel and direction" in said, said[:3000])
    slots = dict(NCCL_P2P_DIRECT_DISABLE=1)
    said = run(8, BUILD / "bench/alltoall_perf", "-p", "8", "-b", "64K", "-e", "1M", "-f", "4", "-n", "2", "-w", "1",
               NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", TUTTI_NET_SHARED_SLOTS=1, **slots, **simple)
    check("# Out of bounds values : 0 OK" in said, said[-2000:])
    check("share 1 slots of 128 KB per channel and direction" in said, said[:3000])
    said = run(8, BUILD / "bench/alltoall_perf", "-p", "8", "-b", "16M", "-e", "16M", "-n", "2", "-w", "0", **simple)
    check("# Out of bounds values : 0 OK" in said, said[-2000:])
    for options in (dict(TUTTI_NET_SHARED_SLOTS=2, **slots), dict(NCCL_NET_SHARED_BUFFERS=0),
                    dict(TUTTI_LAUNCH_SHAPE="GPU", NCCL_BUFFSIZE=8 * 4096, **slots),
                    dict(TUTTI_NET_SHARED_SLOTS=2, SOFTGPU_SCHEDULE="random:7", SOFTGPU_WEAK_MEMORY=7, **slots),
                    dict(SOFTGPU_SCHEDULE="random:9", SOFTGPU_WEAK_MEMORY=9),
                    dict(TUTTI_LAUNCH_SHAPE="GPU", NCCL_BUFFSIZE=8 * 4096, SOFTGPU_SCHEDULE="random:3", SOFTGPU_WEAK_MEMORY=3)):
        matrix.prove("conformance", 4, matrix.MESSAGES, "--quick", **options, **simple)


def grouped(plugin):
    # In the shape of GPUs messages of 64 KB and more take several channels; slots are small, so that there are many.
    here = dict(NCCL_NET_PLUGIN=plugin, TUTTI_LAUNCH_SHAPE="GPU", NCCL_BUFFSIZE=8 * 8192, NCCL_P2P_LL_THRESHOLD=0, **OFF)

    def exchange(**env):
        said = run(2, BUILD / "bench/alltoall_perf", "-p", "2", "-b", "512K", "-e", "2M", "-f", "2", "-n", "2", "-w", "1",
                   NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", **{**here, **env})
        check("# Out of bounds values : 0 OK" in said, said[-2000:])
        lines = re.findall(r"Channel \d+/(\d+) : .* via (\S+)", said)
        return lines, [(int(n), int(most)) for n, most in re.findall(r"(\d+) receives of up to (\d+) messages", said)]

    lines, receives = exchange()
    check({kind for kind, via in lines if via.endswith("/Shared")} == {"1"}, f"not messages, or more: {lines}")
    check(max(most for _, most in receives) > 1, f"no receive was grouped: {receives}")
    apart, single = exchange(NCCL_NET_SHARED_COMMS=0)
    check(not any(via.endswith("/Shared") for _, via in apart), f"connections are shared: {apart}")
    check(max(most for _, most in single) == 1, f"receives are grouped: {single}")
    check(len(single) == len(receives) + 2 * 7, f"8 channels each way: {len(receives)} connections, {len(single)} apart")
    check(sum(n for n, _ in receives) < sum(n for n, _ in single), f"{receives} are no fewer than {single}")
    for env in (dict(MULTI_NET="busy", TUTTI_NET_SHARED_SLOTS=2), dict(MULTI_NET="gdr", NCCL_NET_FORCE_FLUSH=1)):
        exchange(**env)
    for env in (dict(), dict(MULTI_NET="busy,gdr", SOFTGPU_SCHEDULE="random:7", SOFTGPU_WEAK_MEMORY=7)):
        matrix.prove("conformance", 4, matrix.MESSAGES, "--quick", **here, **env)
    # A process for each rank; LL beside Simple; a slot for all; replays, which number messages as what was captured.
    for env in (dict(), dict(NCCL_P2P_LL_THRESHOLD=1 << 16), dict(TUTTI_NET_SHARED_SLOTS=1, MULTI_NET="busy")):
        ranks_succeed("messages", 4, **{**here, **env})
    ranks_succeed("graphs", 2, **here)


def graphs():
    ranks_succeed("graphs", 2, **OFF)
    ranks_succeed("graphs", 3, **OFF)
    ranks_succeed("graphs", 2, NCCL_GRAPH_MIXING_SUPPORT=0, **OFF)


def stop(process, seconds=30):
    """All of its threads, which takes a moment."""
    process.kill(signal.SIGSTOP)
    deadline = time.monotonic() + seconds
    while any((task / "stat").read_text().rpartition(")")[2].split()[0] not in "Tt"
              for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()):
        check(time.monotonic() < deadline, f"not stopped after {seconds} s")
        time.sleep(0.01)


def undelivered():
    address = f"127.0.0.1:{free_port()}"
    folder = tempfile.TemporaryDirectory()
    go = pathlib.Path(folder.name) / "go"
    # By LL, for a kernel that sends by Simple on the software GPU ends when the network has taken it all.
    ranks = [Process(2, [BUILD / "tests/e2e/undelivered"], RANK=rank, NCCL_COMM_ID=address, NCCL_DEBUG="WARN", GO=go,
                     NCCL_P2P_LL_THRESHOLD=1 << 20, NCCL_SOCKET_SNDBUF=1, NCCL_SOCKET_RCVBUF=1, **OFF) for rank in range(2)]
    try:
        ranks[1].wait_for("Ready")
        stop(ranks[1])
        go.touch()
        ranks[0].wait_for("Ready")
        ready = time.monotonic()
        check(ranks[0].wait(60) == 0, ranks[0].output())
        took = time.monotonic() - ready
        said = ranks[0].output()
        check(took > 5, f"the process did not wait for its peer: {took:.1f} s\n{said}")
        told = re.search(r"rank 0 .*a peer may miss what they sent, for the network has not taken it all: .*rank 1.*Keep the "
                         r"process until all ranks are done", said)
        check(told, f"nothing is said of what the peer misses:\n{said}")
    finally:
        for process in ranks:
            process.close()
        folder.cleanup()


def leaves_nothing(what, cycles, **env):
    said = run(2, BUILD / "tests/e2e/leftovers", what, cycles, seconds=600, **env)
    counts = [[int(n) for n in line] for line in
              re.findall(r"(\d+) descriptors, (\d+) threads, (\d+) KiB, (\d+) bytes of devices", said)]
    check(len(counts) == 2, said)
    early, late = counts
    check(early[:2] == late[:2], f"{what}: descriptors or threads are left behind: {said}")
    check(late[2] < early[2] * 1.2 + 4096, f"{what}: memory is left behind: {said}")
    check(early[3] == late[3], f"{what}: memory of devices is left behind: {said}")


def in_processes(transport, cycles=300):
    """Communicators of two processes, made and destroyed: after a tenth of them none takes more memory for good."""
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(2, [BUILD / "tests/e2e/leftovers", "alone", cycles], RANK=rank, SIZE=2, NCCL_COMM_ID=address, **transport)
             for rank in range(2)]
    try:
        for process in ranks:
            check(process.wait(300) == 0, process.output())
            first, last = [int(n) for n in re.findall(r"threads, (\d+) KiB", process.output())]
            check(last - first < cycles * 1.5, f"{transport}: more than 1.5 KB is left of each communicator: {process.output()}")
    finally:
        for process in ranks:
            process.close()


def leftovers():
    idle = re.search(r"idle ([\d.]+) %", run(2, BUILD / "tests/e2e/leftovers", "idle", 4, **OFF))
    check(idle and float(idle.group(1)) < 1, f"two idle communicators take {idle and idle.group(1)} % of a processor")
    leaves_nothing("cycles", 1000, **OFF)
    leaves_nothing("splits", 200, **OFF)
    leaves_nothing("splits", 1000)
    for transport in ({}, {"NCCL_P2P_DISABLE": 1}, OFF):
        in_processes(transport)
    # Freed memory is overwritten: an exit handler that was registered first runs when all others have run.
    said = run(2, BUILD / "tests/e2e/leftovers", "late", 0, MALLOC_PERTURB_=46)
    check("late: 2" in said, said)


def many():
    said = run(64, BUILD / "bench/all_reduce_perf", "-p", "64", "-b", "1K", "-e", "1K", "-n", "1", "-w", "0", seconds=300, **OFF)
    check("# Out of bounds values : 0 OK" in said, said[-2000:])


if __name__ == "__main__":
    {"proof": proof, "sockets": sockets, "shapes": shapes, "plugins": plugins, "fusion": fusion, "gpu_direct": gpu_direct,
     "parting": parting, "waits": waits, "settings": settings, "shared": shared, "grouped": grouped, "graphs": graphs, "undelivered": undelivered, "leftovers": leftovers,
     "many": many}[sys.argv[1]](*sys.argv[2:])
