#!/usr/bin/env python3
"""A network that reduces, and what can go wrong with it: four ranks on two hosts, case after case in one job.

in_network.py PLUGIN…   examples/plugins/switch_collnet of every version; the last one is the newest"""
import re
import sys

from support import BUILD, check, main, run_for_code

PLUGINS = sys.argv[1:]
PLUGIN = PLUGINS[-1]
HOSTS, PER_HOST = 2, 2
RANKS = range(HOSTS * PER_HOST)
OFF = "Cannot initialize CollNet, using point-to-point network instead: "
NAMED = rf"network switch \(collNet v12 of {re.escape(PLUGIN)}\)"
ALL = ("all_reduce", "all_gather", "reduce_scatter")


class Said:
    """What was said while one case lasted."""

    def __init__(self, what, text):
        self.what = what
        self.text = text
        self.lines = text.splitlines()

    def check(self, condition, message):
        check(condition, f"{self.what}: {message}:\n{self.text[-6000:]}")

    def of(self, rank):
        return "\n".join(line for line in self.lines if line.startswith(f"rank {rank}: "))

    def all_are(self, word):
        for rank in RANKS:
            self.check(re.search(rf"^rank {rank}: {word}$", self.of(rank), re.M), f"rank {rank} is not {word}")

    def warnings(self):
        """Errors as well, and nothing of what only tests have in their environment."""
        return [line for line in self.lines if re.search(r"NCCL (WARN|ERROR) (?!TUTTI_\w+ is not a setting)", line)]


def job(cases, **env):
    """What was said in each of the cases."""
    code, said = run_for_code(PER_HOST, BUILD / "tests/e2e/in_network", HOSTS, PER_HOST, *cases, seconds=300,
                              **{"NCCL_NET_PLUGIN": PLUGIN, "NCCL_COLLNET_ENABLE": 1, "SWITCH_COLLNET_DEVICES": PER_HOST,
                                 "SWITCH_COLLNET_CONNECT_MS": 60000,
                                 "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET", **env})
    check(code == 0, f"{cases} ended with {code}:\n{said[-6000:]}")
    parts = re.findall(r"^case (\d+) begins: [^\n]*\n(.*?)^case \1 ends$", said, re.M | re.S)
    check(len(parts) == len(cases), f"{len(parts)} of {len(cases)} cases:\n{said[-6000:]}")
    return [Said(case, text) for case, (_, text) in zip(cases, parts)]


def is_off(said, words, asked=len(RANKS)):
    """For all ranks alike: one line of all of them says why, and who has asked for it finds the same in the log."""
    said.all_are("right")
    said.check("WRONG" not in said.text, "a wrong result")
    warned = said.warnings()
    said.check(len(warned) == 1 and OFF in warned[0] and re.search(words, warned[0]), f"not one warning {words!r}: {warned}")
    reason = warned[0].split(OFF)[1].removesuffix(". All ranks go on without it")
    told = [line for line in said.lines if line.endswith("CollNet is not used: " + reason)]
    said.check(len(told) == asked, f"{len(told)} of {asked} ranks are told why")


def fault(rank, name):
    return f"right all {rank}:SWITCH_COLLNET_FAULTS={name}"


def who(rank):
    return rf"rank {rank} on host \S+: "


def head(rank, call):
    """What is told of a call on a head."""
    place = rf"rail {rank % PER_HOST} by COLLNET/switch/{rank % PER_HOST}"
    return rf"{who(rank)}CollNet of rank {rank} \(host \S+, device \d\), {place} failed in {call}: "


def failed(function, words, device=r"(, device \d)?"):
    return rf"{NAMED}{device}: {function} failed with nccl\w+Error; it said: switch_collnet: {words}"


