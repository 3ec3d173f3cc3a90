#!/usr/bin/env python3
"""What tools/kernel-report --sass says of machine code; excerpts of what nvdisasm prints of kernels, shortened."""
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TOOLS = pathlib.Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from sass import code, loops, report  # noqa: E402

# As nvdisasm prints it: a loop behind a table of jumps.
PRINTED = '''
        .section .text.tutti_Broadcast_Ring_Simple_Copy_i8,"ax",@progbits
tutti_Broadcast_Ring_Simple_Copy_i8:
.text.tutti_Broadcast_Ring_Simple_Copy_i8:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   BRX R16 -0x5040                     (*"BRANCH_TARGETS .L_x_3,.L_x_2"*);
.L_x_2:
        /*0020*/                   EXIT ;
.L_x_3:
        /*0030*/              @!P0 LD.E.128.STRONG.SYS R4, desc[UR6][R2.64+0x10] ;
        /*0040*/                   ST.E.128.STRONG.SYS desc[UR6][R8.64], R4 ;
        /*0050*/               @P1 BRA `(.L_x_3) ;
        /*0060*/                   ERRBAR;
        /*0070*/                   EXIT ;
'''

# With -hex: the sum waits for scoreboard 2, which the first load sets, and not for 3; nor does the move wait for 2,
# though it writes a register of the first load: threads that carry it out have not loaded.
ENCODED = '''
.text.tutti_Reduce_Ring_Simple_Sum_f32:
        /*6ee0*/              @P1  LD.E.128.STRONG.SYS R40, desc[UR6][R48.64] ;        /* 0x0000000630287980 */
                                                                                       /* 0x0002a2000c115d00 */
        /*6f30*/                   LD.E.128.STRONG.SYS R24, desc[UR6][R38.64] ;        /* 0x0000000626187980 */
                                                                                       /* 0x0002e6000c115d00 */
        /*6f40*/              @!P1 CS2R R42, SRZ ;                                     /* 0x00000000002a9805 */
                                                                                       /* 0x000fe2000001ff00 */
        /*6ff0*/                   FADD R107, R41, R45 ;                               /* 0x0000002d296b7221 */
                                                                                       /* 0x004fe20000000000 */
'''

LOAD = "LD.E.128.STRONG.SYS R{}, desc[UR6][R2.64]"
STORE = "ST.E.128.STRONG.SYS desc[UR6][R40.64], R{}"
COPY = ["NOP", "COPY:", LOAD.format(4), STORE.format(4), "@P0 BRA `(COPY)"]


def printed(lines, name="tutti_AllReduce_Ring_Simple_Sum_f32"):
    text, at = [f".text.{name}:"], 0
    for line in lines:
        if line.endswith(":"):
            text.append(line)
        else:
            guard, op = line.split(" ", 1) if line.startswith("@") else ("", line)
            text.append(f"        /*{at:04x}*/ {guard:>18} {op} ;")
            at += 16
    return "\n".join(text)


def measured(*lines, **name):
    (found, instructions), = code.parse(printed([*lines, "EXIT"], **name))
    return loops.measure(found, instructions)


def only_loop(*lines):
    """The data loop of a kernel that is a loop over these lines."""
    found, = measured("LOOP:", *lines, "@P0 BRA `(LOOP)").loops
    return found


