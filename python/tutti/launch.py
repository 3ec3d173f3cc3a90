"""Starts the ranks of a job on this machine: `python -m tutti.launch -n 4 train.py --epochs 3`.

Every rank's lines come out whole, behind its number. When a rank dies, its number, process and signal are named at once,
the others get some seconds to fail by themselves, and then are ended. The exit status is that of the rank that failed
first, 0 where all ended well.

Ranks find each other by what torchrun sets: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
"""
import argparse
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time

TERM_GRACE = 5.0  # seconds between SIGTERM and SIGKILL


_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


def _end_with_the_launcher():
    """In a rank, before its program: where the launcher is killed, nobody is left to end the ranks."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _command(program, arguments):
    """A Python file runs in this interpreter, everything else as it is."""
    return [sys.executable, "-u", program, *arguments] if program.endswith(".py") else [program, *arguments]


def how_it_ended(code):
    """Of a return code of subprocess, as a part of a sentence."""
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "a signal without a name"
    remark = "; the system's out-of-memory killer sends it as well" if -code == signal.SIGKILL else ""
    return f"was killed by signal {-code} ({name}{remark})"


class Rank:
    """One process and what it has written of its current line."""

    def __init__(self, number, command, environment):
        self.number = number
        self.rest = b""
        self.heard = True
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True,
                                        preexec_fn=_end_with_the_launcher)

    def signal(self, which):
        """To the rank and the processes that it has started."""
        try:
            os.killpg(self.process.pid, which)
        except ProcessLookupError:
            pass


class Job:
    """The ranks, from their start to the last one's end."""

    def __init__(self, count, command, grace, out):
        self.grace = grace
        self.out = out
        self.width = len(str(count - 1))
        self.selector = selectors.DefaultSelector()
        self.status = 0
        self.ends = None  # when those that are left are ended
        self.killed = False
        common = dict(os.environ, WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count), PYTHONUNBUFFERED="1")
        common.setdefault("MASTER_ADDR", "127.0.0.1")
        common.setdefault("MASTER_PORT", str(_free_port()))
        common.setdefault("OMP_NUM_THREADS", "1")
        self.ranks = []
        try:
            for number in range(count):
                rank = Rank(number, command, dict(common, RANK=str(number), LOCAL_RANK=str(number)))
                self.ranks.append(rank)
                os.set_blocking(rank.process.stdout.fileno(), False)
                self.selector.register(rank.process.stdout, selectors.EVENT_READ, rank)
        except OSError:
            self.stop(signal.SIGKILL)
            raise
        self.alive = list(self.ranks)

    def say(self, text):
        self.out.write(f"tutti.launch: {text}\n".encode())
        self.out.flush()

    def stop(self, which):
        for rank in self.ranks:
            if rank.process.returncode is None:
                rank.signal(which)

    def _put(self, rank, line):
        self.out.write(f"[{rank.number:{self.width}}] ".encode() + line + b"\n")

    def _read(self, rank):
        """Puts out the lines that are whole. False: there will be no more, or not now."""
        piece = rank.process.stdout.read(1 << 16) if rank.heard else None
        if piece == b"":  # it has closed its output, and may run on
            self.selector.unregister(rank.process.stdout)
            rank.heard = False
        if not piece:
            return False
        *lines, rank.rest = (rank.rest + piece).split(b"\n")
        for line in lines:
            self._put(rank, line)
        self.out.flush()
        return True

    def _close(self, rank):
        """The output of a rank that has ended, to its last byte. What it has started may write on, unheard."""
        while self._read(rank):
            pass
        if rank.rest:
            self._put(rank, rank.rest)
            self.out.flush()
        if rank.heard:
            self.selector.unregister(rank.process.stdout)
            rank.heard = False
        rank.process.stdout.close()

    def _reap(self):
        for rank in list(self.alive):
            code = rank.process.poll()
            if code is None:
                continue
            self._close(rank)
            self.alive.remove(rank)
            if code != 0 and self.ends is None:
                self.status = code if code > 0 else 128 - code
                what = f"; the others have {self.grace:g} s to end" if self.alive else ""
                self.say(f"rank {rank.number} of {len(self.ranks)} (pid {rank.process.pid}) {how_it_ended(code)}{what}")
                self.ends = time.monotonic() + self.grace

    def _end_those_left(self):
        if self.ends is None or not self.alive or time.monotonic() < self.ends:
            return
        left = " ".join(str(rank.number) for rank in self.alive)
        self.say(f"ending what is left by {'SIGKILL' if self.killed else 'SIGTERM'}: rank {left}")
        self.stop(signal.SIGKILL if self.killed else signal.SIGTERM)
        self.killed = True
        self.ends = time.monotonic() + TERM_GRACE

    def interrupted(self, which, _frame):
        """A signal to the launcher is one to every rank; a second one ends them."""
        if self.ends is not None:
            self.stop(signal.SIGKILL)
            return
        self.say(f"{signal.Signals(which).name}: passed on to every rank")
        self.status = 128 + which
        self.ends = time.monotonic() + self.grace
        self.stop(which)

    def run(self):
        """The exit status of the job."""
        while self.alive:
            for key, _ in self.selector.select(timeout=0.05):
                self._read(key.data)
            self._reap()
            self._end_those_left()
        return self.status


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tutti.launch", description=__doc__.splitlines()[0],
                                     epilog="\n".join(__doc__.splitlines()[2:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many ranks")
    parser.add_argument("--grace", type=float, default=10, metavar="SECONDS",
                        help="how long ranks have to end once one has failed (default: %(default)s)")
    parser.add_argument("program", help="a Python file, or any program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    given = parser.parse_args(arguments)
    if given.ranks < 1:
        parser.error("-n: there must be at least one rank")
    try:
        job = Job(given.ranks, _command(given.program, given.arguments), given.grace, sys.stdout.buffer)
    except OSError as error:
        parser.error(f"{given.program} cannot be started: {error.strerror}")
    for which in (signal.SIGINT, signal.SIGTERM):
        signal.signal(which, job.interrupted)
    return job.run()


if __name__ == "__main__":
    sys.exit(main())
