"""The examples of examples/pytorch, as their first lines say to start them."""
import pathlib
import re
import subprocess
import sys
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"


TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node")


class Examples(unittest.TestCase):
    def learn(self, *command):
        """What an example prints, which compares what it has learnt with what one process does."""
        result = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("One process on the processor: losses at most", result.stdout)
        return result.stdout

    def test_digits_are_learnt_as_by_one_process(self):
        for launcher in ([*TORCHRUN, "4"], ["-m", "tutti.launch", "-n", "2"]):
            with self.subTest(launcher=launcher[1]):
                self.learn(*launcher, EXAMPLES / "digits.py", "--compare")

    def test_a_transformer_in_shards_learns_as_in_one_piece(self):
        said = self.learn(*TORCHRUN, "4", EXAMPLES / "transformer.py", "--steps", "20", "--compare")
        mine, whole = map(int, re.search(r"keeps (\d+) of (\d+) parameters", said).groups())
        self.assertAlmostEqual(mine / whole, 1 / 4, delta=0.05)

    def test_stages_of_a_pipeline_learn_as_in_one_piece(self):
        for stages in ("2", "4"):
            said = self.learn(*TORCHRUN, stages, EXAMPLES / "pipeline.py", "--epochs", "2", "--compare")
            self.assertIn(f"{stages} stages: ", said)

    def test_a_job_that_loses_a_rank_learns_the_same_with_the_others(self):
        said = self.learn(EXAMPLES / "elastic.py")
        self.assertRegex(said, r"rank 2 \(host .*\) died")
        self.assertIn("Rank 2 is lost. 3 ranks go on after ", said)
        epochs = re.findall(r"epoch +(\d+), (\d) ranks", said)
        self.assertEqual(epochs, [(str(n), "4" if n < 3 else "3") for n in range(1, 7)])


if __name__ == "__main__":
    unittest.main()
