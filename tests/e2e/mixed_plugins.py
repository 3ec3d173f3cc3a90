#!/usr/bin/env python3
"""Jobs over a library that is a plugin of several kinds: each kind that the settings ask for is in use, and all are
called in the order that is owed to them.

  mixed_plugins.py PLUGIN…   the libraries whose calls are written down (tests/plugin/mixed_trace.h)
"""
import pathlib
import re
import sys
import tempfile

from support import BUILD, Process, check, free_port, main

OLD, NEW = (next(path for path in map(pathlib.Path, sys.argv[1:]) if path.name == f"libnccl-net-traced-v{version}.so")
            for version in (9, 12))
WITH_ENV = OLD.with_name("libnccl-net-traced-env.so")
CYCLES, REDUCTIONS, BYTES = 2, 3, 30000 * 4
# An algorithm and a protocol that nobody takes unasked: the tuner's choice, by numbers and by name.
TAKEN, CHOICE = "0/0", ("TREE", "LL")
ALL = {"net", "tuner", "profiler"}


class Life:
    """Of one kind in one library: the places of its lines in the trace, and what it says at its end."""

    def __init__(self, begun):
        self.begun, self.used, self.ended, self.facts = begun, None, None, {}


class Loading:
    """From "load" to "unload"."""

    def __init__(self):
        self.lives, self.again, self.closed = {}, 0, False

    def of(self, kind):
        return [life for (its, _), life in self.lives.items() if its == kind]

    def take(self, place, line):
        kind, number, what = re.fullmatch(r"(\w+) (\d+) (.*)", line).groups()
        if what == "begins again":
            self.again += 1
        elif what == "begins":
            check((kind, number) not in self.lives, f"begins twice: {line}")
            self.lives[kind, number] = Life(place)
        elif what == "is used":
            self.lives[kind, number].used = place
        else:
            life = self.lives[kind, number]
            check(life.ended is None, f"ends twice: {line}")
            life.ended = place
            life.facts = dict(fact.split("=") for fact in what.removeprefix("ends: ").split())


def loadings(text):
    """What a trace tells, checked as far as it holds for every job."""
    check("WRONG" not in text, text)
    found, other = [], []
    for place, line in enumerate(text.splitlines()):
        if line == "load":
            check(not found or found[-1].closed, f"loaded while it is there:\n{text}")
            found.append(Loading())
        elif line == "unload":
            check(not found[-1].closed and all(life.ended is not None for life in found[-1].lives.values()), text)
            found[-1].closed = True
        elif re.match(r"(init|finalize)\b", line):
            other.append((place, line.split()[0]))
        else:
            check(found and not found[-1].closed, f"called while it is not there: {line}\n{text}")
            found[-1].take(place, line)
    check(all(loading.closed for loading in found), f"it is not unloaded at the end:\n{text}")
    for loading in found:
        check(all(life.used is not None for life in loading.lives.values()), f"what begins is not used:\n{text}")
    return found, other


def run_job(program, processes, **env):
    """A job of two ranks, in as many processes. Of each process its trace and what it says."""
    address = f"127.0.0.1:{free_port()}"
    ranks = [[0, 1]] if processes == 1 else [[0], [1]]
    with tempfile.TemporaryDirectory() as folder:
        traces = [pathlib.Path(folder) / f"trace{i}" for i in range(processes)]
        started = [Process(2, [BUILD / "tests/e2e" / program, 2, CYCLES, REDUCTIONS, *ranks[i]], NCCL_COMM_ID=address,
                           **{"NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_DEBUG": "INFO", "MIXED_TAKE": TAKEN,
                              "NCCL_DEBUG_SUBSYS": "INIT,NET,TUNING,ENV,DESTROY", "MIXED_TRACE": traces[i],
                              "TEST_ENV_FILE": traces[i], "NCCL_HOSTID": f"host{i}", **env})
                   for i in range(processes)]
        try:
            for process in started:
                code = process.wait(120)
                check(code == 0, f"ended with {code}:\n{process.output()[-4000:]}")
                reduced = CYCLES * REDUCTIONS * 2 // processes
                check(f"reduced {reduced}\n" in process.output(), process.output()[-4000:])
            return [(trace.read_text() if trace.exists() else "", process.output())
                    for trace, process in zip(traces, started)]
        finally:
            for process in started:
                process.close()


def methods(job):
    """What was chosen: rank 0 says it."""
    return set(re.findall(r"Algo (\w+) proto (\w+)", job[0][1]))


