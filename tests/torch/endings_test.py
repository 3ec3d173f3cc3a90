"""Programs that end with a CUDA graph that is alive, whose operators are functions of the interpreter."""
import subprocess
import sys
import unittest

CAPTURED = """
import torch
state = torch.zeros(1000, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    for _ in range(20):
        {operators}
"""
OPERATORS = {"plain": "state.add_(1)", "random": "state.add_(torch.rand(1000, device='cuda')).mul_(0.5)"}


REPLAYS = """
for _ in range(10):
    graph.replay()
"""


def end(program):
    """The exit status of a program, and what it has said."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


class Endings(unittest.TestCase):
    def in_peace(self, rest):
        for kind, operators in OPERATORS.items():
            with self.subTest(operators=kind):
                code, said = end(CAPTURED.format(operators=operators) + rest)
                self.assertEqual(code, 0, said)
                self.assertNotRegex(said, "softgpu: |tutti.torch: ")

    def test_with_a_graph_that_was_never_replayed_are_in_peace(self):
        self.in_peace("")

    def test_with_replays_that_nobody_has_waited_for_are_in_peace(self):
        self.in_peace(REPLAYS)

    def test_with_replays_that_were_waited_for_are_in_peace(self):
        self.in_peace(REPLAYS + "torch.cuda.synchronize()\n")

    def test_of_children_made_by_fork_are_in_peace(self):
        code, said = end("""
import os, sys, torch
print(torch.ones(3, device="cuda").sum().item())
child = os.fork()
if child != 0:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
        self.assertEqual(code, 0, said)
        self.assertNotRegex(said, "softgpuWithdraw|tutti.torch: ")  # PyTorch's own calls fail there by name

    def test_wait_for_replays_under_way_so_that_what_follows_finds_their_results(self):
        """What runs at the end runs after tutti's, where it was registered before."""
        before = "import atexit\natexit.register(lambda: print(state[0].item()))\n"
        code, said = end(before + CAPTURED.format(operators=OPERATORS["plain"]) + REPLAYS)
        self.assertEqual(code, 0, said)
        self.assertEqual(said.splitlines()[-1:], ["200.0"], said)

    def test_leave_out_and_report_replays_that_begin_later(self):
        before = "import atexit\natexit.register(lambda: (graph.replay(), print(state[0].item())))\n"
        code, said = end(before + CAPTURED.format(operators=OPERATORS["plain"]))
        self.assertEqual(code, 0, said)
        self.assertIn("0.0\n", said)
        self.assertIn("softgpu: a host function", said)

    def test_by_an_exception_are_those_of_the_exception(self):
        code, said = end(CAPTURED.format(operators=OPERATORS["plain"]) + "graph.replay()\nraise ValueError('mine')\n")
        self.assertEqual(code, 1, said)
        self.assertEqual(said.strip().splitlines()[-1], "ValueError: mine")


if __name__ == "__main__":
    unittest.main()
