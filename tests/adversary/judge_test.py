#!/usr/bin/env python3
"""The judge itself: texts made by hand, right ones and wrong ones. A judge that is content with anything is no use."""
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import campaign  # noqa: E402
import job_plan  # noqa: E402
import judge  # noqa: E402
from ranks import Event, Process, parse  # noqa: E402

REPORTER = "rank 0 of 4 on host vm, device 0: "
DIED = ("Bootstrap: rank 2 (host vm, pid 102) died or lost its network: its connection to rank 1 ended (closed without "
        "a goodbye); look for the first error on that rank, or for the system's out-of-memory killer")
SILENT = ("Bootstrap: rank 2 (host vm, pid 102) has given rank 3 no sign of life for 5000 ms: is its process stopped "
          "(SIGSTOP, a debugger), its host frozen, or the network between them cut?")
MUTE = ("Bootstrap: rank 2 (host 127.0.0.1) at 127.0.0.1<1> has not answered rank 3 for 9000 ms, although its port is "
        "open: is that process stopped (SIGSTOP, a debugger), has it no file descriptors left (its log says so), or has "
        "it ended while a child that it forked holds its sockets?")
IN_ORDER = {rank: rank for rank in range(4)}
TURNED = {rank: (rank + 1) % 4 for rank in range(4)}
TWO = judge.Membership({2}, {102}, [IN_ORDER, TURNED])


def of(text, comm=0, membership=TWO, reporter=0):
    return judge.judge_text(text, comm, reporter, membership).what


