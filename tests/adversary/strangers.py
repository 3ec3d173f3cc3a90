"""Stranger runs: while a job begins and works, others knock at every port and local socket at which its processes
listen: silent, with garbage, with the first bytes of a real rank, or in great number. The job must not notice."""
import dataclasses
import random as random_module
import socket
import threading
import time

import judge
from job_plan import WHOLE, JobPlan, judge_leftovers, plan_job, transcript
from listeners import ports, unix_names
from ranks import Job
from support import free_port

MOST_HELD = 200
# Per second and run; longer floods are measured by a program of their own (tests/bootstrap).
MOST_RATE = 2000


def silent(sock, hello, random):
    pass


def garbage(sock, hello, random):
    sock.sendall(random.randbytes(random.choice((1, 47, 48, 49, 300, 70000))))


def zeros(sock, hello, random):
    sock.sendall(bytes(random.choice((48, 4096))))


def half_hello(sock, hello, random):
    sock.sendall(hello[:random.randint(1, max(len(hello) - 1, 1))])


def real_hello(sock, hello, random):
    sock.sendall(hello)


def altered_hello(sock, hello, random):
    at = random.randrange(len(hello)) if hello else 0
    sock.sendall(hello[:at] + random.randbytes(1) + hello[at + 1:])


def repeated_hello(sock, hello, random):
    sock.sendall(hello * random.randint(2, 100))


def web(sock, hello, random):
    sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def reset(sock, hello, random):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


MANNERS = [silent, garbage, zeros, half_hello, real_hello, altered_hello, repeated_hello, web, reset]


@dataclasses.dataclass
class Plan:
    job: JobPlan
    manners: list   # names
    rate: int       # connections a second, at most
    hold: int       # connections that are kept open at a time
    local: int      # also the local sockets
    late: int       # the process that comes late, so that there is an init to disturb
    seed: int

    def text(self):
        local = ", local sockets too" if self.local else ""
        return (f"{self.rate} a second, {self.hold} held{local}, {'/'.join(self.manners)}, process {self.late} late; "
                f"{self.job.text()}")


def plan(random):
    job = plan_job(random, most_ranks=4, most_comms=2, idle_batch=10, idle_ms=1000)
    return Plan(job, [m.__name__ for m in random.sample(MANNERS, random.randint(1, 4))],
                random.choice((20, 200, MOST_RATE)), random.choice((0, 20, MOST_HELD)), random.choice((0, 1)),
                random.randrange(len(job.ranks_of())), random.randrange(1 << 30))


def first_bytes(build):
    """What a real rank says first to the root at NCCL_COMM_ID, as everybody on the wire can see it."""
    job, heard = Job(build), b""
    try:
        with socket.create_server(("127.0.0.1", free_port())) as server:
            server.settimeout(20)
            plan_of_two = JobPlan("NET", 2, 1, 1, "abort_all", 1, 1, 1)
            env = {**plan_of_two.settings(), "NCCL_COMM_ID": "127.0.0.1:%d" % server.getsockname()[1]}
            job.start([1], plan_of_two.command(job, [1]), env)
            rank, _ = server.accept()
            rank.settimeout(20)
            with rank:
                heard = rank.recv(4096)
    finally:
        job.close()
    return heard


def hello_of(build, known={}, lock=threading.Lock()):
    with lock:
        if build not in known:
            known[build] = first_bytes(build)
        return known[build]


class Strangers:
    """A thread that knocks until it is stopped."""

    def __init__(self, run, job, hello):
        self.run, self.job, self.hello = run, job, hello
        self.random = random_module.Random(run.seed)
        self.knocked = 0
        self._held = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _targets(self):
        pids = [p.child.pid for p in self.job.processes if p.child.returncode is None]
        found = [(socket.AF_INET, socket.SOCK_STREAM, where) for where in ports(pids)]
        if self.run.local:
            found += [(socket.AF_UNIX, kind, where) for kind, where in unix_names(pids)]
        return found

    def _knock(self, target):
        family, kind, where = target
        manner = globals()[self.random.choice(self.run.manners)]
        sock = socket.socket(family, kind)
        sock.settimeout(0.05)
        try:
            sock.connect(where)
            manner(sock, self.hello, self.random)
            self.knocked += 1
        except OSError:
            pass  # turned away, which is the right of who is knocked at
        if self.run.hold and sock.fileno() >= 0:
            self._held.append(sock)
            if len(self._held) > self.run.hold:
                self._held.pop(0).close()
        else:
            sock.close()

    def _work(self):
        while not self._stop.is_set():
            began, targets = time.monotonic(), self._targets()
            for _ in range(max(self.run.rate // 20, 1)):
                if not targets or self._stop.is_set():
                    break
                self._knock(self.random.choice(targets))
            self._stop.wait(max(0.05 - (time.monotonic() - began), 0.001))

    def close(self):
        self._stop.set()
        self._thread.join()
        for sock in self._held:
            sock.close()


def execute(run, build, patience=1.0):
    hello = hello_of(build)
    job = Job(build)
    strangers = None
    try:
        env = run.job.settings()
        for number, ranks in enumerate(run.job.ranks_of()):
            late = ["deed=slow@before:0+1000000"] if number == run.late else []
            job.start(ranks, run.job.command(job, ranks, *late), env)
        strangers = Strangers(run, job, hello)
        job.run(lambda: all(p.ended is not None for p in job.processes), WHOLE * patience)
        rules = judge.Rules(run.job.membership(job, set()), bound=0)
        said = f"{transcript(job)}\nstrangers knocked {strangers.knocked} times"
        return judge.worst([judge.judge(job.processes, rules, None), *unfinished(job), *judge_leftovers(job)]), said
    finally:
        if strangers:
            strangers.close()
        job.close()


def unfinished(job):
    for process in job.processes:
        if process.ended is not None and process.code not in (0, 42):
            yield judge.Verdict(judge.CRASH, f"the process of ranks {process.ranks} ended with {process.code}")
