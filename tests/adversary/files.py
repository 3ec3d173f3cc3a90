"""File runs: settings that name a file name something that is none, or not the right one. The job succeeds, or
everybody reports an error that names a process with such a setting."""
import dataclasses
import os
import socket

import job_plan
from job_plan import JobPlan, plan_job

SETTINGS = ("NCCL_CONF_FILE", "HOME", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE",
            "NCCL_GRAPH_DUMP_FILE", "NCCL_NET_PLUGIN", "TUTTI_KERNELS_PATH", "SOFTGPU_TOPO")
HUGE = 1 << 28


def garbage(path, random):
    path.write_bytes(random.randbytes(random.randint(1, 20000)))


def endless_lines(path, random):
    path.write_bytes(b"NCCL_DEBUG=INFO" * random.randint(1, 100000))


def unfinished_xml(path, random):
    text = b'<?xml version="1.0"?><system version="1"><cpu numaid="0">' + b"<pci>" * random.randint(0, 50000)
    path.write_bytes(text[:random.randint(1, len(text))])


def listening(path, random):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


FORMS = {
    "directory": lambda path, random: path.mkdir(),
    "fifo": lambda path, random: os.mkfifo(path),
    "endless": lambda path, random: path.symlink_to("/dev/zero"),
    "full": lambda path, random: path.symlink_to("/dev/full"),
    "terminal": lambda path, random: path.symlink_to("/dev/tty"),
    "huge": lambda path, random: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), HUGE),
    "garbage": garbage,
    "long lines": endless_lines,
    "unfinished": unfinished_xml,
    "empty": lambda path, random: path.touch(),
    "missing": lambda path, random: None,
    "socket": listening,
    "circle": lambda path, random: path.symlink_to(path.name),
}


@dataclasses.dataclass
class Plan:
    job: JobPlan
    setting: str
    form: str
    troubled: list
    random: object  # for the content

    def text(self):
        who = ",".join(map(str, self.troubled))
        return f"{self.setting} is {self.form} for process {who}; {self.job.text()}"


def plan(random):
    job = plan_job(random, most_ranks=4, most_comms=2)
    processes = range(len(job.ranks_of()))
    troubled = random.choice(([random.choice(processes)], list(processes)))
    return Plan(job, random.choice(SETTINGS), random.choice(list(FORMS)), troubled, random)


def execute(run, build, patience=1.0):
    env = run.job.settings()

    def start(job, number, ranks):
        extra = {}
        if number in run.troubled:
            path = job.path() / f"file.{number}"
            if run.setting == "HOME":
                path.mkdir()
                FORMS[run.form](path / ".nccl.conf", run.random)
            else:
                FORMS[run.form](path, run.random)
            extra = {run.setting: path}
            if run.setting == "NCCL_DEBUG_FILE":
                extra["NCCL_DEBUG"] = "INFO"
            if run.setting in ("NCCL_CONF_FILE", "HOME"):
                extra["NCCL_DEBUG"] = None  # the environment would outweigh what stands in that file
        job.start(ranks, run.job.command(job, ranks), {**env, **extra})

    return job_plan.execute_troubled(run.job, build, patience, run.troubled, start)