class Texts(unittest.TestCase):
    def test_the_victim_by_number_is_right(self):
        for text in (DIED, REPORTER + DIED, SILENT, REPORTER + SILENT, MUTE, REPORTER + MUTE):
            self.assertEqual(of(text), judge.OK, text)

    def test_who_has_seen_or_heard_of_it_is_not_the_cause(self):
        seen = " (seen by rank 1 (host vm, pid 101, device 1))"
        heard = " (heard by rank 0 of 4 on host vm, device 0)"
        self.assertEqual(of(DIED + seen + heard), judge.OK)
        self.assertEqual(of(DIED.replace("rank 2 (host vm, pid 102)", "rank 3 (host vm, pid 103)") + seen + heard),
                         judge.MISNAMED)

    def test_a_failure_in_a_ranks_own_words_is_that_ranks(self):
        words = "failed: Cuda failure 205 in cuIpcOpenMemHandle for memory of rank 0 (host vm, device 0)"
        self.assertEqual(of("rank 2 (host vm, pid 102, device 2) " + words), judge.OK)
        self.assertEqual(of("rank 3 (host vm, pid 103, device 3) " + words), judge.MISNAMED)

    def test_an_abort_for_another_communicators_sake_is_the_lost_ranks(self):
        text = ("Bootstrap: rank 2 (host vm, pid 102) gives no sign of life (is its process stopped?). Another "
                "communicator has failed for that, and rank 1 (host vm, pid 101, device 1) has aborted this one")
        self.assertEqual(of(text), judge.OK)
        self.assertEqual(of(text.replace("rank 2 (host vm, pid 102)", "rank 3 (host vm, pid 103)")), judge.MISNAMED)
        text = ("Bootstrap: rank 1 (host vm, pid 101) aborted its communicator, perhaps because another one of its "
                "process had failed: " + DIED)
        self.assertEqual(of(text), judge.OK)

    def test_somebody_else_is_misnamed(self):
        for text in (DIED, REPORTER + DIED, SILENT):
            other = text.replace("rank 2 (host vm, pid 102)", "rank 3 (host vm, pid 103)")
            other = other.replace("given rank 3", "given rank 0")
            self.assertEqual(of(other), judge.MISNAMED, other)

    def test_the_victims_number_with_another_process_is_misnamed(self):
        self.assertEqual(of(DIED.replace("pid 102", "pid 103")), judge.MISNAMED)

    def test_an_innocent_beside_the_victim_is_misnamed(self):
        self.assertEqual(of("Bootstrap: ranks 2 and 3 of 4 did not come within 8.0 s"), judge.MISNAMED)
        self.assertEqual(of("Bootstrap: rank 2 of 4 did not come within 8.0 s: were all processes started?"), judge.OK)

    def test_nobody_is_unnamed(self):
        for text in ("", "Cuda failure 999 'unknown error' in cuEventRecord on device 2", "unhandled system error"):
            self.assertEqual(of(text), judge.UNNAMED, text)

    def test_who_reports_is_not_the_cause(self):
        self.assertEqual(of(REPORTER + "Cuda failure 999 in cuEventRecord on device 2"), judge.MISNAMED)

    def test_words_passed_on_name_the_last_one(self):
        passed = REPORTER + "rank 1 of 4 on host vm, device 1: "
        self.assertEqual(of(passed + DIED), judge.OK)
        self.assertEqual(of(passed + "Cuda failure 999 in cuEventRecord"), judge.MISNAMED)
        self.assertEqual(of(REPORTER + "rank 2 of 4 on host vm, device 2: Cuda failure 999 in cuEventRecord"), judge.OK)

    def test_an_abort_is_the_cause_unless_it_says_why(self):
        abort = "Bootstrap: rank 1 (host vm, pid 101) aborted its communicator"
        self.assertEqual(of(abort), judge.MISNAMED)
        self.assertEqual(of(abort + ", because rank 2 (host vm, pid 102) died"), judge.OK)
        self.assertEqual(of(abort + ", because rank 3 (host vm, pid 103) died"), judge.MISNAMED)

    def test_the_cause_is_blamed_and_not_what_came_of_it(self):
        late = ("Bootstrap: rank 1 of 4 did not come within 8.0 s: were all processes started, with the same id?, "
                "perhaps because another one of its process had failed: rank 3 (host h, pid 5) died")
        self.assertEqual(judge.blamed(late), {judge.Named(3, 5)})
        self.assertEqual(judge.blamed(late.partition(", perhaps")[0]), {judge.Named(1)})
        for gone in ("the bootstrap root at 192.0.2.2<5> ended while the communicator was being made",
                     "the process which made the unique id (host h, pid 9) ended; look for the first error there",
                     "rank 2 (host h, pid 8) aborted its communicator, perhaps"):
            text = f"Bootstrap: {gone}, because rank 1 (host h, pid 7) died"
            for heard in ("", " (heard by rank 0 of 4 on host h, device 0)"):
                self.assertEqual(judge.blamed(text + heard), {judge.Named(1, 7)}, text)
                self.assertEqual(judge.blamed(REPORTER + text + heard), {judge.Named(1, 7)}, text)

    def test_a_cause_in_a_ranks_own_words_is_believed(self):
        own = "rank 1 (host vm, pid 101, device 1) gave up: its work is lost because rank 2 (host vm, pid 102) died"
        self.assertEqual(judge.blamed(own), {judge.Named(2, 102)})
        quoted = ("Bootstrap: rank 1 (host vm, pid 101) aborted its communicator, perhaps because another one of its "
                  "process had failed: rank 2 (host vm, pid 102, device 2) failed: no memory of rank 0 (pid 100)")
        self.assertEqual(judge.blamed(quoted), {judge.Named(2, 102)})

    def test_a_cause_that_names_nobody_leaves_the_blame_where_it_is(self):
        why = " because its process has no file descriptors left, and its connection to rank 1 ended"
        self.assertEqual(judge.blamed("Bootstrap: rank 2 (host vm, pid 102) failed" + why), {judge.Named(2, 102)})
        self.assertEqual(judge.blamed("Bootstrap: the bootstrap root at 192.0.2.2<5> has not answered rank 1" + why),
                         {judge.Named(0)})
        seen = "file.1 cannot be read because it is a socket (seen by rank 2 (host vm, pid 102, device 2))"
        self.assertEqual(judge.blamed(seen), {judge.Named(2, 102)})

    def test_the_root_is_blamed_by_its_process_or_its_address(self):
        reporter = "rank 3 of 4 on host vm, device 3: "
        for words in ("", reporter, reporter + REPORTER):
            text = words + "Bootstrap: the process which made the unique id (host h, pid 5) has not answered rank 3"
            self.assertEqual(judge.blamed(text), {judge.Named(-1, 5)}, text)
            text = words + "Bootstrap: the bootstrap root at 1.2.3.4:5 closed its connection to rank 3 without a word"
            self.assertEqual(judge.blamed(text), {judge.Named(0)}, text)

    def test_who_is_stopped_has_not_died_of_a_cause_either(self):
        stopped = judge.Membership({2}, {102}, [IN_ORDER], dead=False)
        text = "Bootstrap: the bootstrap root at 192.0.2.2<5> ended because rank 2 (host vm, pid 102) {}"
        self.assertEqual(of(text.format("died"), membership=stopped), judge.MISNAMED)
        self.assertEqual(of(text.format("gives no sign of life"), membership=stopped), judge.OK)

    def test_who_has_met_what_concerns_all_ranks_is_named(self):
        text = "cannot read file.1 (NCCL_TOPO_FILE): it is a socket (seen by rank 2 (host vm, pid {}, device 2))"
        self.assertEqual(of(text.format(102)), judge.OK)
        self.assertEqual(of(text.format(103)), judge.MISNAMED)

    def test_who_was_not_answered_is_not_the_cause(self):
        text = "Bootstrap: the bootstrap root at 192.0.2.2<5> has not answered rank 1 for 10000 ms, although its port is"
        first = judge.Membership({0}, {100}, [IN_ORDER], dead=False)
        self.assertEqual(of(text, membership=first, reporter=1), judge.OK)
        self.assertEqual(of(text, reporter=1), judge.MISNAMED)

    def test_an_abort_may_quote_another_communicator(self):
        abort = ("Bootstrap: rank 3 (host vm, pid 103, device 3) aborted its communicator, perhaps because another one "
                 "of its process had failed: receive from rank 1 (host vm, device 2) by NET/Socket/0 on channel 0 of "
                 "rank 2 (host vm, device 3): rank 1 (host vm, pid {}) has ended its process (exit)")
        self.assertEqual(of(abort.format(102)), judge.OK)
        self.assertEqual(of(abort.format(101)), judge.MISNAMED)

    def test_the_text_of_another_communicator_is_read_with_its_numbers(self):
        turned = "rank 1 of 4 on host vm, device 0: Bootstrap: rank 3 died or lost its network"
        self.assertEqual(of(turned, comm=1), judge.OK)
        self.assertEqual(of(turned, comm=0), judge.OK)
        self.assertEqual(of("rank 0 of 4 on host vm, device 0: Bootstrap: rank 3 died", comm=1), judge.MISNAMED)

    def test_a_connection_names_its_far_end(self):
        text = "Bootstrap: the connection from rank 0 to rank 2 (host vm, pid 102) at 127.0.0.1<1> ended (closed)"
        self.assertEqual(of(text), judge.OK)
        of_path = ("rank 1 of 4 on host vm, device 1: receive from rank 3 (host vm, device 3) by NET/Socket/0 on "
                   "channel 0 of rank 0 (host vm, device 0): rank 2 (host vm, pid 102) has ended its process")
        self.assertEqual(of(of_path, reporter=1), judge.OK)

    def test_what_a_rank_said_of_itself_in_another_communicator_accuses_nobody_else(self):
        text = ("Bootstrap: rank 2 (host vm, pid 102) failed in another communicator (rank 2 (host vm, pid 102, device 2) "
                "failed: No transport found for rank 2[12000] -> rank 0[10000] (hosts vm and vm): NET: send to rank 0 (host "
                "vm, device 0) failed: Too many open files (24)). Another communicator has failed for that, and rank 2 "
                "(host vm, pid 102) has aborted this one (heard by rank 1 of 4 on host vm, device 1)")
        self.assertEqual(of(text, reporter=1), judge.OK)
        self.assertEqual(of(text.replace("pid 102", "pid 101"), reporter=1), judge.MISNAMED)

    def test_numbers_of_what_was_heard_in_another_communicator_are_of_that_one(self):
        text = ("Bootstrap: rank 1 (host vm, pid 101, device 1) aborted its communicator, perhaps because another one of its "
                "process had failed: Bootstrap: rank 3 of 4 did not come within 8.0 s: were all processes started, with "
                "the same unique id? (heard by rank 0 of 4 on host vm, device 0)")
        self.assertEqual(of(text), judge.OK)  # job rank 2 has number 3 there
        self.assertEqual(of(text.replace("rank 3", "rank 1")), judge.MISNAMED)

    def test_memory_that_ranks_have_not_in_common_is_the_failure_of_the_side_that_it_names(self):
        there = ("rank 2 (host vm, pid 102) has no memory in common with rank 0 of 4 on host vm, device 0, which AllReduce "
                 "by OneShot needs: only the network connects them. What failed did so on that rank or between the two: "
                 "P2P/CUMEM: No space left on device (28). Look for the first error there.")
        for reporter in (0, 1):
            self.assertEqual(of(there, reporter=reporter), judge.OK)
        here = ("rank 2 (host vm, pid 102, device 2) failed: AllReduce by OneShot needs memory in common with rank 0 (host "
                "vm, pid 100), but only the network connects them, for the others failed here: SHM: File too large (27).")
        self.assertEqual(of(here, reporter=1), judge.OK)
        self.assertEqual(of(there.replace("rank 2", "rank 1").replace("102", "101"), reporter=3), judge.MISNAMED)

    def test_who_could_not_be_connected_is_blamed_by_the_one_who_tried(self):
        text = ("Rank 2 (host vm, pid 102) could not be connected with the receiver, rank 0: SHM: it was tried and does "
                "not work. What failed did so on that rank or between the two: look for the first error there")
        late = "Rank 0 waited 8000 ms in vain for rank 2 (host vm, device 2) to connect: that rank hangs, is stopped"
        for words in (text, late):
            for heard in ("", " (seen by rank 0 (host vm, pid 100, device 0))"):
                self.assertEqual({named.rank for named in judge.blamed(words + heard)}, {2}, words)

    def test_the_maker_of_the_id_stands_for_rank_0(self):
        text = "Bootstrap: cannot connect to the bootstrap root at 192.0.2.2<56519>: Connection refused (111)"
        self.assertEqual(of(text), judge.MISNAMED)
        self.assertEqual(of(text, membership=judge.Membership({0}, {100}, [IN_ORDER])), judge.OK)

    def test_who_is_stopped_has_not_died(self):
        stopped = judge.Membership({2}, {102}, [IN_ORDER], dead=False)
        self.assertEqual(of("Bootstrap: rank 2 (host vm, pid 102) died", membership=stopped), judge.MISNAMED)
        self.assertEqual(of(SILENT, membership=stopped), judge.OK)

    def test_a_process_stands_for_its_ranks(self):
        self.assertEqual(of("Bootstrap: process 102 on host vm, which made the unique id, died"), judge.OK)
        self.assertEqual(of("Bootstrap: process 101 on host vm, which made the unique id, died"), judge.MISNAMED)


