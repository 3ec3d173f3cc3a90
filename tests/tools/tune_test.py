#!/usr/bin/env python3
"""What tutti-tune takes from times: which candidates it measures on, which it names, how it compares."""
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import sys
import types
import unittest

sys.dont_write_bytecode = True  # beside the tool
LOADER = importlib.machinery.SourceFileLoader("tutti_tune", str(pathlib.Path(__file__).parents[2] / "tools/tutti-tune"))
TUNE = importlib.util.module_from_spec(importlib.util.spec_from_loader("tutti_tune", LOADER))
LOADER.exec_module(TUNE)

RING, TREE, PAT = ("ring", "simple", "-1"), ("tree", "ll", "-1"), ("pat", "simple", "-1")


def given(**changed):
    return types.SimpleNamespace(**({"sizes": [1024], "rounds": 8, "margin": 0.02, "ranks": 2} | changed))


class Measured(unittest.TestCase):
    """`times`: {candidate: microseconds, or a function of how often it was asked}."""

    def measure(self, times, **changed):
        self.asked = []

        def time_of(_given, _collective, candidate, size, _plugin):
            self.asked.append((candidate, size))
            time = times[candidate]
            return time(self.asked.count((candidate, size))) if callable(time) else time
        self.addCleanup(setattr, TUNE, "time_of", TUNE.time_of)
        TUNE.time_of = time_of
        self.said = io.StringIO()
        with contextlib.redirect_stderr(self.said):
            return TUNE.measure(given(**changed), "allreduce", list(times))

    def test_what_is_not_possible_or_hopeless_is_asked_for_once(self):
        samples = self.measure({TUNE.AUTO: 10, RING: 9, TREE: 25, PAT: None})
        self.assertEqual(samples[1024], {TUNE.AUTO: [10] * 8, RING: [9] * 8})
        self.assertEqual((self.asked.count((TREE, 1024)), self.asked.count((PAT, 1024))), (1, 1))

    def test_what_is_unlikely_is_left_out_after_the_fifth_further_round(self):
        times = {TUNE.AUTO: 10, RING: 13, TREE: 12}
        self.assertNotIn(RING, self.measure(times)[1024])
        self.assertEqual(self.asked.count((RING, 1024)), 6)
        self.assertIn(RING, self.measure(times, rounds=5)[1024], "too few rounds to tell")

    def test_the_librarys_own_choice_is_never_left_out(self):
        self.assertIn(TUNE.AUTO, self.measure({TUNE.AUTO: 90, RING: 9})[1024])

    def test_candidates_of_a_size_follow_one_another_in_turns(self):
        self.measure({TUNE.AUTO: 10, RING: 9}, sizes=[1024, 4096], rounds=2)
        self.assertEqual(self.asked, [(TUNE.AUTO, 1024), (RING, 1024), (TUNE.AUTO, 4096), (RING, 4096),
                                      (RING, 1024), (TUNE.AUTO, 1024), (RING, 4096), (TUNE.AUTO, 4096)])

    def test_one_that_fails_later_is_left_out_and_named(self):
        samples = self.measure({TUNE.AUTO: 10, RING: lambda asked: 9 if asked < 3 else None})
        self.assertEqual(list(samples[1024]), [TUNE.AUTO])
        self.assertIn("allreduce 1024: ring/simple fails in round 3", self.said.getvalue())
        self.assertIn("'NCCL_ALGO': 'ring'", self.said.getvalue())


class Compared(unittest.TestCase):
    def test_the_lower_quartile_counts(self):
        self.assertEqual(TUNE.typical({RING: [9, 9, 9, 30, 30], TREE: [12]}), {RING: 9, TREE: 12})

    def test_only_what_is_quicker_by_the_margin_is_named(self):
        self.assertEqual(TUNE.best_of(given(), {TUNE.AUTO: [10.0], RING: [9.9]}), TUNE.AUTO)
        self.assertEqual(TUNE.best_of(given(), {TUNE.AUTO: [10.0], RING: [9.7]}), RING)

    def test_the_half_that_says_which_is_best_is_not_the_one_that_compares(self):
        row = {TUNE.TUNED: [10, 10] * 4, RING: [5, 20] * 4, TREE: [20, 5] * 4}
        ratio, _ = TUNE.against_best(row)
        self.assertEqual(ratio, 0.5, "each half's best is the other half's worst")
        self.assertEqual(TUNE.against_best({TUNE.TUNED: [11.0], RING: [10.0]}), (1.1, RING))


if __name__ == "__main__":
    unittest.main()
