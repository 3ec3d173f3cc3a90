"""Misuse runs: wrong calls of the API between good ones. Each must be answered with an error that says something, at
once, and leave the communicator as it was. (Buffers are looked at on request only: NCCL_CHECK_POINTERS.)"""
import dataclasses

import judge
from job_plan import transcript
from ranks import Job

# Longest answer to a wrong call, in seconds. An init may wait for ranks that never come, which is its right.
BOUND = 5
INIT_SECONDS = 2
WHOLE = 90


@dataclasses.dataclass
class Plan:
    seed: int
    calls: int

    def text(self):
        return f"{self.calls} wrong calls of seed {self.seed}"


def plan(random):
    return Plan(random.randrange(1 << 30), random.randint(1, 30))


def judge_calls(process, patience):
    if process.ended is None:
        yield judge.Verdict(judge.HANG, f"after: {process.events[-1].text if process.events else 'nothing'}")
    elif process.code < 0 or process.code not in (0, 43, 46):
        yield judge.Verdict(judge.CRASH, f"ended with {process.code} after: {process.events[-1].text}\n"
                            f"{process.output(1500)}")
    for event in process.of("wrong"):
        yield judge.Verdict(judge.WRONG, event.text)
    for event in process.of("silent"):
        yield judge.Verdict(judge.UNNAMED, f"answered with ncclSuccess: {event.text}")
    for call, said in zip(process.of("call"), process.of("said")):
        code, _, text = said.text.partition(" ")
        if code != "0" and not text.strip():
            yield judge.Verdict(judge.UNNAMED, f"error {code} without a text: {call.text}")
        if said.time - call.time > (BOUND + INIT_SECONDS) * patience:
            yield judge.Verdict(judge.LATE, f"{said.time - call.time:.1f} s: {call.text}")


def execute(run, build, patience=1.0):
    job = Job(build)
    try:
        command = [job.build / "tests/adversary/adversary_misuse", run.seed, run.calls, "{report}"]
        process = job.start([0], command, {"SOFTGPU_DEVICES": 2, "NCCL_CHECK_POINTERS": 1,
                                           "TUTTI_BOOTSTRAP_TIMEOUT_SEC": INIT_SECONDS})
        job.run(lambda: process.ended is not None, WHOLE * patience)
        return judge.worst(list(judge_calls(process, patience))), transcript(job)
    finally:
        job.close()
