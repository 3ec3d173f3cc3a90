"""Several hosts on one machine: network namespaces behind switches, with cables that can be cut and bad weather.

A scenario's file ends with `run_in_sandbox(test, ...)`. That starts the file again inside namespaces of its own (user
where it is needed, network, mount, UTS, process ids): what it makes there clashes with nobody and is gone with its
first process, however that dies. Where the kernel does not allow it the file is one skipped test.

  with Lab(2, nics=2) as lab:                  two hosts, eth0 and eth1, every rail with a switch of its own
      lab.hosts[1].run("ip", "address")
      lab.hosts[1].cut(0)                      nothing passes, and nobody is told

Hosts have names (UTS) and network interfaces of their own; files, processes and processors they share.
"""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from relay import Relay, Weather  # noqa: E402
from support import BUILD, SKIP, Process, check, main  # noqa: E402

INSIDE = "TUTTI_HOSTS_SANDBOX"
# What needs least comes first.
RECIPES = {"a user namespace": ["--user", "--map-root-user"], "namespaces as root": []}
NAMESPACES = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Unavailable(Exception):
    """This machine cannot play that: a reason to skip, not to fail."""


def command(*words, seconds=30):
    """Runs one of the system's tools. Returns what it printed."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except OSError as error:
        raise Unavailable(f"{words[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Host:
    """Namespaces held by a process that sleeps; anybody in the sandbox may enter them with nsenter."""

    def __init__(self, name):
        self.name = name
        self.nics = []
        # Its own /sys shows its own interfaces; where that may not be mounted, there are those of the machine.
        script = 'hostname "$1" && { mount -t sysfs none /sys 2>/dev/null || true; } && echo ready && exec sleep infinity'
        self.holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", script, "sh", name],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            raise Unavailable(f"no namespaces for host {name}: {self.holder.communicate()[1].strip()}")
        self.run("ip", "link", "set", "lo", "up")

    @property
    def pid(self):
        return self.holder.pid

    def enter(self, *words):
        """The command line that runs `words` on this host; it stays one process."""
        return ["nsenter", "--target", str(self.pid), "--net", "--uts", "--mount", "--", *(str(word) for word in words)]

    def run(self, *words, seconds=30):
        return command(*self.enter(*words), seconds=seconds)

    def address(self, nic=0):
        return self.nics[nic].address

    def cut(self, nic=0):
        """Nothing passes from now on, and the interface stays up: as where a switch far away fails."""
        self.nics[nic].cut()

    def heal(self, nic=0):
        self.nics[nic].heal()

    def set_mtu(self, mtu, nic=0):
        self.run("ip", "link", "set", f"eth{nic}", "mtu", mtu)

    def bytes_sent(self, nic=0):
        words = self.run("ip", "-o", "-s", "link", "show", "dev", f"eth{nic}").split("\\")
        transmitted = next(i for i, line in enumerate(words) if line.strip().startswith("TX:"))
        return int(words[transmitted + 1].split()[0])

    def segments_sent_again(self):
        names, values = (line.split() for line in self.run("cat", "/proc/net/snmp").splitlines() if line.startswith("Tcp:"))
        return int(values[names.index("RetransSegs")])

    def add_dead_end(self, name, address):
        """An interface that is up and has an address, and from which no way leads anywhere."""
        self.run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}-end")
        self.give_address(name, address)
        self.run("ip", "link", "set", f"{name}-end", "up")
        self.await_carrier(name)

    def give_address(self, interface, address):
        # Without link-local addresses, and without the second that looking for a duplicate takes.
        self.run("ip", "link", "set", interface, "addrgenmode", "none")
        self.run("ip", "address", "add", address, "dev", interface, *(["nodad"] if ":" in address else []))
        self.run("ip", "link", "set", interface, "up")

    def await_carrier(self, interface):
        """Until then programs pass the interface over: the kernel may take a second to see that both ends are up."""
        deadline = time.monotonic() + 30
        while True:
            flags = self.run("ip", "-o", "link", "show", "dev", interface).split("<")[1].split(">")[0].split(",")
            if "LOWER_UP" in flags and "NO-CARRIER" not in flags:
                return
            if time.monotonic() > deadline:
                raise Unavailable(f"{interface} of host {self.name} has no carrier: {flags}")
            time.sleep(0.01)

    def close(self):
        self.holder.kill()
        self.holder.communicate()


class Cable:
    """A pair of virtual interfaces from a host to a switch, which is a bridge in the sandbox's own namespace."""

    def __init__(self, host, nic, switch):
        self.switch = switch
        self.address = None
        self.end = f"{switch}-{host.name}"
        command("ip", "link", "add", self.end, "type", "veth", "peer", "name", f"eth{nic}", "netns", host.pid)
        command("ip", "link", "set", self.end, "addrgenmode", "none")
        command("ip", "link", "set", self.end, "master", switch, "up")

    def cut(self):
        command("ip", "link", "set", self.end, "nomaster")

    def heal(self):
        command("ip", "link", "set", self.end, "master", self.switch)


