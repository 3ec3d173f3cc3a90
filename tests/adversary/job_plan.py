"""What all kinds of runs need: a job of ranks, its settings, its processes' arguments, and who is who in it."""
import dataclasses
import time

import judge
from ranks import Job
from support import free_port

PEER_TIMEOUT_MS = 5000
INIT_SECONDS = 8   # TUTTI_BOOTSTRAP_TIMEOUT_SEC: how long init waits for ranks that never come
BOUND = 10         # seconds from deed or need to the report
PATIENCE_MS = 25000
WHOLE = 75         # seconds that a run may take in all
OUTPUT = 8000      # bytes of what each process printed that a transcript has

# Whether the programs were built with a sanitizer: with few kernels then, and with more memory than limits allow.
SANITIZED = False

TRANSPORTS = {"P2P": {}, "SHM": {"NCCL_P2P_DISABLE": 1}, "NET": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}}
POLICIES = ("abort_all", "abort_failed", "destroy", "finalize")


@dataclasses.dataclass
class JobPlan:
    transport: str
    size: int         # ranks
    per_process: int  # ranks of a process, at most
    comms: int
    policy: str       # what the application does once a communicator has failed
    blocking: int
    by_address: int   # NCCL_COMM_ID instead of ids that the application hands around
    seed: int         # of the operations
    batches: int = 30
    idle_batch: int = -1
    idle_ms: int = 2000

    def text(self):
        return (f"{self.transport}; {self.size} ranks, {self.per_process} a process, {self.comms} communicators, "
                f"{self.policy}, {'' if self.blocking else 'not '}blocking{', by address' if self.by_address else ''}")

    def ranks_of(self):
        """The ranks of each process."""
        ranks = list(range(self.size))
        return [ranks[i:i + self.per_process] for i in range(0, self.size, self.per_process)]

    def settings(self):
        env = {"SOFTGPU_DEVICES": self.size, "TUTTI_PEER_TIMEOUT_MS": PEER_TIMEOUT_MS,
               "TUTTI_BOOTSTRAP_TIMEOUT_SEC": INIT_SECONDS, "NCCL_DEBUG": "WARN", **TRANSPORTS[self.transport]}
        if self.by_address:
            env["NCCL_COMM_ID"] = f"127.0.0.1:{free_port()}"
        return env

    def command(self, job, ranks, *more):
        arguments = [job.build / "tests/adversary/adversary_rank", f"size={self.size}",
                     f"ranks={','.join(map(str, ranks))}", f"comms={self.comms}", f"seed={self.seed}",
                     f"batches={self.batches}", f"blocking={self.blocking}", f"policy={self.policy}",
                     f"patience_ms={PATIENCE_MS}", "report={report}", f"idle_batch={self.idle_batch}",
                     f"idle_ms={self.idle_ms}", f"few_kernels={int(SANITIZED)}", *more]
        return arguments if self.by_address else [*arguments, f"ids={job.folder}"]

    def membership(self, job, victims, dead=True):
        """As in members.h. `victims`: ranks of the job."""
        everybody = range(self.size)
        turned = {r: r if self.by_address else (r + 1) % self.size for r in everybody}
        third = {r: r for r in everybody if r < self.size - 1 or self.size <= 2}
        numbers = [{r: r for r in everybody}, turned, third][:self.comms]
        return judge.Membership(victims, {p.child.pid for p in job.processes if set(p.ranks) & victims}, numbers, dead)


def plan_job(random, most_ranks=6, most_comms=3, **fixed):
    size = random.randint(2, most_ranks)
    chosen = {"transport": random.choice(list(TRANSPORTS)), "size": size,
              "per_process": random.choice((1, 1, 2)) if size > 2 else 1,
              "comms": min(random.choice((1, 1, 2, 3)), most_comms), "policy": random.choice(POLICIES),
              "blocking": random.choice((1, 1, 0)), "by_address": random.choice((0, 1)),
              "seed": random.randrange(1 << 30)}
    return JobPlan(**{**chosen, **fixed})


def execute_troubled(plan, build, patience, troubled, start):
    """Runs a job some of whose processes have trouble of their own from the beginning. It must succeed, or every rank
    must report an error in time that names one of them. `troubled`: numbers of processes; `start(job, number, ranks)`
    starts one. Returns (verdict, transcript)."""
    job = Job(build)
    try:
        began = time.monotonic()
        for number, ranks in enumerate(plan.ranks_of()):
            start(job, number, ranks)
        job.run(lambda: all(p.ended is not None for p in job.processes), WHOLE * patience)
        victims = {rank for number in troubled for rank in job.processes[number].ranks}
        bound = (INIT_SECONDS + BOUND) * patience
        rules = judge.Rules(plan.membership(job, victims), bound=bound, init_bound=bound)
        found = [judge.judge(job.processes, rules, began)]
        found += [verdict for number in troubled for verdict in judge.judge_troubled(job.processes[number])]
        return judge.worst(found + judge_leftovers(job)), transcript(job)
    finally:
        job.close()


def judge_leftovers(job):
    """The library leaves no files where its processes ran."""
    return [judge.Verdict(judge.LEFTOVER, str(job.leftovers()))] if job.leftovers() else []


def transcript(job):
    """What everybody reported, in order, and the last words of their output, for the report of a finding."""
    lines = sorted(((event.time, event) for process in job.processes for event in process.events), key=lambda l: l[0])
    first = lines[0][0] if lines else 0
    said = [f"{time - first:8.3f} {event.rank:2} {event.what} {event.text}" for time, event in lines
            if event.what != "done"]
    return "\n".join(said + [f"ranks {p.ranks}: {p.output(OUTPUT)}" for p in job.processes if p.output()])
