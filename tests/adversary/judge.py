"""The judge: what a campaign's run says of the library.

An error text is right if it names a rank that really was a victim and blames nobody else. A text may mention others as
what a failure has led to; `blamed()` takes these mentions away and returns the numbers that are left. The table of
such phrases, `CONSEQUENCE`, is short and exact on purpose: a text of a new form counts as misnaming until somebody has
read it and decided. A text may end with its cause ("… because rank 3 died"): whom that names is to blame, and not what
stands in front of it; a cause that names nobody ("because its descriptors are used up") leaves the blame there.
"""
import dataclasses
import re

import starved

# Seconds until the end of a process is seen.
TICK = 0.1
# Verdicts, the worst first.
WRONG, CRASH, HANG, MISNAMED, UNNAMED, LATE, DISTURBED, LEFTOVER, STARVED, OK = (
    "wrong result", "crash", "hang", "misnamed", "unnamed", "late", "disturbed", "leftover", "starved", "ok")
VERDICTS = (WRONG, CRASH, HANG, MISNAMED, UNNAMED, LATE, DISTURBED, LEFTOVER, STARVED, OK)
# Verdicts that find no fault with the library.
FINE = (STARVED, OK)


@dataclasses.dataclass
class Verdict:
    what: str
    why: str = ""


def worst(verdicts):
    """The gravest of some verdicts; OK if there are none."""
    return min(verdicts, key=lambda v: VERDICTS.index(v.what), default=Verdict(OK))


# Who reports stands in front of what it reports; there are several where one rank passes on the words of another. The
# last one is the cause itself if its words name nobody else.
REPORTER = re.compile(r"^rank (\d+) of \d+ on host \S+, device (-?\d+): ")
# The connection at which something was noticed; its own end names itself last.
CONNECTION = re.compile(r"^(?:receive from|send to) rank \d+ \([^)]*\) by \S+ on channel \d+ of rank \d+ \([^)]*\): ")
CONSEQUENCE = re.compile("|".join([
    r"its connection to rank \d+",
    r"has given rank \d+ no sign of life",
    r"has not answered rank \d+",
    r"closed all connections of rank \d+",
    r"while rank \d+ still waits for",
    r"Bootstrap: rank \d+ waited in vain for",
    r"Rank \d+ waited \d+ ms in vain for (?=rank)",
    r"(?:has no|needs) memory in common with rank \d+",
    r"could not be connected with the (?:sender|receiver), rank \d+",
    r"the connection from rank \d+ to (?=rank)",
    r"Another communicator has failed for that, and rank \d+ \([^)]*\) has aborted this one",
    r"(?<=\d) of rank \d+ \(host [^)]*\)",  # "on channel 0 of rank 2 (host a, device 2)": whose end it is
]))
# Who has seen a failure of another rank, and who has heard of it, come last.
WITNESS = re.compile(r" \((?:seen by rank \d+ \([^)]*\)|heard by rank \d+ of \d+ on host \S+, device -?\d+)\)")
SEEN = re.compile(r" \(seen by rank (\d+) \(host [^),]*, pid (\d+)[^)]*\)\)")
HEARER = re.compile(r" \(heard by rank (\d+) of \d+ on host \S+, device (-?\d+)\)$")
# A rank's own failure, in its words, which may name others.
OWN = re.compile(r"^rank (\d+) \(host [^),]*, pid (\d+)(?:, device -?\d+)?\) (?:failed|gave up): ")
RANK = re.compile(r"\b[Rr]ank (\d+)\b(?: \((?:host [^),]*, )?(?:device \d+, )?pid (\d+)(?:, device -?\d+)?\))?")
RANKS = re.compile(r"\branks ((?:\d+(?:, | and )?)+)")
# Whose unique id it was: where that rank has never been heard of, its address is all there is.
ROOT = re.compile(r"the bootstrap root at|that made the unique id|which made the unique id")
PROCESS = re.compile(r"\b(?:process|pid) (\d+)\b")
# What a rank says of itself in another communicator, as its peers there heard it.
QUOTED = re.compile(r"(failed in another communicator) \(.*\)(?=\. Another communicator has failed for that)")
ELSEWHERE = "another one of its process had failed: "
# What follows is why; of several the last one that names anybody counts.
CAUSE = re.compile(rf" because (?:{ELSEWHERE})?")
DIED = re.compile(r"\bdied\b(?! or )")
REMEDIES = re.compile(r"; (?:look for|is its|are their|does|do all|has that|that rank hangs|where it lives|raise )|"
                      r", but (?:operation|a kernel) ")


@dataclasses.dataclass(frozen=True)
class Named:
    """A rank that a text makes the cause: its number in the communicator, and its process where the text has that."""
    rank: int
    pid: int = 0


def head_of(part):
    """What says who is to blame in such a part of a text: without the reporters, what followed from it, the remedy."""
    for prefix in (REPORTER, REPORTER, REPORTER, CONNECTION):
        rest = prefix.sub("", part, count=1)
        if rest != part and named_in(CONSEQUENCE.sub("", REMEDIES.split(rest)[0])):
            part = rest
    return CONSEQUENCE.sub("", REMEDIES.split(part)[0])


