#!/usr/bin/env python3
"""What tests/lint/diagnosis.py refuses."""
import unittest

import diagnosis
from trees import tree

FILES = {"tests/a_test.cc": "TEST(Suite, Claims) {\n}\nTEST_P(Other, Holds) {\n}\n// TEST(Gone, By)\n",
         "tests/e2e/x.py": "def happens():\n    pass\n\n\ndef is_said():\n    pass\n", "bench/tool": ""}
ONE = "### 1. It hangs: better\n* Elsewhere: a\n* Here: b\n* Shown by: "
SUM = "1 complaints; 1 of them are better, 0 partly, 0 not yet.\n"


class Diagnosis(unittest.TestCase):
    def problems(self, text, sums=SUM):
        with tree(FILES | {diagnosis.DOCUMENT: sums + text}) as root:
            return list(diagnosis.check(root))

    def test_accepts_tests_however_they_are_named(self):
        text = ONE + "`Suite.Claims`, `Other.Holds`,\n  `tests/e2e/x.py happens is_said`, `tests/a_test.cc`, `bench/tool`\n"
        self.assertEqual(self.problems(text), [])

    def test_refuses_tests_that_are_gone(self):
        for code, words in (("Suite.Gone", "there is no test Suite.Gone"), ("Gone.By", "there is no test Gone.By"),
                            ("tests/e2e/y.py", "there is no tests/e2e/y.py"),
                            ("tests/e2e/x.py happens gone", "tests/e2e/x.py has no function gone")):
            self.assertEqual(self.problems(f"{ONE}`Suite.Claims`,\n  `{code}`\n"), [f"docs/diagnosis.md:2: {words}"])

    def test_wants_tests_or_the_words_not_yet(self):
        self.assertIn("names no test", self.problems(ONE + "the eye\n")[0])
        self.assertIn("names no test", self.problems(ONE + "not yet\n")[0])
        late = ONE.replace("better", "not yet")
        sums = SUM.replace("1 of", "0 of").replace("0 not", "1 not")
        self.assertEqual(self.problems(late + "not yet\n", sums), [])
        self.assertIn("is shown by something", self.problems(late + "`Suite.Claims`\n", sums)[0])

    def test_wants_all_points_and_states_and_numbers(self):
        self.assertIn("wants the points", self.problems(ONE.replace("* Here: b\n", "") + "`Suite.Claims`\n")[0])
        self.assertIn("is none of", self.problems(ONE.replace("better", "fine") + "`Suite.Claims`\n")[0])
        self.assertIn("is number 1, not 2", self.problems(ONE.replace("1.", "2.") + "`Suite.Claims`\n")[0])

    def test_wants_sums_that_add_up(self):
        text = ONE + "`Suite.Claims`\n"
        self.assertIn("1 of them are better", self.problems(text, SUM.replace("1 of", "2 of"))[0])
        self.assertIn("should say", self.problems(text, "")[0])

    def test_looks_at_tables_as_well(self):
        table = "\n## More\n\n| complaint | here | shown by |\n|---|---|---|\n| a | b | "
        text = ONE + "`Suite.Claims`\n" + table
        for cell in ("`Other.Holds`", "not yet"):
            self.assertEqual(self.problems(f"{text}{cell} |\n"), [])
        self.assertIn("there is no test Other.Gone", self.problems(f"{text}`Other.Gone` |\n")[0])
        self.assertIn("names no test and does not say", self.problems(f"{text}b |\n")[0])


if __name__ == "__main__":
    unittest.main()