class Code(unittest.TestCase):
    def test_is_read_as_nvdisasm_prints_it(self):
        (name, instructions), = code.parse(PRINTED)
        self.assertEqual(name, "tutti_Broadcast_Ring_Simple_Copy_i8")
        self.assertEqual([i.op for i in instructions], ["LDC", "BRX", "EXIT", "LD.E.128.STRONG.SYS",
                                                        "ST.E.128.STRONG.SYS", "BRA", "ERRBAR", "EXIT"])
        self.assertEqual((instructions[3].guard, instructions[3].at, instructions[5].targets), ("!P0", 0x30, [0x30]))

    def test_has_the_waits_of_its_encoding(self):
        (_, instructions), = code.parse(ENCODED)
        first, second, move, add = instructions
        self.assertEqual([i.waits_for(first) for i in (second, move, add)], [False, False, True])
        self.assertEqual([i.waits_for(second) for i in (move, add)], [False, False])

    def test_goes_on_where_a_table_of_jumps_says(self):
        (name, instructions), = code.parse(PRINTED)
        blocks = code.blocks_of(instructions)
        self.assertEqual(blocks[0].next, [0x30, 0x20])
        self.assertEqual(loops.measure(name, instructions).unknown, 0)

    def test_tells_of_jumps_without_a_table(self):
        self.assertEqual(measured("BRX R16 -0x5040").unknown, 1)

    def test_goes_on_behind_what_not_every_thread_leaves_by(self):
        blocks = code.blocks_of(next(code.parse(printed(["@P0 EXIT", "BRA P1, `(A)", "BRA `(A)", "A:", "EXIT"])))[1])
        self.assertEqual([block.next for block in blocks.values()], [[0x10], [0x30, 0x20], [0x30], []])

    def test_has_loops_inside_loops(self):
        blocks = code.blocks_of(next(code.parse(printed(
            ["NOP", "OUTER:", "NOP", "INNER:", "NOP", "@P0 BRA `(INNER)", "@P1 BRA `(OUTER)", "EXIT"])))[1])
        outer, = code.loops_of(blocks)
        inner, = outer.inside
        self.assertEqual((outer.head, inner.head, inner.parent, inner.inside), (0x10, 0x20, outer, []))