def process(ranks, lines, code=0, ended=True):
    events = [parse(line) for line in lines]
    child = types.SimpleNamespace(pid=100 + ranks[0])
    return types.SimpleNamespace(ranks=ranks, events=events, ended=1.0 if ended else None, code=code, child=child,
                                 output=lambda most: "", of=lambda what: [e for e in events if e.what == what])


class Runs(unittest.TestCase):
    rules = judge.Rules(TWO, bound=10, init_bound=18)

    def verdict(self, survivor, rules=None, deed=5.0):
        return judge.judge([survivor, process([2], [], -9)], rules or self.rules, deed).what

    def test_a_right_error_in_time_is_ok(self):
        right = ["4.0 0 need 0 AllReduce", f"7.0 0 error 0 6 x | {DIED}"]
        self.assertEqual(self.verdict(process([0], right, 42)), judge.OK)

    def test_a_right_error_too_late_is_late(self):
        late = ["4.0 0 stage collective 1", "4.0 0 need 0 AllReduce", f"16.0 0 error 0 6 x | {DIED}"]
        self.assertEqual(self.verdict(process([0], late, 42)), judge.LATE)

    def test_the_need_counts_if_it_came_after_the_deed(self):
        later = ["4.0 0 stage idle 1", "14.0 0 stage collective 2", "14.0 0 need 0 AllReduce",
                 f"16.0 0 error 0 6 x | {DIED}"]
        self.assertEqual(self.verdict(process([0], later, 42)), judge.OK)

    def test_who_does_not_end_hangs(self):
        self.assertEqual(self.verdict(process([0], ["4.0 0 need 0 AllReduce"], None, ended=False)), judge.HANG)
        self.assertEqual(self.verdict(process([0], ["4.0 0 hang AllReduce"], 42)), judge.HANG)

    def test_a_signal_is_a_crash(self):
        self.assertEqual(self.verdict(process([0], [], -11)), judge.CRASH)

    def test_a_wrong_result_outweighs_all(self):
        self.assertEqual(self.verdict(process([0], ["4.0 0 wrong AllReduce"], -11)), judge.WRONG)

    def test_an_error_without_a_deed_is_misnamed(self):
        harmless = judge.Rules(judge.Membership(set(), set(), [IN_ORDER]), 10)
        lines = [f"7.0 0 error 0 6 x | {DIED}"]
        self.assertEqual(judge.judge([process([0], lines, 42)], harmless, 5.0).what, judge.MISNAMED)

    def test_an_idle_rank_is_not_to_be_disturbed(self):
        rules = judge.Rules(TWO, bound=10)
        self.assertEqual(self.verdict(process([0], ["4.0 0 state 0 6"]), rules), judge.DISTURBED)
        self.assertEqual(self.verdict(process([0], ["4.0 0 state 0 0"]), rules), judge.OK)
        needed = process([1], [f"3.0 1 error 0 6 x | {DIED}"], 42)
        told = [process([0], ["4.0 0 state 0 6"]), needed, process([2], [], -9)]
        self.assertEqual(judge.judge(told, rules, 2.0).what, judge.OK)

    def test_who_finds_the_root_gone_came_too_late_if_it_had_ended_for_the_victims(self):
        refused = "Bootstrap: cannot connect to the bootstrap root (rank 0) at 127.0.0.1<1>: Connection refused (111)"
        late = process([1], [f"7.0 1 error 0 6 x | {refused}"], 42)
        root, victim = process([0], [f"5.5 0 error 0 6 x | {DIED}"], 42), process([2], [], -9)
        self.assertEqual(judge.judge([root, late, victim], self.rules, 5.0).what, judge.OK)
        root.ended = 9.0
        self.assertEqual(judge.judge([root, late, victim], self.rules, 5.0).what, judge.MISNAMED)

    def test_an_id_that_never_came_is_no_word_of_the_library(self):
        without = process([0], ["4.0 0 stage init 0", "29.0 0 no_id 0 no id came from the process that makes it"], 42)
        self.assertEqual(self.verdict(without), judge.OK)
        harmless = judge.Rules(judge.Membership(set(), set(), [IN_ORDER]), bound=10)
        self.assertEqual(judge.judge([without], harmless, None).what, judge.OK)

    def test_silence_of_a_process_that_the_machine_kept_from_running_is_no_misnaming(self):
        silent = SILENT.replace("rank 2 (host vm, pid 102)", "rank 1 (host vm, pid 101)").replace("rank 3", "rank 0")
        told = process([0], [f"7.0 0 error 0 6 x | {silent}"], 42)
        harmless = judge.Rules(judge.Membership(set(), set(), [IN_ORDER]), bound=10)
        for rules, deed, code in ((harmless, None, 0), (self.rules, 5.0, -9)):
            def with_starved(*lines, rules=rules, deed=deed, code=code):
                return judge.judge([told, process([1], list(lines)), process([2], [], code)], rules, deed).what
            self.assertEqual(with_starved(), judge.MISNAMED)
            self.assertEqual(with_starved("7.5 -1 starved 4800"), judge.STARVED)
            self.assertEqual(with_starved("12.5 -1 starved 4800"), judge.MISNAMED, "it began afterwards")
        elsewhere = [told, process([1], []), process([3], ["7.5 -1 starved 4800"]), process([2], [], -9)]
        self.assertEqual(judge.judge(elsewhere, self.rules, 5.0).what, judge.MISNAMED, "another process was starved")

    def test_only_silence_is_excused_by_starvation(self):
        died = DIED.replace("rank 2 (host vm, pid 102)", "rank 1 (host vm, pid 101)")
        processes = [process([0], [f"7.0 0 error 0 6 x | {died}"], 42), process([1], ["7.5 -1 starved 4800"]),
                     process([2], [], -9)]
        self.assertEqual(judge.judge(processes, self.rules, 5.0).what, judge.MISNAMED)

    def test_time_in_which_a_process_was_starved_does_not_count(self):
        late = ["4.0 0 stage collective 1", "4.0 0 need 0 AllReduce", f"16.0 0 error 0 6 x | {DIED}"]
        for gap, what in (("15.0 -1 starved 2000", judge.STARVED), ("15.0 -1 starved 500", judge.LATE),
                          ("5.5 -1 starved 2000", judge.LATE)):
            self.assertEqual(self.verdict(process([0], [*late, gap], 42)), what, gap)

    def test_what_victims_report_does_not_count(self):
        processes = [process([0], []), process([2], ["4.0 2 wrong AllReduce"], -11)]
        self.assertEqual(judge.judge(processes, self.rules, 5.0).what, judge.OK)


