#!/usr/bin/env python3
"""The differential run finds a library that is wrong in one element, one operator, one stray byte or one message, names
the operation, and prints a command that finds it again; and it names a run that ends in an error or not at all.

  finds.py BUILD LIAR
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "adversary/differential"
BUILD, LIAR = sys.argv[1:3]
# What is wrong, and how the report must name the operation and the place.
LIES = {
    "short": r"in the result, element \d+, of operation \d+: AllReduce",
    "other": r"in the result, element \d+, of operation \d+: AllReduce \w+ max",
    "stray": r"in no buffer, 0 bytes behind the result of operation \d+: Broadcast",
    "shifted": r"in a received message, element \d+, of operation \d+: Messages",
}


def differential(*arguments, lie=None):
    env = dict(os.environ)
    if lie:
        env.update(LD_PRELOAD=LIAR, LIE=lie)
    done = subprocess.run([SCRIPT, "--build", BUILD, *arguments], env=env, capture_output=True, text=True, timeout=800)
    return done.returncode, done.stdout + done.stderr


class Finds(unittest.TestCase):
    def test_every_lie_is_found_named_and_found_again(self):
        for lie, named in LIES.items():
            with self.subTest(lie=lie):
                code, said = differential("--operations", "1", "--seed", "3", lie=lie)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, r"(?m)^wrong: run \d+")
                self.assertRegex(said, r"WRONG: rank \d+, round \d+.*: [0-9a-f]+ instead of|WRONG: .* instead of")
                self.assertRegex(said, named)
                run = re.search(r"replay: tests/adversary/differential --replay (\d+)$", said, re.M).group(1)
                code, said = differential("--replay", run, lie=lie)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, named)

    def test_the_same_run_is_right_without_a_lie(self):
        code, said = differential("--operations", "1", "--seed", "3", "--table")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"(?m)^[1-9]\d* operations in 1 runs, .* compared: 0 wrong$")

    def test_an_error_of_a_call_is_no_success(self):
        code, said = differential("--operations", "1", "--seed", "3", lie="refuse")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"(?m)^ended with 1: run \d+")
        self.assertIn("unhandled system error", said)

    def test_a_run_that_does_not_end_is_ended_and_told(self):
        code, said = differential("--operations", "1", "--seed", "3", "--limit", "3", lie="wait")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"(?m)^hangs: run \d+")
        self.assertRegex(said, r"compared: 1 hangs$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
