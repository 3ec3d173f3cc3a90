#!/usr/bin/env python3
"""The README's first program, compiled with what nccl.pc says.

  pkg_config_test.py BUILD SOURCE INCLUDE COMPILER...    INCLUDE: CUDA's headers
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import readme  # noqa: E402

BUILD, SOURCE, INCLUDE = (pathlib.Path(argument) for argument in sys.argv[1:4])
COMPILER = sys.argv[4:]
HERE = [f"--define-variable=includedir={SOURCE / 'include'}", f"--define-variable=libdir={BUILD / 'src'}"]


def pkg_config(*arguments):
    done = subprocess.run(["pkg-config", *arguments, "nccl"], capture_output=True, text=True, timeout=60, check=True,
                          env=dict(os.environ, PKG_CONFIG_PATH=str(BUILD / "meson-private")))
    return done.stdout.strip()


class PkgConfig(unittest.TestCase):
    def test_version_is_that_of_the_header(self):
        header = (SOURCE / "include/nccl.h").read_text(encoding="utf-8")
        numbers = [re.search(rf"#define NCCL_{part} +(\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(pkg_config("--modversion"), ".".join(numbers))

    def test_first_program_compiles_with_its_flags_and_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "first.cc"
            source.write_text(readme.first_program(), encoding="utf-8")
            program = source.with_suffix("")
            subprocess.run([*COMPILER, "-std=c++20", str(source), "-o", str(program), f"-isystem{INCLUDE}",
                            *pkg_config(*HERE, "--cflags", "--libs").split(), f"-L{BUILD / 'src/softgpu'}",
                            "-l:libcudart.so.13"], timeout=120, check=True)
            said = subprocess.run([str(BUILD / "softgpu-run"), "-n", "4", str(program)], capture_output=True, text=True,
                                  timeout=60, check=True, env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "src")))
        self.assertEqual(said.stdout, readme.SAYS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
