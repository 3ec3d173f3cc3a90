#!/usr/bin/env python3
"""What runs in the virtual machine with RDMA NICs: rxe0 on roce0, rxe1 on roce1, which reach each other.

  inside.py conformance   every collective, type, operation over one NIC for each rank, 2 and 4 ranks
  inside.py sanitized     a few of them, of what is built with AddressSanitizer
  inside.py ways          fewer of them, over each way that messages can take
  inside.py proof         the log proves which network and which NICs carry everything
  inside.py faults        a peer that dies or is stopped, a path that is cut, a port that goes down, a NIC that is taken away
  inside.py failover      the same with a second NIC: messages move to it, and back
  inside.py cycles        a hundred communicators leave no queue pair, registration or descriptor behind
  inside.py gpu_direct    the NICs read and write the software GPU's memory, and what comes is flushed
  inside.py many          a hundred connections of one rank come up side by side
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

from support import BUILD, RUN, Failure, Process, check, environment, run  # noqa: E402

# What is not answered is repeated after 1.1 s: sooner, and on a busy machine the emulated NICs repeat what is only late,
# until one refuses it (IBV_WC_REM_INV_REQ_ERR). With 7 they repeat for ever (NCCL_IB_RETRY_CNT).
ENV = {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_NET": "IB", "NCCL_IB_TIMEOUT": 18, "NCCL_IB_RETRY_CNT": 6}
# Where a path goes away: after 67 ms, so that seven tries are over within half a second.
HASTY = {**ENV, "NCCL_IB_TIMEOUT": 14}
FUSED = {"NCCL_NET_FORCE_MERGE": "rxe0,rxe1"}
# Nothing here may take longer, what is named by name within ten seconds included.
NAMED_WITHIN = 10


def conform(ranks, *options, **env):
    said = run(ranks, BUILD / "tests/e2e/conformance", "--ranks", ranks, "--hosts", ranks, *options, seconds=300,
               **{**ENV, **env})
    check(re.search(rf"^conformance: [1-9]\d* cases on {ranks} ranks, 0 wrong$", said, re.M), said[-3000:])


def conformance():
    for ranks in (2, 4):
        start = time.monotonic()
        conform(ranks, "--quick")
        print(f"{ranks} ranks: {time.monotonic() - start:.1f} s", flush=True)


# What one setting decides does not depend on another of the same line: an emulated machine has no time for one run each.
WAYS = {
    "LL, four queue pairs in turn": {"NCCL_PROTO": "LL", "NCCL_IB_QPS_PER_CONNECTION": 4},
    "LL128, inline grants, strict order": {"NCCL_PROTO": "LL128", "NCCL_IB_USE_INLINE": 1,
                                           "NCCL_IB_PCI_RELAXED_ORDERING": 0},
    "Simple, packets that may overtake": {"NCCL_PROTO": "Simple", "NCCL_IB_ADAPTIVE_ROUTING": 1,
                                          "NCCL_IB_AR_THRESHOLD": 0},
    "split over four, one receive for each message": {"NCCL_IB_QPS_PER_CONNECTION": 4, "NCCL_IB_SPLIT_DATA_ON_QPS": 1,
                                                      "NCCL_NET_SHARED_COMMS": 0},
    "split over three, several receives in one": {"NCCL_IB_QPS_PER_CONNECTION": 3, "NCCL_IB_SPLIT_DATA_ON_QPS": 1,
                                                  "NCCL_NCHANNELS_PER_NET_PEER": 4, "NCCL_MIN_CTAS": 4},
    "fused NICs": FUSED,
    "fused NICs, split": {**FUSED, "NCCL_IB_QPS_PER_CONNECTION": 2, "NCCL_IB_SPLIT_DATA_ON_QPS": 1},
}


def ways():
    for name, env in WAYS.items():
        start = time.monotonic()
        conform(2, "--counts", "127,65537", "--types", "float", "--only", "all_reduce,alltoall", **env)
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


def sanitized():
    """Builds with sanitizers have kernels for few types alone."""
    conform(2, "--counts", "0,127,65537", "--types", "float", "--only", "all_reduce")
    conform(2, "--counts", "0,127,65537", "--types", "int8,float", "--only", "all_gather,alltoall,broadcast")
    conform(2, "--counts", "127,65537", "--types", "float", "--only", "all_reduce,alltoall", **WAYS["fused NICs, split"])


def proof():
    said = run(2, BUILD / "bench/all_reduce_perf", "-p", "2", "-b", "64K", "-e", "64K", "-n", "2", NCCL_DEBUG="INFO",
               NCCL_DEBUG_SUBSYS="INIT,NET", **ENV)
    check(said.count("NET/IB : Using [0]rxe0:1/RoCE [1]rxe1:1/RoCE; OOB roce0") == 2, said[:3000])
    lines = [line for line in said.splitlines() if re.search(r"Channel \d+/\d+ : \d+\[", line)]
    check(lines and all(re.search(r"via NET/IB/[01]$", line) for line in lines), f"not by IB: {lines[:3]}")
    check({line[-1] for line in lines} == {"0", "1"}, f"one NIC carries everything: {lines}")
    said = run(2, BUILD / "bench/all_reduce_perf", "-p", "2", "-b", "64K", "-e", "64K", "-n", "2", NCCL_DEBUG="INFO",
               NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_IB_HCA="=rxe1:1", **ENV)
    check("NET/IB : Using [0]rxe1:1/RoCE;" in said, said[:3000])
    said = run(2, BUILD / "bench/all_reduce_perf", "-p", "2", "-b", "64K", "-e", "64K", "-n", "2", NCCL_DEBUG="INFO",
               NCCL_DEBUG_SUBSYS="INIT,NET", **{**ENV, "NCCL_NET": "", "NCCL_IB_DISABLE": 1})
    check("Using network Socket" in said, said[:3000])
    told()


def info(*command, **env):
    done = subprocess.run([*command, BUILD / "tools/tutti_info/tutti-info", "net"], capture_output=True, text=True,
                          env=environment(**env), timeout=120, check=False)
    check(done.returncode == 0, f"tutti-info ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def told():
    """What tutti-info says of these NICs."""
    said = info()
    check("  IB: chosen, the first that can be used\n" in said, said)
    check("  Socket: not asked: one before it was chosen" in said, said)
    nic = said[said.index("\n  rxe0: "):said.index("\n  rxe1: ")]
    check("port 1: used\n" in nic and "ACTIVE, Ethernet (RoCE)" in nic, nic)
    check("[1] ::ffff:10.77.0.1 IPv4 RoCE v2 <- taken: the first that is as wished" in nic, nic)
    check("dma-bufs of GPU memory: no: ibv_reg_dmabuf_mr: Operation not supported" in nic, nic)
    check("  roce0 10.77.0.1: used" in said, said)
    said = info(NCCL_IB_HCA="^rxe0")
    nic = said[said.index("\n  rxe0: "):said.index("\n  rxe1: ")]
    check("port 1: not used: NCCL_IB_HCA leaves it out" in nic, nic)
    said = info(*RUN, "-n", "1", SOFTGPU_GDR="dmabuf", NCCL_NET_FORCE_FLUSH=1)
    check("rxe0 (distance not known): receives yes, by its address, flushed, sends yes, by its address\n" in said, said)


GPU_DIRECT = {"SOFTGPU_GDR": "dmabuf", "NCCL_NET_FORCE_FLUSH": 1}


def gpu_direct():
    """The driver gives dma-bufs, these NICs take none, and so they are told of the memory by its address."""
    for env, wanted in ((GPU_DIRECT, True), ({**GPU_DIRECT, "NCCL_NET_GDR_LEVEL": "LOC"}, False), ({}, False)):
        said = run(2, BUILD / "bench/all_reduce_perf", "-p", "2", "-b", "64K", "-e", "64K", "-n", "2", NCCL_DEBUG="INFO",
                   NCCL_DEBUG_SUBSYS="INIT,NET", **{**ENV, **env})
        lines = [line for line in said.splitlines() if re.search(r"Channel \d+/\d+ : \d+\[", line)]
        check(lines and all(line.endswith("/GDRDMA") == wanted for line in lines), f"{env}: {lines[:4]}")
        check(("DMA-BUF is available on GPU device" in said) == ("SOFTGPU_GDR" in env), said[:3000])
    conform(2, "--quick", "--types", "int8,bfloat16,float", **GPU_DIRECT)
    for name, env in (("fused NICs", FUSED), ("not flushed", {"NCCL_NET_FORCE_FLUSH": 0})):
        conform(2, "--counts", "0,127,65537", "--types", "float", "--only", "all_reduce,broadcast,alltoall",
                **{**GPU_DIRECT, "NCCL_PROTO": "Simple", **env})
        print(f"GPUDirect, {name}: done", flush=True)


def many():
    done = subprocess.run([BUILD / "tests/transport/net/ib/many_connections", "100", "rxe0", "rxe1"], capture_output=True,
                          text=True, env=environment(), timeout=220, check=False)
    print(done.stdout, done.stderr, flush=True)
    check(done.returncode == 0, f"ended with {done.returncode}")


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def lose(share):
    """Of the packets that leave through roce1; None: no more."""
    words = ["add", "dev", "roce1", "root", "netem", "loss", share] if share else ["del", "dev", "roce1", "root"]
    subprocess.run(["tc", "qdisc", *words], check=True)


def processes_of(parent):
    text = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(word) for word in text.split()]


def leaves(pid):
    """The processes that have no children: the ranks."""
    below = processes_of(pid)
    return [leaf for child in below for leaf in leaves(child)] if below else [pid]


def has_ended(pid, seconds=NAMED_WITHIN):
    """Whether a process ends by then; one that nobody has asked about yet (a zombie) has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


