#!/usr/bin/env python3
"""The Python wheel of this build, installed into an empty environment, is all that a program needs.

usage: wheel_test.py BUILD_FOLDER VERSION FOLDER_OF_CUDA_HEADERS

Exit status 77 (skipped) where the tools that make it cannot be had from PyPI.
"""
import collections
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/support"))
import readme  # noqa: E402

SKIPPED = 77
NOT_TO_BE_HAD = 3  # of tools/wheel
BUILD, VERSION, CUDA_HEADERS = sys.argv[1:4]


class Installed:
    """An empty environment with the wheel."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        made = subprocess.run([SOURCE / "tools/wheel", "--build", BUILD, self.folder / "made"], capture_output=True,
                              text=True, timeout=400, check=False)
        if made.returncode == NOT_TO_BE_HAD:
            print(f"SKIPPED {made.stderr.strip().splitlines()[-1]}")
            sys.exit(SKIPPED)
        if made.returncode != 0:
            sys.exit(f"tools/wheel ended with {made.returncode}:\n{made.stderr}")
        self.wheel = pathlib.Path(made.stdout.splitlines()[-1])
        self.bin = self.folder / "venv/bin"
        for command in ([sys.executable, "-m", "venv", self.folder / "venv"],
                        [self.bin / "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
                         self.wheel]):
            subprocess.run(command, check=True, timeout=300)
        self.package = next(self.folder.glob("venv/lib/python*/site-packages/tutti"))

    def run(self, *command, code=0, **settings):
        """Runs a command as a person with this environment would, who has no sources. Returns what it has said."""
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.folder), **settings}
        done = subprocess.run([str(word) for word in command], cwd=self.folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                              check=False)
        if done.returncode != code:
            raise AssertionError(f"{command} ended with {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout

    def programs(self):
        """The ELF files of the package."""
        for path in sorted(self.package.rglob("*")):
            if path.is_file() and path.read_bytes().startswith(b"\x7fELF"):
                yield path


class Wheel(unittest.TestCase):
    def test_runs_on_every_linux_with_its_glibc(self):
        self.assertRegex(HERE.wheel.name, rf"^tutti_nccl-{re.escape(VERSION)}-py3-none-manylinux_2_\d+_x86_64\.whl$")

    def test_has_no_file_twice(self):
        with zipfile.ZipFile(HERE.wheel) as archive:
            record = archive.read(next(name for name in archive.namelist() if name.endswith("/RECORD"))).decode()
        counts = collections.Counter(row[1] for row in csv.reader(record.splitlines()) if row[1])
        self.assertGreater(len(counts), 40)
        self.assertEqual([digest for digest, count in counts.items() if count > 1], [])

    def test_knows_nothing_of_the_folders_that_it_was_made_in(self):
        for path in HERE.package.rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                content = path.read_bytes()
                for folder in (BUILD, *(str(SOURCE / name) for name in ("src", "python", "tools", "include"))):
                    self.assertNotIn(os.fsencode(folder), content, f"{path} names {folder}")
        for path in HERE.programs():
            for paths in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", HERE.run("readelf", "-dW", path)):
                for one in paths.split(":"):
                    self.assertTrue(one == "$ORIGIN" or one.startswith("$ORIGIN/"), f"{path} looks in {one}")

    def test_a_benchmark_runs_on_the_software_gpu(self):
        said = HERE.run("softgpu-run", "-n", "2", "all_reduce_perf", "-b", "1K", "-e", "64K", "-f", "8", "-t", "2")
        self.assertRegex(said, r"(?m)^\s*65536\s")
        self.assertRegex(said, r"Out of bounds values : 0 OK|verified")

    def test_every_command_starts(self):
        with zipfile.ZipFile(HERE.wheel) as archive:
            points = archive.read(next(name for name in archive.namelist() if name.endswith("/entry_points.txt"))).decode()
        commands = re.findall(r"(?m)^(\S+) = ", points)
        self.assertLessEqual({"softgpu-run", "tutti-info", "tutti-topo", "tutti-tune", "tutti-launch",
                              "all_reduce_perf", "sendrecv_perf"}, set(commands))
        for command in commands:
            runner = ["softgpu-run"] if command.endswith("_perf") else []
            self.assertIn("usage", HERE.run(*runner, command, "--help").lower())

    def test_commands_do_what_they_do_in_a_build_folder(self):
        self.assertIn("NCCL_DEBUG", HERE.run("tutti-info", "--env"))
        lines = HERE.run("tutti-launch", "-n", "2", "softgpu-run", "-n", "3", "printenv", "SOFTGPU_DEVICES").splitlines()
        self.assertEqual(sorted(lines), ["[0] 3", "[1] 3"])
        said = HERE.run("tutti-tune", "--collectives", "allreduce", "--sizes", "1K", "--algorithms", "ring", "--rounds",
                        "1", "--iterations", "2", "-o", "decisions.csv")
        self.assertIn("allreduce 1024: auto ", said)
        (HERE.folder / "decisions.csv").write_text("allreduce,0,4096,tree,ll,-1,-1,-1\n")
        said = HERE.run("softgpu-run", "-n", "2", "all_reduce_perf", "-b", "1024", "-t", "2", "-n", "1",
                        NCCL_TUNER_PLUGIN=str(HERE.package / "lib/libnccl-tuner-csv.so"),
                        TUNER_CSV_FILE="decisions.csv", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,TUNING")
        self.assertIn("Algo TREE proto LL ", said)

    def test_python_finds_the_library_and_its_headers(self):
        program = "import ctypes, tutti; library = ctypes.CDLL(tutti.library()); version = ctypes.c_int(); " \
                  "library.ncclGetVersion(ctypes.byref(version)); print(tutti.__version__, version.value, " \
                  "tutti.include(), 'softgpu' in open('/proc/self/maps').read())"
        self.assertEqual(HERE.run("python", "-c", program).split(), [VERSION, "23203", str(HERE.package / "include"), "False"])
        for header in (SOURCE / "include").glob("*.h"):
            self.assertEqual((HERE.package / "include" / header.name).read_bytes(), header.read_bytes())

    def test_nobody_finds_the_software_gpu_without_asking(self):
        for path in HERE.programs():
            if path.parent.name != "softgpu":
                found = HERE.run("readelf", "-dW", path) + HERE.run("ldd", path)
                self.assertNotIn("softgpu", found, str(path))
        self.assertNotIn(str(HERE.package), HERE.run("ldconfig", "-p"))
        for name in ("libcudart.so.13", "libcudart.so.12", "libcupti.so.13", "libcupti.so.12"):
            self.assertTrue((HERE.package / "lib/softgpu" / name).is_file(), name)

    def test_the_readmes_program_compiles_and_runs(self):
        (HERE.folder / "first.cc").write_text(readme.first_program())
        include, library = HERE.run("python", "-c", "import tutti; print(tutti.include(), tutti.library())").split()
        HERE.run("g++", "-std=c++20", "first.cc", "-o", "first", f"-I{include}", "-isystem", CUDA_HEADERS,
                 f"-L{os.path.dirname(library)}", "-lnccl", f"-L{HERE.run('softgpu-run', '--libdir').strip()}",
                 "-l:libcudart.so.13")
        self.assertEqual(HERE.run("softgpu-run", "-n", "4", "--nccl", "./first"), readme.SAYS)

    def test_pythons_of_other_environments_have_tutti_under_softgpu_run(self):
        program = "import sys, tutti.launch; print(tutti.launch.__file__); " \
                  "print([type(one).__name__ for one in sys.meta_path[:2]], sys.path[1])"
        for options in ((), ("--torch",)):
            said = HERE.run("softgpu-run", *options, sys.executable, "-c", program).splitlines()
            self.assertEqual(said, [str(HERE.package / "launch.py"), f"['_AfterTorch', '_Tutti'] {HERE.package / 'site'}"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        HERE = Installed(empty)
        unittest.main(argv=sys.argv[:1])
