"""PyTorch on tutti's software GPU: operators of CUDA tensors are carried out on the processor.

The software GPU runs no kernels of applications, and PyTorch's operators are kernels. But its devices' memory is the
process's own, so an operator of CUDA tensors can run where they are, by PyTorch's own code for the processor. After

    import tutti.torch

(or under `softgpu-run`, which does it as soon as a program imports torch) every ATen operator with a CUDA
kernel that also has a form for the processor runs there: after the earlier work of the stream, and in its order; in a
captured graph as a node that each replay repeats. Everything else stays PyTorch's: allocator, streams, events, autograd,
c10d with NCCL. An operator without such a form raises NotImplementedError with its name.

TUTTI_TORCH=0 leaves PyTorch as it is.
"""
import os
import warnings

import torch

_installed = False


def install():
    """Puts the operators in place, once a process. Where PyTorch or the device is not what they are for it warns and does
    nothing. Call it before threads use CUDA tensors."""
    global _installed
    if _installed or os.environ.get("TUTTI_TORCH", "1") == "0":
        return
    from tutti.torch import runtime

    obstacle = runtime.why_not()
    if obstacle is not None:
        warnings.warn(f"tutti.torch leaves PyTorch as it is: {obstacle}.", stacklevel=2)
        return
    from tutti.torch import operators  # whose import asks for what only a fit PyTorch has

    operators.register()
    _installed = True
    # cuDNN is a library of kernels; attention has a form of plain operators.
    torch.backends.cudnn.enabled = False
    for kind in ("flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{kind}_sdp")(False)
    _leave_eager()


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
