"""What the loops of a kernel do with data: loads in flight, stores, fences, polls. The package defines the words."""
import collections
import dataclasses

from sass import code as sass

WIDE, WIDEST = 8, 16
WAITING = ("MEMBAR", "CALL")
CHOOSING = ("SEL", "FSEL", "USEL")


@dataclasses.dataclass
class DataLoop:
    loop: sass.Loop
    loads: list   # data loads
    stores: list  # wide stores
    reduces: bool
    run: tuple        # the data loads in flight
    outstanding: int  # loads
    fences: collections.Counter  # by scope
    places: collections.Counter  # its data loads and wide stores (LD, LDG, ST, STG), and LDS, STS, LDL, STL
    remainder: bool = False

    @property
    def accesses(self):
        return self.loads + self.stores

    @property
    def lines(self):
        return len({i.bytes for i in self.accesses}) > 1

    @property
    def kind(self):
        return ("lines" if self.lines else "packs") + (" reduced" if self.reduces else " copied")

    @property
    def bytes(self):
        return sum(i.bytes for i in self.run)

    @property
    def generic(self):
        return sum(i.access[1] == "" for i in self.accesses)


@dataclasses.dataclass
class Kernel:
    name: str
    loops: list     # DataLoop
    per_step: int   # fences of scope SYS
    fences: dict    # "data", "step", "else": Counter by scope
    polls: int
    generic: int
    accesses: int   # to global or generic memory
    local: int      # accesses to local memory
    unknown: int    # jumps to nowhere known


def measure(name, code):
    """What a function does."""
    blocks = sass.blocks_of(code)
    every = [loop for top in sass.loops_of(blocks) for loop in top.walk()]
    loops = data_loops(blocks, every)
    mark_remainders(loops)
    around = {outer for data in loops for outer in data.loop.around()}
    memory = [i for i in code if i.moves("LD") or i.moves("ST")]
    return Kernel(name, loops, fences_per_step(blocks, around), places_of_fences(blocks, loops, around),
                  polls=sum(is_poll(blocks, loop) for loop in every),
                  generic=sum(i.access[1] == "" for i in memory), accesses=len(memory),
                  local=sum(1 for i in code if i.access and i.access[1] == "L"),
                  unknown=sum(i.op.startswith(("BRX", "JMX", "JMP")) and not i.targets for i in code))


def code_of(blocks, loop):
    return [i for at in sorted(loop.body) for i in blocks[at].code]


def data_loops(blocks, every):
    found = {}
    for loop in reversed(every):  # outer loops come before those inside them
        if not any(inner in found for inner in loop.walk()):
            data = data_loop(blocks, loop)
            if data:
                found[loop] = data
    loops = [found[loop] for loop in every if loop in found]
    widest = [data for data in loops if any(i.bytes == WIDEST for i in data.accesses)]
    return widest or loops


def data_loop(blocks, loop):
    code = code_of(blocks, loop)
    stores = [i for i in code if i.moves("ST", WIDE)]
    if not stores or not any(i.moves("LD", WIDE) for i in code):
        return None
    stored = stored_values(blocks, loop)
    used = set().union(*(loads for loads, _ in stored))
    loads = [i for i in code if i in used]
    if not loads:
        return None
    run = longest_run(blocks, loop, set(loads), together=True)
    outstanding = longest_run(blocks, loop, set(loads), together=False)
    near = [i for i in code if i.access and i.access[1] in ("S", "L")]
    places = collections.Counter("".join(i.access) for i in loads + stores + near)
    return DataLoop(loop, loads, stores, any(made for _, made in stored), run, len(outstanding), scopes(code), places)


def stored_values(blocks, loop):
    """Of every register that a wide store of the loop stores: the wide loads that it may come of, and whether an
    instruction made it of two of them."""
    stored = set()

    def through(values, code):
        values = dict(values)
        for i in code:
            if i.moves("ST", WIDE):
                stored.update(read(values, register, i.guard) for register in i.data)
            write(values, i, (frozenset([i]), False) if i.moves("LD", WIDE) else made_by(i, values))
        return values

    def join(a, b):
        return {register: joined(a.get(register, EMPTY), b.get(register, EMPTY)) for register in a.keys() | b.keys()}

    again = sass.flow(blocks, loop, {}, through, join)
    sass.flow(blocks, loop, again, through, join)
    return stored