def named_in(head):
    """Whom these words name; with number -1 where it is only a process. Rank 0 makes the unique ids in these jobs."""
    found = {Named(int(number), int(pid or 0)) for number, pid in RANK.findall(head)}
    for several in RANKS.findall(head):
        found |= {Named(int(number)) for number in re.findall(r"\d+", several)}
    found = found or {Named(-1, int(pid)) for pid in PROCESS.findall(head)}
    return found or ({Named(0)} if ROOT.search(head) else set())


def part_to_blame(text):
    """The part of a text that says who is to blame: the last cause that names anybody, or what has no such cause."""
    first, *causes = CAUSE.split(QUOTED.sub(r"\1", WITNESS.sub("", text)))
    return next((cause for cause in reversed(causes) if named_in(head_of(cause))), first)


def blamed(text):
    """The ranks that a text makes the cause."""
    part = part_to_blame(text)
    own = OWN.match(part)
    found = {Named(int(own[1]), int(own[2]))} if own else named_in(head_of(part))
    # What concerns all ranks, such as a file that is none, has one witness: the rank that has met it.
    return found or {Named(int(number), int(pid)) for number, pid in SEEN.findall(text)}


@dataclasses.dataclass
class Membership:
    """Who is who in a job: the victims' processes, and for each communicator the number of each rank of the job."""
    victims: set      # ranks of the job
    victim_pids: set
    numbers: list     # of the communicators: {rank of the job: number}
    dead: bool = True  # whether the victims' processes have ended; of others no text may say that they died

    def comm_of(self, text, told):
        """The communicator that a text is about: the last error is the process's, so it may be of another one than the
        one that was asked about (`told`). The reporter's number and device, which is its rank in the job, tell."""
        reporter = HEARER.search(text) or REPORTER.match(text)
        if reporter:
            number, device = int(reporter[1]), int(reporter[2])
            if self.numbers[told].get(device) != number:
                return next((c for c, table in enumerate(self.numbers) if table.get(device) == number), told)
        return told

    def is_victim(self, named, comm):
        if named.pid:
            return named.pid in self.victim_pids
        return named.rank in {self.numbers[comm].get(victim) for victim in self.victims}


def judge_text(text, comm, reporter, membership):
    """Whether a text is right that rank `reporter` of the job, which is no victim, got for a communicator."""
    comm = membership.comm_of(text, comm)
    named = blamed(text)
    # A text on a connection names its two ends; the one that reports is never its own cause.
    if len(named) > 1:
        named = {n for n in named if n.rank != membership.numbers[comm].get(reporter)}
    if not named:
        return Verdict(UNNAMED, text)
    # What was heard in another communicator has the numbers of that one.
    tables = range(len(membership.numbers)) if ELSEWHERE in text else [comm]
    innocent = min((sorted(n.rank for n in named if not membership.is_victim(n, table)) for table in tables), key=len)
    if innocent:
        numbers = sorted(membership.numbers[comm].get(v, -1) for v in membership.victims)
        return Verdict(MISNAMED, f"blames {innocent}, but the victims are {numbers}: {text}")
    if not membership.dead and DIED.search(head_of(part_to_blame(text))):
        return Verdict(MISNAMED, f"says that a process died that lives: {text}")
    return Verdict(OK)


@dataclasses.dataclass
class Rules:
    """What holds for one run."""
    membership: Membership
    bound: float            # seconds from deed or need to the report
    init_bound: float = 0   # the same for ranks that are in init, if larger
    first_error: float = float("inf")  # when the first rank that is no victim reported one
    late: object = None     # (event, comm, text) -> whether an error is right because its rank came too late
    gaps: list = dataclasses.field(default_factory=list)  # in which processes were kept from running


class Record:
    """What one rank that is no victim has reported."""

    def __init__(self, rank, process):
        self.rank = rank
        self.events = [event for event in process.events if event.rank == rank]

    def errors(self):
        """(event, communicator of the job, text) of each."""
        for event in self.events:
            if event.what == "error":
                head, _, text = event.text.partition(" | ")
                yield event, int(head.split()[0]), text

    def begun_before(self, moment):
        """When the stage or operation began in which the rank was at that moment."""
        begun = [e.time for e in self.events if e.what in ("stage", "need", "ending") and e.time <= moment]
        return begun[-1] if begun else moment

    def in_init(self, moment):
        stages = [e.text.split()[0] for e in self.events if e.what == "stage" and e.time <= moment]
        return not stages or stages[-1] in ("before", "init")


def root_had_ended(processes, rules, event, comm, text):
    """Whether a text says that the root cannot be reached whose process had in fact ended, because of the victims: who
    comes so late can know no better."""
    numbers = rules.membership.numbers[comm]
    roots = [p for p in processes if any(numbers.get(rank) == 0 for rank in p.ranks)]
    return "cannot connect to the bootstrap root" in text and any(
        p.code == 42 and p.ended is not None and p.ended <= event.time + TICK for p in roots)


