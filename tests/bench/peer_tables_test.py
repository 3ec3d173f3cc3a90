#!/usr/bin/env python3
"""The tables of bench/compare_peers.py, and that one program's failure leaves the others their cells."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import peer_tables  # noqa: E402

MB = 1 << 20


def row(name, times, world="two_processes", collective="AllReduce", number=0, **more):
    # As the raw file has it: keys of JSON are text.
    return {"world": world, "collective": collective, "name": name, "round": number,
            "times": {str(size): value for size, value in times.items()}, "others": 0.01, "load": 1.0, **more}


def cells(text, size):
    """The cells of the line of a size, by column."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    names, line = lines[0], next(line for line in lines if line.startswith(f"| {size} |"))
    return dict(zip(*([cell.strip() for cell in part.strip("|").split("|")] for part in (names, line))))


class Tables(unittest.TestCase):
    def test_a_cell_is_the_median_over_rounds(self):
        rows = [row("tutti -p 2", {8: time}, number=number) for number, time in enumerate((9.0, 1.0, 4.0))]
        self.assertEqual(cells(peer_tables.tables(rows), "8 B")["tutti -p 2"], "4.0")

    def test_a_library_counts_by_the_fastest_of_its_variants(self):
        rows = [row("tutti -p 2", {MB: 100}), row("gloo ring", {MB: 300}), row("gloo bcube", {MB: 150})]
        line = cells(peer_tables.tables(rows), "1 MB")
        self.assertEqual(line["gloo"], "150.0 (1.50)")
        self.assertEqual(line["openmpi"], "-")
        self.assertEqual(line["goal"], "met")

    def test_in_place_stands_beside_ours_out_of_place_in_a_table_of_its_own(self):
        rows = [row("tutti -p 2", {MB: 50}), row("mpich", {MB: 60}),
                row("tutti -p 2", {MB: 120}, in_place=True, out_of_place={str(MB): 100}),
                row("tutti -p 2", {MB: 100}, number=1, in_place=True, out_of_place={str(MB): 50}),
                row("tutti -p 2", {MB: 110}, number=2, in_place=True, out_of_place={str(MB): 110}),
                row("mpich", {MB: 220}, in_place=True, out_of_place={})]
        outside, inside = peer_tables.tables(rows).split("### AllReduce in place, two processes")
        self.assertEqual(cells(outside, "1 MB")["tutti -p 2"], "50.0")
        line = cells(inside, "1 MB")
        self.assertEqual(line["tutti -p 2"], "110.0")
        self.assertEqual(line["out of place"], "100.0 (1.20)")
        self.assertEqual(line["mpich"], "220.0 (2.00)")
        self.assertNotIn("out of place", cells(outside, "1 MB"))

    def test_ours_counts_by_the_faster_of_its_columns(self):
        rows = [row("tutti -g 4", {MB: 100}), row("tutti -t 4", {MB: 200}), row("mpich", {MB: 150})]
        line = cells(peer_tables.tables(rows), "1 MB")
        self.assertEqual((line["tutti -g 4"], line["tutti -t 4"], line["mpich"]), ("100.0", "200.0", "150.0 (1.50)"))

    def test_goals_that_are_missed_are_named(self):
        rows = [row("tutti -p 2", {8: 20, MB: 100, 16 * MB: 900}), row("openmpi", {8: 1, MB: 80, 16 * MB: 950}),
                row("reference direct", {16 * MB: 300})]
        text = peer_tables.tables(rows)
        self.assertEqual(cells(text, "8 B")["goal"], "not under 15 us")
        self.assertEqual(cells(text, "1 MB")["goal"], "behind openmpi (0.80)")
        self.assertEqual(cells(text, "16 MB")["goal"], "3.0 x the reference")

    def test_what_failed_is_marked_and_explained(self):
        rows = [row("tutti -p 2", {8: 5, MB: 100}), row("openmpi", {8: 4}, failed="`mpirun` ended with 1: no slots"),
                row("mpich", {8: 6, MB: 120})]
        text = peer_tables.tables(rows)
        self.assertEqual(cells(text, "8 B")["openmpi"], "4.0 (0.80)", "it came so far")
        self.assertEqual(cells(text, "1 MB")["openmpi"], "failed")
        self.assertEqual(cells(text, "1 MB")["mpich"], "120.0 (1.20)")
        self.assertIn("\n\n* openmpi failed in 1 of 1 rounds: `mpirun` ended with 1: no slots", text)
        self.assertFalse(peer_tables.ours_failed(rows))

    def test_say_how_far_the_processors_were_apart(self):
        text = peer_tables.tables([row("tutti -p 2", {8: 1.0}, line_ns=30), row("openmpi", {8: 1.0}, line_ns=170), row("gloo", {8: 1.0})])
        self.assertIn("A cache line took 100 ns from one processor to another, at most 170.", text)
        self.assertNotIn("cache line", peer_tables.tables([row("tutti -p 2", {8: 1.0})]))

    def test_a_round_that_failed_leaves_the_others_count(self):
        rows = [row("tutti -p 2", {8: 5}), row("gloo ring", {8: 10}, number=0),
                row("gloo ring", {}, number=1, failed="a"), row("gloo ring", {}, number=2, failed="b")]
        text = peer_tables.tables(rows)
        self.assertEqual(cells(text, "8 B")["gloo"], "10.0 (2.00)")
        self.assertIn("* gloo ring failed in 2 of 3 rounds: a (and 1 other reasons)", text)

    def test_where_ours_failed_the_others_stand_alone(self):
        rows = [row("tutti -p 2", {}, failed="killed"), row("mpich", {MB: 120})]
        line = cells(peer_tables.tables(rows), "1 MB")
        self.assertEqual((line["tutti -p 2"], line["mpich"], line["goal"]), ("failed", "120.0", "failed"))
        self.assertTrue(peer_tables.ours_failed(rows))

    def test_sockets_bound_what_tcp_can_do(self):
        def text(mine):
            rows = [row("tutti -p 2", {16 * MB: mine}, "two_processes_tcp"),
                    row("sockets free", {16 * MB: 6000}, "two_processes_tcp"),
                    row("sockets bound", {16 * MB: 7000}, "two_processes_tcp")]
            return peer_tables.tables(rows)

        self.assertEqual(cells(text(9000), "16 MB")["sockets"], "6000.0 (1.50 x)")
        self.assertEqual(cells(text(9000), "16 MB")["goal"], "met")
        self.assertEqual(cells(text(15000), "16 MB")["goal"], "2.5 x the sockets")
        self.assertNotIn("reference", text(9000).splitlines()[4])
        self.assertIn("below 2x at 16 MB and more", text(9000))
        self.assertIn("At 16 MB they carry 5.59 GB/s in both directions together", text(9000))

    def test_nothing_measured_is_said(self):
        self.assertEqual(peer_tables.tables([]), "Nothing was measured.")


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + textwrap.dedent(text))
    path.chmod(0o755)


