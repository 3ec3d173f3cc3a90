#!/usr/bin/env python3
"""Hosts whose GPUs have NICs of their own: what goes to another GPU's NIC is sent by that GPU's rank.

  pxn.py carries PLUGIN    collectives and messages are right, and the log says who sends for whom
  pxn.py settings PLUGIN   what turns it off, and how far it goes for messages
  pxn.py threads PLUGIN    ranks of a host in one process
  pxn.py deaths PLUGIN     a rank that sends for others is killed, or stopped
  pxn.py stalls PLUGIN     … is stopped, or its network, and the others say that it is what holds them up
  pxn.py sockets           the same over TCP
"""
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from support import BUILD, Process, check, environment, free_port, run

TYPES = "int8,float"
ONLY = "all_reduce,alltoall,sendrecv"


def machine(gpus):
    """Each GPU with a NIC below a PCI switch of its own; NVLink joins all GPUs."""
    text = '<system version="1">\n  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">\n'
    for g in range(gpus):
        links = "".join(f'<nvlink target="0000:{p}1:00.0" count="4" tclass="0x030200"/>'
                        for p in range(1, gpus + 1) if p != g + 1)
        pci = 'link_speed="16.0 GT/s PCIe" link_width="16"'
        text += (f'<pci busid="0000:{g + 1}0:00.0" class="0x060400" {pci}>'
                 f'<pci busid="0000:{g + 1}1:00.0" class="0x030200" {pci}>'
                 f'<gpu dev="{g}" sm="80" rank="{g}" gdr="1">{links}</gpu></pci>'
                 f'<pci busid="0000:{g + 1}2:00.0" class="0x020000" {pci}><nic><net name="n{g}" dev="{g}" '
                 f'speed="100000" port="1" guid="0x{g + 1:x}" maxconn="131072" gdr="1"/></nic></pci></pci>\n')
    return text + "  </cpu>\n</system>\n"


class Machine:
    def __init__(self, gpus):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".xml")
        self.file.write(machine(gpus))
        self.file.flush()
        self.gpus = gpus

    def env(self, plugin, **more):
        return {"SOFTGPU_TOPO": self.file.name, "NCCL_NET_PLUGIN": plugin, "NCCL_MAX_NCHANNELS": 4,
                "TEST_NET_FAULT": f"ports={self.gpus}", "NCCL_NET_MERGE_LEVEL": "LOC", **more}


