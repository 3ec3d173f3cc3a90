"""Processes that the machine did not let run.

A process all of whose threads are ready, and to which the system gives no processor for seconds, is silent to its
peers, and late with whatever it reports. Both are true and no fault of the library's. `adversary_rank` reports such
gaps by the kernel's account of a thread that runs nothing of the library (starvation.h), so that one which waits for a
lock, or is stopped, is not excused.
"""
import dataclasses
import re

SILENCE = re.compile(r"no sign of life|did not come within|has not answered|waited in vain for")


@dataclasses.dataclass(frozen=True)
class Gap:
    """From when to when which process was ready and did not run; seconds of the monotonic clock."""
    begin: float
    end: float
    pid: int
    ranks: tuple


def gaps_of(processes):
    return [Gap(event.time - int(event.text) / 1000, event.time, process.child.pid, tuple(process.ranks))
            for process in processes for event in process.of("starved")]


def silent_because_starved(gaps, text, named, numbers, moment):
    """Whether a text says that processes are silent, and each of those `named` (judge.Named) had been starved when it
    was said. `numbers`: of the ranks of the job in that communicator."""
    def starved(one):
        return any(gap.begin < moment and (one.pid == gap.pid if one.pid else
                                           one.rank in {numbers.get(rank) for rank in gap.ranks}) for gap in gaps)
    return bool(SILENCE.search(text)) and bool(named) and all(starved(one) for one in named)


def lost_time(gaps, begin, end):
    """How long the process that was starved most was so in that time."""
    lost = {}
    for gap in gaps:
        lost[gap.pid] = lost.get(gap.pid, 0) + max(0, min(end, gap.end) - max(begin, gap.begin))
    return max(lost.values(), default=0)
