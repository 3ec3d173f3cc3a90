#!/usr/bin/env python3
"""Jobs are traced, and tutti-info says what happened in them.

  traces.py said        what tutti-info prints and draws of traces
  traces.py timelines   its Perfetto files, read back with Perfetto's own definitions; skipped where these are missing
"""
import collections
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from support import BUILD, SKIP, SOURCE, Process, check, environment, free_port, main, run
from trace_file import TraceFile

INFO = BUILD / "tools/tutti_info/tutti-info"
TRACED = BUILD / "tests/e2e/traced"
EXAMPLE = BUILD / "examples/04_data_parallel_training"
BEGIN, END, INSTANT = 1, 2, 3
MS, SECOND = 10**6, 10**9
AHEAD = 1000
ANOTHER_CLOCK = ["unshare", "--time", "--monotonic", AHEAD, "--fork", "--kill-child", "--"]
TWO_HOSTS = {"NCCL_HOSTID": ["one", "two"], "NCCL_SOCKET_IFNAME": "lo"}


def definitions():
    """The module of Perfetto's Python package, from this Python or where tools/install-deps --perfetto puts it."""
    sys.path.append(str(SOURCE / ".deps/perfetto"))
    try:
        return importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    except ImportError as missing:
        print(f"skipped: no definitions of Perfetto's ({missing}): tools/install-deps --perfetto")
        sys.exit(SKIP)


def traced(folder, size, times, late=None, ahead=None, **env):
    """Starts one process for each rank. `late`: rank and milliseconds; `ahead`: rank whose clock is ahead."""
    port = free_port()
    calls = f"{folder}/calls"
    if late:
        os.mkfifo(calls)
    lateness = [[late[1] if r == late[0] else 0, calls] if late else [] for r in range(size)]
    return [Process(size, [*(ANOTHER_CLOCK if r == ahead else []), TRACED, r, size, times, *lateness[r]],
                    NCCL_COMM_ID=f"127.0.0.1:{port}", TUTTI_TRACE=f"{folder}/%r.trace", TUTTI_TRACE_MB=4,
                    **{name: value[r] if isinstance(value, list) else value for name, value in env.items()})
            for r in range(size)]


def finish(ranks):
    try:
        for process in ranks:
            check(process.wait(120) == 0, process.output())
    finally:
        for process in ranks:
            process.close()


def trace(folder, *arguments, **more):
    """As `traced`, to the end; again where the machine was too busy for a device to say its time, as then no kernel of
    it is timed for a second."""
    for _ in range(10):
        ranks = traced(folder, *arguments, NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="PROFILE", **more)
        finish(ranks)
        said = "".join(process.output() for process in ranks)
        check("goes on without the times of kernels" not in said, said)
        if "did not say its time" not in said:
            return
        for name in os.listdir(folder):
            os.remove(f"{folder}/{name}")
    check(False, "a device did not say its time in any of ten jobs")


def files(folder):
    return sorted(f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".trace"))


def info(*arguments):
    said = subprocess.run([INFO, "trace", *arguments], capture_output=True, text=True, timeout=60, env=environment())
    check(said.returncode == 0, said.stdout + said.stderr)
    return said.stdout


