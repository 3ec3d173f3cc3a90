#!/usr/bin/env python3
"""What tools/test_summary.py says of Meson's logs."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parents[2] / "tools/test_summary.py"
GTEST = '''<testsuite name="tutti.tutti:unit / net.Ring"><testcase name="A" classname="Ring" time="2.5"/>
<testcase name="B" classname="Ring" time="1"/></testsuite>
<testsuite name="tutti.tutti:unit / net.Tree"><testcase name="C" classname="Tree" time="0.5"/></testsuite>'''
FAILED = '<testsuite name="tutti">'\
    '<testcase name="tutti:lint / words" classname="tutti" time="1"><failure/></testcase></testsuite>'


def plain(count):
    cases = (f'<testcase name="tutti:e2e / test{n}" classname="tutti" time="{n}.25"/>' for n in range(count))
    return f'<testsuite name="tutti">{"".join(cases)}</testsuite>'


def summary(*suites, more=()):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as log:
        log.write(f"<testsuites>{''.join(suites)}</testsuites>")
        log.flush()
        result = subprocess.run([sys.executable, TOOL, f"plain={log.name}", *more], capture_output=True, text=True)
    return result.returncode, result.stdout.splitlines()


class Summary(unittest.TestCase):
    def test_ends_with_the_counts_after_the_ten_longest(self):
        status, lines = summary(plain(30))
        self.assertEqual((status, lines[-1]), (0, "30 passed, 0 failed, 0 skipped"))
        self.assertEqual(lines[-12], "The ten longest tests:")
        self.assertEqual([line.split()[-1] for line in lines[-11:-1]], [f"test{n}" for n in range(29, 19, -1)])
        self.assertIn("29.2 s  [plain] tutti:e2e / test29", lines[-11])

    def test_adds_up_the_cases_of_a_program(self):
        _, lines = summary(GTEST)
        self.assertEqual(lines, ["The longest tests:",
                                 "     4.0 s  [plain] tutti.tutti:unit / net", "3 passed, 0 failed, 0 skipped"])

    def test_says_before_the_counts_how_long_steps_took(self):
        _, lines = summary(GTEST, more=["--took", "plain: built in 3 s", "--failed", "asan", "--took", "asan: none"])
        self.assertEqual(lines[-3:], ["plain: built in 3 s", "asan: none", "3 passed, 1 failed, 0 skipped"])

    def test_counts_what_failed_and_what_could_not_run(self):
        status, lines = summary(FAILED, GTEST, more=["--failed", "asan: the build"])
        self.assertEqual((status, lines[-1]), (1, "3 passed, 2 failed, 0 skipped"))
        self.assertIn("FAILED   asan: the build", lines)

    def test_tells_the_end_of_what_a_failed_test_printed(self):
        printed = "\n".join(f"line {n}" for n in range(100))
        whole = ('<testsuite name="tutti"><testcase name="e2e / table" classname="tutti"><failure/>'
                 f"<system-out>{printed}</system-out><system-err>why it failed</system-err></testcase></testsuite>")
        gtest = ('<testsuite name="unit / net.Ring"><testcase name="A" classname="Ring"><failure message="1 is not 2">'
                 "</failure></testcase></testsuite>")
        skipped = '<testsuite name="tutti"><testcase name="gpu" classname="tutti"><skipped/></testcase></testsuite>'
        _, lines = summary(whole, gtest, skipped)
        self.assertEqual(lines[:2], ["SKIPPED  [plain] tutti: tutti.gpu", "FAILED   [plain] tutti: tutti.e2e / table"])
        self.assertEqual([line.strip(" |") for line in lines[2:18]],
                         [f"line {n}" for n in range(85, 100)] + ["why it failed"])
        self.assertEqual(lines[18:20], ["FAILED   [plain] unit / net.Ring: Ring.A", "           | 1 is not 2"])


if __name__ == "__main__":
    unittest.main()
