#!/usr/bin/env python3
"""What is carried to a machine with a GPU works without one: a bundle and its gpu-check on the software GPU, with
programs of tests/e2e whose ranks share the one device."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from support import BUILD, SKIP, SOURCE, check, environment, main

FOLDER = tempfile.TemporaryDirectory(prefix="tutti-bundle-")
BUNDLE = pathlib.Path(FOLDER.name, "tutti")


def run(*command, seconds=300):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=seconds, env=environment(A_SECRET="planted", LD_LIBRARY_PATH=""),
                          cwd=FOLDER.name, check=False)
    return done.returncode, done.stdout


def gpu_check(*arguments):
    return run(BUNDLE / "softgpu/softgpu-run", "-n", 1, BUNDLE / "gpu-check", *arguments)


def the_archive_holds_the_folder():
    names = run("tar", "-tJf", f"{BUNDLE}.tar.xz")[1]
    for name in ("gpu-check", "bin/conformance", "lib/libnccl.so.2", "build/tests/e2e/mismatch", "tests/e2e/graphs.py"):
        check(f"tutti/{name}\n" in names, f"{name} is missing:\n{names}")


def every_step_passes_and_the_table_says_so():
    out = pathlib.Path(FOLDER.name, "out")
    code, said = gpu_check("--quick", "--phases", "smoke,latency,processes,programs", out)
    check(code == 0 and "gpu-check: 0 steps failed" in said, said)
    table = (out / "table.txt").read_text()
    for step in ("smoke-2", "graph-4", "processes-2", "summary", "mismatch", "programs-graphs"):
        check(any(line.startswith(f"{step} ") and " ok " in line for line in table.splitlines()), f"{step}:\n{table}")
    check("graph-2 8:" in table, f"no times:\n{table}")
    check((out / "results.tar.gz").stat().st_size > 0, "no archive of results")
    # The environment may hold secrets, and results are passed on.
    check("planted" not in (out / "logs/machine.log").read_text(), "the whole environment is in the results")


def a_step_that_fails_is_told_and_counted():
    # The bundle without a library has only steps that fail.
    library = BUNDLE / "lib/libnccl.so.2"
    library.rename(f"{library}.gone")
    try:
        code, said = gpu_check("--quick", "--phases", "smoke", pathlib.Path(FOLDER.name, "failing"))
    finally:
        pathlib.Path(f"{library}.gone").rename(library)
    check(code == 1 and "gpu-check: 3 steps failed" in said and "smoke-1 FAILED with status" in said, said)


def steps_without_time_are_reported_as_not_run():
    code, said = gpu_check("--quick", "--phases", "latency", "--limit", 4, pathlib.Path(FOLDER.name, "late"))
    check(code == 1 and "graph-2 " in said and "not run: the 4 s are used up" in said, said)


def a_wrong_command_line_is_refused():
    for arguments, words in ((("--phases", "smoke,lunch"), "unknown phase 'lunch'"), (("--limit", "soon"), "not 'soon'"),
                             (("--nccl", "/nowhere.so"), "there is no file '/nowhere.so'")):
        code, said = gpu_check(*arguments)
        check(code == 2 and words in said, said)


def a_folder_of_somebody_else_is_left_alone():
    theirs = pathlib.Path(FOLDER.name, "theirs")
    (theirs / "logs").mkdir(parents=True)
    (theirs / "logs/mine").write_text("kept")
    code, said = gpu_check("--phases", "smoke", theirs)
    check(code == 2 and "is none of gpu-check's" in said and (theirs / "logs/mine").read_text() == "kept", said)


if __name__ == "__main__":
    if shutil.which("xz") is None:
        print("skipped: xz is not installed")
        sys.exit(SKIP)
    code_, said_ = run(SOURCE / "tools/bundle", BUILD, BUNDLE)
    if "libcudart.so.13 of the CUDA toolkit was not found" in said_:
        print("skipped: there is no CUDA toolkit, whose runtime a bundle needs")
        sys.exit(SKIP)
    if code_ != 0:
        sys.exit(f"the bundle was not made:\n{said_}")
    main(the_archive_holds_the_folder, every_step_passes_and_the_table_says_so, a_step_that_fails_is_told_and_counted,
         steps_without_time_are_reported_as_not_run, a_wrong_command_line_is_refused,
         a_folder_of_somebody_else_is_left_alone)
