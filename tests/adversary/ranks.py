"""Processes of a run: started in sessions of their own, read without waiting, and always reaped.

`Job` holds all of a run. Whatever happens, `Job.close()` leaves no process, no file and no socket of the run behind.
"""
import dataclasses
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time

# Settings of the person who starts the campaign must not change what a run does.
FOREIGN = ("NCCL_", "TUTTI_", "SOFTGPU_")


@dataclasses.dataclass
class Event:
    """A line that a program reported: seconds of the monotonic clock, rank of the job (-1: the process), what, text."""
    time: float
    rank: int
    what: str
    text: str


def parse(line):
    """The event of a line of report.h, or None if it is none."""
    parts = line.split(" ", 3)
    try:
        return Event(float(parts[0]), int(parts[1]), parts[2], parts[3].strip() if len(parts) > 3 else "")
    except (ValueError, IndexError):
        return None


def environment(build, **extra):
    env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    env["LD_LIBRARY_PATH"] = f"{build}/src:{build}/src/softgpu"
    env.update({name: str(value) for name, value in extra.items() if value is not None})
    return env


class Process:
    """One program whose reports and output are kept."""

    def __init__(self, build, ranks, command, env, folder, prepare=None, wrapper=(), close_streams=(),
                 limits=None):
        """`prepare` runs in the child before the program, which has these `limits`; `wrapper` is put in front of the
        command; `close_streams` are the standard streams that the program begins without."""
        self.ranks = ranks
        self.events = []
        self.began = time.monotonic()
        self._rest = b""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._reader = reader
        self.log_path = pathlib.Path(folder) / f"log.{ranks[0] if ranks else 'x'}.{reader}"

        def before():
            for stream in close_streams:
                os.close(stream)
            for what, amount in (limits or {}).items():
                resource.setrlimit(what, (amount, amount))
            if prepare:
                prepare()

        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                [*wrapper, *(str(part).replace("{report}", str(writer)) for part in command)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, env=environment(build, **env), start_new_session=True,
                preexec_fn=before, pass_fds=[writer], cwd=folder)
        os.close(writer)
        self.ended = None  # when the end was seen

    @property
    def code(self):
        return self.child.returncode

    def read(self):
        """Takes in what has been reported. Never waits."""
        # Asked first: what a process reported before its end is then there to be read.
        over = self.ended is None and self.child.poll() is not None
        if self._reader is not None:
            try:
                while chunk := os.read(self._reader, 65536):
                    self._rest += chunk
            except BlockingIOError:
                pass
            *lines, self._rest = self._rest.split(b"\n")
            self.events += [event for line in lines if (event := parse(line.decode(errors="replace")))]
        if over:
            self.ended = time.monotonic()
        return self.events

    def fileno(self):
        return self._reader

    def signal(self, number):
        if self.child.poll() is None:
            os.killpg(self.child.pid, number)

    def output(self, most=4000):
        """The last bytes that the program printed."""
        return self.log_path.read_bytes()[-most:].decode(errors="replace") if self.log_path.exists() else ""

    def of(self, what):
        return [event for event in self.events if event.what == what]

    def close(self):
        # Also what the program may have left behind in its session; it has been reaped only if it was seen to end.
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self.child.wait()
        if self._reader is not None:
            self.read()
            os.close(self._reader)
            self._reader = None


class Job:
    """The processes of one run and a folder of theirs."""

    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.folder = tempfile.mkdtemp(prefix="adversary.")
        os.chmod(self.folder, 0o755)
        self.processes = []
        self._due = []  # (when, process, signal)

    def path(self):
        return pathlib.Path(self.folder)

    def start(self, ranks, command, env, **options):
        process = Process(self.build, ranks, command, env, self.folder, **options)
        self.processes.append(process)
        return process

    def later(self, seconds, process, number):
        """Sends a signal to a process of the job after so long."""
        self._due.append((time.monotonic() + seconds, process, number))

    def run(self, until, seconds, on_event=None, tick=0.05):
        """Reads reports until `until()` is true or the time is up. Returns whether it was."""
        deadline = time.monotonic() + seconds
        seen = {}
        while True:
            for process in self.processes:
                process.read()
                for event in process.events[seen.get(process, 0):]:
                    if on_event:
                        on_event(process, event)
                seen[process] = len(process.events)
            now = time.monotonic()
            for when, process, number in [due for due in self._due if due[0] <= now]:
                process.signal(number)
            self._due = [due for due in self._due if due[0] > now]
            if until():
                # A process that was asked before the others ended may have reported what they ended for since then.
                for process in self.processes:
                    process.read()
                return True
            if now > deadline:
                return False
            open_readers = [p for p in self.processes if p.ended is None]
            select.select(open_readers, [], [], tick)

    def leftovers(self):
        """What lies in the folder that nobody was told to put there."""
        return [name for name in os.listdir(self.folder) if not name.startswith(("id.", "log.", "file."))]

    def close(self):
        for process in self.processes:
            process.signal(signal.SIGCONT)
        for process in self.processes:
            process.close()
        shutil.rmtree(self.folder, ignore_errors=True)
