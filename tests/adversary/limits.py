"""Limit runs: processes that have little of something from the beginning: descriptors, memory, threads, file sizes,
shared memory, stack, or no standard streams. The job succeeds, or everybody reports an error that names such a
process."""
import dataclasses
import os
import resource
import shutil
import subprocess

import job_plan
from job_plan import JobPlan, plan_job

MB = 1 << 20
# What there is little of, and how much there may be.
AMOUNTS = {
    "descriptors": lambda random: random.randint(11, 60),
    "memory": lambda random: random.choice((150, 300, 500, 800, 1500, 3000, 8000)) * MB,
    "threads": lambda random: random.randint(2, 14),
    "file size": lambda random: random.choice((0, 4096, MB, 64 * MB)),
    "shared memory": lambda random: random.choice((4096, 64 * 1024, MB)),
    "stack": lambda random: random.choice((256, 512, 1024)) * 1024,
    "standard streams": lambda random: random.randint(1, 7),  # a bit for each that is closed
}


@dataclasses.dataclass
class Plan:
    job: JobPlan
    what: str
    amount: int
    troubled: list  # numbers of processes
    user: int       # a user id of this run's own, since threads are counted per user

    def text(self):
        return f"{self.what} {self.amount} for process {','.join(map(str, self.troubled))}; {self.job.text()}"


def plan(random):
    job = plan_job(random, most_ranks=4, most_comms=2)
    # Sanitizers need those themselves; the one for leaks looks by a process of its own.
    unfit = {"memory", "stack", "threads"} if job_plan.SANITIZED else set()
    unfit |= set() if namespaces() else {"shared memory"}
    what = random.choice([w for w in AMOUNTS if w not in unfit])
    amount = AMOUNTS[what](random)
    if what == "file size" and not job.by_address:
        amount = max(amount, 4096)  # the program itself writes a file with the unique id
    if what == "file size" and job_plan.SANITIZED:
        amount = max(amount, MB)  # ThreadSanitizer writes one when the program begins
    processes = range(len(job.ranks_of()))
    troubled = random.choice(([random.choice(processes)], list(processes)))
    return Plan(job, what, amount, troubled, 40000 + random.randrange(1 << 20))


def namespaces():
    """Whether this process may give others a /dev/shm of their own."""
    if not hasattr(namespaces, "known"):
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
        namespaces.known = (os.geteuid() == 0 and shutil.which("unshare") is not None
                            and subprocess.run(command, capture_output=True).returncode == 0)
    return namespaces.known


LIMITS = {"descriptors": resource.RLIMIT_NOFILE, "memory": resource.RLIMIT_AS, "file size": resource.RLIMIT_FSIZE,
          "stack": resource.RLIMIT_STACK}


def become(run):
    """Threads are counted per user, and root's are not: every process of such a run belongs to its user."""
    if run.what == "threads" and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(run.user)
        os.setuid(run.user)


def execute(run, build, patience=1.0):
    env = run.job.settings()

    def start(job, number, ranks):
        if run.what == "threads" and os.geteuid() == 0:
            os.chown(job.folder, run.user, run.user)
        options, more = {}, []
        if number in run.troubled:
            options["limits"] = {LIMITS[run.what]: run.amount} if run.what in LIMITS else {}
            more = [f"threads={run.amount}"] if run.what == "threads" else []
            if run.what == "standard streams":
                options["close_streams"] = [stream for stream in range(3) if run.amount >> stream & 1]
            if run.what == "shared memory":
                mount = f'mount -t tmpfs -o size={run.amount} tmpfs /dev/shm && exec "$@"'
                options["wrapper"] = ["unshare", "-m", "sh", "-c", mount, "sh"]
        job.start(ranks, run.job.command(job, ranks, *more), env, prepare=lambda: become(run), **options)

    return job_plan.execute_troubled(run.job, build, patience, run.troubled, start)
