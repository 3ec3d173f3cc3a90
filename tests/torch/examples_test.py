"""The examples of examples/pytorch, as their first lines say to start them."""
import pathlib
import subprocess
import sys
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"


class Examples(unittest.TestCase):
    def test_digits_are_learnt_as_by_one_process(self):
        for launcher in (["torch.distributed.run", "--nproc-per-node", "4"], ["tutti.launch", "-n", "2"]):
            with self.subTest(launcher=launcher[0]):
                result = subprocess.run([sys.executable, "-m", *launcher, EXAMPLES / "digits.py", "--compare"],
                                        capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn("One process on the processor: losses at most", result.stdout)


if __name__ == "__main__":
    unittest.main()
