"""Tests of PyTorch's distributed_test.py that fail here, by engine, with the reason."""

# About the engine that PyTorch 2.15 has behind "nccl", as against the older one, for which the tests were written.
_OTHER_DEVICE = "the test makes another device than the group's current; the engine takes tensors of one device only"
_CURRENT_STREAM = "the test makes no device current; the engine waits for the stream of the current one, not the group's"
_PREFIX = "the engine leaves out the prefix nccl: of the events that the test counts"

KNOWN = {
    "nccl": {
        "test_all_gather_object_default_pg": _OTHER_DEVICE,
        "test_all_gather_object_subgroup": _OTHER_DEVICE,
        "test_gather_object": _OTHER_DEVICE,
        "test_gather_object_subgroup": _OTHER_DEVICE,
        "test_barrier_cuda": _CURRENT_STREAM,
        "test_ddp_profiling_torch_profiler": _PREFIX,
        "test_send_recv_nccl_autograd_profiler": _PREFIX,
        "test_send_recv_nccl_torch_profiler": _PREFIX,
    },
    "nccl-legacy": {},
}

# Pass or fail with the load of the machine.
_ABORTED_BEFORE = ("the first rank whose time is up aborts its communicator; a rank that hears of that before its own time "
                   "is up says so, where the test wants the watchdog's words")
MAY_FAIL = {
    "test_monitored_barrier_allreduce_hang": _ABORTED_BEFORE,
    "test_monitored_barrier_allreduce_hang_wait_all_ranks": _ABORTED_BEFORE,
}
