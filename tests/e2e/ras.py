#!/usr/bin/env python3
"""People ask a running job about itself: while it begins, while a rank hangs, is stopped, is killed, and leaves."""
import concurrent.futures
import contextlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from ras_job import (GENEROUS, INFO, Job, Monitor, all_do, answers_clients, ask, ask_json, becomes, connect, doors,
                     hear_all, in_ring, init, own_address, poll, resident_kib, states)
from ras_reports import TEXT_REPORT, check_json, check_text
from support import check, environment, free_port, main

# Seconds, as the factor makes them. A keep-alive goes out by a clock that ticks twice in each, so the last
# sign of a process may be up to two of them old when it stops.
FACTOR = 0.2
KEEP_ALIVE, WARN, DEAD = 1 * FACTOR, 5 * FACTOR, 60 * FACTOR
# What a loaded machine may add; and how late a process may be with its signs before it stops. The silence that an event
# states is exact.
LATE = 20
SLOW = 1


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
        check("Communicator ranks have different AllReduce operation counts\n"
              "  2 ranks have launched up to operation 3\n  Rank 2 has launched up to operation 2 -- GPU 2 managed by "
              f"process {ranks[2].pid}" in said, said)
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
        becomes(ranks[2], lambda report: report["communicators"][0]["ranks"][1]["status"]["destroy_flag"],
                "destroy begins")
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
        check("Communicator ranks have different AllReduce operation counts\n"
              "  2 ranks have launched up to operation 1\n  Rank 2 has not launched any operations" in said, said)
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
            check(time.monotonic() - started < 1 + LATE, "the report comes in time")
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


def process_that_goes_on_in_time_has_recovered():
    patience = 4  # a process of a loaded machine may be silent for a second
    with Job(3, NCCL_RAS_TIMEOUT_FACTOR=patience * FACTOR) as ranks:
        init(ranks)
        stopped = ranks[2]
        before = in_ring(ranks)[in_ring(ranks).index(stopped) - 1]
        with Monitor(before) as monitor, Monitor(stopped) as own:
            stopped.child.send_signal(signal.SIGSTOP)
            monitor.hear("PEER_UNRESPONSIVE", stopped)
            check(states(ask_json(before, "--timeout", "1")) == ["answered", "answered", "unresponsive"], "missed")
            check(not monitor.find("PEER_RECOVERED", stopped), monitor.events)
            stopped.child.send_signal(signal.SIGCONT)
            monitor.hear("PEER_RECOVERED", stopped)
            time.sleep(1.5 * patience * WARN)
            for rank in ranks:
                check(states(ask_json(rank)) == 3 * ["answered"], "nobody is missed any more")
                check(not monitor.find("PEER_DEAD", rank), monitor.events)
                check(not own.find("PEER_UNRESPONSIVE", rank), f"who was stopped blames nobody: {own.events}")


def those_that_lag_are_named(ranks):
    late = ranks[5]
    all_do(ranks, "reduce 2")
    all_do([rank for rank in ranks if rank is not late], "reduce 1")
    counts = {rank: [40 <= rank < 48, 3 - (40 <= rank < 48)] for rank in range(64)}
    for asked in (ranks[0], late):
        comm = check_json(poll(asked, json_form=True))["communicators"][0]
        told = {rank["rank"]: [rank["pid"] == late.pid, rank["collective_counts"]["AllReduce"]]
                for rank in comm["ranks"]}
        check(told == counts, told)
        said = poll(asked)
        lines = "".join(f"  Rank {rank} has launched up to operation 2 -- GPU {rank % 8} managed by process {late.pid} "
                        "on node 127.0.0.1\n" for rank in range(40, 48))
        check(f"#0-0 ({comm['hash'][2:]:0>16}) MISMATCH\n"
              "  Communicator ranks have different AllReduce operation counts\n"
              "  56 ranks have launched up to operation 3\n  8 ranks have launched up to operation 2\n" + lines + "\n"
              in said, said)
    late.do("reduce 1")
    all_do(ranks, "sync")
    check(re.search(r"RUNNING +OK\n", ask(ranks[0])), "counts are equal again")


