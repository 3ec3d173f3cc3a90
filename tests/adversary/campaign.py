"""Campaigns: runs by seed, several at a time, and what became of them."""
import collections
import concurrent.futures
import dataclasses
import random
import time
import traceback

import files
import judge
import limits
import misuse
import strangers
import victims

# What a kind of run is planned and executed by. plan(random) gives a run with text(); execute(run, build, patience)
# gives a verdict and a transcript.
KINDS = {"victims": victims, "strangers": strangers, "limits": limits, "files": files, "misuse": misuse}


@dataclasses.dataclass
class Outcome:
    kind: str
    number: int
    run: object
    verdict: judge.Verdict
    transcript: str
    seconds: float


def planned(kind, seed, number):
    """The run of that number: the same for the same seed, whatever else the campaign does."""
    return KINDS[kind].plan(random.Random(f"{seed}/{number}/{kind}"))


def kind_of(kinds, weights, seed, number):
    """Which kind the run of that number is of."""
    return random.Random(f"{seed}/{number}").choices(kinds, [weights.get(kind, 1) for kind in kinds])[0]


def perform(kind, seed, number, build, patience, **options):
    run = planned(kind, seed, number)
    began = time.monotonic()
    try:
        verdict, transcript = KINDS[kind].execute(run, build, patience, **options)
    except Exception:  # A campaign goes on; a run that could not be judged is a finding.
        verdict, transcript = judge.Verdict(judge.CRASH, "the campaign itself: " + traceback.format_exc()), ""
    return Outcome(kind, number, run, verdict, transcript, time.monotonic() - began)


def again(outcome, seed):
    """The command that repeats a run."""
    return f"tests/adversary/run --only {outcome.kind} --replay {outcome.number}:{seed}"


def keep(outcome, seed, folder):
    """Writes all that is known of a run to a file of its own, and returns where: a finding may not come again."""
    path = folder / f"{outcome.number}_{seed}.txt"
    path.write_text(f"run {outcome.number} of seed {seed}, {outcome.kind}: {outcome.verdict.what}, after "
                    f"{outcome.seconds:.1f} s\n{outcome.verdict.why}\n\nagain: {again(outcome, seed)}\n"
                    f"plan: {outcome.run.text()}\n      {outcome.run}\n\n{outcome.transcript}\n",
                    encoding="utf-8", errors="replace")
    return path


def campaign(seed, kinds, weights, build, jobs, patience, minutes=None, runs=None, first=0, on_outcome=None):
    """Runs until the time is up or so many runs are done. Returns the outcomes."""
    deadline = time.monotonic() + minutes * 60 if minutes else float("inf")
    outcomes, number, pending = [], first, set()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while pending or (time.monotonic() < deadline and (runs is None or number < first + runs)):
            while len(pending) < jobs and time.monotonic() < deadline and (runs is None or number < first + runs):
                kind = kind_of(kinds, weights, seed, number)
                pending.add(pool.submit(perform, kind, seed, number, build, patience))
                number += 1
            done, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                outcomes.append(future.result())
                if on_outcome:
                    on_outcome(outcomes[-1])
    return outcomes


def counts(outcomes):
    """kind -> Counter of verdicts."""
    table = collections.defaultdict(collections.Counter)
    for outcome in outcomes:
        table[outcome.kind][outcome.verdict.what] += 1
    return table
