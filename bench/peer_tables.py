"""Tables of what compare_peers.py measured. Its rows, one for each program, collective and round:

  world, collective, name, round   what was run; "tutti …" is ours, "gloo ring" a library's algorithm
  times                            {bytes: microseconds}, as far as the program came
  in_place, out_of_place           True, and the times of ours out of place; only where `times` are in place
  failed                           why it did not come to its end; only where it did not
  others, load                     how busy the machine was with other things
  line_ns                          nanoseconds of a cache line between two processors; none: not known
"""
import collections
import statistics

LIBRARIES = ("openmpi", "mpich", "gloo")  # what must be beaten; variants of one ("gloo ring") count by their fastest
# Bytes that a collective of two ranks moves over the wire, in both directions together: times its size.
WIRE = {"AllReduce": 2, "SendRecv": 2, "AllGather": 1, "ReduceScatter": 1, "AlltoAll": 1, "Broadcast": 1}


def size_text(size):
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def only_tcp(world):
    return world.endswith("_tcp")


def bound_of(world):
    """The column that is no library but what the machine can do at all."""
    return "sockets" if only_tcp(world) else "reference"


def is_ours(name):
    return name.split()[0] == "tutti"


class Samples:
    """What the programs of one table said, over all rounds."""

    def __init__(self, rows):
        times = collections.defaultdict(lambda: collections.defaultdict(list))
        self.rounds = collections.Counter(row["name"] for row in rows)
        self.failures = collections.defaultdict(list)  # name -> (round, why)
        for row in rows:
            if "failed" in row:
                self.failures[row["name"]].append((row["round"], row["failed"]))
            for size, value in row["times"].items():
                times[row["name"]][int(size)].append(value)
        self.medians = {name: {size: statistics.median(v) for size, v in by_size.items()}
                        for name, by_size in times.items()}
        self.in_place = any(row.get("in_place") for row in rows)
        ratios = collections.defaultdict(list)
        for row in rows:
            for size, value in row.get("out_of_place", {}).items():
                ratios[int(size)].append((value, row["times"][size] / value))
        self.out_of_place = {size: tuple(map(statistics.median, zip(*pairs))) for size, pairs in ratios.items()}
        self.ours = [name for name in self.rounds if is_ours(name)]
        self.sizes = sorted({size for by_size in self.medians.values() for size in by_size})

    def variants(self, program):
        return [name for name in self.rounds if name.split()[0] == program]

    def fastest(self, names, size):
        return min((self.medians[n][size] for n in names if size in self.medians.get(n, {})), default=None)

    def nothing(self, names):
        """A cell without a time."""
        return "failed" if any(name in self.failures for name in names) else "-"

    def notes(self):
        lines = []
        for name, failures in self.failures.items():
            reasons = list(dict.fromkeys(why for _, why in failures))
            more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
            lines.append(f"* {name} failed in {len(failures)} of {self.rounds[name]} rounds: {reasons[0]}{more}")
        return lines


def verdict(world, size, mine, others, bound):
    """What is missed of: under 15 us up to 1 KB (where kernels reach each other), ahead of all from 64 KB, within twice
    the bound from 16 MB."""
    missed = []
    if world.split("_")[-1] not in ("tcp", "shm") and size <= 1024 and mine >= 15:
        missed.append("not under 15 us")
    if size >= 64 << 10:
        missed += [f"behind {name} ({time / mine:.2f})" for name, time in others.items() if time < mine]
    if size >= 16 << 20 and bound and mine > 2 * bound:
        missed.append(f"{mine / bound:.1f} x the {bound_of(world)}")
    return ", ".join(missed) or "met"


def table_line(world, samples, size):
    mine = samples.fastest(samples.ours, size)
    times = {name: samples.fastest(samples.variants(name), size) for name in (*LIBRARIES, bound_of(world))}
    cells = [size_text(size)]
    for name in samples.ours:
        time = samples.fastest([name], size)
        cells.append(samples.nothing([name]) if time is None else f"{time:.1f}")
    for name, time in times.items():
        if time is None:
            cells.append(samples.nothing(samples.variants(name)))
        elif mine is None:
            cells.append(f"{time:.1f}")
        else:
            quotient = f"{mine / time:.2f} x" if name == "sockets" else f"{time / mine:.2f}"
            cells.append(f"{time:.1f} ({quotient})")
    if samples.in_place:
        time, ratio = samples.out_of_place.get(size, (None, None))
        cells.append(samples.nothing(samples.ours) if time is None else f"{time:.1f} ({ratio:.2f})")
    bound = times.pop(bound_of(world))
    libraries = {name: time for name, time in times.items() if time is not None}
    cells.append(verdict(world, size, mine, libraries, bound) if mine is not None else samples.nothing(samples.ours))
    return "| " + " | ".join(cells) + " |"


def wire_notes(collective, samples):
    """What the sockets carried of the largest size."""
    sizes = [size for size in samples.sizes if samples.fastest(samples.variants("sockets"), size) is not None]
    if not sizes:
        return []
    rate = WIRE[collective] * sizes[-1] / samples.fastest(samples.variants("sockets"), sizes[-1]) / 1e3
    return [f"* sockets: the fastest manner of plain sockets to move what this collective must move at least; tutti's "
            f"time / theirs is to be below 2x at 16 MB and more. At {size_text(sizes[-1])} they carry {rate:.2f} GB/s "
            f"in both directions together"]


def table(world, collective, rows):
    samples = Samples(rows)
    placed = ["out of place"] * samples.in_place
    columns = ["size", *samples.ours, *LIBRARIES, bound_of(world), *placed, "goal"]
    lines = [f"### {collective}{' in place' * samples.in_place}, {world.replace('_', ' ')}", "", "| " + " | ".join(columns) + " |",
             "|---" * len(columns) + "|"]
    lines += [table_line(world, samples, size) for size in samples.sizes]
    notes = samples.notes() + ["* out of place: what ours takes so; in brackets in place / out of place, median of each run's "
                               "ratio"] * samples.in_place + (wire_notes(collective, samples) if only_tcp(world) else [])
    return "\n".join(lines + ([""] + notes if notes else []))


def apart(rows):
    """How far the processors were from each other: what a virtual machine does not tell, and copies depend on."""
    times = [row["line_ns"] for row in rows if row.get("line_ns") is not None]
    if not times:
        return ""
    return f" A cache line took {statistics.median(times):.0f} ns from one processor to another, at most {max(times)}."


def tables(rows):
    if not rows:
        return "Nothing was measured."
    rounds = len({row["round"] for row in rows})
    taken, load = [100 * row["others"] for row in rows], [row["load"] for row in rows]
    text = [f"Microseconds per call, median over rounds ({rounds}); in brackets that time / tutti's (the faster of its "
            f"columns): below 1 it is ahead of us. Where a library has several algorithms, its fastest. CPU taken by "
            f"other processes: median {statistics.median(taken):.0f}%, most {max(taken):.0f}% of the machine; 1-minute "
            f"load {min(load):.1f} to {max(load):.1f}, our own ranks included.{apart(rows)}"]
    kind = lambda row: (row["world"], row["collective"], row.get("in_place", False))  # noqa: E731
    for world, collective, placed in dict.fromkeys(map(kind, rows)):
        own = [row for row in rows if kind(row) == (world, collective, placed)]
        text.append(table(world, collective, own))
    return "\n\n".join(text)


def ours_failed(rows):
    return any("failed" in row and is_ours(row["name"]) for row in rows)
