#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed, which its wheel brings, with an engine over NCCL.

usage: distributed_suite.py nccl|nccl-legacy RANKS [PATTERN]

nccl-legacy is the engine that PyTorch had alone before 2.15; the tests find it under the name nccl. Tests whose name contains PATTERN, default all. A line for each test, then each failure's text, then how many there
were of each kind. Exit status 1 where a test fails that `distributed_known.py` does not list, or one that it lists
passes.
"""
import os
import sys
import tempfile
import time
import unittest

ENGINE, RANKS = sys.argv[1], sys.argv[2]
PATTERN = sys.argv[3] if len(sys.argv) > 3 else ""
LIMIT = 100  # seconds for one test

if "TEMP_DIR" not in os.environ:  # the ranks import this file as well, and share one folder
    folder = tempfile.TemporaryDirectory()
    os.environ.update(BACKEND="nccl", WORLD_SIZE=RANKS, TEMP_DIR=folder.name, INIT_METHOD="env://",
                      DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(LIMIT))

import torch  # noqa: E402
from torch.distributed import distributed_c10d as c10d  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

from distributed_known import KNOWN, MAY_FAIL  # noqa: E402

if ENGINE == "nccl-legacy":
    c10d._register_builtin_nccl_as_legacy()
elif hasattr(c10d, "_register_builtin_nccl_as_legacy"):
    # These tests look for events named "nccl:all_gather" and so on, as the older engine writes them; the newer one
    # leaves the prefix out. The values are what counts here.
    distributed_test.PROFILING_SUPPORTED_BACKENDS.remove("nccl")

RANKS_START = torch.multiprocessing.get_context("forkserver")
RANKS_START.set_forkserver_preload(["torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo", "numpy"])


def _in_environment(environment, target, arguments, named):
    os.environ.update(environment)
    target(*arguments, **named)


def _rank(target, name, args, kwargs):
    """A rank with this process's environment of now: the process that forks it has that of its own start."""
    return RANKS_START.Process(target=_in_environment, name=name, args=(dict(os.environ), target, args, kwargs))


class Distributed(TestDistBackend, DistributedTest._DistTestBase):
    """As PyTorch runs them, but each rank is forked from a process that has imported PyTorch: a spawned rank spends most
    of its time on its imports. That process has not touched CUDA, which no child of it could use then."""

    def setUp(self):
        super().setUp()
        self._start_processes(_rank)
        torch.backends.cudnn.flags(enabled=True, allow_tf32=False).__enter__()


class Lines(unittest.TestResult):
    """A line for each test as it ends."""

    def __init__(self):
        super().__init__()
        self.wrong = []
        self.count = dict.fromkeys(("passed", "failed", "skipped", "known"), 0)

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()
        self.verdict, self.text = "passed", ""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.verdict, self.text = "skipped", reason

    def _failed(self, test, error):
        self.verdict, self.text = "failed", self._exc_info_to_string(error, test)

    addFailure = addError = lambda self, test, error: self._failed(test, error)

    def stopTest(self, test):
        super().stopTest(test)
        name = test.id().split(".")[-1]
        listed = KNOWN[ENGINE].get(name)
        excused = listed or MAY_FAIL.get(name)
        if self.verdict == "failed" and excused is not None:
            self.verdict = "known"
            self.text = excused
        elif self.verdict == "failed":
            self.wrong.append(f"{name}:\n{self.text}")
        elif self.verdict == "passed" and listed is not None:
            self.wrong.append(f"{name}: passes, and is listed as failing: {listed}")
        self.count[self.verdict] += 1
        remark = f": {self.text}" if self.verdict in ("skipped", "known") else ""
        print(f"{self.verdict:7} {time.monotonic() - self.begun:5.1f} s  {name}{remark}", flush=True)


def main():
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(Distributed) if PATTERN in name]
    result = Lines()
    unittest.TestSuite(Distributed(name) for name in names).run(result)
    for text in result.wrong:
        print(f"\n{text}")
    print(f"{ENGINE} on {RANKS} ranks: " + ", ".join(f"{number} {kind}" for kind, number in result.count.items()))
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
