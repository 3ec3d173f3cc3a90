#!/usr/bin/env python3
"""The Debian packages that tools/package has built, unpacked into an empty folder, and used from there.

TUTTI_DEBS names the folder with the packages; exit status 77, skipped, where it is not set: it takes a build of its own
to make them. TUTTI_CUDA names a folder with CUDA's headers in include (default: CUDA_HOME, /usr/local/cuda).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import readme  # noqa: E402

PACKAGES = ("libnccl2-tutti", "libnccl-tutti-dev", "tutti-softgpu", "tutti-tools")
BENCHES = ("all_gather", "all_reduce", "alltoall", "broadcast", "device_copy", "gather", "reduce", "reduce_scatter",
           "scatter", "sendrecv")
PROGRAMS = ("softgpu-run", "tutti-info", "tutti-topo", "tutti-tune", *(f"{bench}_perf" for bench in BENCHES))
SKIP = 77
debs = {}  # package: its file
root = None  # where they are unpacked


def run(*command, **env):
    """Runs a program with what is unpacked first on its paths, and nothing of a build. Returns what it prints."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "TUTTI_", "SOFTGPU_"))}
    clean |= {"PATH": f"{root}/usr/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": str(libraries()), **env}
    done = subprocess.run([str(word) for word in command], env=clean, capture_output=True, text=True, timeout=120,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def libraries():
    return next(root.glob("usr/lib/*/libnccl.so.2")).parent


def field(package, name):
    return run("dpkg-deb", "-f", debs[package], name).strip()


def files(package):
    lines = run("dpkg-deb", "-c", debs[package]).splitlines()
    return [line.split()[5].removeprefix(".") for line in lines if not line.startswith("d")]


def pkg_config(*arguments):
    folders = {"PKG_CONFIG_LIBDIR": str(libraries() / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(root),
               "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1", "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
    return run("pkg-config", *arguments, "nccl", **folders).split()


def cuda_headers():
    for folder in (os.environ.get("TUTTI_CUDA"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if folder and (pathlib.Path(folder) / "include/cuda_runtime_api.h").exists():
            return f"{folder}/include"
    return None


class Debian(unittest.TestCase):
    def test_library_stands_in_for_libnccl2(self):
        version = pkg_config("--modversion")[0]
        self.assertEqual(field("libnccl2-tutti", "Provides"), f"libnccl2 (= {version})")
        for name in ("Conflicts", "Replaces"):
            self.assertEqual(field("libnccl2-tutti", name), "libnccl2")
        self.assertRegex(field("libnccl-tutti-dev", "Depends"), r"libnccl2-tutti \(= ")

    def test_software_gpu_makes_no_dependency(self):
        for package in PACKAGES:
            self.assertNotRegex(field(package, "Depends"), r"softgpu|cuda", package)
            control = run("dpkg-deb", "-I", debs[package])
            self.assertEqual("shlibs" in control, package == "libnccl2-tutti", control)
            self.assertNotRegex(field(package, "Provides"), "cuda")
        said = run("dpkg-deb", "-I", debs["libnccl2-tutti"], "shlibs").splitlines()
        self.assertEqual([line.split()[:2] for line in said], [["libnccl", "2"]])

    def test_software_gpu_is_not_where_the_loader_looks(self):
        places = [path for package in PACKAGES for path in files(package)
                  if re.search(r"/lib(cuda|cudart|nvidia-ml|cupti)\.so", path)]
        names = {place.rpartition("/")[2] for place in places}
        self.assertLessEqual({"libcuda.so.1", "libcudart.so.13", "libcudart.so.12", "libcupti.so.13", "libcupti.so.12",
                              "libnvidia-ml.so.1"}, names)
        for place in places:
            self.assertRegex(place, r"^/usr/lib/[^/]+/tutti/softgpu/[^/]+$")

    def test_nothing_names_the_folder_of_the_build(self):
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                self.assertNotRegex(path.read_bytes(), rb"/tmp/tmp\.\w+/tutti|@[A-Z_]{5,}@", path)

    def test_benchmark_runs_on_the_software_gpu(self):
        said = run("softgpu-run", "-n", "2", "all_reduce_perf", "-g", "2", "-b", "1K", "-e", "1K", "-n", "2")
        self.assertRegex(said, r"(?m)^ +1024 ")
        self.assertRegex(said, r"Out of bounds values : 0 OK")

    def test_first_program_compiles_and_runs(self):
        cuda = cuda_headers()
        if cuda is None:
            self.skipTest("CUDA's headers were not found")
        source = root / "first.cc"
        source.write_text(readme.first_program(), encoding="utf-8")
        folder = run("softgpu-run", "--libdir").strip()
        self.assertTrue(folder.startswith(f"{root}/usr/lib/"), folder)
        run("g++", "-std=c++20", source, "-o", root / "first", f"-isystem{cuda}", *pkg_config("--cflags", "--libs"),
            f"-L{folder}", "-l:libcudart.so.13")
        self.assertEqual(run("softgpu-run", "-n", "4", root / "first"), readme.SAYS)

    def test_plugin_headers_compile(self):
        cuda = cuda_headers()
        if cuda is None:
            self.skipTest("CUDA's headers were not found")
        headers = sorted(path.name for path in (root / "usr/include").glob("*.h"))
        self.assertGreaterEqual(set(headers), {"nccl.h", "nccl_net.h", "nccl_tuner.h", "nccl_profiler.h", "nccl_env.h"})
        source = root / "headers.cc"
        source.write_text("".join(f"#include <{header}>\n" for header in headers), encoding="utf-8")
        run("g++", "-std=c++20", "-fsyntax-only", f"-isystem{cuda}", *pkg_config("--cflags"), source)

    def test_every_program_has_a_man_page(self):
        self.assertEqual({path.name for path in (root / "usr/bin").iterdir()}, set(PROGRAMS))
        for program in PROGRAMS:
            page = root / f"usr/share/man/man1/{program}.1.gz"
            self.assertTrue(page.exists(), page)
            if shutil.which("man"):
                said = run("man", "--warnings", "-l", page, MANPAGER="cat", MAN_KEEP_FORMATTING="", MANWIDTH="100")
                self.assertIn(f"{program} - ", said)

    def test_tune_finds_benchmarks_and_plugin(self):
        plugin = run("tutti-tune", "--plugin").strip()
        self.assertTrue(pathlib.Path(plugin).exists(), plugin)
        said = run("tutti-tune", "--ranks", "2", "--collectives", "allreduce", "--sizes", "1K", "--algorithms", "ring",
                   "--rounds", "1", "--iterations", "2")
        self.assertRegex(said, r"(?m)^allreduce,0,-1,(ring|-1),")

    def test_python_of_softgpu_run_is_the_installed_one(self):
        said = run("softgpu-run", "--torch", "python3", "-B", "-c", "import tutti; print(tutti.__file__)").strip()
        self.assertTrue(said.startswith(f"{root}/usr/lib/"), said)


def main():
    global debs, root
    folder = os.environ.get("TUTTI_DEBS")
    if not folder:
        print("skipped: TUTTI_DEBS names no folder with packages that tools/package has built")
        return SKIP
    for package in PACKAGES:
        found = sorted(pathlib.Path(folder).resolve().glob(f"{package}_*.deb"))
        if len(found) != 1:
            print(f"FAILED: {len(found)} files of {package} in {folder}")
            return 1
        debs[package] = found[0]
    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        for deb in debs.values():
            subprocess.run(["dpkg-deb", "-x", str(deb), place], timeout=60, check=True)
        return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
