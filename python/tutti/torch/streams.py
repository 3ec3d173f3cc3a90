"""Waiting for a stream, as cheaply as Python can: it happens before every operator."""
import ctypes

import torch

from tutti.torch import runtime

_synchronize = runtime.library().cudaStreamSynchronize
_synchronize.argtypes = [ctypes.c_void_p]


def finish(device):
    """Waits until all work of the current stream of a device (its index) is done. Without the lock of the interpreter."""
    stream = torch._C._cuda_getCurrentRawStream(device)
    if stream == 0 and device != torch._C._cuda_getDevice():  # without a number: the default one of the current device
        with torch.cuda.device(device):
            code = _synchronize(stream)
    else:
        code = _synchronize(stream)
    if code != 0:
        torch.cuda.synchronize(device)  # which raises PyTorch's error
        raise RuntimeError(f"tutti.torch: the stream's earlier work failed with CUDA error {code}")
