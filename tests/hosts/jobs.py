"""Ranks on the hosts of a lab: conformance, and survivors of whatever a scenario does to them."""
import re
import time

from namespaces import BUILD, Process, check

CONFORMANCE = BUILD / "tests/e2e/conformance"
SURVIVOR = BUILD / "tests/e2e/survivor"
REMOTE_ERROR = 6
# Two collectives that every build has kernels of, by which all that connections can do is exercised.
EXERCISES = "all_reduce,sendrecv"
TYPES = "int8,float"


def conform(lab, per_host=1, quick=True, only=EXERCISES, types=TYPES, hosts=None, **env):
    """Conformance with `per_host` processes of one rank on every host, or on the first `hosts` of them; `quick`: with
    small vectors alone. Returns what was printed."""
    members = lab.hosts[:hosts]
    ranks = per_host * len(members)
    inside = ",".join(str(host.pid) for host in members for _ in range(per_host))
    process = Process(per_host, [CONFORMANCE, "--ranks", ranks, "--only", only, "--types", types, "--inside", inside,
                                 *(["--quick"] if quick else [])], **{"NCCL_DEBUG": "WARN", **env})
    try:
        code, said = process.wait(120), process.output()
        check(code == 0 and re.search(rf"^conformance: [1-9][0-9]* cases on {ranks} ranks, 0 wrong$", said, re.MULTILINE),
              f"conformance on {ranks} ranks of {len(members)} hosts ended with {code}:\n{said[-4000:]}")
        return said
    finally:
        process.close()


class Survivors:
    """Processes that reduce until something happens: rank r is on host r // per_host. Ended with the block."""

    def __init__(self, lab, per_host=1, prefix=None, root=None, missing=(), **env):
        """`prefix`: by rank, words before the program, such as prlimit. `missing`: ranks that are not started."""
        self.lab = lab
        self.per_host = per_host
        self.size = per_host * len(lab.hosts)
        self.prefix = prefix or {}
        self.env = {"NCCL_DEBUG": "WARN", "NCCL_COMM_ID": root or lab.root(), **env}
        self.ranks = {}
        for rank in range(self.size):
            if rank not in missing:
                self.start(rank)

    def start(self, rank):
        command = self.lab.hosts[rank // self.per_host].enter(*self.prefix.get(rank, []), SURVIVOR, rank, self.size)
        self.ranks[rank] = Process(self.per_host, command, **self.env)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        for process in self.ranks.values():
            process.close()

    def of(self, host):
        return range(host * self.per_host, (host + 1) * self.per_host)

    def wait_for(self, text, seconds=60):
        for process in self.ranks.values():
            process.wait_for(text, seconds)

    def signal(self, ranks, number):
        for rank in ranks:
            self.ranks[rank].kill(number)

    def drop(self, ranks):
        """Nothing more is expected of these; they are ended."""
        for rank in ranks:
            self.ranks.pop(rank).close()

    def expect_errors(self, blamed, seconds, code=REMOTE_ERROR):
        """Within `seconds` every rank reports an error that names one of `blamed[rank]` (a list for each rank, or one
        for all), and comes back from its abort. Returns how long it took."""
        began = time.monotonic()
        for rank, process in self.ranks.items():
            ended = process.wait(max(began + seconds - time.monotonic(), 0.1))
            said = process.output()
            names = blamed[rank] if isinstance(blamed, dict) else blamed
            check(ended == 42, f"rank {rank} ended with {ended}:\n{said}")
            error = re.search(rf"^error {code} .*", said, re.MULTILINE)
            check(error, f"rank {rank} has another error than {code}:\n{said}")
            check(any(re.search(rf"\brank {name}\b", error.group()) for name in names),
                  f"rank {rank} names none of the ranks {list(names)}:\n{said}")
            check("aborted 0" in said, f"rank {rank}: abort failed:\n{said}")
        return time.monotonic() - began

    def interrupted_reduction(self):
        """Waits until all are in the middle of their work."""
        self.wait_for("reduced 4")


__all__ = ["Survivors", "conform"]