def check_profiler(life, net, newest, expected):
    heard = life.facts
    check(not any("ended" in count for count in heard.values()), f"some events do not end: {heard}")
    check(int(heard["coll"]) == int(heard["group"]) == REDUCTIONS and int(heard["kernel"]) >= REDUCTIONS, f"{heard}")
    check(int(heard["op"]) >= 2 * REDUCTIONS and int(heard["step"]) >= int(heard["op"]), f"{heard}")
    check(int(heard["sent"]) >= REDUCTIONS * BYTES, f"ranks of two send what they have: {heard}")
    check(heard["method"] == expected, f"{expected} was to be chosen: {heard}")
    sends = int(heard["step"]) // 2
    check(int(heard["net"]) >= sends if net and newest else int(heard["net"]) == 0, f"events of the network: {heard}")


def check_in_order(loading, text):
    """What one rank's kinds owe each other: net, profiler, tuner, and back."""
    order = [life for kind in ("net", "profiler", "tuner") for life in loading.of(kind)]
    for outer, inner in zip(order, order[1:]):
        check(outer.begun < inner.begun and inner.ended < outer.ended, f"out of order:\n{text}")


def check_use(loading, kinds, newest, chosen):
    """`loading` is of one rank."""
    for kind in ALL:
        check(len(loading.of(kind)) == (kind in kinds), f"{kind} has {len(loading.of(kind))} lives, wanted are {kinds}")
    if "tuner" in kinds:
        check(chosen == {CHOICE}, f"chosen were {chosen}")
        check(int(loading.of("tuner")[0].facts["asked"]) == REDUCTIONS, f"asked: {loading.of('tuner')[0].facts}")
    else:
        check(chosen and CHOICE not in chosen, f"chosen were {chosen} without a tuner")
    if "profiler" in kinds:
        check_profiler(loading.of("profiler")[0], "net" in kinds, newest, "/".join(("AllReduce", *next(iter(chosen)))))
    if "net" in kinds:
        sent = int(loading.of("net")[0].facts["sent"])
        check(sent >= REDUCTIONS * BYTES, f"the network has moved {sent} bytes")
    if "net" in kinds and "profiler" in kinds:
        # The rest is what the ends of a connection tell each other of themselves.
        told = int(loading.of("profiler")[0].facts["sent"])
        check(told <= sent <= told + 4096, f"the network has moved {sent} bytes, the profiler heard of {told}")


def rows(plugin, folder):
    """Settings, and the kinds that are then the library's."""
    link = folder / "another-name.so"
    link.symlink_to(plugin)
    net, tuner, profiler = "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN"
    yield {net: plugin}, ALL
    yield {net: plugin, tuner: plugin, profiler: plugin}, ALL
    yield {net: plugin, tuner: link, profiler: link}, ALL
    yield {net: plugin, tuner: "nowhere", profiler: "/nowhere/x.so"}, ALL
    yield {net: plugin, tuner: "", profiler: ""}, ALL
    yield {net: plugin, tuner: "none"}, {"net", "profiler"}
    yield {net: plugin, profiler: "NONE"}, {"net", "tuner"}
    yield {net: "none", tuner: plugin, profiler: plugin}, {"tuner", "profiler"}
    yield {tuner: plugin}, {"tuner"}
    yield {profiler: plugin}, {"profiler"}


def each_setting_gives_its_kinds():
    """The library comes and goes with each communicator: each loading is one rank's communicator."""
    with tempfile.TemporaryDirectory() as folder:
        for plugin in (OLD, NEW):
            below = pathlib.Path(folder) / plugin.stem
            below.mkdir()
            for settings, kinds in rows(plugin, below):
                job = run_job("mixed_job", 2, **settings)
                for trace, _ in job:
                    found, _ = loadings(trace)
                    check(len(found) == CYCLES, f"{settings}: loaded {len(found)} times:\n{trace}")
                    for loading in found:
                        check_use(loading, kinds, plugin == NEW, methods(job))
                        check_in_order(loading, trace)


def each_kind_has_its_own_version():
    for plugin, net in ((OLD, "testv09 (v9)"), (NEW, "testv12 (v12)")):
        for _, said in run_job("mixed_job", 2, NCCL_NET_PLUGIN=plugin):
            for line in (f"Loaded net plugin {net}", "PROFILER/Plugin: Loaded mixed profiler (v4)",
                         "TUNER/Plugin: Using mixed tuner (v3)"):
                check(said.count(line) == CYCLES, f"{line} was said {said.count(line)} times:\n{said}")