class Busy:
    """Two ranks that reduce without end."""

    def __init__(self, **env):
        self.process = Process(2, [BUILD / "bench/all_reduce_perf", "-p", "2", "-b", "64K", "-e", "64K", "-n", "1000000",
                                   "-c", "0"], NCCL_DEBUG="WARN", TUTTI_PEER_TIMEOUT_MS=5000, **{**HASTY, **env})
        self.process.wait_for("#       size")
        time.sleep(1)

    def ranks(self):
        return leaves(self.process.pid)

    def ends(self, *words):
        """Both ranks end with an error that says all this, soon enough."""
        start = time.monotonic()
        code = self.process.wait(NAMED_WITHIN + 20)
        seconds = time.monotonic() - start
        said = self.process.output()
        self.process.close()
        check(code != 0, f"ended without an error:\n{said[-3000:]}")
        for word in words:
            check(re.search(word, said), f"nobody says {word!r}:\n{said[-6000:]}")
        check(seconds < NAMED_WITHIN, f"named after {seconds:.1f} s only:\n{said[-3000:]}")


def killed():
    job = Busy()
    os.kill(job.ranks()[1], signal.SIGKILL)
    job.ends(r"rank 1 .*died|its process or host is gone")


def stopped():
    """Its NIC still answers for its process, so the network sees nothing: rank 0 misses its signs of life."""
    job = Busy()
    ranks = job.ranks()
    start = time.monotonic()
    os.kill(ranks[1], signal.SIGSTOP)
    job.process.wait_for("has given rank 0 no sign of life", NAMED_WITHIN)
    seconds = time.monotonic() - start
    said = job.process.output()
    check(re.search(rf"rank 1 \(host .*, pid {ranks[1]}\) has given rank 0 no sign of life", said), said[-3000:])
    print(f"stopped rank named after {seconds:.1f} s", flush=True)
    check(has_ended(ranks[0]), f"rank 0 goes on:\n{said[-3000:]}")
    job.process.close()


