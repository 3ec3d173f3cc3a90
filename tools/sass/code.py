"""Instructions, control flow graph and loops of SASS, as `nvdisasm -c -hex` prints it, or without -hex."""
import dataclasses
import functools
import re

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;"
                         r"\s*(?:/\* 0x\w+ \*/)?\s*$")
SECOND_HALF = re.compile(r"^\s+/\* 0x([0-9a-f]{16}) \*/\s*$")  # of an instruction's 128 bits
SECTION = re.compile(r"^\.text\.([\w$]+):$")
LABEL = re.compile(r"^([.$\w]+):$")
JUMP = re.compile(r"`\(([.$\w]+)\)")
TABLE = re.compile(r'\(\*"BRANCH_TARGETS ([^"]*)"\*\)')
REGISTER = re.compile(r"(?<![\w.])(U?R\d+|U?P\d+)\b")
ACCESS = re.compile(r"^(LD|ST)([GSL]?)(?=\.|$)")
BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
LEAVING = ("BRA", "BRX", "JMP", "JMX", "EXIT", "RET")
PAIRS = ("IMAD.WIDE", "DADD", "DMUL", "DFMA", "CS2R")


@dataclasses.dataclass(eq=False)
class Instruction:
    at: int
    guard: str  # the predicate that decides whether it is carried out; "" for always
    op: str
    operands: str
    targets: list  # addresses to which it may jump, or that it calls
    control: int = None  # scoreboards that it sets and waits for, if the listing has encodings

    @functools.cached_property
    def access(self):
        """(LD or ST, where: "" generic, G global, S shared, L local), or None."""
        match = ACCESS.match(self.op)
        return match.groups() if match else None

    @functools.cached_property
    def bytes(self):
        return next((BYTES[part] for part in self.op.split(".") if part in BYTES), 4)

    def moves(self, kind, least=1):
        """Whether it loads ("LD") or stores ("ST") that many bytes or more, in global or generic memory."""
        return self.access in ((kind, ""), (kind, "G")) and self.bytes >= least

    def waits_for(self, load):
        """Whether it is held up until `load` has its value. NVIDIA does not document the bits: from bit 105 on 4 of
        stall, 1 of yield, 3 and 3 of scoreboards that are set by results and operands (7: none), 6 of those awaited."""
        if self.control is None or load.control is None:
            return bool(self.touched & load.data) and not self.fills_instead_of(load)
        return bool(self.control >> 11 & 0x3f & 1 << (load.control >> 5 & 7))

    def fills_instead_of(self, load):
        """Whether it is a load that fills the same register in threads where `load` is not carried out."""
        return (self.moves("LD") and bool(self.data & load.data) and self.guard != load.guard
                and "" not in (self.guard, load.guard) and self.guard.strip("!") == load.guard.strip("!"))

    @functools.cached_property
    def fields(self):
        return [field.strip() for field in self.operands.split(",")]

    @functools.cached_property
    def data(self):
        """The registers that a load fills or a store stores."""
        return spread(self.fields[0 if self.access[0] == "LD" else -1], self.bytes)

    @functools.cached_property
    def written(self):
        """Registers and predicates that it writes."""
        if self.access:
            return self.data if self.access[0] == "LD" else frozenset()
        if self.op.startswith(LEAVING + ("MEMBAR", "BAR", "RED", "CALL")):
            return frozenset()
        first = spread(self.fields[0], 8 if self.op.startswith(PAIRS) else 4)
        # Carries and second predicates; "LOP3 P0, R1, ..." writes the register, too.
        more = [field for field in self.fields[1:3] if re.fullmatch(r"U?P\d", field)]
        if re.match(r"U?P(\d|T)$", self.fields[0]) and self.op.startswith(("LOP3", "PLOP3", "VOTE", "SHFL")):
            more += self.fields[1:2]
        return first | names(" ".join(more))

    @functools.cached_property
    def read(self):
        """Registers and predicates that it reads, those of addresses as well."""
        if self.access and self.access[0] == "ST":
            return self.data | names(self.operands) | names(self.guard)
        first = self.operands if self.op.startswith(LEAVING) else ",".join(self.fields[1:])
        return names(first) | names(self.guard)

    @functools.cached_property
    def touched(self):
        return self.written | self.read | names(self.operands)


def names(text):
    return frozenset(REGISTER.findall(text))