def only_starved(record, rules, event, comm, text):
    """Whether a text blames nobody but victims and processes that were silent because the machine let them not run."""
    members = rules.membership
    comm = members.comm_of(text, comm)
    named = blamed(text)
    if len(named) > 1:
        named = {n for n in named if n.rank != members.numbers[comm].get(record.rank)}
    innocent = {n for n in named if not members.is_victim(n, comm)}
    return starved.silent_because_starved(rules.gaps, text, innocent, members.numbers[comm], event.time)


def judge_error(record, rules, deed, event, comm, text):
    """Verdicts on one error that a rank reported."""
    if not rules.membership.victims or deed is None:
        what = STARVED if only_starved(record, rules, event, comm, text) else MISNAMED
        yield Verdict(what, f"rank {record.rank} reports an error, and nothing had been done: {text}")
        return
    verdict = judge_text(text, comm, record.rank, rules.membership)
    if verdict.what != OK and not rules.late(event, comm, text):
        what = STARVED if only_starved(record, rules, event, comm, text) else verdict.what
        yield Verdict(what, f"rank {record.rank}, communicator {comm}: {verdict.why}")
    since = max(deed, record.begun_before(event.time))
    bound = max(rules.bound, rules.init_bound) if record.in_init(event.time) else rules.bound
    if event.time - since > bound:
        lost = starved.lost_time(rules.gaps, since, event.time)
        yield Verdict(LATE if event.time - since - lost > bound else STARVED,
                      f"rank {record.rank}: {event.time - since:.1f} s, at most {bound:g} allowed: {text}")


def judge_rank(record, rules, deed):
    """All verdicts on one rank that is no victim. `deed`: when it was done; None if it was not. "no_id" tells that the
    process which makes an id did not hand it on: the library has said nothing, and who failed to is judged for that."""
    for event in record.events:
        if event.what == "wrong":
            yield Verdict(WRONG, f"rank {record.rank}: {event.text}")
        if event.what == "hang":
            yield Verdict(HANG, f"rank {record.rank}: {event.text}")
        if event.what == "cannot":
            yield Verdict(UNNAMED, f"rank {record.rank}: {event.text}")
        # A rank that needs no victim hears nothing of it; one whose last operation was about to end may.
        quiet = event.time < rules.first_error - TICK
        if event.what == "state" and event.text.split()[1] != "0" and quiet:
            yield Verdict(DISTURBED, f"rank {record.rank} was idle, and its communicator said {event.text.split()[1]}")
    for event, comm, text in record.errors():
        yield from judge_error(record, rules, deed, event, comm, text)


def judge_processes(processes, victims):
    """Verdicts on how processes without victims ended."""
    for process in processes:
        if set(process.ranks) & victims:
            continue
        last = process.events[-1] if process.events else None
        at = f"{last.what} {last.text}" if last else "nothing"
        who = f"the process of ranks {process.ranks}"
        if process.ended is None:
            yield Verdict(HANG, f"{who} has not ended; its last report: {at}")
        elif process.code < 0:
            yield Verdict(CRASH, f"{who} was killed by signal {-process.code} after: {at}\n{process.output(1500)}")
        elif process.code == 45:
            yield Verdict(CRASH, f"{who} could not end its communicators: {at}")
        elif process.code not in (0, 41, 42, 43):
            yield Verdict(CRASH, f"{who} ended with {process.code} after: {at}\n{process.output(1500)}")


def judge_troubled(process):
    """Verdicts on a process that had too little of something, or a file that is none. It may fail, and must say why; a
    program that the system could not even load (127) has nothing to say."""
    who = f"the process of ranks {process.ranks}, which had the trouble,"
    if process.ended is None:
        last = process.events[-1] if process.events else None
        yield Verdict(HANG, f"{who} has not ended; its last report: {last and last.what} {last and last.text}")
    elif process.code < 0:
        yield Verdict(CRASH, f"{who} was killed by signal {-process.code}:\n{process.output(1500)}")
    elif process.code not in (0, 42, 44, 127):
        yield Verdict(WRONG if process.code == 43 else CRASH, f"{who} ended with {process.code}")
    for event in process.of("error"):
        if not event.text.partition(" | ")[2].strip():
            yield Verdict(UNNAMED, f"{who} has an error without a text: {event.text}")


def judge(processes, rules, deed):
    """The gravest verdict of a run whose processes have ended or were given up."""
    victims = rules.membership.victims
    found = list(judge_processes(processes, victims))
    errors = [event.time for process in processes for event in process.of("error") if event.rank not in victims]
    rules = dataclasses.replace(rules, first_error=min(errors, default=float("inf")), gaps=starved.gaps_of(processes),
                                late=lambda *what: root_had_ended(processes, rules, *what))
    for process in processes:
        for rank in process.ranks:
            if rank not in victims:
                found += judge_rank(Record(rank, process), rules, deed)
    return worst(found)