def port_down():
    job = Busy()
    ip("link", "set", "roce1", "down")
    job.ends(r"rxe0:1 \(GID 1 ::ffff:10\.77\.0\.1\)", r"rxe1:1 \(GID 1 ::ffff:10\.77\.0\.2\)", r"port rxe1:1 .*down")
    ip("link", "set", "roce1", "up")


def path_interrupted():
    """Packets are lost for half a second, less than the repetitions last. (A port that goes down is another thing: these
    NICs then refuse what they are to send.)"""
    job = Busy(NCCL_IB_TIMEOUT=18)
    lose("100%")
    time.sleep(0.5)
    lose(None)
    time.sleep(4)
    check(job.process.child.poll() is None, f"did not survive half a second:\n{job.process.output()[-3000:]}")
    job.process.close()


def path_cut():
    job = Busy()
    lose("100%")
    job.ends(r"IBV_WC_RETRY_EXC_ERR\(12\).*rxe[01]:1 \(GID 1 [^)]*\).* to rxe[01]:1")
    lose(None)


def nic_taken_away():
    """These NICs stay until nobody uses them any more, so that is survived; what is left behind would keep them."""
    job = Busy()
    deletion = subprocess.Popen(["rdma", "link", "delete", "rxe1"])
    time.sleep(2)
    check(job.process.child.poll() is None, f"did not survive:\n{job.process.output()[-3000:]}")
    job.process.close()
    check(deletion.wait(30) == 0, "the NIC is still in use")
    subprocess.run(["rdma", "link", "add", "rxe1", "type", "rxe", "netdev", "roce1"], check=True)


