#!/usr/bin/env python3
"""The campaign in brief, as a test: runs of a fixed seed in which every verdict must be "ok"; and one whose ranks lie
about what they were told, which the judge must notice; and a rank to which no id comes, which is no error of the
library."""
import itertools
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import concurrent.futures  # noqa: E402

import files  # noqa: E402
import job_plan  # noqa: E402
import judge  # noqa: E402
import limits  # noqa: E402
import misuse  # noqa: E402
import ranks  # noqa: E402
import strangers  # noqa: E402
import victims  # noqa: E402

BUILD = pathlib.Path(os.environ["TUTTI_BUILD"])
SEED = 18
RUNS = 24
# Seeds of wrong calls.
QUICK_MISUSES = (1, 2, 3, 4)
# Four tests run at a time on slow machines.
PATIENCE = 3


def seeded(number, of=""):
    return random.Random(f"{SEED}/{of}{number}")


def planned(number):
    return victims.plan(seeded(number), hows=("kill", "_exit", "segv", "abort"),
                        stages=("connect", "collective", "idle"), most_comms=1)


def all_are_ok(kind, plans):
    """Whether the judge is content with all of them; prints what it is not content with."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for plan, (verdict, transcript) in zip(plans, pool.map(lambda p: kind.execute(p, BUILD, PATIENCE), plans)):
            print(f"{verdict.what:10} {plan.text()}", flush=True)
            if verdict.what not in judge.FINE:
                print(f"{transcript}\n{verdict.why}")
                return False
    return True


def victims_are_named():
    return all_are_ok(victims, [planned(number) for number in range(RUNS)])


def who_leaves_or_loses_its_device_is_named():
    return all_are_ok(victims, [victims.plan(seeded(number, "leave"), hows=(("leave", "cuda")[number % 2],),
                                             stages=("connect", "idle"), most_comms=1) for number in range(4)])


def victims_of_two_communicators_are_named():
    plans = (victims.plan(seeded(number, "two"), hows=("kill", "_exit", "abort"), stages=("collective", "idle"),
                          most_comms=2) for number in range(1000))
    return all_are_ok(victims, list(itertools.islice((plan for plan in plans if plan.job.comms == 2), 4)))


def who_has_little_is_named():
    plans = [limits.plan(seeded(number)) for number in range(200)]
    return all_are_ok(limits, [next(plan for plan in plans if plan.what == what)
                               for what in ("descriptors", "threads", "file size")])


def odd_files_are_told():
    return all_are_ok(files, [files.plan(seeded(number)) for number in range(3)])


def strangers_are_not_noticed():
    return all_are_ok(strangers, [strangers.plan(seeded(number)) for number in range(4)])


def wrong_calls_are_answered():
    return all_are_ok(misuse, [misuse.Plan(number, 20) for number in QUICK_MISUSES])


def liars_are_found_out():
    plan = next(p for p in map(planned, range(1000)) if p.how == "kill" and p.stage == "collective" and p.job.size > 2)
    verdict, transcript = victims.execute(plan, BUILD, PATIENCE, lies=True)
    if verdict.what != judge.MISNAMED:
        print(f"{transcript}\nranks that lie are judged {verdict.what}")
    return verdict.what == judge.MISNAMED


def an_id_that_never_comes_is_no_error():
    """Rank 1 waits for the id that rank 0, which is never started, would make."""
    job = ranks.Job(BUILD)
    try:
        command = [BUILD / "tests/adversary/adversary_rank", "size=2", "ranks=1", "patience_ms=100",
                   f"ids={job.folder}", "report={report}"]
        process = job.start([1], command, {"SOFTGPU_DEVICES": 2})
        job.run(lambda: process.ended is not None, 20 * PATIENCE)
        fine = process.code == 42 and len(process.of("no_id")) == 1 and not process.of("error")
        if not fine:
            print(f"{job_plan.transcript(job)}\na rank without an id ended with {process.code}")
        return fine
    finally:
        job.close()


if __name__ == "__main__":
    sys.exit(0 if victims_are_named() and who_leaves_or_loses_its_device_is_named()
             and victims_of_two_communicators_are_named() and who_has_little_is_named() and odd_files_are_told()
             and strangers_are_not_noticed() and wrong_calls_are_answered() and liars_are_found_out()
             and an_id_that_never_comes_is_no_error() else 1)
