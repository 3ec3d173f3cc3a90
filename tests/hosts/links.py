#!/usr/bin/env python3
"""What the other scenarios build on, proven with plain sockets: hosts reach each other, or not, as they are told."""
import os
import signal
import subprocess
import sys
import time

from echo import Echo, check_cut
from namespaces import Lab, check, run_in_sandbox

def hosts_have_names_and_interfaces_of_their_own():
    with Lab(3, nics=2) as lab:
        names = [host.run("hostname").strip() for host in lab.hosts]
        check(names == ["a", "b", "c"], f"hosts are called {names}")
        for host in lab.hosts:
            listed = sorted(line.split(":")[1].strip().split("@")[0] for line in host.run("ip", "-o", "link").splitlines())
            check(listed == ["eth0", "eth1", "lo"], f"host {host.name} has {listed}")


def hosts_reach_each_other():
    for family in (4, 6):
        for nic in (0, 1):
            with Lab(2, nics=2, family=family) as lab, Echo(lab, nic=nic) as echo:
                before = lab.hosts[0].bytes_sent(nic)
                check(echo.ask(100000), f"IPv{family}, eth{nic}: no answer")
                check(lab.hosts[0].bytes_sent(nic) - before > 100000, "the bytes went another way")


def cut_cable_carries_nothing_until_it_is_healed():
    with Lab(2) as lab, Echo(lab) as echo:
        check_cut(lab, echo)


def dead_end_leads_nowhere():
    with Lab(2) as lab:
        for number, host in enumerate(lab.hosts, 1):
            host.add_dead_end("dead0", f"10.9.9.{number}/24")
        lab.hosts[1].nics[0].address = "10.9.9.2"
        with Echo(lab) as echo:
            check(echo.ask(seconds=0.5) is None, "an answer from a dead end")


def everything_goes_with_its_first_process():
    """The sandbox of another run of this program, killed: nothing of it is left."""
    script = ("import sys, time; sys.argv = ['links.py']; from namespaces import Lab; lab = Lab(2); "
              "print(lab.hosts[0].pid, flush=True); time.sleep(60)")
    outer = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
                              sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                             cwd=os.path.dirname(os.path.abspath(__file__)))
    outer.stdout.readline()
    sleepers = [pid for pid in descendants(outer.pid)]
    check(len(sleepers) >= 3, f"processes of the sandbox: {sleepers}")
    os.kill(outer.pid, signal.SIGKILL)
    outer.wait()
    deadline = time.monotonic() + 10
    while any(alive(pid) for pid in sleepers):
        check(time.monotonic() < deadline, "processes of a killed sandbox live on")
        time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def descendants(pid):
    found = []
    for folder in os.listdir("/proc"):
        if not folder.isdigit():
            continue
        try:
            with open(f"/proc/{folder}/stat") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(folder)] + descendants(int(folder))
    return found


if __name__ == "__main__":
    run_in_sandbox(hosts_have_names_and_interfaces_of_their_own, hosts_reach_each_other,
                   cut_cable_carries_nothing_until_it_is_healed, dead_end_leads_nowhere,
                   everything_goes_with_its_first_process)