def check_span(event, span, time_of_silence):
    earliest = time_of_silence - 2 * KEEP_ALIVE - SLOW
    latest = time_of_silence + 2 * KEEP_ALIVE + LATE
    check(earliest <= span <= latest, f"{event} after {span:.2f} s, not between {earliest:.2f} and {latest:.2f}")


def silence_and_death_are_told_in_time(ranks):
    """Those who watch the two are neither of them, so each is told of by its own."""
    ring = in_ring(ranks)
    stopped, killed = ring[2], ring[5]
    with Monitor(ring[1]) as by_stopped, Monitor(ring[4]) as by_killed:
        start = time.monotonic()
        stopped.child.send_signal(signal.SIGSTOP)
        killed.child.send_signal(signal.SIGKILL)
        killed.child.wait()
        asked = time.monotonic()
        ask_json(ring[0], "--timeout", "1")
        check(time.monotonic() - asked < 1 + LATE, "the report comes within its time")
        report = becomes(ring[0], lambda report: report["communicators"][0]["ranks_count"] == 48, "48 of 64 ranks answer")
        comm = report["communicators"][0]
        gone = [(rank["pid"], rank["status"]["considered_dead"]) for rank in comm["missing_ranks"]]
        check(sorted(gone) == sorted(8 * [(stopped.pid, False)] + 8 * [(killed.pid, False)]), gone)
        for monitor, lost in ((by_stopped, stopped), (by_killed, killed)):
            for event, after in (("PEER_UNRESPONSIVE", WARN), ("PEER_TIMEOUT_DEAD", DEAD)):
                when, line = monitor.hear(event, lost)
                check_span(line, when - start, after)
                check(float(re.search(r"nothing heard for ([\d.]+) s", line).group(1)) >= after, line)
            for other in (by_stopped, by_killed):
                when, line = other.hear("PEER_DEAD", lost)
                check_span(line, when - start, DEAD)
    for rank in (ring[0], ring[3], ring[7]):
        becomes(rank, lambda report: states(report) == 6 * ["answered"] + 2 * ["dead"], "dead")
        said = ask(rank, "--verbose")
        check("2 job processes are considered dead" in said and "Missing communicator data from 16 ranks" in said, said)
        for dead in (killed, stopped):
            check(f"Process {dead.pid} on node 127.0.0.1 managing GPUs 0,1,2,3,4,5,6,7" in said, said)


def of_sixty_four_ranks_those_that_are_stopped_or_killed_are_named_in_time():
    """Eight processes of eight ranks; times a fifth of what they are."""
    with Job(8, per_process=8, NCCL_MAX_NCHANNELS=1, NCCL_RAS_TIMEOUT_FACTOR=FACTOR) as ranks:
        init(ranks)
        silence_and_death_are_told_in_time(ranks)


def of_sixty_four_ranks_those_that_lag_are_named_and_a_hundred_clients_are_no_trouble():
    """With the times as they are: while 56 kernels of a small machine wait, a process may be silent for a while."""
    with Job(8, per_process=8, NCCL_MAX_NCHANNELS=1) as ranks:
        init(ranks)
        those_that_lag_are_named(ranks)
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


def converse(rank, exchange, status):
    """Says each line and hears exactly its answer; gives the report to the last line."""
    with connect(rank) as client:
        for line, answer in exchange:
            client.sendall(line)
            heard = b""
            while len(heard) < len(answer):
                more = client.recv(len(answer) - len(heard))
                check(more, f"closed after {heard} to {line}")
                heard += more
            check(heard == answer, f"to {line} came {heard}, not {answer}")
        client.sendall(status)
        return hear_all(client)


