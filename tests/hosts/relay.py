"""A switch in a program: frames of tap interfaces wait, are lost or too long, or go no faster than a rate."""
import dataclasses
import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time

TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
FRAME_BYTES = 65536
QUEUE_SECONDS = 0.2  # what a port's queue holds; what comes beyond is lost


@dataclasses.dataclass
class Weather:
    """What happens to each frame on its way; each direction for itself."""
    delay: float = 0.0          # seconds
    loss: float = 0.0           # probability
    rate: float = 0.0           # bits per second into each host; 0: no limit
    longest: int = 0            # bytes of a frame, longer ones are swallowed without a word; 0: no limit

    def netem(self):
        """The same as options of tc."""
        words = ["netem", "limit", "10000"]
        if self.delay:
            words += ["delay", f"{self.delay * 1000:.3f}ms"]
        if self.loss:
            words += ["loss", f"{self.loss * 100:.3f}%"]
        if self.rate:
            words += ["rate", f"{self.rate:.0f}bit"]
        return words


class Relay:
    """One switch; its thread runs until close(). `weather` and `cut` (ports) may be changed at any time."""

    def __init__(self, weather):
        os.close(os.open("/dev/net/tun", os.O_RDWR))
        self.weather = weather
        self.cut = set()
        self.dice = random.Random(7)
        self.ports = []
        self.homes = {}         # of addresses: the port behind which each was seen
        self.free_at = {}       # when a port has sent what is queued for it
        self.waiting = []       # heap of (due, number, port, frame)
        self.count = 0
        self.epoll = select.epoll()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def plug(self, name):
        """Makes the interface `name`, which may be moved to another namespace. Returns the port."""
        port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(port, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
        self.free_at[port] = 0.0
        self.ports.append(port)
        self.epoll.register(port, select.EPOLLIN)
        return port

    def close(self):
        self.stop.set()
        self.thread.join()
        for port in self.ports:
            os.close(port)
        self.epoll.close()

    def run(self):
        while not self.stop.is_set():
            patience = 0.1
            if self.waiting:
                patience = min(max(self.waiting[0][0] - time.monotonic(), 0), patience)
            for port, _ in self.epoll.poll(patience):
                self.take(port)
            now = time.monotonic()
            while self.waiting and self.waiting[0][0] <= now:
                _, _, port, frame = heapq.heappop(self.waiting)
                self.deliver(port, frame)

    def take(self, port):
        """What a host has sent, a bounded number of frames at a time."""
        for _ in range(64):
            try:
                frame = os.read(port, FRAME_BYTES)
            except OSError:  # nothing more, or the interface is not up yet
                return
            if port in self.cut:
                continue
            self.homes[frame[6:12]] = port
            home = self.homes.get(frame[:6])
            for target in [home] if home else self.ports:
                if target != port and target not in self.cut:
                    self.send(target, frame)

    def send(self, port, frame):
        weather = self.weather
        if weather.longest and len(frame) > weather.longest:
            return
        if weather.loss and self.dice.random() < weather.loss:
            return
        due = now = time.monotonic()
        if weather.rate:
            due = max(now, self.free_at[port])
            if due - now > QUEUE_SECONDS:
                return
            due += len(frame) * 8 / weather.rate
            self.free_at[port] = due
        due += weather.delay
        if due <= now:
            return self.deliver(port, frame)
        self.count += 1
        heapq.heappush(self.waiting, (due, self.count, port, frame))

    def deliver(self, port, frame):
        try:
            os.write(port, frame)
        except OSError:
            pass  # the interface is down, or gone with its host: lost, as on a wire
