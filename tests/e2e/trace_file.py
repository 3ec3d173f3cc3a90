"""Reads what TUTTI_TRACE writes, as src/trace/format.h lays it out, and says what a time line must show of it.

A record becomes one event, those of NetRecv two:

  Call              a slice on its thread; the arrow of each operation that it asks for begins there
  Op                a slice on the operations of its communicator, until its kernel ends
  Plan, Decision    a slice on its thread
  Launch            a slice on its thread; the arrows of its operations run through it
  Kernel            a slice on the kernels of its communicator, the same; that of one channel is on the channel's track
  Connect, Wait, Stage    a slice on its thread
  NetSend           a slice on its connection, where an arrow begins; the first after a launch is on the arrow of the
                    launch's first operation as well
  NetRecv           an instant on its connection, where the sender's arrow ends; before it, unless the message was there
                    already, a slice from the latest of its request, the launch, and the message before
  Failure, Ending   an instant on its thread

What takes no nanosecond is an instant, too. Records of beginnings show nothing once those of their ends are there.
"""
import collections
import enum
import struct

from support import check

HEADER = struct.Struct("<8sII11Q64s32s")
NOTE_HEAD = struct.Struct("<II")
THREAD, COMM, CLOCK = struct.Struct("<II16s"), struct.Struct("<IiiiQII"), struct.Struct("<QqQQ")
RECORD = struct.Struct("<QQQHHHHIIQQQ")
STEP = struct.Struct("<iHBB")
OPEN, WHOLE = 1, 0xffff
PROTOCOLS = ("LL", "LL128", "Simple")

Record = collections.namedtuple("Record", "sequence begin end kind thread comm flags number text a b c")
Comm = collections.namedtuple("Comm", "rank size hash")
Clock = collections.namedtuple("Clock", "host offset error when")
Kind = enum.IntEnum("Kind", "CALL OP PLAN DECISION LAUNCH KERNEL CONNECT WAIT STAGE NETSEND NETRECV FAILURE ENDING")