class RelayedCable:
    """A virtual interface whose other end is a program that lets its frames wait, or loses them."""

    def __init__(self, host, nic, relay, lab):
        self.address = None
        self.relay = relay
        name = f"tap{lab}n{nic}-{host.name}"
        self.port = relay.plug(name)
        command("ip", "link", "set", name, "netns", host.pid, "name", f"eth{nic}")

    def cut(self):
        self.relay.cut.add(self.port)

    def heal(self):
        self.relay.cut.discard(self.port)


class Lab:
    """Hosts `a`, `b`, … with `nics` interfaces eth0, eth1, … each, at 10.0.NIC.HOST or fd00:NIC::HOST, counted from 1.
    Interfaces of one number share a switch; `weather` says what happens to frames on their way through all of them."""

    made = 0  # names of interfaces are used once, because those of an earlier lab may take a moment to go

    def __init__(self, hosts, nics=1, family=4, weather=None):
        self.hosts = []
        self.family = family
        self.weather = weather
        self.relays = []
        self.switches = []
        Lab.made += 1
        try:
            for number in range(hosts):
                self.hosts.append(Host(chr(ord("a") + number)))
            for nic in range(nics):
                self.plug_all(nic)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def plug_all(self, nic):
        relay = self.start_relay()
        if relay is None:
            switch = f"lab{Lab.made}n{nic}"
            self.switches.append(switch)
            command("ip", "link", "add", switch, "type", "bridge", "mcast_snooping", "0")
            command("ip", "link", "set", switch, "addrgenmode", "none", "up")
        for number, host in enumerate(self.hosts, 1):
            try:
                cable = RelayedCable(host, nic, relay, Lab.made) if relay else Cable(host, nic, switch)
            except OSError as error:
                raise Unavailable(f"a tap interface: {error.strerror}") from None
            cable.address = f"10.0.{nic}.{number}" if self.family == 4 else f"fd00:{nic}::{number}"
            host.give_address(f"eth{nic}", cable.address + ("/24" if self.family == 4 else "/64"))
            host.nics.append(cable)
            if self.weather and not relay:
                command("tc", "qdisc", "replace", "dev", cable.end, "root", *self.weather.netem())
        for host in self.hosts:
            host.await_carrier(f"eth{nic}")

    def start_relay(self):
        """None where frames need no relay. Where there is none to be had, netem takes its place."""
        if self.weather is None:
            return None
        try:
            self.relays.append(Relay(self.weather))
            return self.relays[-1]
        except OSError as error:
            if self.weather.longest:
                raise Unavailable(f"a relay: {error}") from None
            print(f"  no relay, hence netem: {error}")
            return None

    def root(self, port=29500):
        """NCCL_COMM_ID for a rank 0 on the first host."""
        address = self.hosts[0].address()
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

    def close(self):
        for relay in self.relays:
            relay.close()
        for host in self.hosts:
            host.close()
        for switch in self.switches:
            subprocess.run(["ip", "link", "del", switch], stderr=subprocess.DEVNULL, check=False)


def probe():
    """Whether this process can make hosts that reach each other."""
    with Lab(2) as lab:
        lab.hosts[0].run("ip", "-4", "route", "get", lab.hosts[1].address())


def skip(why):
    print(f"SKIPPED {pathlib.Path(sys.argv[0]).stem}: {why}")
    sys.exit(SKIP)


def enter_sandbox():
    """Starts this program again in a sandbox that works; does not return."""
    reasons = []
    for name, recipe in RECIPES.items():
        words = ["unshare", *recipe, *NAMESPACES, "--", sys.executable]
        try:
            command(*words, __file__, "probe", seconds=60)
        except (Unavailable, subprocess.TimeoutExpired) as reason:
            reasons.append(f"{name}: {reason}")
            continue
        os.environ[INSIDE] = name
        os.execvp(words[0], words + sys.argv)
    skip("no network namespaces here; " + "; ".join(reasons))


def run_in_sandbox(*tests):
    """The tests whose names are on the command line, or all, each of which may find itself unavailable; where all do,
    the program counts as skipped."""
    if INSIDE not in os.environ:
        enter_sandbox()
    wanted = [test for test in tests if len(sys.argv) == 1 or test.__name__ in sys.argv[1:]]
    missing = []
    for test in wanted:
        try:
            main(test)
        except Unavailable as reason:
            missing.append(f"{test.__name__}: {reason}")
            print(f"not possible here: {missing[-1]}")
    if wanted and len(missing) == len(wanted):
        skip("; ".join(missing))


__all__ = ["BUILD", "Host", "Lab", "Process", "Unavailable", "Weather", "check", "command", "run_in_sandbox"]

if __name__ == "__main__" and sys.argv[1:] == ["probe"]:
    try:
        probe()
    except Unavailable as reason:
        sys.exit(str(reason))