class Findings(unittest.TestCase):
    def test_a_kept_finding_has_plan_verdict_events_and_output(self):
        plan = campaign.planned("victims", 9, 17)
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            log.write_bytes("é".encode() * 8000 + b"last words")
            rank = process([0], ["4.0 0 need 0 AllReduce", f"7.0 0 error 0 6 x | {DIED}"])
            rank.output = lambda most=4000: Process.output(types.SimpleNamespace(log_path=log), most)
            outcome = campaign.Outcome("victims", 17, plan, judge.Verdict(judge.MISNAMED, "blames [2]"),
                                       job_plan.transcript(types.SimpleNamespace(processes=[rank])), 4.5)
            path = campaign.keep(outcome, 9, pathlib.Path(folder))
            self.assertEqual(path.name, "17_9.txt")
            text = path.read_text(encoding="utf-8")
        for part in ("run 17 of seed 9, victims: misnamed", "blames [2]", "--only victims --replay 17:9", plan.text(),
                     repr(plan), "need 0 AllReduce", DIED, "é" * 3900, "last words"):
            self.assertIn(part, text)
        self.assertNotIn("é" * 4000, text)

    def test_jobs_warn_unless_their_plan_says_otherwise(self):
        self.assertEqual(campaign.planned("victims", 9, 17).job.settings()["NCCL_DEBUG"], "WARN")


class Reports(unittest.TestCase):
    def test_lines_that_are_no_reports_are_none(self):
        self.assertIsNone(parse("NCCL INFO something"))
        self.assertEqual(parse("1.5 2 stage init 0"), Event(1.5, 2, "stage", "init 0"))


if __name__ == "__main__":
    unittest.main()