class InFlight(unittest.TestCase):
    def test_are_the_loads_before_the_first_use(self):
        data = only_loop(LOAD.format(4), LOAD.format(8), LOAD.format(12), STORE.format(4), STORE.format(8),
                         STORE.format(12))
        self.assertEqual((len(data.loads), len(data.stores), len(data.run), data.bytes), (3, 3, 3, 48))

    def test_is_one_load_that_is_used_at_once(self):
        data = only_loop(LOAD.format(4), STORE.format(4), LOAD.format(8), STORE.format(8))
        self.assertEqual((len(data.loads), len(data.run), data.outstanding), (2, 1, 1))

    def test_ends_where_any_part_of_a_register_is_moved(self):
        data = only_loop(LOAD.format(4), "IMAD.MOV.U32 R91, RZ, RZ, R7", LOAD.format(8), STORE.format(4),
                         STORE.format(8))
        self.assertEqual(len(data.run), 1)

    def test_ends_where_a_register_is_overwritten_before_its_use(self):
        data = only_loop(LOAD.format(4), LOAD.format(8), "CS2R R10, SRZ", LOAD.format(12), STORE.format(4),
                         STORE.format(8), STORE.format(12))
        self.assertEqual((len(data.run), data.outstanding), (2, 2))

    def test_ends_where_a_load_fills_the_same_register(self):
        data = only_loop(LOAD.format(4), LOAD.format(4), LOAD.format(8), STORE.format(4), STORE.format(8))
        self.assertEqual(len(data.run), 2)

    def test_is_one_of_two_loads_under_opposite_predicates(self):
        data = only_loop("@P1 " + LOAD.format(4), "@!P1 LDG.E.64.STRONG.SYS R4, desc[UR6][R92.64]", LOAD.format(8),
                         STORE.format(4), STORE.format(8))
        self.assertEqual((len(data.loads), len(data.run), data.bytes), (3, 2, 32))
        data = only_loop("@P1 " + LOAD.format(4), "@P1 " + LOAD.format(4), LOAD.format(8), STORE.format(4),
                         STORE.format(8))
        self.assertEqual(len(data.run), 2)
        data = only_loop("@P1 " + LOAD.format(4), "@!P2 " + LOAD.format(4), STORE.format(4))
        self.assertEqual(len(data.run), 1)

    def test_outstanding_are_those_that_nobody_waits_for_yet(self):
        data = only_loop(LOAD.format(4), LOAD.format(8), LOAD.format(12), STORE.format(4), LOAD.format(16),
                         LOAD.format(20), *map(STORE.format, (8, 12, 16, 20)))
        self.assertEqual((len(data.run), data.outstanding), (3, 4))

    def test_are_predicated_loads_as_well(self):
        data = only_loop("@P1 " + LOAD.format(4), "@!P2 " + LOAD.format(8), "@P1 " + STORE.format(4),
                         "@!P2 " + STORE.format(8))
        self.assertEqual((len(data.loads), len(data.run)), (2, 2))

    def test_are_counted_along_the_path_that_has_most(self):
        data = only_loop("@P1 BRA `(FEW)", LOAD.format(4), LOAD.format(8), "BRA `(BOTH)", "FEW:", LOAD.format(4),
                         "BOTH:", LOAD.format(12), STORE.format(4), STORE.format(8), STORE.format(12))
        self.assertEqual((len(data.loads), len(data.run)), (4, 3))

    def test_go_on_into_the_next_turn(self):
        data = only_loop(STORE.format(4), STORE.format(8), LOAD.format(4), LOAD.format(8))
        self.assertEqual(len(data.run), 2)
        data = only_loop(LOAD.format(4), LOAD.format(8), STORE.format(12), STORE.format(4), STORE.format(8),
                         LOAD.format(12))
        self.assertEqual(len(data.run), 3)

    def test_end_with_a_fence(self):
        data = only_loop(LOAD.format(4), "MEMBAR.SC.SYS", LOAD.format(8), STORE.format(4), STORE.format(8))
        self.assertEqual((len(data.run), data.fences), (1, {"SYS": 1}))

    def test_are_four_of_eight_bytes_where_lines_are_filled(self):
        halves = [f"LDG.E.64.STRONG.SYS R{n}, desc[UR6][R2.64]" for n in (70, 42, 40, 74)]
        lines = [step for n in (70, 42, 40, 74) for step in
                 (f"LOP3.LUT R28, R{n}, R99, RZ, 0xfc, !PT", f"LOP3.LUT R30, R{n + 1}, R99.reuse, RZ, 0xfc, !PT",
                  STORE.format(28))]
        data = only_loop(*halves, *lines)
        self.assertEqual((data.kind, len(data.run), data.bytes, len(data.stores)), ("lines copied", 4, 32, 4))
        self.assertEqual((data.places, data.generic), ({"LDG": 4, "ST": 4}, 4))