def spread(field, size):
    """The registers of a value of `size` bytes of which the first is named."""
    match = re.match(r"R(\d+)\b", field)
    if not match:
        return names(field)
    return frozenset(f"R{int(match.group(1)) + n}" for n in range(max(1, size // 4)))


def parse(text):
    """Yields (name, instructions) of every function."""
    name, lines = None, []
    for line in text.splitlines():
        if match := SECTION.match(line):
            if name:
                yield name, instructions(lines)
            name, lines = match.group(1), []
        elif name:
            lines.append(line)
    if name:
        yield name, instructions(lines)


def instructions(lines):
    found, places, waiting = [], {}, []
    for line in lines:
        if match := INSTRUCTION.match(line):
            at = int(match.group(1), 16)
            places.update((label, at) for label in waiting)
            waiting = []
            found.append(Instruction(at, match.group(2) or "", match.group(3), match.group(4), []))
        elif found and (match := SECOND_HALF.match(line)):
            found[-1].control = int(match.group(1), 16) >> 41
        elif match := LABEL.match(line):
            waiting.append(match.group(1))
    for i in found:
        table = TABLE.search(i.operands)
        labels = table.group(1).split(",") if table else JUMP.findall(i.operands)
        i.targets = [places[label] for label in labels if label in places]
    return found


@dataclasses.dataclass(eq=False)
class Block:
    code: list
    next: list


def blocks_of(code):
    """The control flow graph: blocks by address. BSYNC goes on behind itself, a call comes back."""
    starts = {code[0].at} if code else set()
    for here, after in zip(code, code[1:] + [None]):
        if here.op.startswith(LEAVING):
            starts |= {after.at} if after else set()
        if here.op.startswith(LEAVING + ("CALL",)):
            starts.update(here.targets)
    blocks = {}
    for instruction in code:
        if instruction.at in starts:
            block = blocks[instruction.at] = Block([], [])
        block.code.append(instruction)
    order = list(blocks)
    for block, after in zip(blocks.values(), order[1:] + [None]):
        last = block.code[-1]
        if last.op.startswith(("BRA", "BRX")):
            block.next += last.targets
        conditional = last.guard or (last.op.startswith("BRA") and names(last.operands))
        if after is not None and (conditional or not last.op.startswith(LEAVING)):
            block.next.append(after)
    return blocks


@dataclasses.dataclass(eq=False)
class Loop:
    head: int
    body: frozenset  # addresses of blocks
    parent: "Loop"
    inside: list

    def walk(self):
        yield self
        for loop in self.inside:
            yield from loop.walk()

    def around(self):
        """The loops that it is in, from inside."""
        if self.parent:
            yield self.parent
            yield from self.parent.around()


def loops_of(blocks, body=None, cut=frozenset(), parent=None):
    """The loops of a part of the graph that are in no other, each with those inside; edges to `cut` are gone."""
    found = []
    for part in components(blocks, frozenset(blocks) if body is None else body, cut):
        start = min(part)
        if len(part) == 1 and start not in edges(blocks, start, part, cut):
            continue
        entries = [to for at in blocks if at not in part for to in blocks[at].next if to in part]
        loop = Loop(min(entries or part), frozenset(part), parent, [])
        loop.inside = loops_of(blocks, loop.body, cut | {loop.head}, loop)
        found.append(loop)
    return sorted(found, key=lambda loop: loop.head)


def components(blocks, body, cut):
    """Yields the strongly connected parts (Tarjan), without recursion."""
    index, low, stack = {}, {}, []
    for root in sorted(body):
        work = [] if root in index else [(root, iter(edges(blocks, root, body, cut)))]
        while work:
            at, rest = work[-1]
            if at not in index:
                index[at] = low[at] = len(index)
                stack.append(at)
            follow = next(rest, None)
            if follow is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    part = set(stack[stack.index(at):])
                    del stack[stack.index(at):]
                    yield part
            elif follow not in index:
                work.append((follow, iter(edges(blocks, follow, body, cut))))
            elif follow in stack:
                low[at] = min(low[at], index[follow])


def edges(blocks, at, body, cut=frozenset()):
    return [to for to in blocks[at].next if to in body and to not in cut]


def ordered(blocks, loop):
    """The loop's blocks, each before those that follow it; only edges back go to earlier ones."""
    seen, order, work = {loop.head}, [], [(loop.head, iter(edges(blocks, loop.head, loop.body)))]
    while work:
        at, rest = work[-1]
        follow = next(rest, None)
        if follow is None:
            order.append(at)
            work.pop()
        elif follow not in seen:
            seen.add(follow)
            work.append((follow, iter(edges(blocks, follow, loop.body))))
    return order[::-1]


def flow(blocks, loop, start, through, join):
    """Carries a state through one turn of the loop, loops inside passed once. `through(state, code)` is the state after
    a block's code, `join(a, b)` that where paths meet. Returns the state at the end of the turn."""
    order = ordered(blocks, loop)
    place = {at: n for n, at in enumerate(order)}
    entering, ends = {loop.head: start}, []
    for at in order:
        state = through(entering[at], blocks[at].code)
        for to in edges(blocks, at, loop.body):
            if to == loop.head:
                ends.append(state)
            elif place[to] > place[at]:
                entering[to] = join(entering[to], state) if to in entering else state
    return functools.reduce(join, ends) if ends else start
