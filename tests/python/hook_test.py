#!/usr/bin/env python3
"""What Python does under softgpu-run when a program imports torch. The torch here is none: only that it is imported
matters, and what follows.

usage: hook_test.py [SOFTGPU_RUN]       without it, what needs the software GPU is skipped
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
TORCH = {"torch/__init__.py": "from torch import version\n__version__ = '9.9'\nprint('torch')",
         "torch/version.py": "cuda = '13.2'"}
SOFTGPU_RUN = sys.argv[1] if len(sys.argv) > 1 else None
OPERATORS = {"tutti/__init__.py": "", "tutti/torch.py": "print('operators')"}  # in the place of tutti's own


class Hook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def run_python(self, program, files, *options, launcher=(), **settings):
        """What a program prints whose folder has these files, with the hook on its path."""
        for name, text in files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TUTTI_", "PYTHON"))}
        environment |= {"PYTHONPATH": f"{PYTHON / 'site'}:{self.folder}", "PYTHONDONTWRITEBYTECODE": "1",
                        "PYTHONUNBUFFERED": "1", **settings}
        command = [*launcher, sys.executable, *options, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, env=environment, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_puts_operators_in_place_once_torch_has_been_imported(self):
        self.assertEqual(self.run_python("import torch; print('program')", TORCH | OPERATORS),
                         "torch\noperators\nprogram\n")

    def test_is_not_used_up_by_who_only_asks_where_torch_is(self):
        self.assertEqual(self.run_python("""
            import importlib.util
            for _ in range(3):
                assert importlib.util.find_spec("torch").origin.endswith("torch/__init__.py")
            import torch
        """, TORCH | OPERATORS), "torch\noperators\n")

    def test_is_silent_where_there_is_no_torch(self):
        self.assertEqual(self.run_python("""
            import importlib.util
            assert importlib.util.find_spec("torch") is None
            try:
                import torch
            except ModuleNotFoundError as error:
                print(error.name)
        """, {}), "torch\n")

    def test_leaves_torchs_own_errors_alone(self):
        said = self.run_python("""
            try:
                import torch
            except ImportError as error:
                print(error)
        """, {"torch/__init__.py": "raise ImportError('of its own')"})
        self.assertEqual(said, "of its own\n")

    def test_makes_one_warning_of_any_exception(self):
        broken = {"tutti/__init__.py": "", "tutti/torch.py": "{}['missing']"}
        for options in ((), ("-W", "error")):
            with self.subTest(options=options):
                said = self.run_python("import torch; import torch; print('program')", TORCH | broken, *options)
                lines = said.splitlines()
                self.assertEqual((lines[0], lines[-1]), ("torch", "program"), said)
                self.assertEqual(said.count("tutti.torch cannot be put in place"), 1, said)
                self.assertIn("KeyError: 'missing'", said)

    def test_makes_one_warning_of_a_torch_that_cannot_be_followed(self):
        said = self.run_python("""
            import importlib.machinery, sys

            class Fixed:
                __slots__ = ()
                def create_module(self, spec):
                    return None
                def exec_module(self, module):
                    print("torch")

            class Finder:
                def find_spec(self, name, path=None, target=None):
                    return importlib.machinery.ModuleSpec(name, Fixed()) if name == "torch" else None

            sys.meta_path.append(Finder())
            import torch
            print("program")
        """, OPERATORS)
        self.assertEqual(said.count("tutti.torch cannot follow"), 1, said)
        self.assertTrue(said.endswith("torch\nprogram\n"), said)

    def test_makes_one_warning_of_a_torch_that_is_not_for_the_software_gpu(self):
        for version, says in {"None": "is a build without CUDA", "'13.2'": "is not on tutti's software GPU"}.items():
            with self.subTest(cuda=version):
                files = TORCH | {"torch/version.py": f"cuda = {version}"}
                said = self.run_python("import torch; print('program')", files, LD_LIBRARY_PATH="")
                self.assertEqual(said.count("tutti.torch leaves PyTorch as it is"), 1, said)
                self.assertIn(says, said)
                self.assertTrue(said.endswith("program\n"), said)

    @unittest.skipUnless(SOFTGPU_RUN, "no software GPU")
    def test_makes_one_warning_of_a_torch_for_a_cuda_that_the_software_gpu_has_no_runtime_of(self):
        said = self.run_python("import torch; print('program')", TORCH | {"torch/version.py": "cuda = '11.8'"},
                               launcher=[SOFTGPU_RUN])
        self.assertEqual(said.count("tutti.torch leaves PyTorch as it is"), 1, said)
        self.assertRegex(said, "for CUDA 11.8 and needs libcudart.so.11, but the software GPU has .*libcudart.so.13")
        self.assertTrue(said.endswith("program\n"), said)

    @unittest.skipUnless(SOFTGPU_RUN, "no software GPU")
    def test_makes_one_warning_of_a_torch_with_another_runtime(self):
        other = self.folder / "libcudart.so.13"
        folder = pathlib.Path(subprocess.check_output([SOFTGPU_RUN, "--libdir"], text=True).strip())
        other.write_bytes((folder / other.name).read_bytes())
        torch = TORCH | {"torch/__init__.py": f"import ctypes\nfrom torch import version\n__version__ = '9.9'\n"
                                              f"ctypes.CDLL({str(other)!r})"}
        said = self.run_python("import torch; print('program')", torch, launcher=[SOFTGPU_RUN, "--no-preload"])
        self.assertEqual(said.count("tutti.torch leaves PyTorch as it is"), 1, said)
        self.assertIn(f"has loaded another CUDA runtime than the software GPU's, {other}", said)
        self.assertTrue(said.endswith("program\n"), said)

    def test_is_not_there_where_the_environment_says_so(self):
        said = self.run_python("""
            import sys, torch
            print([one for one in sys.meta_path if "Torch" in type(one).__name__])
        """, TORCH | OPERATORS, TUTTI_TORCH="0")
        self.assertEqual(said, "torch\n[]\n")

    def test_gives_way_to_the_programs_own_sitecustomize(self):
        own = {"sitecustomize.py": "import sys\nname = __name__\nprint(sys.modules[__name__].__file__)"}
        said = self.run_python("import sitecustomize, torch; print(sitecustomize.name)", TORCH | OPERATORS | own)
        self.assertEqual(said, f"{self.folder}/sitecustomize.py\ntorch\noperators\nsitecustomize\n")

    def test_finds_tutti_beside_it_and_nothing_else_there(self):
        said = self.run_python("import tutti.launch; print(tutti.launch.__file__)", {})
        self.assertEqual(said, f"{PYTHON}/tutti/launch.py\n")
        said = self.run_python("import sys; print(sys.path)", {})
        self.assertNotIn(f"'{PYTHON}'", said)

    def test_hides_no_package_of_the_same_name(self):
        said = self.run_python("import tutti; print(tutti.__file__)", {"tutti/__init__.py": ""})
        self.assertEqual(said, f"{self.folder}/tutti/__init__.py\n")

    def test_prefers_its_tutti_to_other_copies_and_to_mere_folders(self):
        for name in ("tutti/torch/operators.py", "tutti/README.md"):
            with self.subTest(name=name):
                (self.folder / "tutti").mkdir(exist_ok=True)
                said = self.run_python("import tutti; print(tutti.__file__)", {name: ""})
                self.assertEqual(said, f"{PYTHON}/tutti/__init__.py\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
