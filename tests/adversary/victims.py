"""Victim runs: one or two processes of a job come to harm, in every way and at every stage, and the others must say
who it was. Also processes that only are slow, of whom nobody may complain."""
import dataclasses
import signal

import judge
from job_plan import BOUND, INIT_SECONDS, WHOLE, JobPlan, judge_leftovers, plan_job, transcript
from ranks import Job

STAGES = ("before", "init", "connect", "collective", "idle", "destroy")
HOWS = ("kill", "stop", "_exit", "exit", "leave", "abort", "segv", "cuda", "close", "slow", "pause")
# A rank leaves and sleeps between operations only.
UNFIT = {"leave": ("init", "destroy"), "slow": ("destroy",)}
HARMLESS = ("slow", "pause")
# Microseconds after the stage has begun, at most.
DELAYS = {"before": 1, "init": 150000, "connect": 30000, "collective": 4000, "idle": 1200000, "destroy": 3000}
# Calls of the driver that fail in the process of a "cuda" victim, and at which of its calls at most.
CUDA_CALLS = {"cuLaunchKernelEx": 12, "cuMemAlloc": 6, "cuStreamCreate": 4, "cuEventCreate": 6, "cuEventRecord": 30,
              "cuMemHostAlloc": 6, "cuStreamWaitEvent": 20, "cuModuleLoadData": 1}


@dataclasses.dataclass
class Plan:
    """A run, all of it."""
    job: JobPlan
    victims: list  # numbers of processes
    how: str
    stage: str
    batch: int     # of the stage; of "init" the communicator
    delay_us: int
    cuda: str = ""

    def text(self):
        who = ",".join(map(str, self.victims))
        cuda = f" ({self.cuda})" if self.cuda else ""
        return f"process {who} {self.how}{cuda} at {self.stage}:{self.batch}+{self.delay_us}us; {self.job.text()}"


def plan(random, hows=HOWS, stages=STAGES, most_comms=3):
    how = random.choice(hows)
    stage = random.choice([s for s in stages if s not in UNFIT.get(how, ())])
    job = plan_job(random, most_comms=most_comms)
    processes = len(job.ranks_of())
    two = processes > 3 and random.random() < 0.2
    run = Plan(job=job, victims=sorted(random.sample(range(processes), 2 if two else 1)), how=how, stage=stage,
               batch=random.randrange(1, job.batches - 2), delay_us=random.choice((0, random.randrange(DELAYS[stage]))))
    if stage in ("before", "connect", "destroy"):
        run.batch = 0
    if stage == "init":
        run.batch = random.randrange(job.comms)
    if how == "cuda":
        call = random.choice(list(CUDA_CALLS))
        run.cuda = f"{call}:{random.randint(1, CUDA_CALLS[call])}"
        run.stage, run.batch, run.delay_us = "any", 0, 0
    if how == "slow":
        run.delay_us = random.choice((500000, 2000000))
    if run.stage == "idle":
        job.idle_batch = run.batch
    return run


def deed_of(run, job):
    """When the first deed was done: the victim's own word; a failure of CUDA is when it says that it has an error."""
    what = ("error", "cannot") if run.how == "cuda" else ("deed",)
    times = [event.time for number, process in enumerate(job.processes) if number in run.victims
             for event in process.events if event.what in what]
    return min(times, default=None)


def start(run, job, lies):
    env = run.job.settings()
    for number, ranks in enumerate(run.job.ranks_of()):
        more, extra = [f"lies={int(lies)}"], {}
        if number in run.victims and run.how == "cuda":
            extra = {"SOFTGPU_FAIL": run.cuda}
        elif number in run.victims:
            more.append(f"deed={run.how}@{run.stage}:{run.batch}+{run.delay_us}")
        job.start(ranks, run.job.command(job, ranks, *more), {**env, **extra})


def execute(run, build, patience=1.0, lies=False):
    """Runs it. Returns (verdict, what everybody reported)."""
    job = Job(build)
    try:
        start(run, job, lies)
        harmless = run.how in HARMLESS
        victims = [job.processes[v] for v in run.victims]
        watched = job.processes if harmless or run.how == "cuda" else [p for p in job.processes if p not in victims]

        def on_event(process, event):
            if event.what == "deed" and event.text == "pause":
                job.later(1.5, process, signal.SIGCONT)

        job.run(lambda: all(p.ended is not None for p in watched), WHOLE * patience, on_event)
        ranks = set() if harmless else {rank for process in victims for rank in process.ranks}
        membership = run.job.membership(job, ranks, dead=run.how != "stop")
        rules = judge.Rules(membership, bound=BOUND * patience,
                            init_bound=(INIT_SECONDS + BOUND) * patience)
        found = [judge.judge(job.processes, rules, deed_of(run, job)), *judge_leftovers(job)]
        return judge.worst(found), transcript(job)
    finally:
        job.close()
