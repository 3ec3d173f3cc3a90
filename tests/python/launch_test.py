#!/usr/bin/env python3
"""What tutti.launch does with the ranks that it starts."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"


def launcher(ranks, program, *options):
    """A launcher that has been started. `program` is the source of the ranks' program."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write("import os, signal, sys, time\nrank = int(os.environ['RANK'])\n" + program)
    command = [sys.executable, "-m", "tutti.launch", "-n", str(ranks), *options, file.name]
    process = subprocess.Popen(command, env=dict(os.environ, PYTHONPATH=str(PYTHON)), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    process.source = file.name
    return process


def end(process):
    """The exit status and the lines."""
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.unlink(process.source)
    return process.returncode, output.splitlines()


def launch(ranks, program, *options):
    return end(launcher(ranks, program, *options))


def lives(pid):
    """Whether a process runs: one that nobody has waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Launch(unittest.TestCase):
    def test_tells_ranks_of_each_other(self):
        status, lines = launch(3, "print(rank, os.environ['LOCAL_RANK'], os.environ['WORLD_SIZE'], "
                                  "os.environ['LOCAL_WORLD_SIZE'], os.environ['MASTER_ADDR'], "
                                  "int(os.environ['MASTER_PORT']) > 0)")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(lines), [f"[{n}] {n} {n} 3 3 127.0.0.1 True" for n in range(3)])

    def test_puts_lines_out_whole(self):
        program = "for _ in range(50):\n  for part in ('a' * 3000, 'b' * 3000, '\\n'):\n" \
                  "    sys.stdout.write(part); sys.stdout.flush()\nsys.stdout.write('end')"
        status, lines = launch(2, program)
        self.assertEqual(status, 0)
        whole = "a" * 3000 + "b" * 3000
        self.assertEqual(sorted(lines), sorted([f"[{n}] {whole}" for n in range(2)] * 50 + ["[0] end", "[1] end"]))

    def test_names_the_rank_that_died_and_ends_the_others(self):
        status, lines = launch(3, "time.sleep(0.2)\nif rank == 1: os.kill(os.getpid(), 9)\ntime.sleep(60)", "--grace",
                               "0.2")
        self.assertEqual(status, 137)
        self.assertRegex(lines[0], r"^tutti.launch: rank 1 of 3 \(pid \d+\) was killed by signal 9 \(SIGKILL.*; the "
                                   r"others have 0.2 s to end$")
        self.assertEqual(lines[1], "tutti.launch: ending what is left by SIGTERM: rank 0 2")

    def test_gives_the_status_of_the_first_that_failed(self):
        status, lines = launch(2, "time.sleep(rank)\nsys.exit(3 + rank)")
        self.assertEqual(status, 3)
        self.assertIn("rank 0 of 2", lines[0])
        self.assertIn("ended with exit status 3", lines[0])

    def test_kills_ranks_that_do_not_mind_being_asked(self):
        program = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\n" \
                  "time.sleep(0.5 if rank == 0 else 60)\nsys.exit(1)"
        status, lines = launch(2, program, "--grace", "0.1")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "tutti.launch: ending what is left by SIGKILL: rank 1")

    def test_passes_an_interrupt_on(self):
        program = "signal.signal(signal.SIGINT, lambda *_: (print('interrupted'), sys.exit(0)))\nprint('ready')\n" \
                  "time.sleep(60)"
        process = launcher(2, program)
        ready = [process.stdout.readline(), process.stdout.readline()]
        self.assertEqual(sorted(ready), ["[0] ready\n", "[1] ready\n"])
        process.send_signal(signal.SIGINT)
        status, lines = end(process)
        self.assertEqual(status, 130)
        self.assertEqual(sorted(lines), ["[0] interrupted", "[1] interrupted",
                                         "tutti.launch: SIGINT: passed on to every rank"])

    def test_leaves_no_rank_behind_when_it_is_killed(self):
        process = launcher(2, "print(os.getpid())\ntime.sleep(60)")
        ranks = [int(process.stdout.readline().split()[1]) for _ in range(2)]
        process.kill()
        end(process)
        limit = time.monotonic() + 20
        while any(map(lives, ranks)) and time.monotonic() < limit:
            time.sleep(0.01)
        self.assertFalse(any(map(lives, ranks)))

    def test_waits_for_a_rank_that_has_closed_its_output(self):
        status, lines = launch(1, "print('closing')\nos.close(1); os.close(2)\ntime.sleep(0.5)\nos._exit(5)")
        self.assertEqual(status, 5)
        self.assertEqual(lines[0], "[0] closing")
        self.assertIn("rank 0 of 1", lines[1])

    def test_says_what_cannot_be_started(self):
        command = [sys.executable, "-m", "tutti.launch", "-n", "2", "/nowhere/program"]
        result = subprocess.run(command, env=dict(os.environ, PYTHONPATH=str(PYTHON)), capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nowhere/program cannot be started: No such file or directory", result.stderr)


if __name__ == "__main__":
    unittest.main()
