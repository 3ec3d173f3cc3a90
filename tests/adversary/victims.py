"""Victim runs: one or two processes of a job come to harm, in every way and at every stage, and the others must say
who it was. Also processes that only are slow, of whom nobody may complain."""
import dataclasses
import signal

import judge
from ranks import Job
from support import free_port

PEER_TIMEOUT_MS = 5000
INIT_SECONDS = 8   # TUTTI_BOOTSTRAP_TIMEOUT_SEC: how long init waits for ranks that never come
BOUND = 10         # seconds from deed or need to the report
PATIENCE_MS = 25000
WHOLE = 75         # seconds that a run may take in all
BATCHES = 30

TRANSPORTS = {"P2P": {}, "SHM": {"NCCL_P2P_DISABLE": 1}, "NET": {"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1}}
POLICIES = ("abort_all", "abort_failed", "destroy", "finalize")
# What is done, and at which stages it can be.
STAGES = ("before", "init", "connect", "collective", "idle", "destroy")
HOWS = ("kill", "stop", "_exit", "exit", "leave", "abort", "segv", "cuda", "close", "slow", "pause")
# A rank leaves and sleeps between operations only. Who closes all descriptors before init takes the software GPU's
# memory away from the process itself.
UNFIT = {"leave": ("init", "destroy"), "slow": ("destroy",), "close": ("before", "init")}
HARMLESS = ("slow", "pause")
# Calls of the driver that fail in the process of a "cuda" victim, and at which of its calls at most.
CUDA_CALLS = {"cuLaunchKernel": 12, "cuMemAlloc": 6, "cuStreamCreate": 4, "cuEventCreate": 6, "cuEventRecord": 30,
              "cuMemHostAlloc": 6, "cuStreamWaitEvent": 20, "cuModuleLoadData": 1}


@dataclasses.dataclass
class Plan:
    """A run, all of it."""
    transport: str
    how: str
    stage: str
    size: int          # ranks of the job
    per_process: int   # ranks of a process, at most
    comms: int
    victims: list      # numbers of processes
    policy: str
    blocking: int
    by_address: int    # NCCL_COMM_ID instead of ids that the application hands around
    seed: int
    batch: int
    delay_us: int
    cuda: str = ""

    def text(self):
        who = ",".join(map(str, self.victims))
        cuda = f" ({self.cuda})" if self.cuda else ""
        return (f"{self.transport}: process {who} {self.how}{cuda} at {self.stage}:{self.batch}+{self.delay_us}us; "
                f"{self.size} ranks, {self.per_process} a process, {self.comms} communicators, {self.policy}, "
                f"{'' if self.blocking else 'not '}blocking{', by address' if self.by_address else ''}")

    def ranks_of(self):
        """The ranks of each process."""
        ranks = list(range(self.size))
        return [ranks[i:i + self.per_process] for i in range(0, self.size, self.per_process)]


def delay(random, stage):
    most = {"before": 1, "init": 150000, "connect": 30000, "collective": 4000, "idle": 1200000, "destroy": 3000}[stage]
    return random.choice((0, random.randrange(most)))


def plan(random, hows=HOWS, stages=STAGES, most_comms=3):
    how = random.choice(hows)
    stage = random.choice([s for s in stages if s not in UNFIT.get(how, ())])
    size = random.randint(2, 6)
    per_process = random.choice((1, 1, 2)) if size > 2 else 1
    processes = -(-size // per_process)
    comms = min(random.choice((1, 1, 2, 3)), most_comms)
    two = processes > 3 and random.random() < 0.2
    run = Plan(transport=random.choice(list(TRANSPORTS)), how=how, stage=stage, size=size, per_process=per_process,
               comms=comms, victims=sorted(random.sample(range(processes), 2 if two else 1)),
               policy=random.choice(POLICIES), blocking=random.choice((1, 1, 0)), by_address=random.choice((0, 1)),
               seed=random.randrange(1 << 30), batch=random.randrange(1, BATCHES - 2),
               delay_us=delay(random, stage))
    if stage in ("before", "connect", "destroy"):
        run.batch = 0
    if stage == "init":
        run.batch = random.randrange(comms)
    if how == "cuda":
        call = random.choice(list(CUDA_CALLS))
        run.cuda = f"{call}:{random.randint(1, CUDA_CALLS[call])}"
        run.stage, run.batch, run.delay_us = "collective", 0, 0
    if how == "slow":
        run.delay_us = random.choice((500000, 2000000))
    return run


def settings(run):
    env = {"SOFTGPU_DEVICES": run.size, "TUTTI_PEER_TIMEOUT_MS": PEER_TIMEOUT_MS,
           "TUTTI_BOOTSTRAP_TIMEOUT_SEC": INIT_SECONDS, **TRANSPORTS[run.transport]}
    if run.by_address:
        env["NCCL_COMM_ID"] = f"127.0.0.1:{free_port()}"
    return env


def command(run, build, folder, ranks, victim, lies=False):
    arguments = [build / "tests/adversary/adversary_rank", f"size={run.size}", f"ranks={','.join(map(str, ranks))}",
                 f"comms={run.comms}", f"seed={run.seed}", f"batches={BATCHES}", f"blocking={run.blocking}",
                 f"policy={run.policy}", f"patience_ms={PATIENCE_MS}", "report={report}", f"lies={int(lies)}"]
    if not run.by_address:
        arguments.append(f"ids={folder}")
    if run.stage == "idle":
        arguments += [f"idle_batch={run.batch}", "idle_ms=2000"]
    if victim and run.how != "cuda":
        arguments.append(f"deed={run.how}@{run.stage}:{run.batch}+{run.delay_us}")
    return arguments


def membership_of(run, job, victims):
    """As in members.h."""
    everybody = range(run.size)
    turned = {r: r if run.by_address else (r + 1) % run.size for r in everybody}
    third = {r: r for r in everybody if r < run.size - 1 or run.size <= 2}
    numbers = [{r: r for r in everybody}, turned, third][:run.comms]
    return judge.Membership(victims, {p.child.pid for p in job.processes if set(p.ranks) & victims}, numbers,
                            dead=run.how not in ("stop", "cuda"))


def deed_of(run, job):
    """When the first deed was done: the victim's own word; a failure of CUDA is when it says that it has an error."""
    what = ("error", "cannot") if run.how == "cuda" else ("deed",)
    times = [event.time for number, process in enumerate(job.processes) if number in run.victims
             for event in process.events if event.what in what]
    return min(times, default=None)


def execute(run, build, patience=1.0, lies=False):
    """Runs it. Returns (verdict, what everybody reported)."""
    job = Job(build)
    try:
        processes = run.ranks_of()
        env = settings(run)

        def on_event(process, event):
            if event.what == "deed" and event.text == "pause":
                job.later(1.5, process, signal.SIGCONT)

        for number, ranks in enumerate(processes):
            victim = number in run.victims
            extra = {"SOFTGPU_FAIL": run.cuda} if victim and run.cuda else {}
            job.start(ranks, command(run, job.build, job.folder, ranks, victim, lies), {**env, **extra})
        harmless = run.how in HARMLESS
        victims = [job.processes[v] for v in run.victims]
        watched = job.processes if harmless or run.how == "cuda" else [p for p in job.processes if p not in victims]
        job.run(lambda: all(p.ended is not None for p in watched), WHOLE * patience, on_event)
        ranks = set() if harmless else {rank for v in run.victims for rank in processes[v]}
        deed = deed_of(run, job)
        rules = judge.Rules(membership_of(run, job, ranks), bound=BOUND * patience, disturbs=run.how not in ("leave",),
                            init_bound=(INIT_SECONDS + BOUND) * patience)
        return judge.judge(job.processes, rules, deed), transcript(job)
    finally:
        job.close()


def transcript(job):
    """What everybody reported, in order, for the report of a finding."""
    lines = sorted(((event.time, event) for process in job.processes for event in process.events), key=lambda l: l[0])
    first = lines[0][0] if lines else 0
    return "\n".join(f"{time - first:8.3f} {event.rank:2} {event.what} {event.text}" for time, event in lines
                     if event.what != "done")
