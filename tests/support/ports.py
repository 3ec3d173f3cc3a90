"""Ports for jobs whose ranks meet at an address that is known beforehand (NCCL_COMM_ID)."""
import collections
import fcntl
import os
import pathlib
import random
import socket
import tempfile

HELD = 64  # ports that a process keeps to itself: the newest ones

_file = None
_held = collections.deque()


def _lock(port):
    """Whether no other process of this user has taken the port. A lock on a byte of a file goes with its process."""
    global _file
    if _file is None:
        path = pathlib.Path(tempfile.gettempdir()) / f"tutti-test-ports-{os.getuid()}"
        _file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def free_port():
    """A port nobody listens on, that no test beside this one is given, and outside the range from which the kernel gives
    ports to whoever asks for any. Between now and the root's listening any other test may ask as well: where two jobs
    had one port, ranks of one met the root of the other."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(10_000):
        port = random.SystemRandom().randrange(min(20_000, max(lowest - 1, 1024)), max(lowest, 1025))
        if port in _held or not _lock(port):
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                fcntl.lockf(_file, fcntl.LOCK_UN, 1, port)
                continue
        _held.append(port)
        if len(_held) > HELD:
            fcntl.lockf(_file, fcntl.LOCK_UN, 1, _held.popleft())
        return port
    raise RuntimeError("no port is free")
