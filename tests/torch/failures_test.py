"""What is said of a rank that dies, stays away or comes late, by tutti and by PyTorch's watchdog, and in which order."""
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import collectives_test

PROGRAM = pathlib.Path(__file__).resolve().with_name("failing_rank.py")
LIMIT = 120  # seconds until a job is ended, whatever it has said
WATCHDOG = ("Watchdog caught collective operation timeout", "Operation timed out after")


def lines_of(backend, fate, until=()):
    """What the ranks say, up to a line with one of the texts `until`."""
    process = subprocess.Popen([sys.executable, "-m", "tutti.launch", "-n", "3", PROGRAM, backend, fate],
                               env=dict(os.environ, NCCL_DEBUG="WARN", TUTTI_STALL_SEC="2"), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    end = threading.Timer(LIMIT, process.kill)
    end.start()
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if any(text in line for text in until):
            process.send_signal(signal.SIGKILL)  # its ranks end with it
    process.stdout.close()
    process.wait()
    end.cancel()
    return lines


def place(lines, *texts):
    """The number of the first line with one of the texts; behind the last one where there is none."""
    return next((number for number, line in enumerate(lines) if any(text in line for text in texts)), len(lines))


class Failures(unittest.TestCase):
    def each(self):
        for backend in collectives_test.backends():
            with self.subTest(backend=backend):
                yield backend

    def test_a_rank_that_is_killed_is_named_before_pytorch_speaks(self):
        for backend in self.each():
            lines = lines_of(backend, "killed")
            named = place(lines, "NCCL ERROR Bootstrap: rank 1 (host")
            self.assertLess(named, len(lines), lines)
            self.assertLess(named, place(lines, "ProcessGroupNCCL.cpp", "WorkNCCL.cpp", "DistBackendError"), lines)

    def test_a_rank_that_does_not_call_is_named_before_the_watchdog_times_out(self):
        for backend in self.each():
            lines = lines_of(backend, "missing", WATCHDOG)
            stalled = place(lines, "NCCL WARN Stall: ")
            self.assertLess(stalled, len(lines), lines)
            self.assertIn("rank 1", lines[stalled])
            timed_out = place(lines, *WATCHDOG)
            self.assertLess(timed_out, len(lines), lines)
            self.assertLess(stalled, timed_out)

    def test_a_rank_that_comes_late_is_waited_for(self):
        for backend in self.each():
            lines = lines_of(backend, "late")
            self.assertEqual(sum("has its sum" in line for line in lines), 3, lines)
            self.assertEqual(place(lines, "NCCL ERROR", *WATCHDOG), len(lines), lines)


if __name__ == "__main__":
    unittest.main()
