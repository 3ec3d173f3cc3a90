"""The CUDA runtime that PyTorch has loaded, which must be the software GPU's."""
import ctypes
import glob
import os

import torch


def name():
    """Of the library, of the version that PyTorch was built for."""
    return "libcudart.so." + torch.version.cuda.partition(".")[0]


def library():
    return ctypes.CDLL(name())


def stream_get_capture_info():
    """The form of that function with the data of edges, which CUDA 12 has under another name."""
    return library().cudaStreamGetCaptureInfo_v3 if name().endswith(".12") else library().cudaStreamGetCaptureInfo


def why_not():
    """Why this process's PyTorch cannot run on the software GPU, as a sentence; None where it can."""
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is a build without CUDA; PyPI's has it"
    try:
        on_software_gpu = hasattr(ctypes.CDLL("libcuda.so.1"), "softgpuTopology")
    except OSError:
        on_software_gpu = False
    if not on_software_gpu:
        return "this process is not on tutti's software GPU; start it with softgpu-run"
    folder = os.path.dirname(next(iter(_loaded("libcuda.so.1"))))
    own = os.path.join(folder, name())
    if not os.path.exists(own):
        there = ", ".join(sorted(os.path.basename(path) for path in glob.glob(os.path.join(folder, "libcudart.so.*"))))
        return (f"PyTorch {torch.__version__} is a build for CUDA {torch.version.cuda} and needs {name()}, but the software "
                f"GPU has {there or 'no CUDA runtime'}; take a build of PyTorch that goes with that")
    loaded = _loaded(name())
    if loaded and not any(os.path.samefile(path, own) for path in loaded):
        return (f"PyTorch has loaded another CUDA runtime than the software GPU's, {min(loaded)}; let softgpu-run preload "
                "its own (no --no-preload, and no space in its path)")
    return None


def _loaded(library_name):
    """The files that this process has mapped as a library, or as a version of it."""
    found = set()
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[5:]
            if path and os.path.basename(path[0]).startswith(library_name) and os.path.exists(path[0]):
                found.add(os.path.realpath(path[0]))
    return found