class Rounds(unittest.TestCase):
    """compare_peers.py over programs that say what they are told."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        result = {"bytes": 8, "out_of_place": {"time_us": 10}, "in_place": {"time_us": 10}}
        script(self.build / "softgpu-run", f"echo '{json.dumps({'results': [result]})}'\n")
        said = json.dumps({"bytes": 8, "time_us_b2b": 5, "errors": 0})
        for name in ("sockets", "gloo"):
            script(self.build / "peers" / name, f"[ $RANK = 0 ] && echo '{said}'; true\n")

    def compare(self, *more):
        # A PATH without mpirun: what is not installed is skipped.
        what = ["--quick", "--sizes", "8", "--worlds", "two_processes_tcp", "--collectives", "SendRecv", *more]
        done = subprocess.run([sys.executable, BENCH / "compare_peers.py", "--build", self.build, *what], timeout=60,
                              capture_output=True, text=True,
                              env={"PATH": str(self.build), "HOME": os.environ.get("HOME", "/")})
        return done.returncode, done.stdout, done.stderr

    def test_all_that_is_there_is_compared(self):
        code, text, said = self.compare()
        self.assertEqual(code, 0, said)
        line = cells(text, "8 B")
        self.assertEqual((line["tutti -p 2"], line["gloo"], line["sockets"], line["openmpi"]),
                         ("10.0", "5.0 (0.50)", "5.0 (2.00 x)", "-"), text)
        self.assertIn("openmpi is skipped", said)

    def test_a_peer_that_fails_ends_nobody_else(self):
        script(self.build / "peers/gloo", "echo 'no such device' >&2; exit 3\n")
        code, text, said = self.compare()
        self.assertEqual(code, 0, said)
        line = cells(text, "8 B")
        self.assertEqual((line["gloo"], line["sockets"]), ("failed", "5.0 (2.00 x)"), text)
        self.assertRegex(text, r"\* gloo failed in 1 of 1 rounds: .* ended with 3: .*no such device")

    def test_wrong_results_are_a_failure(self):
        script(self.build / "peers/gloo", """echo '{"bytes": 8, "time_us_b2b": 1, "errors": 2}'\n""")
        code, text, said = self.compare()
        self.assertEqual((code, cells(text, "8 B")["gloo"]), (0, "failed"), text + said)
        self.assertIn("wrong results at [8", text)

    def test_our_own_failure_is_the_exit_status(self):
        script(self.build / "softgpu-run", "echo 'Segmentation fault' >&2; exit 139\n")
        code, text, said = self.compare()
        self.assertEqual(code, 1, said)
        self.assertEqual(cells(text, "8 B")["gloo"], "5.0", text)
        self.assertRegex(text, r"\* tutti -p 2 failed in 1 of 1 rounds: .*139.*Segmentation fault")

    def test_earlier_runs_are_in_the_tables_but_not_in_the_exit_status(self):
        raw = self.build / "raw.jsonl"
        worked = (self.build / "softgpu-run").read_text()
        script(self.build / "softgpu-run", "exit 139\n")
        self.assertEqual(self.compare("--raw", raw)[0], 1)
        code, text, said = self.compare("--tables", raw)
        self.assertEqual((code, cells(text, "8 B")["tutti -p 2"]), (0, "failed"), said)
        (self.build / "softgpu-run").write_text(worked)
        code, text, said = self.compare("--raw", raw)
        self.assertEqual((code, cells(text, "8 B")["tutti -p 2"]), (0, "10.0"), said)
        self.assertIn("* tutti -p 2 failed in 1 of 2 rounds", text)


if __name__ == "__main__":
    unittest.main()