def ranks_of_one_process_share_the_library():
    """Each has its lives, and the library goes with the last."""
    for plugin in (OLD, NEW):
        job = run_job("mixed_job", 1, NCCL_NET_PLUGIN=plugin)
        (trace, _), = job
        found, _ = loadings(trace)
        check(methods(job) == {CHOICE}, f"chosen were {methods(job)}")
        for kind in ("tuner", "profiler"):
            lives = [life for loading in found for life in loading.of(kind)]
            check(len(lives) == 2 * CYCLES, f"{len(lives)} lives of the {kind}:\n{trace}")
        for life in [life for loading in found for life in loading.of("profiler")]:
            check_profiler(life, True, plugin == NEW, "AllReduce/" + "/".join(CHOICE))
        for loading in found:
            nets = loading.of("net")
            others = loading.of("tuner") + loading.of("profiler")
            check(min(net.begun for net in nets) < min(life.begun for life in others), f"out of order:\n{trace}")
            check(max(net.ended for net in nets) > max(life.ended for life in others), f"out of order:\n{trace}")


def what_is_kept_loaded_is_asked_anew():
    """The old network begins again with each communicator though its library stays, the new one has one life each."""
    for plugin, lives, again in ((OLD, 1, CYCLES - 1), (NEW, CYCLES, 0)):
        for trace, _ in run_job("mixed_job", 2, NCCL_NET_PLUGIN=plugin, NCCL_NET_PLUGIN_REF_COUNT=1):
            (loading,), _ = loadings(trace)
            check(len(loading.of("net")) == lives and loading.again == again, f"lives of the network:\n{trace}")
            check(len(loading.of("tuner")) == len(loading.of("profiler")) == CYCLES, f"lives of the others:\n{trace}")


def a_program_can_be_the_library():
    static = "STATIC_PLUGIN"
    for settings, kinds in (({"NCCL_NET_PLUGIN": static}, ALL),
                            ({"NCCL_NET_PLUGIN": "static_plugin", "NCCL_TUNER_PLUGIN": "Static_Plugin",
                              "NCCL_PROFILER_PLUGIN": static}, ALL),
                            ({"NCCL_TUNER_PLUGIN": static}, {"tuner"}),
                            ({"NCCL_PROFILER_PLUGIN": static}, {"profiler"}),
                            ({}, set())):
        job = run_job("mixed_job_static", 2, **settings)
        check((methods(job) == {CHOICE}) == ("tuner" in kinds), f"{settings}: chosen were {methods(job)}")
        for trace, _ in job:
            (loading,), _ = loadings(trace)
            for kind in ALL:
                lives = 0 if kind not in kinds else 1 if kind == "net" else CYCLES
                check(len(loading.of(kind)) == lives, f"{settings}: lives of the {kind}:\n{trace}")
            sent = sum(int(life.facts["sent"]) for life in loading.of("net"))
            check("net" not in kinds or sent >= CYCLES * REDUCTIONS * BYTES, f"the network has moved {sent} bytes")
            for life in loading.of("profiler"):
                check_profiler(life, "net" in kinds, False, "/".join(("AllReduce", *next(iter(methods(job))))))


def an_env_plugin_names_itself_as_net_collnet_tuner_and_profiler():
    """It begins before all of them and ends after, and its answers are why they are used."""
    answers = f"NCCL_NET_PLUGIN={WITH_ENV};NCCL_COLLNET_ENABLE=1"
    for trace, said in run_job("mixed_job", 2, NCCL_ENV_PLUGIN=WITH_ENV, TEST_ENV_ANSWERS=answers,
                               SWITCH_COLLNET_DEVICES=1, MIXED_TAKE="2/2"):
        (loading,), other = loadings(trace)
        check([what for _, what in other] == ["init", "finalize"], f"the env plugin's life:\n{trace}")
        lives = loading.of("tuner") + loading.of("profiler")
        check(len(lives) == 2 * CYCLES, f"lives of tuner and profiler:\n{trace}")
        check(all(other[0][0] < life.begun and life.ended < other[1][0] for life in lives), f"out of order:\n{trace}")
        for life in loading.of("profiler"):
            check_profiler(life, True, False, "AllReduce/COLLNET_DIRECT/SIMPLE")
        for line in ("ENV/Plugin: Using testenv1 (v1)", "Loaded net plugin switch (v12)",
                     "Loaded collnet plugin switch (v12)", "COLLNET/switch", "Unloading plugin",
                     "ENV/Plugin: Closing env plugin testenv1"):
            check(line in said, f"{line!r} is missing:\n{said}")
        check(said.rindex("Unloading plugin") < said.index("ENV/Plugin: Closing"), f"out of order:\n{said}")


if __name__ == "__main__":
    main(each_setting_gives_its_kinds, each_kind_has_its_own_version, ranks_of_one_process_share_the_library,
         what_is_kept_loaded_is_asked_anew, a_program_can_be_the_library,
         an_env_plugin_names_itself_as_net_collnet_tuner_and_profiler)