# What a register has: (before, guard, since), where a predicated instruction filled it last: threads in which that was
# not carried out keep what was there before.
NONE = (frozenset(), False)
EMPTY = (NONE, "", NONE)


def read(values, register, guard):
    before, under, since = values.get(register, EMPTY)
    return since if guard and guard == under else either(before, since)


def write(values, i, new):
    keeps = i.guard and not i.written & i.read  # what it reads was made for it, as an address
    for register in i.written:
        before, under, _ = values.get(register, EMPTY)
        before = before if under == i.guard else read(values, register, "")
        values[register] = (before if keeps else NONE, i.guard, new)


def joined(a, b):
    if a[1] == b[1]:
        return either(a[0], b[0]), a[1], either(a[2], b[2])
    return either(either(a[0], a[2]), either(b[0], b[2])), "", NONE


def either(a, b):
    return a[0] | b[0], a[1] or b[1]


def made_by(i, values):
    """The value of an instruction other than a wide load."""
    if i.access:
        return NONE
    sources = [read(values, register, i.guard) for register in i.read if register[0] == "R"]
    loads = frozenset().union(*(source[0] for source in sources))
    apart = any(a[0] - b[0] and b[0] - a[0] for n, a in enumerate(sources) for b in sources[:n])
    return loads, any(made for _, made in sources) or (apart and not i.op.startswith(CHOOSING))


def longest_run(blocks, loop, loads, together):
    """The most loads that are issued before an instruction waits for one; `together`: which ends the whole run."""
    best = ()

    def through(run, code):
        nonlocal best
        for i in code:
            left = tuple(load for load in run if not i.waits_for(load))
            if i.op.startswith(WAITING) or (together and len(left) < len(run)):
                left = ()
            run = left + (i,) if i in loads and not any(i.fills_instead_of(load) for load in left) else left
            best = longer(best, run)
        return run

    def longer(a, b):
        return max(a, b, key=lambda run: (sum(i.bytes for i in run), len(run)))

    again = sass.flow(blocks, loop, (), through, longer)
    sass.flow(blocks, loop, again, through, longer)
    return best


def mark_remainders(loops):
    for data in loops:
        beside = [other for other in loops if other.loop.parent is data.loop.parent]
        data.remainder = any(other.kind == data.kind and other.bytes > data.bytes or
                             other.lines and not data.lines for other in beside)


def scopes(code):
    """Fences, by scope."""
    return collections.Counter(next((part for part in ("SYS", "GPU", "CTA") if part in i.op.split(".")), "other")
                               for i in code if i.op.startswith("MEMBAR"))


def fences_per_step(blocks, around):
    """`around`: the loops around data loops."""
    fenced = {loop for loop in around if scopes(code_of(blocks, loop))["SYS"] > 0}
    steps = [loop for loop in fenced if not any(inner in fenced for inner in loop.walk() if inner is not loop)]
    return max((sass.flow(blocks, loop, 0, lambda n, code: n + scopes(code)["SYS"], max) for loop in steps), default=0)


def places_of_fences(blocks, loops, around):
    data = {at for found in loops for at in found.loop.body}
    step = {at for loop in around for at in loop.body} - data
    places = {"data": data, "step": step, "else": set(blocks) - data - step}
    return {place: scopes([i for at in found for i in blocks[at].code]) for place, found in places.items()}


def is_poll(blocks, loop):
    """Whether it waits: loads, stores nothing, and goes on or not by what it has loaded."""
    code = code_of(blocks, loop)
    if loop.inside or any(i.moves("ST") for i in code) or not any(i.moves("LD") for i in code):
        return False
    loaded = set()
    for _ in range(3):  # values may pass through registers against the order of addresses
        for i in code:
            if i.moves("LD") or (not i.access and i.read & loaded):
                loaded |= i.written
    leaving = [blocks[at].code[-1] for at in loop.body if any(to not in loop.body for to in blocks[at].next)]
    return any(i.read & loaded for i in leaving)