class TraceFile:
    """The file of a process that has ended in order, and before its ring was full."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        magic, version, self.pid, _, notes, _, ring, places, *_, used, count, closed, _, _ = HEADER.unpack_from(data)
        check(magic == b"TUTTITRC" and version == 1, f"{path} is no trace: {magic}, {version}")
        check(closed and 0 < count <= places, f"{path}: closed at {closed}, {count} records in {places} places")
        self.texts, self.threads, self.comms, self.clocks = {0: ""}, [], {}, []
        self.read_notes(data[notes:notes + used])
        records = [Record(*fields) for fields in RECORD.iter_unpack(data[ring:ring + count * RECORD.size])]
        check([r.sequence for r in records] == list(range(1, count + 1)), f"{path}: records are not whole")
        ended = [r for r in records if not r.flags & OPEN]
        same = {(r.kind, r.thread, r.number) for r in ended}
        check(all((r.kind, r.thread, r.number) in same for r in records), f"{path}: something has no end")
        self.records = ended

    def read_notes(self, notes):
        at = 0
        while at < len(notes):
            length, kind = NOTE_HEAD.unpack_from(notes, at)
            body = notes[at + NOTE_HEAD.size:at + length]
            if kind == 1:
                self.texts[at + 1] = body[8:8 + struct.unpack_from("<I", body)[0]].decode()
            elif kind == 2:
                self.threads.append(THREAD.unpack_from(body)[1])
            elif kind == 3:
                number, rank, size, _, of, _, _ = COMM.unpack_from(body)
                self.comms[number] = Comm(rank, size, of)
            else:
                self.clocks.append(Clock(*CLOCK.unpack_from(body)))
            at += length

    def of(self, *kinds):
        return [r for r in self.records if r.kind in kinds]

    def name(self, record):
        """What the event of a record is called, but that "decision" stands for each choice."""
        text = self.texts[record.text]
        return {Kind.CALL: text, Kind.OP: text, Kind.PLAN: "plan", Kind.DECISION: "decision",
                Kind.LAUNCH: f"launch {text}", Kind.KERNEL: "kernel" if record.a == WHOLE else "channel",
                Kind.CONNECT: f"connect with {text}", Kind.WAIT: f"wait for {text}", Kind.STAGE: f"init: {text}",
                Kind.NETSEND: f"send step {record.number}", Kind.NETRECV: f"received step {record.number}",
                Kind.FAILURE: "failure", Kind.ENDING: f"communicator ends: {text}"}[record.kind]

    def events(self):
        """Names, and when they begin by the clock of the first rank's host, which the others have measured."""
        shift = sum(clock.offset for clock in self.clocks)
        events = [(self.name(r), r.end if r.kind == Kind.NETRECV else r.begin) for r in self.records]
        return collections.Counter((name, begin + shift) for name, begin in [*events, *self.waits()])

    def waits(self):
        """For what the network brings: the second event of NetRecv."""
        launched, arrived = {}, {}
        for r in self.of(Kind.LAUNCH, Kind.NETRECV):
            if r.kind == Kind.LAUNCH:
                launched[r.comm] = r.begin
                continue
            begin = max(r.begin, arrived.get((r.comm, r.a), 0), launched.get(r.comm, 0))
            arrived[r.comm, r.a] = r.end
            if begin < r.end:
                yield f"wait for step {r.number}", begin

    def received(self):
        """For each arrow the name of the event where it ends."""
        return [(self.name(r),) for r in self.of(Kind.NETRECV)]

    def arrows(self):
        """For each arrow the sorted names of what it runs through: those of operations, and of messages."""
        return [tuple(sorted(names)) for names in self.operations()] + [(self.name(r),) for r in self.of(Kind.NETSEND)]

    def operations(self):
        asked, launches, through = {}, {}, collections.defaultdict(list)
        for op in self.of(Kind.OP):
            asked.setdefault(op.c & 0xffffffff, []).append((op.comm, op.number))
        for r in self.of(Kind.LAUNCH):
            launches[r.comm, r.number] = [(r.comm, r.b + i) for i in range(r.c)]
        for r in self.of(Kind.CALL, Kind.LAUNCH, Kind.KERNEL):
            ops = asked.get(r.number, []) if r.kind == Kind.CALL else launches[r.comm, r.number]
            for op in ops if r.kind != Kind.KERNEL or r.a == WHOLE else []:
                through[op].append(self.name(r))
        for op, name in self.first_sends():
            through[op].append(name)
        return list(through.values())

    def first_sends(self):
        """Of each launch and connection: the operation, and the send's name."""
        launched, seen = {}, set()
        for r in self.of(Kind.LAUNCH, Kind.NETSEND):
            if r.kind == Kind.LAUNCH:
                launched[r.comm] = r
            elif r.comm in launched and r.begin >= launched[r.comm].begin:
                first = (r.comm, launched[r.comm].b)
                if (r.a, first) not in seen:
                    yield first, self.name(r)
                seen.add((r.a, first))

    def tracks(self):
        """Their names: those of threads are their numbers, that of the process is its own."""
        names = [f"process {self.pid}"] + [f"thread {tid}" for tid in self.threads]
        for comm in self.comms.values():
            name = f"communicator {comm.hash:#x}, rank {comm.rank} of {comm.size}"
            names += [f"{name}: operations", f"{name}: kernels"]
        channels = {(r.comm, r.a) for r in self.of(Kind.KERNEL) if r.a != WHOLE}
        names += [f"communicator {self.comms[comm].hash:#x}: channel {channel}" for comm, channel in channels]
        for _, kind, words in {(r.comm, r.kind, r.a) for r in self.of(Kind.NETSEND, Kind.NETRECV)}:
            peer, channel, protocol, _ = STEP.unpack(words.to_bytes(8, "little"))
            way = "to" if kind == Kind.NETSEND else "from"
            names.append(f"network, channel {channel}, {PROTOCOLS[protocol]}: {way} rank {peer}")
        return collections.Counter(names)