def what_fails_while_it_is_set_up_turns_it_off_for_all():
    refused = "told to refuse"
    cases = {
        fault(1, "refuse-init"): who(1) + failed("init", f"collNet init: {refused}"),
        fault(2, "refuse-devices"): who(2) + failed("devices", f"devices: {refused}"),
        fault(3, "refuse-properties"): who(3) + failed("getProperties", f"getProperties: {refused}"),
        fault("*", "refuse-init"): who(0) + failed("init", f"collNet init: {refused}"),
        fault(0, "refuse-listen"): head(0, "listen") + failed("listen", f"listen: {refused}"),
        fault(3, "refuse-listen"): head(3, "listen") + failed("listen", f"listen: {refused}"),
        fault(2, "refuse-connect") + " *:SWITCH_COLLNET_CONNECT_MS=3000":
            head(2, "connect") + failed("connect", f"connect: node 1 of 2, device switch0, switch .*: {refused}"),
        fault(1, "hang-connect") + " *:SWITCH_COLLNET_CONNECT_MS=8000 *:SWITCH_COLLNET_OPERATION_MS=1000":
            head(1, "connect") + failed("connect", "connect: node 0 of 2, device switch1, .*told to wait"),
        fault(3, "no-collnet"):
            who(3) + r"CollNet of rank 3 .*, rail 1 by COLLNET/switch/1: connect gave no connection",
        fault(0, "refuse-register=1"): head(0, "registering memory") + failed("regMr", f"regMr: .*{refused}"),
        fault(2, "refuse-register=2"): head(2, "registering memory") + failed("regMr", f"regMr: .*{refused}"),
        fault(0, "refuse-register=4"): head(0, "registering memory") + failed("regMr", f"regMr: .*{refused}"),
        # What has been made by then is given back, and what goes wrong with that is no second warning.
        fault(3, "refuse-support,refuse-close"): who(3) + failed("reduceSupport", f"reduceSupport: {refused}"),
    }
    for said, words in zip(job(cases), cases.values()):
        is_off(said, words)


def ranks_that_do_not_match_turn_it_off_for_all():
    has = r"rank \d on host \S+ has 2"
    cases = {
        "right all 2:NCCL_COLLNET_ENABLE=0": r"CollNet is not enabled on rank 2 on host \S+, and is on rank \d on host",
        "right all 0:NCCL_COLLNET_ENABLE=0": r"CollNet is not enabled on rank 0 on host \S+, and is on rank \d on host",
        "right all 1:SWITCH_COLLNET_COLL_DEVICES=1":
            rf"\(min 1, max 2\): rank 1 on host \S+ has 1 and {has}\. Load the same plugin",
        "right all 3:SWITCH_COLLNET_COLL_DEVICES=0":
            rf"\(min 0, max 2\): rank 3 on host \S+ has 0 and {has}\. {who(3)}{NAMED}: it has no devices",
        "right all 2:SWITCH_COLLNET_NAMES=other0,other1": None,
    }
    said = job(cases)
    for one, words, asked in zip(said, cases.values(), (3, 3, 4, 4)):
        is_off(one, words, asked)
    # The same devices under other names: a network of its own, with all that belongs to it.
    said[-1].all_are("right")
    said[-1].check(not said[-1].warnings() and "[send] via COLLNET/switch/0" in said[-1].text and
                   "CollNet is not used" not in said[-1].text and "other0" in said[-1].text, "CollNet is off")
    allowed = job(["right all 1:SWITCH_COLLNET_COLL_DEVICES=1", "right all 3:SWITCH_COLLNET_COLL_DEVICES=0"],
                  NCCL_IGNORE_COLLNET_MISMATCH=1)
    allowed[0].all_are("right")
    allowed[0].check(not allowed[0].warnings() and "[send] via COLLNET/switch/0" in allowed[0].text,
                     "the device that all have is not used")
    is_off(allowed[1], r"rank 3 on host \S+ has no collNet plugin with a device .*it has no devices")


def a_rank_without_the_plugin_is_named():
    """It has another network: without the collNet its messages would not arrive either."""
    for said in job(["refused all 1:NCCL_NET_PLUGIN=none"]):
        for rank in RANKS:
            named = r"error \d: .*Mismatched network \(NCCL_NET, NCCL_NET_PLUGIN\) : rank 0 .*rank 1 .*"
            said.check(re.search(rf"^rank {rank}: {named}", said.of(rank), re.M), f"rank {rank} is not told")


def ranks_with_other_versions_of_the_plugin_do_together_what_all_can():
    for old in (PLUGINS[0], PLUGINS[2]):
        for said in job([f"right all 3:NCCL_NET_PLUGIN={old}"], SWITCH_COLLNET_SPEED=1000):
            said.all_are("right")
            said.check(not said.warnings() and "[send] via COLLNET/switch/1" in said.text, "it is not used")


