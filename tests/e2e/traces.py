#!/usr/bin/env python3
"""Jobs are traced, and tutti-info says what happened in them.

  traces.py said        what tutti-info prints and draws of traces
  traces.py timelines   its Perfetto files, read back with Perfetto's own definitions; skipped where these are missing
"""
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from support import BUILD, SKIP, SOURCE, Process, check, environment, free_port, main, run

INFO = BUILD / "tools/tutti_info/tutti-info"
TRACED = BUILD / "tests/e2e/traced"
EXAMPLE = BUILD / "examples/04_data_parallel_training"
BEGIN, END, INSTANT = 1, 2, 3


def definitions():
    """The module of Perfetto's Python package, from this Python or where tools/install-deps --perfetto puts it."""
    sys.path.append(str(SOURCE / ".deps/perfetto"))
    try:
        return importlib.import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    except ImportError as missing:
        print(f"skipped: no definitions of Perfetto's ({missing}): tools/install-deps --perfetto")
        sys.exit(SKIP)


def traced(folder, size, *arguments, late=None, **env):
    """Starts one process for each rank; `late`: rank and milliseconds."""
    port = free_port()
    return [Process(size, [TRACED, r, size, *arguments, *([late[1]] if late and late[0] == r else [])],
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
        self.tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
        self.events = [(p.timestamp, p.track_event) for p in trace.packet if p.HasField("track_event")]
        self.names = {}
        self.slices = {}  # by name: from when to when, and what
        self.flows, ends = {}, {}
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
                continue
            check(event.type in (BEGIN, INSTANT) and event.name and event.categories, f"what is this: {event}")
            if event.type == BEGIN:
                stack.append((time_ns, event))
            self.names.setdefault(event.name, []).append((time_ns, event))
            for flow in event.flow_ids:
                self.flows.setdefault(flow, []).append(event.name)
            for flow in event.terminating_flow_ids:
                ends.setdefault(flow, []).append(event.name)
        check(not any(open_slices.values()), f"slices without an end: {open_slices}")
        self.arrows = {flow: (self.flows[flow], ends[flow]) for flow in ends if flow in self.flows}
        check(len(self.arrows) == len(ends), "an arrow ends that begins nowhere")

    def processes(self):
        return [t.process.process_name for t in self.tracks.values() if t.HasField("process")]

    def count(self, name):
        return len(self.names.get(name, []))

    def facts(self, name):
        return [{a.name: a.string_value or a.uint_value for a in event.debug_annotations} for _, event in self.names[name]]


def check_channels(timeline):
    """The channels of a kernel are on tracks of their own, and work while it runs."""
    kernels = {}
    for times, event in timeline.slices["kernel"]:
        launch = next(a.uint_value for a in event.debug_annotations if a.name == "launch")
        kernels.setdefault(launch, []).append(times)
    for (begin, end), event in timeline.slices["channel"]:
        launch = next(a.uint_value for a in event.debug_annotations if a.name == "launch")
        check(any(first <= begin <= end <= last + 1000 for first, last in kernels[launch]),
              f"a channel of launch {launch} works from {begin} to {end}, its kernels from and to {kernels[launch]}")


def timeline_of(folder):
    """What tutti-info makes of all traces of a folder."""
    output = f"{folder}/run.perfetto-trace"
    info(*files(folder), "-o", output)
    return Timeline(definitions(), output)


def check_timeline(timeline, size, times, nbytes=65536):
    check(len(timeline.processes()) == size, timeline.processes())
    for name in ("ncclAllReduce", "AllReduce"):
        check(timeline.count(name) == size * times, f"{timeline.count(name)} of {name}")
    check(timeline.count("init: init") == size and timeline.count("init: bootstrap") == size, "stages of init are missing")
    check(timeline.count("kernel") >= size, "no kernels")
    check(timeline.count("channel") >= timeline.count("kernel"), "no channels of kernels")
    check_channels(timeline)
    launches = [name for name in timeline.names if name.startswith("launch tutti_AllReduce_")]
    check(sum(timeline.count(name) for name in launches) == size * times, launches)
    for facts in timeline.facts("AllReduce"):
        check(facts["bytes"] == nbytes and 1 <= facts["collective"] <= times, facts)
    chosen = [name for name in timeline.names if name.startswith("plan ")]
    check(sum(timeline.count(name) for name in chosen) == size * times, chosen)
    check(all(" us" in facts["weighed"] for name in chosen for facts in timeline.facts(name)), "no reason for a plan")
    calls = [chain for chain in timeline.flows.values() if chain[0] == "ncclAllReduce"]
    check(len(calls) == size * times and all(chain[1].startswith("launch ") for chain in calls), calls[:3])


def late_rank_is_named_with_how_late_it_was_and_what_others_lost():
    times, late_ms = 40, 12
    with tempfile.TemporaryDirectory() as folder:
        finish(traced(folder, 4, times, late=(2, late_ms)))
        said = info(*files(folder), "--summary")
        found = re.search(r"rank 2 \(host \S+, pid \d+\), rank 2 of communicator 0x\w+, came last in (\d+) of 40 operations, "
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
        finish(traced(folder, 4, 40))
        check_timeline(timeline_of(folder), 4, 40)


def trace_two_hosts(folder):
    finish(traced(folder, 2, 20, NCCL_HOSTID=["one", "two"], NCCL_SOCKET_IFNAME="lo"))


def two_hosts_are_on_one_clock():
    with tempfile.TemporaryDirectory() as folder:
        trace_two_hosts(folder)
        said = info(*files(folder))
        check(re.search(r"clock of host \S+: brought to that of host \S+ within [\d.]+ (us|ms), as measured at init", said), said)


def sends_of_two_hosts_meet_their_receives():
    with tempfile.TemporaryDirectory() as folder:
        trace_two_hosts(folder)
        timeline = timeline_of(folder)
        check_timeline(timeline, 2, 20)
        check(len(timeline.arrows) > 20, f"{len(timeline.arrows)} arrows from sends to receives")
        for sent, received in timeline.arrows.values():
            check(sent == [f"send step {received[0].split()[-1]}"], (sent, received))


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
        check_timeline(timeline, 4, 12, nbytes=9640)


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
    "timelines": (timeline_has_every_call_launch_and_channel, sends_of_two_hosts_meet_their_receives,
                  killed_rank_leaves_its_last_second, training_of_four_processes_is_read_back),
}

if __name__ == "__main__":
    if sys.argv[1] == "timelines":
        definitions()
    main(*TESTS[sys.argv[1]])