def dialogue_of_ncclras_goes_as_that_expects():
    hello = (b"CLIENT PROTOCOL 2\n", b"SERVER PROTOCOL 2\n")
    patience, json_form = (b"TIMEOUT 5\n", b"OK\n"), (b"SET FORMAT json\n", b"OK\n")
    with Job(1, per_process=2) as ranks:
        init(ranks)
        for exchange in ([hello], [hello, patience], [hello, patience, (b"SET FORMAT text\n", b"OK\n")], [],
                         [(b"client protocol 7\r\n", hello[1]), (b"timeout 0\r\n", b"OK\n")],
                         [hello, (b"TIMEOUT -1\n", b"ERROR: Invalid timeout value -1\n"),
                          (b"SET FORMAT xml\n", b"ERROR: Invalid format xml\n"),
                          (b"MONITOR life\n", b"ERROR: Invalid event group 'life'\n"),
                          (b"SET  FORMAT json\n", b"ERROR: Unknown command SET  FORMAT json\n")]):
            for status in (b"STATUS\n", b"VERBOSE STATUS\n", b"verbose status\r\n"):
                said = converse(ranks[0], exchange, status)
                check(re.fullmatch(TEXT_REPORT, said), said)
        for status in (b"STATUS\n", b"VERBOSE STATUS\n"):
            report = check_json(converse(ranks[0], [hello, patience, json_form], status))
            check(report["communicators"][0]["ranks_count"] == 2, report)
        program = shutil.which("ncclras")
        if program is None:
            print("note: there is no ncclras on this machine: its part was played by the test alone")
            return
        for options in ([], ["-v", "-t", "3"], ["-f", "json"]):
            ended = subprocess.run([program, "-h", "127.0.0.1", "-p", str(ranks[0].port), *options], text=True,
                                   capture_output=True, timeout=GENEROUS)
            right = check_json(ended.stdout) if "json" in options else re.fullmatch(TEXT_REPORT, ended.stdout)
            check(ended.returncode == 0 and right, f"{options}: {ended}")


def queries_go_on_while_communicators_come_and_go():
    """Split, aborted, shrunk and destroyed, all the time."""
    rounds = 6
    with Job(2, per_process=4) as ranks, concurrent.futures.ThreadPoolExecutor(2) as pool:
        init(ranks)
        for rank in ranks:
            rank.say(f"churn {rounds}")
        ends = [pool.submit(rank.hear, "done") for rank in ranks]
        seen = []
        while not all(end.done() for end in ends):
            for rank in ranks:
                report = check_json(poll(rank, json_form=True))
                seen += [(comm["hash"], comm["size"]) for comm in report["communicators"]]
                check_text(poll(rank, "VERBOSE STATUS"))
        for end in ends:
            end.result()
        sizes = sorted(size for _, size in set(seen))
        check(sizes.count(7) > 1 and sizes.count(8) > 2, f"communicators that were seen: {sizes}")
        last = check_json(poll(ranks[0], json_form=True))
        check([comm["ranks_count"] for comm in last["communicators"]] == [8], last)


def thousands_of_polls_leave_memory_as_it_is():
    """A report is 7 KB here: one that stayed behind with each poll would be 11 MB in the end."""
    with Job(2, per_process=4) as ranks:
        init(ranks)
        for n in range(2000):
            if n == 400:
                before = [resident_kib(rank) for rank in ranks]
            said = poll(ranks[0], json_form=True)
            check(said.startswith("{\n") and said.endswith("\n}\n"), said)
        grown = [resident_kib(rank) - old for rank, old in zip(ranks, before)]
        check(max(grown) < 3000, f"grown by {grown} KiB")


def jobs_with_ports_of_their_own_answer_for_themselves():
    with Job(2) as first, Job(2) as second:
        for job in (first, second):
            init(job)
        for job in (first, second):
            for rank in job:
                told = sorted(process["pid"] for process in ask_json(rank)["processes"])
                check(told == sorted(one.pid for one in job), f"port {rank.port} of process {rank.pid} told of {told}")


def check_doors(rank, host, client_host, count):
    """One for clients, one for processes of the job and one for each rank; the root's goes when all ranks have come."""
    deadline = time.monotonic() + GENEROUS
    while len(found := doors(rank)) != count + 2:
        check(time.monotonic() < deadline, f"{count} ranks listen at {found}")
        time.sleep(0.01)
    client = (client_host, rank.port)
    check(found.count(client) == 1 and rank.door == client_host, f"{client} is not in {found}")
    for door in found:
        check(door == client or door[0] == host, f"{door} of {found} is at no address of the job")
        check(answers_clients(door) == (door == client), f"{door} of {found}; that for clients is {client}")


