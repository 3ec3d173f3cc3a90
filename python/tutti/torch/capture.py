"""Operators in captured graphs: nodes of the graph that call back into Python at each replay."""
import atexit
import ctypes
import sys
import traceback

import torch

from tutti.torch import runtime

_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_NO_DESTRUCTOR_SYNC = 1
_MOVE = 1
_NOT_READY, _TIMEOUT = 600, 909  # CUresults
_PATIENCE_MS = 60_000  # at the end of the program, for replays under way
_alive = {}  # by a number that the graph holds: the callable of a node


@_HOST_FUNCTION
def _run(number):
    try:
        _alive[number]()
    except Exception:  # there is nobody above to catch it
        print("tutti.torch: an operator of a CUDA graph failed at its replay, so what the graph computes is wrong; run "
              "the same without a graph to see it raised:\n" + traceback.format_exc(), file=sys.stderr, flush=True)


@_HOST_FUNCTION
def _forget(number):
    _alive.pop(number, None)


@atexit.register
def _withdraw():
    """The driver's threads live until the process has ended, Python does not: what they call here they must not call once
    it has begun to go. Replays under way are waited for, because other ranks may wait for what they send."""
    withdraw = ctypes.CDLL("libcuda.so.1").softgpuWithdrawHostFunction  # without the interpreter's lock, which _run takes
    code = withdraw(_run, ctypes.c_uint(_PATIENCE_MS))
    if code == _NOT_READY:
        print(f"tutti.torch: the program ends with replays of a CUDA graph that did not come to their end within "
              f"{_PATIENCE_MS // 1000} s: what they were still to compute is left out. Synchronize before the end to see "
              "what they wait for.", file=sys.stderr, flush=True)
    if code == _TIMEOUT:
        print(f"tutti.torch: the program ends while an operator of a CUDA graph has been running for more than "
              f"{_PATIENCE_MS // 1000} s, so Python may crash now. Synchronize before the end.", file=sys.stderr,
              flush=True)
    withdraw(_forget, ctypes.c_uint(_PATIENCE_MS))


def _check(code, what):
    if code != 0:
        raise RuntimeError(f"tutti.torch: {what} failed with CUDA error {code} while a graph was captured")


def add_node(repeat):
    """Appends a node to the graph that the current stream captures, which calls `repeat()` at each replay, on a thread
    of the driver's. `repeat` lives as long as the graph and what was made of it."""
    cudart = runtime.library()
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    number = id(repeat)
    _alive[number] = repeat
    status, graph = ctypes.c_int(), ctypes.c_void_p()
    ident, edges, count = ctypes.c_ulonglong(), ctypes.c_void_p(), ctypes.c_size_t()
    dependencies = ctypes.c_void_p()
    capture_info = runtime.stream_get_capture_info()
    _check(capture_info(stream, ctypes.byref(status), ctypes.byref(ident), ctypes.byref(graph),
                        ctypes.byref(dependencies), ctypes.byref(edges), ctypes.byref(count)),
           "cudaStreamGetCaptureInfo")
    held = ctypes.c_void_p()
    _check(cudart.cudaUserObjectCreate(ctypes.byref(held), ctypes.c_void_p(number), _forget, 1, _NO_DESTRUCTOR_SYNC),
           "cudaUserObjectCreate")
    _check(cudart.cudaGraphRetainUserObject(graph, held, 1, _MOVE), "cudaGraphRetainUserObject")
    _check(cudart.cudaLaunchHostFunc(stream, _run, ctypes.c_void_p(number)), "cudaLaunchHostFunc")
