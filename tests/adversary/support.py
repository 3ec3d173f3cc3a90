"""What the modules of the campaign share."""
import pathlib
import random
import socket


def free_port():
    """A port nobody listens on, outside the range from which the kernel gives ports to whoever asks for any."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10000, max(lowest, 10001))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
