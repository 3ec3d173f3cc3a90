"""On the path of programs that softgpu-run --torch starts: as soon as torch has been imported, tutti.torch is as well."""
import importlib.machinery
import importlib.util
import os
import sys


class _AfterTorch:
    """Finds torch as it would be found without it, and has tutti.torch follow."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                import tutti.torch  # noqa: F401

            spec.loader.exec_module = exec_module
        return spec


class _AroundThis:
    """Finds tutti where this folder is a part of it, as a wheel has it, for Pythons that have no tutti of their own."""

    def find_spec(self, name, path=None, target=None):
        package = os.path.dirname(_HERE)
        if name != "tutti" or os.path.basename(package) != name:
            return None
        return importlib.util.spec_from_file_location(name, os.path.join(package, "__init__.py"),
                                                      submodule_search_locations=[package])


def _run_the_next(here):
    """A sitecustomize of the system's or the program's, which this one hides."""
    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_HERE = os.path.dirname(os.path.abspath(__file__))
sys.meta_path.insert(0, _AfterTorch())
sys.meta_path.append(_AroundThis())
_run_the_next(_HERE)