class DataLoops(unittest.TestCase):
    def test_are_the_innermost_that_load_and_store(self):
        kernel = measured("OUTER:", LOAD.format(4), STORE.format(4), *COPY, "@P1 BRA `(OUTER)")
        self.assertEqual([data.loop.head for data in kernel.loops], [0x30])

    def test_may_have_polls_inside(self):
        data, = measured("LOOP:", "LDG.E.64 R8, desc[UR6][R2.64]", "POLL:", LOAD.format(4),
                         "ISETP.NE.AND P2, PT, R5, R20, PT", "@P2 BRA `(POLL)", "FADD R8, R8, R4",
                         "STG.E.64 desc[UR6][R40.64], R8", "@P0 BRA `(LOOP)").loops
        self.assertEqual((data.loop.head, len(data.run), data.bytes, data.kind), (0, 2, 24, "lines reduced"))

    def test_are_none_that_load_pointers_and_counters_alone(self):
        self.assertEqual(measured("LOOP:", "LD.E.64 R16, desc[UR6][R2.64+0x28]", "CS2R R4, SRZ",
                                  "ST.E.64.STRONG.SYS desc[UR6][R16.64], R4", "@P0 BRA `(LOOP)").loops, [])

    def test_do_not_take_an_address_for_what_was_loaded_there(self):
        data = only_loop("LD.E.64 R36, desc[UR6][R24.64]", "@P6 IMAD.WIDE.U32 R36, R39, R20, R36",
                         "@P6 LD.E.128.STRONG.SYS R36, desc[UR6][R36.64]", STORE.format(36))
        self.assertEqual((len(data.loads), data.kind), (1, "packs copied"))

    def test_follow_values_under_predicates(self):
        loads = "LD.E.64 R68, desc[UR6][R24.64]", LOAD.format(8)
        for steps in (("@P4 IMAD.IADD R4, R69, 0x1, R63", "@P4 MOV R4, R8", STORE.format(4)),
                      ("IMAD.IADD R4, R69, 0x1, R63", "@P4 MOV R4, R8", "@P4 " + STORE.format(4))):
            self.assertEqual(len(only_loop(*loads, *steps).loads), 1)
        either = "IMAD.IADD R4, R69, 0x1, R63", "@P4 MOV R4, R8", STORE.format(4)
        self.assertEqual(len(only_loop(*loads, *either).loads), 2)

    def test_are_none_that_overwrite_what_they_load_in_pairs(self):
        self.assertEqual(measured("LOOP:", LOAD.format(4), "CS2R R4, SRZ", "IMAD.WIDE.U32 R6, R20, 0x10, R22",
                                  STORE.format(4), "@P0 BRA `(LOOP)").loops, [])

    def test_of_eight_bytes_count_where_there_are_no_wider_ones(self):
        narrow = ["NARROW:", "LD.E.64 R4, desc[UR6][R2.64]", "ST.E.64 desc[UR6][R40.64], R4", "@P0 BRA `(NARROW)"]
        self.assertEqual([data.bytes for data in measured(*narrow).loops], [8])
        self.assertEqual([data.bytes for data in measured(*narrow, *COPY).loops], [16])

    def test_reduce_where_an_instruction_combines_two_loads(self):
        self.assertTrue(only_loop(LOAD.format(4), LOAD.format(8), "FADD R4, R4, R8", STORE.format(4)).reduces)
        self.assertFalse(only_loop(LOAD.format(4), "FADD R4, R4, R5", STORE.format(4)).reduces)

    def test_copy_where_a_value_is_one_load_or_another(self):
        self.assertFalse(only_loop(LOAD.format(4), LOAD.format(8), "SEL R4, R4, R8, P1", STORE.format(4)).reduces)
        self.assertFalse(only_loop(LOAD.format(4), "@P1 " + LOAD.format(4), "LOP3.LUT R4, R4, R5, RZ, 0xfc, !PT",
                                   STORE.format(4)).reduces)

        self.assertTrue(only_loop(LOAD.format(4), LOAD.format(8), "FADD R20, R4, R8", "@P1 MOV R20, R4",
                                  STORE.format(20)).reduces)

    def test_keep_apart_generic_global_shared_and_local_accesses(self):
        kernel = measured("LOOP:", LOAD.format(4), "LDS.64 R20, [R30+0x80]", "STL.64 [R1], R4",
                          "STG.E.128.STRONG.SYS desc[UR6][R40.64], R4", "@P0 BRA `(LOOP)", "LD.E R9, desc[UR6][R2.64]")
        self.assertEqual(kernel.loops[0].places, {"LD": 1, "LDS": 1, "STL": 1, "STG": 1})
        self.assertEqual((kernel.loops[0].generic, kernel.generic, kernel.accesses, kernel.local), (1, 2, 3, 1))

    def test_that_do_what_is_left_are_not_judged(self):
        batch = ["NOP", "BATCH:", LOAD.format(4), LOAD.format(8), STORE.format(4), STORE.format(8), "@P0 BRA `(BATCH)"]
        self.assertEqual([data.remainder for data in measured(*batch, *COPY).loops], [False, True])
        lines = ["NOP", "LINES:", "LDG.E.64 R8, desc[UR6][R2.64]", STORE.format(8), "@P0 BRA `(LINES)"]
        self.assertEqual([data.remainder for data in measured(*lines, *COPY).loops], [False, True])
        apart = measured("STEP:", *batch, "@P1 BRA `(STEP)", "OTHER:", *COPY, "@P1 BRA `(OTHER)")
        self.assertEqual([data.remainder for data in apart.loops], [False, False])


