"""Several ranks of c10d, each a process with a device of its own."""
import tempfile
import time
import traceback

import torch
import torch.distributed as dist

LIMIT = 180  # seconds for all of a test's ranks
FAREWELL = 10  # seconds for the others once one has failed


def _rank(rank, size, backend, store, test, failures):
    torch.set_num_threads(1)
    torch.cuda.set_device(rank)
    try:
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=size,
                                device_id=torch.device("cuda", rank))
        torch.manual_seed(0)
        test(rank, size)
        torch.cuda.synchronize()
        dist.destroy_process_group()
    except BaseException:
        failures.put(f"rank {rank} of {size}:\n{traceback.format_exc()}")
        raise


def _await(processes):
    """Until all have ended, or have had their time."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end and any(one.is_alive() for one in processes):
        if any(one.exitcode not in (None, 0) for one in processes):
            end = min(end, time.monotonic() + FAREWELL)
        time.sleep(0.05)


def run(size, test, backend="nccl"):
    """Calls `test(rank, size)`, a function of a module, on `size` ranks of a backend of c10d; raises AssertionError with
    what failed."""
    context = torch.multiprocessing.get_context("spawn")
    failures = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_rank, args=(rank, size, backend, f"{folder}/store", test, failures))
                     for rank in range(size)]
        for one in processes:
            one.start()
        _await(processes)
        late = [number for number, one in enumerate(processes) if one.is_alive()]
        for one in processes:
            one.kill()
            one.join()
    said = []
    while not failures.empty():
        said.append(failures.get())
    if late or any(one.exitcode != 0 for one in processes):
        raise AssertionError("\n".join([f"ranks {late} are not done"] * bool(late) + said) or
                             f"exit codes {[one.exitcode for one in processes]}")


class InTurn:
    """All of some tests on the same ranks: a process group takes longer to make than to use."""

    def __init__(self, tests):
        self.tests = tests

    def __call__(self, rank, size):
        for test in self.tests:
            try:
                test(rank, size)
            except Exception as error:
                raise AssertionError(f"{test.__name__}: {error}") from error
