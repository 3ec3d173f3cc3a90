#!/usr/bin/env python3
"""People ask a running job about itself: while it begins, while a rank hangs, is stopped, is killed, and leaves."""
import json
import re
import signal
import socket
import subprocess
import sys
import time

from support import BUILD, RUN, check, environment, free_port, main

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
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env=environment(**settings), start_new_session=True)
        self.hear("ready")
        self.pid = self.child.pid

    def hear(self, text):
        """Reads on until a line contains the text; an end without it is a failure."""
        while True:
            line = self.child.stdout.readline()
            check(line, f"ended before saying {text!r}:\n{''.join(self.lines)}")
            self.lines.append(line)
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
        self.port = int(re.search(r"listening socket at 127\.0\.0\.1<(\d+)>", line).group(1))

    def close(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.child.stdout.close()
        self.child.stdin.close()


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


def ask(rank, *options, code=0):
    asked = subprocess.run([INFO, "ras", "--host", "127.0.0.1", "--port", str(rank.port), *options], capture_output=True,
                           text=True, timeout=GENEROUS, env=environment())
    check(asked.returncode == code, f"{options}: {asked.returncode}\n{asked.stdout}{asked.stderr}")
    return asked.stdout + asked.stderr


def ask_json(rank, *options):
    return json.loads(ask(rank, "--format", "json", *options))


def becomes(rank, holds, what):
    deadline = time.monotonic() + GENEROUS
    while True:
        report = ask_json(rank, "--timeout", "1")
        if holds(report):
            return
        check(time.monotonic() < deadline, f"{what}: not within {GENEROUS} s: {json.dumps(report, indent=1)}")
        time.sleep(0.1)


def states(report):
    return sorted(process["state"] for process in report["processes"])


def job_is_seen_from_its_beginning_to_its_end():
    with Job(3, NCCL_RAS_TIMEOUT_FACTOR="0.1") as ranks:
        ranks[0].say("init")
        ranks[0].find_port()
        said = ask(ranks[0])
        check("No communicator data collected!" in said, said)
        init_rest = ranks[1:]
        for rank in init_rest:
            rank.say("init")
        for rank in init_rest:
            rank.find_port()
        for rank in ranks:
            rank.hear("done")
        said = ask(ranks[1], "--verbose")
        check(re.search(r"\n +1 +3 +1 +3 +3\n", said), said)
        check(re.search(r"\n +0 +1 +1 +3 +3 +3 +RUNNING +OK\n", said), said)
        log = "".join(ranks[0].lines)
        comm_id = re.search(r"commId 0x([0-9a-f]+)", log).group(1)
        report = ask_json(ranks[2])
        check(report["communicators"][0]["hash"] == "0x" + comm_id, log)
        check(report["communicators"][0]["ranks_count"] == 3, report)

        # One rank does not come to an operation.
        for rank in ranks:
            rank.do("reduce 2")
        for rank in ranks[:2]:
            rank.do("reduce 1")
        said = ask(ranks[2], "--verbose")
        check("Communicator ranks have different AllReduce operation counts\n  2 ranks have launched up to operation 3\n"
              "  Rank 2 has launched up to operation 2 -- GPU 2 managed by process " + str(ranks[2].pid) in said, said)
        ranks[2].do("reduce 1")
        check(re.search(r"RUNNING +OK\n", ask(ranks[0])), "counts are equal again")

        # A clean end is no death.
        monitor = socket.create_connection(("127.0.0.1", ranks[0].port), timeout=GENEROUS)
        monitor.sendall(b"SET FORMAT json\nMONITOR\n")
        told = b""
        while told.count(b"OK\n") < 2:  # what happens before is not told
            told += monitor.recv(4096)
        ranks[2].say("exit")
        check(ranks[2].child.wait(GENEROUS) == 0, "ends well")
        while b"}\n}\n" not in told and b"  \"details\"" not in told:
            told += monitor.recv(4096)
        check(b'"event": "PEER_LEFT"' in told and f'"pid": {ranks[2].pid}'.encode() in told, told)
        monitor.close()
        becomes(ranks[1], lambda report: states(report) == ["answered", "answered", "left"], "left")


def collective_that_does_not_end_is_told_by_every_rank():
    def looks():
        """What each process says; all of them say the same."""
        reports = [ask_json(rank)["communicators"] for rank in ranks]
        check([len(comms) for comms in reports] == [1, 1, 1], reports)
        return [comms[0] for comms in reports]

    with Job(3) as ranks:
        init(ranks)
        for rank in ranks[:2]:
            rank.do("reduce 1")
        ranks[0].say("sync")  # both stay inside their calls
        ranks[1].say("destroy")
        becomes(ranks[2], lambda report: report["communicators"][0]["ranks"][1]["status"]["destroy_flag"], "destroy begins")
        first = looks()
        time.sleep(0.5)
        for before, now in zip(first, looks()):
            check(now["size"] == now["ranks_count"] == 3 and now["missing_ranks_count"] == 0, now)
            for rank, old in zip(now["ranks"], before["ranks"]):
                check(rank["status"] == {"init_state": 0, "async_error": 0, "finalize_called": False,
                                         "destroy_flag": rank["rank"] == 1, "abort_flag": False}, now)
                check(rank["collective_counts"]["AllReduce"] == (0 if rank["rank"] == 2 else 1), now)
                check(rank["collective_counts"] == old["collective_counts"], "who is stuck counts no further")
                if rank["rank"] != 2:
                    check(rank["last_op"]["func"] == "AllReduce" and rank["last_op"]["bytes"] == 256, now)
                    check(rank["last_op"]["age_sec"] >= old["last_op"]["age_sec"] + 0.4, (old, rank))
        said = ask(ranks[0], "--verbose")
        check("Communicator ranks have different status\n" in said and
              f"Rank 1 has status FINALIZE -- GPU 1 managed by process {ranks[1].pid}" in said, said)
        check("Communicator ranks have different AllReduce operation counts\n  2 ranks have launched up to operation 1\n"
              "  Rank 2 has not launched any operations" in said, said)
        ranks[2].do("reduce 1")
        for rank in ranks[:2]:
            rank.hear("done")
        # A call that waits to be connected holds up nobody's answer.
        ranks[2].say("send 0")
        becomes(ranks[0], lambda report: report["communicators"][0]["ranks"][-1]["p2p_counts"]["Send"] == 1, "sends")


def stopped_process_is_missed_then_dead_and_a_killed_one_as_well():
    with Job(3, NCCL_RAS_TIMEOUT_FACTOR="0.05") as ranks:
        init(ranks)
        monitor = subprocess.Popen([INFO, "ras", "-p", str(ranks[0].port), "-h", "127.0.0.1", "--monitor=all"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment())
        other = socket.create_connection(("127.0.0.1", ranks[1].port), timeout=GENEROUS)
        other.sendall(b"MONITOR all\n")
        try:
            check(other.recv(64) == b"OK\n", "monitors")
            ranks[2].child.send_signal(signal.SIGSTOP)
            started = time.monotonic()
            said = ask(ranks[0], "--timeout", "1")
            check(time.monotonic() - started < 20, "the report comes in time")
            if "DEAD" not in said:
                check("INCOMPLETE" in said and f"Rank 2 -- GPU 2 managed by process {ranks[2].pid}" in said, said)
            death = f"PEER_DEAD: Process {ranks[2].pid} "
            told = ""
            while death not in told:
                line = monitor.stdout.readline()
                check(line, told)
                told += line
            # Only the process before it in the ring sees its silence.
            told_by_other = ""
            while death not in told_by_other:
                told_by_other += other.recv(4096).decode()
            check(f"PEER_UNRESPONSIVE: Process {ranks[2].pid} " in told + told_by_other, told + told_by_other)
        finally:
            monitor.kill()
            monitor.wait()
            monitor.stdout.close()
            other.close()
        for rank in ranks[:2]:
            becomes(rank, lambda report: states(report) == ["answered", "answered", "dead"], "dead")
        check("1 job process is considered dead" in ask(ranks[1]), "text")
        ranks[1].child.send_signal(signal.SIGKILL)
        ranks[1].child.wait()
        report = ask_json(ranks[0], "--timeout", "0")
        check(report["communicators"][0]["missing_ranks_count"] == 2, report)


def of_sixty_four_ranks_those_that_are_stopped_and_killed_are_named_dead():
    """Eight processes of eight ranks; times a twentieth of what they are."""
    with Job(8, per_process=8, NCCL_MAX_NCHANNELS=1, NCCL_RAS_TIMEOUT_FACTOR="0.05") as ranks:
        init(ranks)
        monitor = socket.create_connection(("127.0.0.1", ranks[0].port), timeout=GENEROUS)
        try:
            monitor.sendall(b"MONITOR all\n")
            check(monitor.recv(64) == b"OK\n", "monitors")
            killed, stopped = ranks[4], ranks[2]
            killed.child.send_signal(signal.SIGKILL)
            stopped.child.send_signal(signal.SIGSTOP)
            started = time.monotonic()
            report = ask_json(ranks[0], "--timeout", "3")
            check(time.monotonic() - started < 20, "the report comes in time")
            comm = report["communicators"][0]
            check((comm["ranks_count"], comm["missing_ranks_count"]) == (48, 16), comm)
            told = ""
            deaths = [f"PEER_DEAD: Process {one.pid} " for one in (killed, stopped)]
            while not all(death in told for death in deaths):
                more = monitor.recv(65536).decode()
                check(more, told)
                told += more
        finally:
            monitor.close()
        for rank in (ranks[0], ranks[3], ranks[7]):
            becomes(rank, lambda report: states(report) == 6 * ["answered"] + 2 * ["dead"], "dead")
            said = ask(rank, "--verbose")
            check("2 job processes are considered dead" in said and "Missing communicator data from 16 ranks" in said, said)
            for dead in (killed, stopped):
                check(f"Process {dead.pid} on node 127.0.0.1 managing GPUs 0,1,2,3,4,5,6,7" in said, said)


def many_ranks_and_clients_are_no_trouble():
    with Job(8, per_process=8, NCCL_MAX_NCHANNELS=1) as ranks:
        init(ranks)
        report = ask_json(ranks[3])
        check(report["communicators"][0]["ranks_count"] == 64, report)
        clients = [socket.create_connection(("127.0.0.1", ranks[5].port), timeout=GENEROUS) for _ in range(100)]
        for client in clients:
            client.sendall(b"verbose status\n")
        for client in clients:
            said = b""
            while more := client.recv(65536):
                said += more
            check(re.search(rb"\n +0 +1 +1 +64 +64 +64 +RUNNING +OK\n", said), said)
            client.close()


def jobs_with_ports_of_their_own_answer_for_themselves():
    with Job(2) as first, Job(2) as second:
        for job in (first, second):
            init(job)
        for job in (first, second):
            for rank in job:
                told = sorted(process["pid"] for process in ask_json(rank)["processes"])
                check(told == sorted(one.pid for one in job), f"port {rank.port} of process {rank.pid} told of {told}")


def clients_of_other_hosts_find_no_door():
    with Job(1, NCCL_RAS_ADDR="localhost:0") as ranks:
        ranks[0].say("init")
        ranks[0].find_port()
        ranks[0].hear("done")
        port = f"{ranks[0].port:04X}"
        with open("/proc/net/tcp") as v4, open("/proc/net/tcp6") as v6:
            listening = [fields[1] for fields in (line.split() for line in [*v4, *v6])
                         if fields[3] == "0A" and fields[1].endswith(":" + port)]
        check(listening == [f"0100007F:{port}"], listening)


def switched_off_it_is_silent():
    with Job(1, NCCL_RAS_ENABLE="0") as ranks:
        ranks[0].do("init")
        check(not any("RAS client" in line for line in ranks[0].lines), ranks[0].lines)
        with open(f"/proc/{ranks[0].pid}/status") as status:
            check("Threads" in status.read(), "lives")
        ranks[0].port = free_port()
        check("no job can be asked at 127.0.0.1:" in ask(ranks[0], code=1), "the client says so")


def bad_address_harms_nobody():
    with Job(1, NCCL_RAS_ADDR="192.0.2.1:1") as ranks:
        ranks[0].do("init")
        told = [line for line in ranks[0].lines if "RAS failed to establish" in line]
        check(len(told) == 1 and "NCCL_RAS_ADDR" in told[0], ranks[0].lines)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main(job_is_seen_from_its_beginning_to_its_end, collective_that_does_not_end_is_told_by_every_rank,
         stopped_process_is_missed_then_dead_and_a_killed_one_as_well,
         of_sixty_four_ranks_those_that_are_stopped_and_killed_are_named_dead,
         many_ranks_and_clients_are_no_trouble, jobs_with_ports_of_their_own_answer_for_themselves,
         clients_of_other_hosts_find_no_door, switched_off_it_is_silent,
         bad_address_harms_nobody)