class Fences(unittest.TestCase):
    def test_are_told_apart_by_where_they_are(self):
        kernel = measured("MEMBAR.SC.GPU", "STEP:", "NOP", "COPY:", LOAD.format(4), "MEMBAR.SC.SYS", STORE.format(4),
                          "@P0 BRA `(COPY)", "MEMBAR.ALL.SYS", "@P1 BRA `(STEP)", "MEMBAR.ALL.SYS")
        self.assertEqual(kernel.fences, {"data": {"SYS": 1}, "step": {"SYS": 1}, "else": {"GPU": 1, "SYS": 1}})
        self.assertEqual(kernel.per_step, 2)

    def test_of_a_step_are_those_of_the_path_that_has_most(self):
        either = ["@P2 BRA `(SECOND)", "MEMBAR.ALL.SYS", "BRA `(END)", "SECOND:", "MEMBAR.ALL.SYS", "END:"]
        self.assertEqual(measured("STEP:", *COPY, *either, "@P1 BRA `(STEP)").per_step, 1)
        both = ["@P2 BRA `(SECOND)", "MEMBAR.ALL.SYS", "SECOND:", "@P3 BRA `(END)", "MEMBAR.ALL.SYS", "END:"]
        self.assertEqual(measured("STEP:", *COPY, *both, "@P1 BRA `(STEP)").per_step, 2)

    def test_of_a_step_may_be_in_a_loop_further_out(self):
        self.assertEqual(measured("STEP:", "NOP", "BLOCKS:", *COPY, "@P2 BRA `(BLOCKS)", "MEMBAR.ALL.SYS",
                                  "@P1 BRA `(STEP)").per_step, 1)

    def test_of_several_steps_are_counted_one_step_at_a_time(self):
        step = ["NOP", "{0}STEP:", "NOP", "{0}COPY:", LOAD.format(4), STORE.format(4), "@P0 BRA `({0}COPY)",
                "MEMBAR.ALL.SYS", "@P1 BRA `({0}STEP)"]
        work = [line.format(name) for name in "AB" for line in step]
        self.assertEqual(measured("WORK:", *work, "@P2 BRA `(WORK)").per_step, 1)


class Polls(unittest.TestCase):
    FLAG = "LD.E.64.STRONG.SYS R48, desc[UR6][R28.64]"

    def test_end_by_what_they_load(self):
        self.assertEqual(measured("POLL:", self.FLAG, "IADD3 R30, P1, R48, -R20, RZ",
                                  "ISETP.LT.AND P2, PT, R30, R9, PT", "@P2 BRA `(POLL)").polls, 1)

    def test_are_no_loops_that_count(self):
        self.assertEqual(measured("GATHER:", "LDG.E.U8 R28, desc[UR6][R30.64]", "LOP3.LUT R42, R28, R42, RZ, 0xfc, !PT",
                                  "VIADD R31, R31, 0x1", "ISETP.LT.AND P2, PT, R31, R9, PT",
                                  "@P2 BRA `(GATHER)").polls, 0)

    def test_store_nothing(self):
        self.assertEqual(measured("LOOP:", self.FLAG, "ST.E.64 desc[UR6][R2.64], R6",
                                  "ISETP.NE.AND P2, PT, R48, RZ, PT", "@P2 BRA `(LOOP)").polls, 0)


