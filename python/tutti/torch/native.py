"""native.cc, compiled once for the PyTorch at hand and kept in the user's cache."""
import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings

import torch

from tutti.torch import runtime

_SOURCE = pathlib.Path(__file__).resolve().with_name("native.cc")
_MODULE = "tutti_operators"
_LIMIT = 300  # seconds that a compiler has


def load():
    """The module, or None where operators are to go their way in Python: TUTTI_TORCH_NATIVE=0, no compiler, or one that
    does not take the source, which a warning says."""
    if os.environ.get("TUTTI_TORCH_NATIVE", "1") == "0":
        return None
    try:
        module = _imported(_library())
        module.configure(*(ctypes.cast(getattr(runtime.library(), name), ctypes.c_void_p).value
                           for name in ("cudaStreamSynchronize", "cudaStreamIsCapturing")))
        return module
    except Exception as why:
        warnings.warn("tutti.torch: operators take the slower way through Python, because native.cc could not be "
                      f"compiled and loaded (TUTTI_TORCH_NATIVE=0 does not try): {why}", stacklevel=2)
        return None


def _imported(library):
    spec = importlib.util.spec_from_file_location(_MODULE, library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _command():
    compiler = next((found for found in (os.environ.get("CXX"), "c++", "g++", "clang++") if found and shutil.which(found)),
                    None)
    if compiler is None:
        raise RuntimeError("there is no C++ compiler (c++, g++ or clang++)")
    installed = pathlib.Path(torch.__file__).resolve().parent
    headers = [installed / "include", installed / "include/torch/csrc/api/include", sysconfig.get_paths()["include"],
               *sorted(installed.parent.glob("nvidia/cu*/include")), *sorted(installed.parent.glob("nvidia/*/include")),
               installed.parent / "triton/backends/nvidia/include"]  # has the folder crt, which CUDA 13's wheel lacks
    return [compiler, "-shared", "-fPIC", "-std=c++20", "-O1", "-w", f"-DTUTTI_MODULE={_MODULE}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}", *(f"-I{one}" for one in headers),
            str(_SOURCE), f"-L{installed / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10", "-lc10_cuda"]


def _library():
    """The compiled file, made where there is none yet: by one process, while the others wait."""
    command = _command()
    folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "tutti")
    folder.mkdir(parents=True, exist_ok=True)
    key = repr((command, torch.__version__, sys.version, _SOURCE.read_text())).encode()
    library = folder / f"operators-{hashlib.sha256(key).hexdigest()[:20]}.so"
    if library.exists():
        return library
    with _locked(library.with_suffix(".lock")):
        if not library.exists():
            _compile(command, library, library.with_suffix(".failed"))
    return library


@contextlib.contextmanager
def _locked(path):
    end = time.monotonic() + 2 * _LIMIT  # longer than a compiler that another process has started
    with open(path, "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise RuntimeError(f"another process has compiled it for {2 * _LIMIT} s, and holds {path}") from None
                time.sleep(0.1)
        yield


def _compile(command, library, failed):
    """A source that the compiler does not take is not given to it by every process again: `failed` keeps what it said."""
    if failed.exists():
        raise RuntimeError(f"{failed.read_text()} (to try again, remove {failed})")
    print(f"tutti.torch: compiling the operators' way to the processor for PyTorch {torch.__version__}, once, which takes "
          "about half a minute.", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = pathlib.Path(folder, library.name)
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, timeout=_LIMIT, check=False)
        if done.returncode != 0:
            failed.write_text(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-1500:]}")
            raise RuntimeError(failed.read_text())
        made.rename(library)