def conform(gpus, plugin, *options, only=ONLY, **more):
    """Two hosts of so many ranks. Returns the lines of sending connections."""
    m = Machine(gpus)
    said = run(gpus, BUILD / "tests/e2e/conformance", "--ranks", 2 * gpus, "--hosts", 2, "--quick", "--only", only, "--types", TYPES,
               *options, seconds=240, **m.env(plugin, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", **more))
    check(re.search(rf"^conformance: [1-9]\d* cases on {2 * gpus} ranks, 0 wrong$", said, re.M), said[-3000:])
    lines = re.findall(r"Channel \d+/(\d+) : (\d+)\[\d+\] -> (\d+)\[\d+\] \[send\] via NET/\w+/(\d+)(?:\((\d+)\))?", said)
    check(lines, f"nothing goes over the network:\n{said[:3000]}")
    return said, [tuple(int(n) if n else None for n in line) for line in lines]


def carries(plugin):
    for gpus in (2, 4):
        said, lines = conform(gpus, plugin)
        check("use ring PXN 1" in said, f"no ring goes through another rank: {lines}")
        for kind, sender, receiver, nic, relay in lines:
            check(relay is None or relay // gpus == sender // gpus and relay != sender, f"{relay} is no relay of {sender}")
            check((sender if relay is None else relay) % gpus == nic, f"NIC {nic} is not that of {sender} or {relay}")
            check(kind == 0 or nic == receiver % gpus, f"messages to {receiver} leave its rail, by NIC {nic}")
        check({k for k, _, _, _, relay in lines if relay is not None} == {0, 1}, f"rings and messages: {lines}")


def settings(plugin):
    said, lines = conform(2, plugin, NCCL_PXN_DISABLE=1)
    check(all(relay is None for *_, relay in lines) and "use ring PXN 0" in said, f"it is off: {lines}")
    for level in (0, 1):
        said, lines = conform(2, plugin, only="alltoall", NCCL_P2P_PXN_LEVEL=level)
        messages = [line for line in lines if line[0] == 1]
        check(messages and all(relay is None and nic == sender % 2 for _, sender, _, nic, relay in messages),
              f"level {level}: each message by its sender's NIC: {messages}")


def threads(plugin):
    said, lines = conform(2, plugin, "--threads")
    check(any(relay is not None for *_, relay in lines), f"nothing is relayed: {lines}")


def sockets(*unused):
    # The relays' own connections are of LL and Simple; slots of another size wrap elsewhere. One shared slot is enough.
    for more in ({}, {"TUTTI_NET_SHARED_SLOTS": 1},
                 {"NCCL_BUFFSIZE": 16384, "SOFTGPU_SCHEDULE": "random:3", "SOFTGPU_WEAK_MEMORY": 3}):
        said, lines = conform(2, "", NCCL_NET="Socket", **more)
        check({k for k, *_, relay in lines if relay is not None} == {0, 1}, f"rings and messages: {lines}")


class Job:
    """Two hosts of two ranks that reduce until something happens."""

    def __init__(self, plugin, program="survivor", mode=(), own=lambda rank: {}, **more):
        """`mode`: further arguments. `own`: what a rank alone has in its environment."""
        self.machine = Machine(2)
        env = self.machine.env(plugin, NCCL_COMM_ID=f"127.0.0.1:{free_port()}", NCCL_DEBUG="INFO",
                               NCCL_DEBUG_SUBSYS="INIT,NET", **more)
        self.ranks = [Process(2, [BUILD / "tests/e2e" / program, r, 4, *mode], NCCL_HOSTID=f"host{r // 2}", **env,
                              **own(r)) for r in range(4)]

    def __enter__(self):
        return self

    def __exit__(self, *why):
        for rank in self.ranks:
            rank.close()

    def relay(self):
        """A rank that sends for others."""
        return self.relayed()[2]

    def relayed(self, busy=range(4), word="reduced"):
        """A connection that another rank sends over: its sender, its receiver, that rank. `busy`: who says `word`."""
        for rank in busy:
            self.ranks[rank].wait_for(word, 60)
        found = re.search(r" : (\d+)\[\d+\] -> (\d+)\[\d+\] \[send\] via NET/\w+/\d+\((\d+)\)",
                          "".join(rank.output() for rank in self.ranks))
        check(found, "nobody sends for anybody")
        return tuple(int(n) for n in found.groups())

    def goes_on(self, busy, word):
        done = [self.ranks[rank].output().count(word) for rank in busy]
        for rank, count in zip(busy, done):
            self.ranks[rank].wait_for(f"{word} {4 * (count + 2)}\n")


def deaths(plugin):
    for number, limit in ((signal.SIGKILL, 10), (signal.SIGSTOP, 20)):
        with Job(plugin) as job:
            relay = job.relay()
            job.ranks[relay].kill(number)
            began = time.monotonic()
            for rank, process in enumerate(job.ranks):
                if rank == relay:
                    continue
                code = process.wait(max(began + limit + 10 - time.monotonic(), 0.1))
                said = process.output()
                error = re.search(r"^error \d+ (.*)", said, re.M)
                check(code == 42 and error and re.search(rf"rank {relay}\b", error.group(1)),
                      f"rank {rank} does not name {relay}: {code}, {said[-2000:]}")
                check(time.monotonic() - began < limit + 2, f"{time.monotonic() - began:.0f} s after signal {number}")


def named(rank):
    return rf"rank {rank} \(host \S+, device {rank % 2}, pid \d+\)"


def stalls(plugin):
    """Rank 0 and rank 3 exchange messages, through ranks 1 and 2, which have nothing to do themselves."""
    settings = {"TUTTI_STALL_SEC": 2, "TUTTI_PEER_TIMEOUT_MS": 600000, "NCCL_PROTO": "Simple"}
    ends = (0, 3)
    with Job(plugin, mode=["across"], **settings) as job:
        check(job.relayed(ends, "exchanged") == (0, 3, 1), "not the connection that is meant")
        job.ranks[1].kill(signal.SIGSTOP)
        for rank in ends:
            job.ranks[rank].wait_for("Stall: ")
            said = job.ranks[rank].output()
            check(re.search(rf"{named(1)} does not answer: its process is stopped or its host is not reachable; rank 1 "
                            rf"sends to {named(3)} in the stead of {'this rank' if rank == 0 else named(0)}, which waits "
                            "for that", said), f"rank {rank}: {said[-4000:]}")
        says(job.ranks[0], r"rank 1 \(host \S+, device 1\), which sends in its stead, does nothing")
        job.ranks[1].kill(signal.SIGCONT)
        job.goes_on(ends, "exchanged")

    with tempfile.TemporaryDirectory() as folder:
        stall = pathlib.Path(folder) / "stall"
        own = lambda rank: {"TEST_NET_STALL": f"0:{stall}"} if rank == 1 else {}
        with Job(plugin, mode=["across"], own=own, **settings) as job:
            check(job.relayed(ends, "exchanged") == (0, 3, 1), "not the connection that is meant")
            stall.touch()
            for rank in ends:
                job.ranks[rank].wait_for("Stall: ")
                said = job.ranks[rank].output()
                who = ["this rank" if rank == r else named(r) for r in ends]
                check(re.search(rf"{who[1]} waits for what {named(1)}, in the stead of {who[0]}, has sent: the network does "
                                "not carry it", said), f"rank {rank}: {said[-4000:]}")
            says(job.ranks[0], r"rank 1 \(host \S+, device 1\), which sends in its stead, waits for the network to take")
            says(job.ranks[1], r"in the stead of rank 0 \(host \S+, device 0\): send to rank 3 .*Simple step \d+, "
                 r"waits for the network to take \d+ bytes")
            stall.unlink()
            job.goes_on(ends, "exchanged")


def says(process, text):
    """When it is asked."""
    pid = re.search(r"started pid (\d+)", process.output()).group(1)
    asked = subprocess.run([BUILD / "tools/tutti_info/tutti-info", "stalls", pid], capture_output=True, text=True,
                           timeout=60, env=environment())
    check(asked.returncode == 0 and re.search(text, asked.stdout), asked.stdout + asked.stderr)


if __name__ == "__main__":
    {"carries": carries, "settings": settings, "threads": threads, "deaths": deaths,
     "sockets": sockets, "stalls": stalls}[sys.argv[1]](
        *[f for f in sys.argv[2:] if "testv8" in f])
