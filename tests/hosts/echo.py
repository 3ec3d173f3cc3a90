"""A server and a client of plain sockets: proves what a lab's hosts reach, without any library of ours."""
import subprocess
import sys

from namespaces import check

# Answers what it is sent, on the port given; says "up" when it listens.
ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], 5000), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET) as server:
    print("up", flush=True)
    while True:
        peer, _ = server.accept()
        while data := peer.recv(1 << 16):
            peer.sendall(data)
"""
# Sends so many bytes there, `rounds` times, and prints the seconds of each round trip.
ASK = """
import socket, sys, threading, time
host, bytes, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.create_connection((host, 5000), timeout=float(sys.argv[4])) as s:
    for _ in range(rounds):
        began, left = time.monotonic(), bytes
        threading.Thread(target=s.sendall, args=(b"x" * bytes,), daemon=True).start()
        while left:
            left -= len(s.recv(left))
        print(time.monotonic() - began)
"""


class Echo:
    def __init__(self, lab, host=1, nic=0):
        self.lab = lab
        self.address = lab.hosts[host].address(nic)
        self.server = subprocess.Popen(lab.hosts[host].enter(sys.executable, "-c", ECHO, self.address),
                                       stdout=subprocess.PIPE, text=True)
        check(self.server.stdout.readline() == "up\n", "the server does not listen")

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.server.kill()
        self.server.communicate()

    def ask(self, number=1, rounds=1, seconds=10.0, host=0):
        """Seconds of each round trip; None where there was no answer in time."""
        asked = subprocess.run(self.lab.hosts[host].enter(sys.executable, "-c", ASK, self.address, number, rounds, seconds),
                               capture_output=True, text=True, timeout=seconds * rounds + 20)
        return [float(line) for line in asked.stdout.split()] if asked.returncode == 0 else None


def check_cut(lab, echo):
    check(echo.ask(), "no answer before the cut")
    lab.hosts[1].cut()
    check(echo.ask(seconds=0.5) is None, "an answer through a cut cable")
    lab.hosts[1].heal()
    check(echo.ask(), "no answer after healing")
