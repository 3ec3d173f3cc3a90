"""Where the processes of a job listen: TCP ports, and sockets of the Unix kind, by the sockets' inodes."""
import os
import re


def inodes(pid):
    """Of the sockets that a process has open."""
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                match = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
            if match:
                found.add(match[1])
    except OSError:
        pass  # it has ended
    return found


def ports(pids):
    """(address, port) of what these processes listen at; IPv4 only, which is what jobs of one machine use."""
    own = set().union(*(inodes(pid) for pid in pids))
    found = []
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in own:
                address, port = fields[1].split(":")
                number = int(address, 16)
                text = ".".join(str(number >> shift & 255) for shift in (0, 8, 16, 24))
                found.append(("127.0.0.1" if text == "0.0.0.0" else text, int(port, 16)))
    return found


def unix_names(pids):
    """Addresses of the Unix sockets that these processes have bound: an abstract one begins with a zero byte."""
    own = set().union(*(inodes(pid) for pid in pids))
    found = []
    with open("/proc/net/unix") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if len(fields) == 8 and fields[6] in own:
                found.append((int(fields[4], 16), "\0" + fields[7][1:] if fields[7].startswith("@") else fields[7]))
    return found
