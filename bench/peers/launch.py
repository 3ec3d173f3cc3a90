#!/usr/bin/env python3
"""Starts N processes of one program on this machine and waits for them: what mpirun is to a program without MPI.

Every process gets RANK (0 to N-1), WORLD_SIZE (N), PEER_JOB (a name that no other run has) and PEER_FOLDER (an empty
folder of this run, removed at its end). As soon as one process fails, or when time is up, all others are killed; they
are killed too when this program dies. Ends with the exit status of the first that failed, 128 + N if signal N killed
it, 124 when time was up, else with 0.
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import tempfile
import time

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def start(command, rank, count, job, folder, core):
    """One process; `core`: the only one it may run on, or None."""
    parent = os.getpid()

    def before_exec():
        os.setpgid(0, 0)  # so that what it starts is killed with it
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
        if core is not None:
            os.sched_setaffinity(0, {core})

    env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(count), PEER_JOB=job, PEER_FOLDER=folder)
    return subprocess.Popen(command, env=env, preexec_fn=before_exec)


def wait_for_all(processes, seconds):
    """The exit status of the run."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        codes = [process.poll() for process in processes]
        for rank, code in enumerate(codes):
            if code:
                cause = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
                print(f"launch.py: rank {rank} {cause}; the others are killed", file=sys.stderr)
                return 128 - code if code < 0 else code
        if None not in codes:
            return 0
        if end is not None and time.monotonic() > end:
            running = [rank for rank, code in enumerate(codes) if code is None]
            print(f"launch.py: ranks {running} still run after {seconds:g} s and are killed", file=sys.stderr)
            return 124
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--ranks", type=int, required=True)
    parser.add_argument("--bind", action="store_true", help="rank r runs on the r-th core only, cyclically")
    parser.add_argument("--seconds", type=float, help="kill all after so long; default: wait for ever")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- PROGRAM [ARGUMENT...]")
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command or options.ranks < 1:
        parser.error("a program and at least one rank are needed")
    cores = sorted(os.sched_getaffinity(0))
    job = f"{os.getpid()}-{secrets.token_hex(4)}"
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    processes = []
    with tempfile.TemporaryDirectory(prefix="tutti-peers-") as folder:
        try:
            for rank in range(options.ranks):
                core = cores[rank % len(cores)] if options.bind else None
                processes.append(start(command, rank, options.ranks, job, folder, core))
            return wait_for_all(processes, options.seconds)
        except OSError as error:
            print(f"launch.py: {command[0]} does not start: {error}", file=sys.stderr)
            return 127
        except KeyboardInterrupt:
            return 130
        finally:
            for process in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            pathlib.Path(f"/dev/shm/tutti-peers.{job}").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
