"""PyTorch on tutti's software GPU: operators of CUDA tensors are carried out on the processor.

The software GPU runs no kernels of applications, and PyTorch's operators are kernels. But its devices' memory is the
process's own, so an operator of CUDA tensors can run where they are, by PyTorch's own code for the processor. After

    import tutti.torch

(or under `softgpu-run --torch`, which does it as soon as a program imports torch) every ATen operator with a CUDA
kernel that also has a form for the processor runs there: after the earlier work of the stream, and in its order; in a
captured graph as a node that each replay repeats. Everything else stays PyTorch's: allocator, streams, events, autograd,
c10d with NCCL. An operator without such a form raises NotImplementedError with its name.

TUTTI_TORCH=0 leaves PyTorch as it is.
"""
import ctypes
import os
import warnings

import torch

from tutti.torch import operators

_library = None


def on_software_gpu():
    """Whether this process's libcuda.so.1 is the software GPU's."""
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "softgpuTopology")
    except OSError:
        return False


def install():
    """Puts the operators in place, once a process. Only on the software GPU: on a real one it warns and does nothing.
    Call it before threads use CUDA tensors."""
    global _library  # what is registered goes with it
    if _library is not None or os.environ.get("TUTTI_TORCH", "1") == "0":
        return
    if not on_software_gpu():
        warnings.warn("tutti.torch: this process is not on tutti's software GPU, so PyTorch is left as it is. "
                      "Start it with softgpu-run.", stacklevel=2)
        return
    # cuDNN is a library of kernels; attention has a form of plain operators.
    torch.backends.cudnn.enabled = False
    for kind in ("flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{kind}_sdp")(False)
    _leave_eager()
    _library = operators.register()


def _leave_eager():
    """torch.compile makes kernels for GPUs, which the software GPU does not run: what it is given stays as it is."""
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    told = []

    def compile_nothing(model=None, **options):
        if not told:
            told.append(True)
            warnings.warn("torch.compile does nothing on tutti's software GPU, which runs no compiled kernels: "
                          "the model runs as it is.", stacklevel=2)
        return model if model is not None else (lambda given: compile_nothing(given, **options))

    torch.compile = compile_nothing


install()
