"""What the end-to-end tests share: where things are, how to start programs on the software GPU, bounded waits."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402, F401: for the tests as well

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"])
SOURCE = pathlib.Path(os.environ["TUTTI_SOURCE"])
# Or what takes its place where there is a GPU: tools/gpu-check.
RUN = [os.environ.get("TUTTI_RUN", str(BUILD / "softgpu-run"))]
LIBRARY = BUILD / "src"
SKIP = 77


class Failure(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def environment(**extra):
    env = dict(os.environ)
    for name in [n for n in env if n.startswith(("NCCL_", "TUTTI_", "SOFTGPU_")) and n not in ("TUTTI_BUILD", "TUTTI_SOURCE")]:
        del env[name]
    env["LD_LIBRARY_PATH"] = str(LIBRARY)
    env.update({k: str(v) for k, v in extra.items()})
    return env


class Process:
    """A program on the software GPU whose output is kept; always ended by close()."""

    def __init__(self, devices, command, **env):
        self.log = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(RUN + ["-n", str(devices)] + [str(c) for c in command], stdout=self.log,
                                      stderr=subprocess.STDOUT, env=environment(**env), start_new_session=True)

    @property
    def pid(self):
        return self.child.pid

    def output(self):
        self.log.flush()
        with open(f"/proc/self/fd/{self.log.fileno()}") as copy:
            return copy.read()

    def wait_for(self, text, seconds=60):
        deadline = time.monotonic() + seconds
        while text not in self.output():
            check(self.child.poll() is None or text in self.output(), f"ended with {self.child.poll()} before saying {text!r}:\n{self.output()}")
            check(time.monotonic() < deadline, f"did not say {text!r} within {seconds} s:\n{self.output()}")
            time.sleep(0.02)

    def wait(self, seconds=60):
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"still running after {seconds} s:\n{self.output()}") from None

    def kill(self, number=signal.SIGKILL):
        os.killpg(self.child.pid, number)

    def close(self):
        if self.child.poll() is None:
            self.kill()
            self.child.wait()


def run_for_code(devices, *command, seconds=120, **env):
    """Runs to the end. Returns the exit code and the output."""
    process = Process(devices, command, **env)
    try:
        return process.wait(seconds), process.output()
    finally:
        process.close()


def run(devices, *command, seconds=120, **env):
    """Runs to the end; fails unless it exits with 0. Returns its output."""
    code, said = run_for_code(devices, *command, seconds=seconds, **env)
    check(code == 0, f"{' '.join(str(c) for c in command)} ended with {code}:\n{said[-4000:]}")
    return said


def ranks_succeed(program, size, **env):
    """Runs a program of this folder with one process per rank; each must say so when it is done."""
    address = f"127.0.0.1:{free_port()}"
    ranks = [Process(size, [BUILD / "tests/e2e" / program], RANK=r, SIZE=size, NCCL_COMM_ID=address, **env)
             for r in range(size)]
    try:
        for r, process in enumerate(ranks):
            check(process.wait(120) == 0 and f"[Rank {r}] Success" in process.output(), process.output())
    finally:
        for process in ranks:
            process.close()


def main(*tests):
    """Runs every test function; the exit code is what Meson expects."""
    for test in tests:
        started = time.monotonic()
        try:
            test()
        except Failure as failure:
            print(f"FAILED {test.__name__}: {failure}")
            sys.exit(1)
        print(f"ok {test.__name__} ({time.monotonic() - started:.1f} s)")