def clients_of_other_hosts_find_no_door_unless_one_is_asked_for():
    host = own_address()
    for asked, at in (({"NCCL_RAS_ADDR": "localhost:0"}, "127.0.0.1"), ({"NCCL_RAS_ADDR": f"{host}:0"}, host)):
        with Job(2, per_process=2, NCCL_COMM_ID=f"{host}:{free_port()}", NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1,
                 **asked) as ranks:
            init(ranks)
            all_do(ranks, "reduce 1")
            all_do(ranks, "sync")
            for rank in ranks:
                check_doors(rank, host, at, 2)


def communicators_are_told_with_their_names_and_parents():
    with Job(3) as ranks:
        init(ranks)
        all_do(ranks, "family")
        for rank in ranks:  # the last one is not of the smallest
            comms = check_json(poll(rank, json_form=True))["communicators"]
            by_name = {comm["name"]: comm for comm in comms}
            check(len(comms) == 3 and set(by_name) == {None, "child", "grandchild"}, comms)
            first, child, grandchild = by_name[None], by_name["child"], by_name["grandchild"]
            check(first["parent"] is None and child["parent"] == first["hash"], comms)
            check(grandchild["parent"] == child["hash"] and grandchild["size"] == 2, comms)


def exactly_one_switches_it_on():
    for value, on in (("0", False), ("1", True), ("2", False), ("-1", False), ("yes", False), ("", True)):
        with Job(1, NCCL_RAS_ENABLE=value) as ranks:
            ranks[0].do("init")
            told = any("RAS client listening socket" in line for line in ranks[0].lines)
            check(told == on, f"NCCL_RAS_ENABLE={value!r}: {ranks[0].lines}")
            if value == "0":
                ranks[0].port = free_port()
                check("no job can be asked at 127.0.0.1:" in ask(ranks[0], code=1), "the client says so")


def bad_address_harms_nobody():
    with Job(1, NCCL_RAS_ADDR="192.0.2.1:1") as ranks:
        ranks[0].do("init")
        told = [line for line in ranks[0].lines if "RAS failed to establish" in line]
        check(len(told) == 1 and "NCCL_RAS_ADDR" in told[0], ranks[0].lines)


def who_answers_without_an_end_is_no_job():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(GENEROUS)

        def talk():
            client, _ = server.accept()
            with client, contextlib.suppress(OSError):
                while True:
                    client.sendall(b"x" * (1 << 20))

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(talk)
            asked = subprocess.run([INFO, "ras", "--host", "127.0.0.1", "--port", str(server.getsockname()[1])],
                                   capture_output=True, text=True, timeout=GENEROUS, env=environment())
    told = f"{asked.returncode}\n{asked.stderr}"
    check(asked.returncode == 1 and "unexpected response from 127.0.0.1" in told and len(told) < 5000, told)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main(job_is_seen_from_its_beginning_to_its_end, collective_that_does_not_end_is_told_by_every_rank,
         stopped_process_is_missed_then_dead_and_a_killed_one_as_well, process_that_goes_on_in_time_has_recovered,
         of_sixty_four_ranks_those_that_are_stopped_or_killed_are_named_in_time,
         of_sixty_four_ranks_those_that_lag_are_named_and_a_hundred_clients_are_no_trouble,
         dialogue_of_ncclras_goes_as_that_expects,
         queries_go_on_while_communicators_come_and_go, thousands_of_polls_leave_memory_as_it_is,
         jobs_with_ports_of_their_own_answer_for_themselves,
         clients_of_other_hosts_find_no_door_unless_one_is_asked_for, exactly_one_switches_it_on,
         communicators_are_told_with_their_names_and_parents, bad_address_harms_nobody, who_answers_without_an_end_is_no_job)