class Timeline:
    """A Perfetto file, checked as it is read: tracks are known, slices nest and end, arrows have two ends."""

    def __init__(self, pb2, path):
        trace = pb2.Trace()
        with open(path, "rb") as file:
            trace.ParseFromString(file.read())
        tracks = [p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")]
        self.tracks = {track.uuid: track for track in tracks}
        check(len(tracks) == len(self.tracks), "a track is described twice")
        self.events = [(p.timestamp, p.track_event) for p in trace.packet if p.HasField("track_event")]
        self.names = {}
        self.slices = {}  # by name: from when to when, and what
        self.on_track = {}  # from when to when its slices are
        self.flows, self.ends = {}, {}  # what an arrow runs through, and where it ends: when, and what
        open_slices, last = {}, 0
        for track in self.tracks.values():
            check(track.parent_uuid == 0 or track.parent_uuid in self.tracks, f"track without its parent: {track}")
        for time_ns, event in self.events:
            check(time_ns >= last, "events are not in the order of time")
            last = time_ns
            check(event.track_uuid in self.tracks, f"event on no track: {event}")
            stack = open_slices.setdefault(event.track_uuid, [])
            if event.type == END:
                check(stack, f"an end without a beginning on {self.tracks[event.track_uuid]}")
                begin, begun = stack.pop()
                self.slices.setdefault(begun.name, []).append(((begin, time_ns), begun))
                self.on_track.setdefault(event.track_uuid, []).append((begin, time_ns))
                continue
            check(event.type in (BEGIN, INSTANT) and event.name and event.categories, f"what is this: {event}")
            if event.type == BEGIN:
                stack.append((time_ns, event))
            self.names.setdefault(event.name, []).append((time_ns, event))
            for flow in event.flow_ids:
                self.flows.setdefault(flow, []).append((time_ns, event.name))
            for flow in event.terminating_flow_ids:
                self.ends.setdefault(flow, []).append((time_ns, event.name))
        check(not any(open_slices.values()), f"slices without an end: {open_slices}")
        check(all(flow in self.flows for flow in self.ends), "an arrow ends that begins nowhere")

    def processes(self):
        return [t.process.process_name for t in self.tracks.values() if t.HasField("process")]

    def process(self, track):
        """The process that a track belongs to."""
        while self.tracks[track].parent_uuid:
            track = self.tracks[track].parent_uuid
        return self.tracks[track].process

    def of_rank(self, name, rank):
        """Slices of that name in the rank's process."""
        return [(times, event) for times, event in self.slices[name]
                if self.process(event.track_uuid).process_name.startswith(f"rank {rank} ")]

    def shown(self, pid):
        """Names of a process's events, as TraceFile has them, and when they begin."""
        return collections.Counter(
            (re.sub("^plan .*", "decision", event.name), time_ns) for time_ns, event in self.events
            if event.type != END and self.process(event.track_uuid).pid == pid)

    def lanes(self):
        """Further tracks for slices of one that overlap: by their ids, its id."""
        first, lanes = {}, {}
        for uuid, track in self.tracks.items():
            label = track.parent_uuid, track.name or track.thread.thread_name or track.process.process_name
            if label in first and not track.HasField("thread"):
                lanes[uuid] = first[label]
            first.setdefault(label, uuid)
        return lanes

    def labels(self, pid):
        """A process's tracks, as TraceFile names them; lanes are not counted."""
        lanes = self.lanes()
        return collections.Counter(
            track.name or (f"thread {track.thread.tid}" if track.HasField("thread") else f"process {track.process.pid}")
            for uuid, track in self.tracks.items() if uuid not in lanes and self.process(uuid).pid == pid)

    def count(self, name):
        return len(self.names.get(name, []))

    def facts(self, name):
        return [{a.name: a.string_value or a.uint_value for a in event.debug_annotations}
                for _, event in self.names[name]]


def launch_of(event):
    return next(a.uint_value for a in event.debug_annotations if a.name == "launch")


def check_channels(timeline):
    """The channels of a kernel are on tracks of their own, and work while it runs."""
    kernels = {}
    for times, event in timeline.slices["kernel"]:
        kernels.setdefault(launch_of(event), []).append(times)
    for (begin, end), event in timeline.slices["channel"]:
        launch = launch_of(event)
        check(any(first <= begin <= end <= last + 1000 for first, last in kernels[launch]),
              f"a channel of launch {launch} works from {begin} to {end}, its kernels from and to {kernels[launch]}")


def check_equal(what, shown, written):
    check(shown == written, f"{what}: not shown are {written - shown}, nobody wrote {shown - written}")


def names_along(arrows):
    return collections.Counter(tuple(sorted(name for _, name in events)) for events in arrows.values())


def check_whole(timeline, folder):
    """Every record of the files is an event, with its track and its arrows, and nothing else is."""
    arrows, received = collections.Counter(), collections.Counter()
    for path in files(folder):
        file = TraceFile(path)
        check_equal(f"events of {path}", timeline.shown(file.pid), file.events())
        check_equal(f"tracks of {path}", timeline.labels(file.pid), file.tracks())
        arrows.update(file.arrows())
        received.update(file.received())
    check_equal("arrows", names_along(timeline.flows), arrows)
    check_equal("ends of arrows", names_along(timeline.ends), received)
    for lane, track in timeline.lanes().items():
        begin, end = min(timeline.on_track.get(lane, [(0, 0)]))
        needed = any(first <= begin < last < end for first, last in timeline.on_track[track])
        check(needed, f"lane {lane} is not needed")


def timeline_of(folder):
    """What tutti-info makes of all traces of a folder."""
    output = f"{folder}/run.perfetto-trace"
    info(*files(folder), "-o", output)
    return Timeline(definitions(), output)


def check_timeline(timeline, folder, size, times, nbytes=65536):
    check_whole(timeline, folder)
    check(len(timeline.processes()) == size, timeline.processes())
    for name in ("ncclAllReduce", "AllReduce"):
        check(timeline.count(name) == size * times, f"{timeline.count(name)} of {name}")
    for stage in ("init: init", "init: bootstrap"):
        check(timeline.count(stage) == size, f"{timeline.count(stage)} of {stage}")
    kernels = [sum(1 for _ in timeline.of_rank("kernel", rank)) for rank in range(size)]
    check(all(kernels), f"so many kernels of each rank are timed: {kernels}")
    check(timeline.count("channel") >= timeline.count("kernel"), "no channels of kernels")
    check_channels(timeline)
    launches = [name for name in timeline.names if name.startswith("launch tutti_AllReduce_")]
    check(sum(timeline.count(name) for name in launches) == size * times, launches)
    for facts in timeline.facts("AllReduce"):
        check(facts["bytes"] == nbytes and 1 <= facts["collective"] <= times, facts)
    chosen = [name for name in timeline.names if name.startswith("plan ")]
    check(sum(timeline.count(name) for name in chosen) == size * times, chosen)
    check(all(" us" in facts["weighed"] for name in chosen for facts in timeline.facts(name)), "no reason for a plan")
    calls = [chain for chain in timeline.flows.values() if chain[0][1] == "ncclAllReduce"]
    check(len(calls) == size * times and all(chain[1][1].startswith("launch ") for chain in calls), calls[:3])


def late_rank_is_named_with_how_late_it_was_and_what_others_lost():
    times, late_ms = 40, 12
    with tempfile.TemporaryDirectory() as folder:
        finish(traced(folder, 4, times, late=(2, late_ms)))
        said = info(*files(folder), "--summary")
        found = re.search(r"rank 2 \(host \S+, pid \d+\), rank 2 of communicator 0x\w+, "
                          r"came last in (\d+) of 40 operations, "
                          r"([\d.]+) ms after the last of the others on the average .*: the other 3 ranks lost "
                          r"([\d.]+) (ms|s) each", said)
        check(found, said)
        # Other processes of the machine may hold any rank up now and then.
        last, mean_ms = int(found.group(1)), float(found.group(2))
        check(last >= 30, said)
        length, unit = re.search(r" events in ([\d.]+) (ms|s)$", said, re.M).groups()
        check(0.5 * late_ms < mean_ms < float(length) * {"ms": 1, "s": 1000}[unit] / last, said)
        check("rank 2 of" in said[said.index("Late ranks"):].split("\n")[1], said)
        check("AllReduce of 64 KB on 4 ranks" in said and "plan weighed: " in said, said)
        pictures = [info(*files(folder), "--svg", f"AllReduce:{number}") for number in range(1, times + 1)]
        check(all(picture.startswith("<svg") for picture in pictures), pictures[0])
        drawn = sum("rank 2, last" in picture for picture in pictures)
        check(drawn == last, f"rank 2 is last in {drawn} pictures\n{said}")


def timeline_has_every_call_launch_and_channel():
    with tempfile.TemporaryDirectory() as folder:
        trace(folder, 4, 40)
        check_timeline(timeline_of(folder), folder, 4, 40)


def calls_show_what_they_wait_for_beside_the_device():
    """The comparison of calls, each with its peers, and the end of the communicator."""
    with tempfile.TemporaryDirectory() as folder:
        trace(folder, 2, 5, TUTTI_CHECK_CALLS=1)
        timeline = timeline_of(folder)
        check_whole(timeline, folder)
        for name, times in (("the calls of all ranks", 10), ("kernels that run", 2),
                            ("peers that have yet to take what was sent", 2), ("peers to part", 2)):
            shown = timeline.count(f"wait for {name}")
            check(shown == times, f"{shown} waits for {name}, not {times}")


def waits_of(timeline, rank, late):
    """For each operation but the first, whose calls wait for connections: when the late rank called, when the rank did,
    and when the rank's kernel ran, if that was timed."""
    late_calls, calls = (sorted(times for times, _ in timeline.of_rank("ncclAllReduce", r)) for r in (late, rank))
    kernels = {launch_of(event): times for times, event in timeline.of_rank("kernel", rank)}
    return [(late_calls[n - 1][0], calls[n - 1], kernels.get(n)) for n in range(2, len(calls) + 1)]


def late_rank_is_seen_to_call_last_and_the_others_to_wait_for_it():
    times, late, lateness = 21, 2, 12 * MS
    with tempfile.TemporaryDirectory() as folder:
        trace(folder, 4, times, late=(late, lateness // MS))
        timeline = timeline_of(folder)
        check_timeline(timeline, folder, 4, times)
        waits = [wait for rank in {0, 1, 2, 3} - {late} for wait in waits_of(timeline, rank, late)]
        for late_call, (call, called), _ in waits:
            check(late_call >= called + lateness, f"the late rank called at {late_call}, another one at {call}")
        kernels = [(late_call, called, kernel) for late_call, (_, called), kernel in waits if kernel]
        for late_call, _, (begin, end) in kernels:
            check(end > late_call - lateness / 4, f"from {begin} to {end} a kernel did not wait for {late_call}")
        # Other processes of the machine may keep a kernel from beginning now and then, or from being timed.
        at_once = sum(kernel[0] < called + lateness / 4 for _, called, kernel in kernels)
        check(at_once > len(waits) / 2, f"{at_once} of {len(kernels)} timed kernels of {len(waits)} began at once")


def trace_two_hosts(folder, **more):
    trace(folder, 2, 20, **TWO_HOSTS, **more)


def two_hosts_are_on_one_clock():
    with tempfile.TemporaryDirectory() as folder:
        trace_two_hosts(folder)
        said = info(*files(folder))
        joined = r"clock of host \S+: brought to that of host \S+ within [\d.]+ (us|ms), as measured at init"
        check(re.search(joined, said), said)


def check_sends(timeline, error):
    """Each is where its receive is told of, and not after it."""
    check(len(timeline.ends) > 20, f"{len(timeline.ends)} arrows from sends to receives")
    for flow, ((received, what),) in timeline.ends.items():
        (sent, send), = timeline.flows[flow]
        check(what.replace("received", "send") == send, f"from {send} to {what}")
        check(sent <= received + error, f"{send} at {sent}, {what} at {received}, clocks right within {error} ns")


def sends_of_two_hosts_meet_their_receives():
    with tempfile.TemporaryDirectory() as folder:
        trace_two_hosts(folder)
        timeline = timeline_of(folder)
        check_timeline(timeline, folder, 2, 20)
        (clock,) = TraceFile(f"{folder}/1.trace").clocks
        check_sends(timeline, clock.error)


def hosts_whose_clocks_differ_by_1000_s_are_joined():
    try:
        may = subprocess.run([str(word) for word in [*ANOTHER_CLOCK, "true"]], capture_output=True, text=True)
        why = may.stderr if may.returncode else ""
    except FileNotFoundError as missing:
        why = str(missing)
    if why:
        return print(f"skipped: no process can have a clock of its own here: {why.strip()}")
    for ahead in (0, 1):
        with tempfile.TemporaryDirectory() as folder:
            trace_two_hosts(folder, ahead=ahead)
            (clock,) = TraceFile(f"{folder}/1.trace").clocks
            difference = clock.offset - (AHEAD if ahead == 0 else -AHEAD) * SECOND
            check(abs(difference) <= clock.error < SECOND, f"rank {ahead} is ahead: wrong by {difference} ns, {clock}")
            timeline = timeline_of(folder)
            check_timeline(timeline, folder, 2, 20)
            check_sends(timeline, clock.error)


def trace_killed_rank(folder):
    """Leaves 1.trace alone, of the rank that is killed; returns when that was."""
    ranks = traced(folder, 2, 0, TUTTI_PEER_TIMEOUT_MS=500)
    try:
        ranks[1].wait_for("reduced 100")
        os.kill(int(re.search(r"pid (\d+)", ranks[1].output()).group(1)), signal.SIGKILL)
        killed = time.clock_gettime(time.CLOCK_MONOTONIC)
        ranks[1].wait()
    finally:
        for process in ranks:
            process.close()
    os.remove(f"{folder}/0.trace")
    return killed


def killed_rank_is_said_not_to_have_ended_in_order():
    with tempfile.TemporaryDirectory() as folder:
        trace_killed_rank(folder)
        said = info(*files(folder))
        check("it did not end in order, or still runs" in said, said)
        check(re.search(r"AllReduce of 64 KB on 2 ranks \(communicator 0x\w+\): \d\d+ times", said), said)


def killed_rank_leaves_its_last_second():
    with tempfile.TemporaryDirectory() as folder:
        killed = trace_killed_rank(folder)
        last = timeline_of(folder).events[-1][0] / 1e9
        check(killed - 1 < last < killed + 0.1, f"killed at {killed}, last event at {last}")


def trace_training(folder):
    run(4, EXAMPLE, SOURCE / "examples/data/digits.csv", 4, 1, TUTTI_TRACE=f"{folder}/%h-%p.trace")


def training_of_four_processes_is_summed_up():
    with tempfile.TemporaryDirectory() as folder:
        trace_training(folder)
        check(len(files(folder)) == 4, files(folder))
        said = info(*files(folder))
        check(re.search(r"AllReduce of 9640 bytes on 4 ranks \(communicator 0x\w+\): 12 times", said), said)
        check("Late ranks" in said, said)


def training_of_four_processes_is_read_back():
    with tempfile.TemporaryDirectory() as folder:
        trace_training(folder)
        timeline = timeline_of(folder)
        check_timeline(timeline, folder, 4, 12, nbytes=9640)


def file_that_cannot_be_written_is_one_warning_and_no_failure():
    port = free_port()
    process = Process(1, [TRACED, 0, 1, 5], NCCL_COMM_ID=f"127.0.0.1:{port}", TUTTI_TRACE="/no/such/folder/x",
                      NCCL_DEBUG="WARN")
    try:
        check(process.wait() == 0, process.output())
        check(process.output().count("cannot be written: its folder does not exist") == 1, process.output())
    finally:
        process.close()


TESTS = {
    "said": (late_rank_is_named_with_how_late_it_was_and_what_others_lost, two_hosts_are_on_one_clock,
             killed_rank_is_said_not_to_have_ended_in_order, training_of_four_processes_is_summed_up,
             file_that_cannot_be_written_is_one_warning_and_no_failure),
    "timelines": (timeline_has_every_call_launch_and_channel, calls_show_what_they_wait_for_beside_the_device,
                  late_rank_is_seen_to_call_last_and_the_others_to_wait_for_it,
                  sends_of_two_hosts_meet_their_receives, hosts_whose_clocks_differ_by_1000_s_are_joined,
                  killed_rank_leaves_its_last_second, training_of_four_processes_is_read_back),
}

if __name__ == "__main__":
    if sys.argv[1] == "timelines":
        definitions()
    main(*TESTS[sys.argv[1]])
