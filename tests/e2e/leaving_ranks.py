"""Jobs of exits.cc: ranks that do what they are told, one process each."""
import pathlib
import re
import tempfile
import time

from support import BUILD, Process, check, free_port

EXITS = BUILD / "tests/e2e/exits"
TRANSPORTS = {
    "P2P": {},
    "SHM": {"NCCL_P2P_DISABLE": 1},
    "TCP": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1},
}
LEFT = "has ended its process (exit) without ncclCommDestroy"
# A process may take half a second to end, and its peers as long to notice. (The machine may be busy.)
AT_ONCE_SECONDS = 5.0


class Job:
    """One process per rank, each with its steps; gone when the block ends. `own`: settings of single ranks."""

    def __init__(self, *steps, own=None, **env):
        self.folder = tempfile.TemporaryDirectory()
        address = f"127.0.0.1:{free_port()}"
        file = f"file:{self.folder.name}/"
        self.ranks = [Process(4, [EXITS, rank, len(steps), *(step.replace("FILE", file) for step in mine)],
                              NCCL_COMM_ID=address, NCCL_DEBUG="WARN", **env, **(own or {}).get(rank, {}))
                      for rank, mine in enumerate(steps)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.ranks:
            process.close()
        self.folder.cleanup()

    def let(self, name):
        (pathlib.Path(self.folder.name) / name).touch()

    def pid(self, rank):
        return int(re.search(r"^pid (\d+)", self.ranks[rank].output(), re.M).group(1))

    def all_reduced(self):
        for process in self.ranks:
            process.wait_for("reduce 0")

    def ends(self, rank, code=0, seconds=30):
        got = self.ranks[rank].wait(seconds)
        check(got == code, f"rank {rank} ended with {got}:\n{self.ranks[rank].output()}")

    def is_quiet(self, rank):
        said = self.ranks[rank].output()
        loud = [line for line in said.splitlines() if re.search(r"NCCL (WARN|ERROR)", line) and "TUTTI_" not in line]
        check(not loud, f"rank {rank} complains:\n{said}")

    def took(self, rank, step):
        return int(re.search(rf"^{step} \d+ after (\d+) ms", self.ranks[rank].output(), re.M).group(1))

    def fails_at_once(self, rank, step, gone, since):
        """The rank's step fails, soon after `since`, and names the rank that has gone, with its host and pid."""
        self.ends(rank, 42)
        waited = time.monotonic() - since
        said = self.ranks[rank].output()
        words = rf"{step} 6 after .*rank {gone} \(host \S+, pid {self.pid(gone)}\) {re.escape(LEFT)}"
        check(re.search(words, said), f"rank {rank} does not say who has gone:\n{said}")
        return waited


def soon(name, *waited):
    """Most of several tries: a busy machine may delay one."""
    check(sorted(waited)[len(waited) // 2] < AT_ONCE_SECONDS + 0.5, f"{name}: took {waited} s")