def what_one_cannot_do_goes_another_way_on_all():
    cases = ["right all 2:SWITCH_COLLNET_FAULTS=no-allgather", "right all 1:SWITCH_COLLNET_FAULTS=no-reducescatter",
             "right all 3:SWITCH_COLLNET_FAULTS=no-support=int32:sum"]
    for said in job(cases, NCCL_ALGO="Ring,CollNetDirect"):
        said.all_are("right")
        said.check(not said.warnings() and "[send] via COLLNET/switch/1" in said.text, "it is not used")


CALLS = {"all_reduce": r"AllReduce int32 sum of \d+ bytes", "all_gather": r"AllGather of \d+ bytes",
         "reduce_scatter": r"ReduceScatter int32 sum of \d+ bytes"}
OPERATIONS_FAIL = {"NCCL_ALGO": "CollNetDirect", "NCCL_DEBUG": "WARN"}


def fails_everywhere(said, operation, words):
    """Every rank has an error that names a head, what it talks to, the operation and the network's words."""
    said.all_are("the other goes on")
    said.check("WRONG" not in said.text and "failed:" not in said.text, "something else")
    error = rf"error \d: .*CollNet of rank \d .*rail \d by COLLNET/switch/\d.* failed in (the test of )?call \d+ " \
            rf"\({CALLS[operation]}\): {NAMED}, device \d: \w+ failed with nccl\w+Error; it said: {words}"
    for rank in RANKS:
        said.check(re.search(rf"^rank {rank}: {error}", said.of(rank), re.M), f"rank {rank} has no such error as {words}")


def a_call_that_fails_is_named_and_nothing_else_suffers():
    cases = {}
    for operation in ALL:
        cases[f"plugin-fails {operation} *:SWITCH_COLLNET_FAULTS=post-error=3@1"] = \
            rf"switch_collnet: \w+: node \d of 2, device switch\d, switch \S+: (told to fail|the switch says: node 1)"
        cases[f"plugin-fails {operation} *:SWITCH_COLLNET_FAULTS=test-error=3@0"] = \
            rf"switch_collnet: \w+: node \d of 2, device switch\d, switch \S+: (told to fail|the switch says: node 0)"
    for (case, words), said in zip(cases.items(), job(cases, **OPERATIONS_FAIL)):
        fails_everywhere(said, case.split()[1], words)


def a_switch_that_fails_is_named_and_nothing_else_suffers():
    place = r"switch_collnet: test: node \d of 2, device switch\d, switch 127\.0\.0\.1:\d+: "
    faults = {
        "lost=3 *:SWITCH_COLLNET_OPERATION_MS=2000": r".*(has had no answer for 2000 ms|has waited too long for node)",
        "short=3@1": r"the switch has answered .* with \d+ bytes instead of \d+",
        "die=5": "(the connection was closed by the other side|Connection reset by peer)",
    }
    cases = {f"switch-fails {operation} *:SWITCH_COLLNET_FAULTS={text}": (operation, words)
             for text, words in faults.items() for operation in ALL}
    for (operation, words), said in zip(cases.values(), job(cases, **OPERATIONS_FAIL)):
        fails_everywhere(said, operation, place.replace("test", r"\w+") + words)


def a_switch_that_does_not_answer_holds_up_no_abort():
    for said in job([f"held {operation} *:SWITCH_COLLNET_FAULTS=lost=3" for operation in ALL], **OPERATIONS_FAIL):
        said.all_are("held")
        said.all_are("the other goes on")


def a_network_that_is_late_or_busy_is_waited_for():
    cases = [f"right all *:SWITCH_COLLNET_FAULTS={text}" for text in ("late=50", "null-request=40@1", "late=20@0")]
    for said in job(cases, **OPERATIONS_FAIL):
        said.all_are("right")
        said.check(not said.warnings(), "a warning")


if __name__ == "__main__":
    main(what_fails_while_it_is_set_up_turns_it_off_for_all, ranks_that_do_not_match_turn_it_off_for_all,
         a_rank_without_the_plugin_is_named, ranks_with_other_versions_of_the_plugin_do_together_what_all_can,
         what_one_cannot_do_goes_another_way_on_all, a_call_that_fails_is_named_and_nothing_else_suffers,
         a_switch_that_fails_is_named_and_nothing_else_suffers, a_switch_that_does_not_answer_holds_up_no_abort,
         a_network_that_is_late_or_busy_is_waited_for)