def faults():
    for case in (killed, stopped, path_interrupted, path_cut, port_down, nic_taken_away):
        start = time.monotonic()
        case()
        print(f"{case.__name__}: {time.monotonic() - start:.1f} s", flush=True)


# Ends meet over an interface that stays, whichever NIC's goes.
FUSED_AND_APART = {**FUSED, "NCCL_SOCKET_IFNAME": "lo"}


class Load:
    """Two ranks that reduce and exchange messages, and look at every result, over both NICs as one; until they are told
    to stop, by the end of a round."""

    def __init__(self, **env):
        self.process = Process(2, [BUILD / "tests/e2e/conformance", "--ranks", "2", "--hosts", "2", "--quick"], NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT", **{**HASTY, **FUSED_AND_APART, **env})
        self.said = 0
        self.hears(r"via NET/IB/2")
        time.sleep(1)

    def running(self):
        return self.process.child.poll() is None

    def hears(self, text, seconds=60):
        """Something new that says so."""
        deadline = time.monotonic() + seconds
        while not re.search(text, self.process.output()[self.said:]):
            check(self.running(), f"ended before it said {text!r}:\n{self.process.output()[-4000:]}")
            check(time.monotonic() < deadline, f"nobody says {text!r} within {seconds} s:\n{self.process.output()[-4000:]}")
            time.sleep(0.05)
        self.said = len(self.process.output())

    def all_are_back(self, path, seconds=60):
        """Every end of a connection that has gone on without the path has it again: one that has not when the other
        path goes has none."""
        deadline = time.monotonic() + seconds
        while True:
            said = self.process.output()
            without, back = (len(re.findall(text, said)) for text in (f"goes on without {path}", f"{path} is back"))
            if without == back > 0:
                return
            check(self.running(), f"ended before all had {path} again:\n{said[-4000:]}")
            check(time.monotonic() < deadline, f"{back} of {without} ends have {path} again:\n{said[-4000:]}")
            time.sleep(0.05)

    def ends_well(self):
        code = self.process.wait(200)
        said = self.process.output()
        self.process.close()
        check(code == 0 and re.search(r"^conformance: [1-9]\d* cases on 2 ranks, 0 wrong$", said, re.M), said[-4000:])


def ports_come_and_go():
    """Each in turn, with messages under way all the time."""
    load = Load()
    for nic in ("1", "0"):
        ip("link", "set", f"roce{nic}", "down")
        load.hears(rf"goes on without rxe{nic}:1 to rxe{nic}:1")
        time.sleep(1)
        ip("link", "set", f"roce{nic}", "up")
        load.all_are_back(f"rxe{nic}:1 to rxe{nic}:1")
    load.ends_well()


def other_nic_taken_away():
    """It stays as long as somebody uses it (nic_taken_away); its interface goes first."""
    load = Load()
    ip("link", "set", "roce1", "down")
    load.hears(r"goes on without rxe1:1 to rxe1:1")
    deletion = subprocess.Popen(["rdma", "link", "delete", "rxe1"])
    load.ends_well()
    check(deletion.wait(30) == 0, "the NIC is still in use")
    ip("link", "set", "roce1", "up")
    subprocess.run(["rdma", "link", "add", "rxe1", "type", "rxe", "netdev", "roce1"], check=True)
    time.sleep(1)


def both_ports_down():
    job = Busy(**FUSED_AND_APART)
    ip("link", "set", "roce1", "down")
    time.sleep(1)
    check(job.process.child.poll() is None, f"did not survive the first:\n{job.process.output()[-3000:]}")
    ip("link", "set", "roce0", "down")
    job.ends(r"goes on without rxe1:1 to rxe1:1", r"rxe0:1")
    ip("link", "set", "roce0", "up")
    ip("link", "set", "roce1", "up")


def failover():
    for case in (ports_come_and_go, both_ports_down, other_nic_taken_away):
        start = time.monotonic()
        case()
        print(f"{case.__name__}: {time.monotonic() - start:.1f} s", flush=True)


def resources():
    """What the kernel counts of all NICs: queue pairs, completion queues, registrations, domains."""
    said = json.loads(subprocess.run(["rdma", "-j", "resource", "show"], check=True, capture_output=True, text=True).stdout)
    return {nic["ifname"]: {what: nic[what] for what in ("qp", "cq", "mr", "pd")} for nic in said}


def cycles():
    """The kernel's own count is looked at while communicators come and go: of a process that has ended it keeps nothing."""
    process = Process(2, [BUILD / "tests/e2e/leftovers", "cycles", 100], **ENV)
    samples = []
    deadline = time.monotonic() + 300
    while process.child.poll() is None and time.monotonic() < deadline:
        samples.append(resources())
        time.sleep(0.2)
    code = process.wait(1)
    said = process.output()
    check(code == 0, said[-3000:])
    seen = [tuple(map(int, found)) for found in re.findall(r"after \d+ cycles: (\d+) descriptors, (\d+) threads", said)]
    check(len(seen) == 2 and seen[0] == seen[1], f"descriptors and threads grow:\n{said[-2000:]}")
    quarter = len(samples) // 4
    check(quarter >= 5, f"{len(samples)} looks are too few")
    for what in ("qp", "cq", "mr", "pd"):
        counts = [sum(nic[what] for nic in sample.values()) for sample in samples]
        first, last = max(counts[:quarter]), max(counts[-quarter:])
        print(f"{what}: at most {first} in the first quarter of {len(counts)} looks, {last} in the last", flush=True)
        check(max(counts) > min(counts), f"no {what} comes and goes: {counts}")
        # Fifty cycles and more lie between them, and a look meets now more, now less of one that is under way.
        check(last < first + 10, f"{what} are left behind: {counts}")


CASES = {"conformance": conformance, "sanitized": sanitized, "ways": ways, "proof": proof, "faults": faults, "failover": failover,
         "cycles": cycles,
         "gpu_direct": gpu_direct, "many": many}


def main():
    try:
        CASES[sys.argv[1]]()
    except Failure as why:
        print(f"FAILED: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
