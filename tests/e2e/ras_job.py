"""A job whose processes do what they are told, and the ways to ask it, for ras.py."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from support import BUILD, RUN, check, environment, free_port

PROGRAM = BUILD / "tests/e2e/ras"
INFO = BUILD / "tools/tutti_info/tutti-info"
GENEROUS = 60


class Rank:
    """A process of the job, which does what it is told."""

    def __init__(self, first, count, size, devices, root, **env):
        settings = dict(NCCL_COMM_ID=f"127.0.0.1:{root}", NCCL_DEBUG="INFO", NCCL_RAS_ADDR="127.0.0.1:0",
                        TUTTI_PEER_TIMEOUT_MS=600000, TUTTI_STALL_SEC=0)
        settings.update(env)
        self.lines = []
        self.child = subprocess.Popen(RUN + ["-n", str(devices), PROGRAM, str(first), str(count), str(size)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, env=environment(**settings), start_new_session=True)
        self.hear("ready")
        self.pid = self.child.pid

    def hear(self, text):
        """Reads on until a line contains the text; an end without it is a failure."""
        while True:
            line = self.child.stdout.readline()
            check(line, f"ended before saying {text!r}:\n{''.join(self.lines)}")
            self.lines.append(line)
            check(line != "failed\n", f"failed before saying {text!r}:\n{''.join(self.lines)}")
            if text in line:
                return line

    def say(self, command):
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()

    def do(self, command):
        self.say(command)
        self.hear("done")

    def find_port(self):
        line = next((one for one in self.lines if "RAS client" in one), None) or self.hear("RAS client")
        self.door, port = re.search(r"listening socket at (\S+)<(\d+)>", line).groups()
        self.port = int(port)

    def close(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.child.stdout.close()
        self.child.stdin.close()


class Monitor:
    """Hears of all events of a process, and notes when."""

    def __init__(self, rank):
        self.client = connect(rank)
        self.client.sendall(b"MONITOR all\n")
        stream = self.client.makefile()
        check(stream.readline() == "OK\n", "monitors")
        self.client.settimeout(None)
        self.events = []
        self.told = threading.Condition()
        self.thread = threading.Thread(target=self.listen, args=(stream,))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.client.close()

    def listen(self, stream):
        with stream:
            for line in stream:
                with self.told:
                    self.events.append((time.monotonic(), line))
                    self.told.notify_all()

    def find(self, event, rank):
        """When it told that first, and the line; None: it has not."""
        what = f"{event}: Process {rank.pid} "
        return next(((when, line) for when, line in self.events if what in line), None)

    def hear(self, event, rank):
        """Waits for that event of a process."""
        with self.told:
            heard = self.told.wait_for(lambda: self.find(event, rank), GENEROUS)
            check(heard, f"no {event} of {rank.pid}:\n{''.join(line for _, line in self.events)}")
            return heard


class Job:
    def __init__(self, processes, per_process=1, **env):
        size = processes * per_process
        root = free_port()
        self.ranks = [Rank(p * per_process, per_process, size, min(size, 8), root, **env) for p in range(processes)]

    def __enter__(self):
        return self.ranks

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.close()


def init(ranks):
    for rank in ranks:
        rank.say("init")
    for rank in ranks:
        rank.find_port()
        rank.hear("done")


def all_do(ranks, command):
    for rank in ranks:
        rank.say(command)
    for rank in ranks:
        rank.hear("done")


def connect(rank):
    return socket.create_connection(("127.0.0.1", rank.port), timeout=GENEROUS)


def hear_all(client):
    """What comes until the other side closes."""
    said = b""
    while more := client.recv(65536):
        said += more
    return said.decode()


def poll(rank, status="STATUS", json_form=False):
    """As a program asks that has all its commands in one packet; much cheaper than ask()."""
    with connect(rank) as client:
        client.sendall(f"SET FORMAT {'json' if json_form else 'text'}\n{status}\n".encode())
        said = hear_all(client)
    check(said.startswith("OK\n"), said)
    return said[3:]


def ask(rank, *options, code=0):
    asked = subprocess.run([INFO, "ras", "--host", "127.0.0.1", "--port", str(rank.port), *options],
                           capture_output=True, text=True, timeout=GENEROUS, env=environment())
    check(asked.returncode == code, f"{options}: {asked.returncode}\n{asked.stdout}{asked.stderr}")
    return asked.stdout + asked.stderr


def ask_json(rank, *options):
    return json.loads(ask(rank, "--format", "json", *options))


def becomes(rank, holds, what):
    """Asks until the report is as it should be; gives that report."""
    deadline = time.monotonic() + GENEROUS
    while True:
        report = ask_json(rank, "--timeout", "1")
        if holds(report):
            return report
        check(time.monotonic() < deadline, f"{what}: not within {GENEROUS} s: {json.dumps(report, indent=1)}")
        time.sleep(0.1)


def states(report):
    return sorted(process["state"] for process in report["processes"])


def in_ring(ranks):
    """In the order in which each watches the next: by their addresses, as reports have them."""
    by_pid = {rank.pid: rank for rank in ranks}
    return [by_pid[process["pid"]] for process in ask_json(ranks[0])["processes"]]


def resident_kib(rank):
    with open(f"/proc/{rank.pid}/status") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1))


def own_address():
    """Of this host among others; a loopback address where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.200", 9))  # sends nothing
        except OSError:
            print("note: this host has no address but loopback: the doors of communicators are looked for there")
            return "127.0.0.1"
        return probe.getsockname()[0]


def doors(rank):
    """Where the process listens, by TCP of both families."""
    own = set()
    for entry in os.scandir(f"/proc/{rank.pid}/fd"):
        try:
            own.add(os.readlink(entry.path))
        except FileNotFoundError:
            pass  # closed meanwhile
    found = []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        with open(f"/proc/net/{table}") as lines:
            for fields in [line.split() for line in lines][1:]:
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                    host, port = fields[1].split(":")
                    words = [bytes.fromhex(host[n:n + 8])[::-1] for n in range(0, len(host), 8)]
                    found.append((socket.inet_ntop(family, b"".join(words)), int(port, 16)))
    return sorted(found)


def answers_clients(door):
    with socket.create_connection(door, timeout=GENEROUS) as client:
        try:
            client.sendall(b"CLIENT PROTOCOL 2\nSTATUS\n")
            return client.recv(64) != b""
        except (ConnectionResetError, BrokenPipeError):
            return False