class Report(unittest.TestCase):
    RING = "tutti_AllReduce_Ring_Simple_Sum_f32"

    def lines(self, *kernels):
        groups = report.grouped(kernels)
        met = {line[0]: line[2:] for line in report.targets(groups)}
        return met, [report.row_in_flight(*item) for item in groups.items()]

    def test_says_which_targets_are_met_and_by_whom_not(self):
        eight = [LOAD.format(4 * n) for n in range(1, 9)] + [STORE.format(4 * n) for n in range(1, 9)]
        good = measured("STEP:", "NOP", "COPY:", *eight, "@P0 BRA `(COPY)", "MEMBAR.ALL.SYS", "@P1 BRA `(STEP)",
                        name=self.RING)
        bad = measured("STEP:", *COPY, "MEMBAR.ALL.SYS", "MEMBAR.ALL.SYS", "STL [R1], R4", "@P1 BRA `(STEP)",
                       name="tutti_AllReduce_Tree_Simple_Sum_f32")
        met, _ = self.lines(good, bad)
        self.assertEqual(met["copies of packs: loads of 16 bytes in flight"], ["1", "NO", "Tree Simple"])
        self.assertEqual(met["Simple: system fences a step"], ["2", "NO", "Tree Simple"])
        self.assertEqual(met["accesses to local memory (spills, arrays)"], ["1", "NO", "Tree Simple"])
        self.assertEqual(met["generic accesses in data loops"], ["16", "NO", "all"])
        met, _ = self.lines(good)
        self.assertEqual(met["copies of packs: loads of 16 bytes in flight"], ["8", "yes", "-"])
        self.assertEqual(met["Simple: system fences a step"], ["1", "yes", "-"])

    def test_judges_no_remainders(self):
        two = ["COPIES:", LOAD.format(4), LOAD.format(8), STORE.format(4), STORE.format(8), "@P0 BRA `(COPIES)"]
        met, rows = self.lines(measured(*two, *COPY, name=self.RING))
        self.assertEqual(met["copies of packs: loads of 16 bytes in flight"][0], "2")
        self.assertEqual(rows[0][2], "2 (32 B)")

    def test_holds_fences_of_ll_against_it(self):
        ll = measured("STEP:", *COPY, "MEMBAR.SC.SYS", "@P1 BRA `(STEP)", name="tutti_AllGather_Ring_LL_Copy_i8")
        met, _ = self.lines(ll)
        self.assertEqual(met["LL: system fences in loops"], ["1", "NO", "Ring LL"])
        self.assertEqual(met["LL128: system fences in loops"], ["-", "-", "-"])
        self.assertEqual(met["Simple: system fences a step"], ["-", "-", "-"])

    def test_has_a_line_for_each_algorithm_and_protocol(self):
        two = ["COPY:", LOAD.format(4), LOAD.format(8), STORE.format(4), STORE.format(8), "@P0 BRA `(COPY)"]
        _, rows = self.lines(measured(*COPY, name=self.RING), measured(*two, name="tutti_Reduce_Ring_Simple_Sum_bf16"),
                             measured(*COPY, name="tutti_SendRecv_Copy_i8"))
        self.assertEqual([line[:3] for line in rows], [["Ring Simple", "2", "1 (16 B) to 2 (32 B)"],
                                                       ["SendRecv", "1", "1 (16 B)"]])

    def test_ends_with_two_where_there_is_nothing_to_report(self):
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run([TOOLS / "kernel-report", "--sass", build], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("has no fatbins", done.stderr)

    def test_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as build:
            folder = pathlib.Path(build) / "src/device/kernels"
            folder.mkdir(parents=True)
            (folder / "SendRecv_i8.fatbin").touch()
            with mock.patch("shutil.which", return_value=None):
                self.assertRaisesRegex(report.Missing, "cuobjdump is neither", report.kernels_of, pathlib.Path(build))
            with mock.patch.object(report, "disassembled", return_value=""):
                self.assertRaisesRegex(report.Missing, "no machine code for sm_90", report.kernels_of,
                                       pathlib.Path(build))


if __name__ == "__main__":
    unittest.main()
