"""On the path of programs that softgpu-run starts: as soon as torch has been imported, tutti.torch puts its operators in
place. It never keeps a program from importing torch: what goes wrong becomes one warning."""
import importlib.machinery
import importlib.util
import os
import sys
import traceback
import warnings

_HERE = os.path.dirname(os.path.realpath(__file__))
_BESIDE = os.path.join(os.path.dirname(_HERE), "tutti")
_TUTTI = _BESIDE if os.path.isdir(_BESIDE) else os.path.dirname(_HERE)  # a wheel has this folder within the package


def _found_by_others(finder, name, path, target):
    """What Python would find without this finder."""
    for other in sys.meta_path:
        find = getattr(other, "find_spec", None)
        spec = find(name, path, target) if find is not None and other is not finder else None
        if spec is not None:
            return spec
    return None


def _warn(text):
    try:
        warnings.warn_explicit(text, RuntimeWarning, __file__, 0)
    except Warning:  # by -W error, which is not to end the import of torch
        print(text, file=sys.stderr, flush=True)


def _put_in_place():
    try:
        import tutti.torch  # noqa: F401
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        _warn(f"tutti.torch cannot be put in place, so operators of CUDA tensors will fail on the software GPU: "
              f"{type(error).__name__}: {error} ({where.filename}:{where.lineno}). TUTTI_TORCH=0 leaves PyTorch as it is.")


class _AfterTorch:
    """Finds torch as it would be found without it, and has tutti.torch follow. Programs may also only ask where torch is,
    and go on asking."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        spec = _found_by_others(self, name, path, target)
        if spec is not None and spec.loader is not None:
            try:
                self._follow(spec.loader)
            except Exception as error:
                _warn(f"tutti.torch cannot follow the import of torch: {type(error).__name__}: {error}")
        return spec

    @staticmethod
    def _follow(loader):
        execute = loader.exec_module

        def exec_module(module):
            execute(module)
            _put_in_place()

        loader.exec_module = exec_module


class _Tutti:
    """Finds tutti beside this folder, for the folder of a package must not be on the path: what else is there would hide
    packages of the program. Another package of that name stays what it is, but not another copy of this one, which may
    not go with the software GPU that runs."""

    def find_spec(self, name, path=None, target=None):
        if name != "tutti":
            return None
        spec = _found_by_others(self, name, path, target)
        if spec is not None and spec.origin is not None and not self._is_copy(spec.origin):
            return spec
        return importlib.util.spec_from_file_location(name, os.path.join(_TUTTI, "__init__.py"),
                                                      submodule_search_locations=[_TUTTI])

    @staticmethod
    def _is_copy(origin):
        return os.path.exists(os.path.join(os.path.dirname(origin), "torch", "operators.py"))


def _run_the_next():
    """A sitecustomize of the system's or the program's, which this one hides, as if it had been found."""
    others = [folder for folder in sys.path if os.path.realpath(folder or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.meta_path.insert(0, _Tutti())
if os.environ.get("TUTTI_TORCH", "1") != "0":
    sys.meta_path.insert(0, _AfterTorch())
_run_the_next()
