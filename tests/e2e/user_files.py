#!/usr/bin/env python3
"""Settings that name files, set to what is no file, has no end or no room: an answer within bounds, and no signal."""
import contextlib
import os
import pathlib
import resource
import subprocess
import tempfile

from support import BUILD, RUN, SOURCE, check, environment, main

MACHINE = SOURCE / "tests/fixtures/topo/own_dgx1v.xml"
GOOD, CUDA_ERROR, NCCL_ERROR = 0, 4, 5
BOUND_SECONDS = 120


class Ended:
    """A run of quiet, two ranks in a process: its exit code, what was printed, and the last error of the program."""

    def __init__(self, folder, limit=None, stdout=subprocess.PIPE, **settings):
        report = pathlib.Path(folder) / "report"
        report.unlink(missing_ok=True)
        limits = lambda: limit and resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        devices = ["-n", "8" if settings.get("SOFTGPU_TOPO") == MACHINE else "2"]
        child = subprocess.Popen(RUN + devices + [BUILD / "tests/e2e/quiet"], stdin=subprocess.DEVNULL, stdout=stdout,
                                 stderr=subprocess.STDOUT, preexec_fn=limits, text=True, start_new_session=True,
                                 env=environment(QUIET_REPORT=report, **settings))
        try:
            self.said = child.communicate(timeout=BOUND_SECONDS)[0] or ""
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            check(False, f"it hangs with {settings}:\n{child.communicate()[0]}")
        self.code = child.returncode
        self.error = report.read_text() if report.exists() else ""
        self.what = f"{settings} ended with {self.code}, error {self.error!r}, printed:\n{self.said}"

    def must(self, code, *parts):
        check(self.code == code, self.what)
        for part in parts:
            check(part in (self.said if code == GOOD else self.error), f"{part!r} is missing: {self.what}")


class Folder:
    """Places of a folder of its own that are no files to read or write."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder)
        self.fifo = self.path / "fifo"
        os.mkfifo(self.fifo)
        self.directory = self.path / "directory"
        self.directory.mkdir()
        self.endless = pathlib.Path("/dev/zero")
        self.huge = self.path / "huge"
        with open(self.huge, "w") as huge:
            huge.write("A=1\n" * (10 << 18))
            huge.truncate(1 << 32)
        self.forbidden = self.path / "forbidden"
        self.forbidden.write_text("NCCL_DEBUG=INFO\n")
        self.forbidden.chmod(0)
        self.missing = self.path / "missing"
        may_read_all = os.geteuid() == 0
        self.unreadable = [self.directory, self.fifo, self.endless, self.huge] + ([] if may_read_all else [self.forbidden])
        self.unwritable = [self.directory, self.fifo, pathlib.Path("/dev/full"), self.missing / "file"]


@contextlib.contextmanager
def places():
    with tempfile.TemporaryDirectory() as folder:
        yield Folder(folder)


def settings_files_that_are_none_are_told_and_ignored():
    with places() as at:
        for bad in at.unreadable + [at.missing]:
            ended = Ended(at.path, NCCL_CONF_FILE=bad, NCCL_DEBUG="WARN")
            ended.must(GOOD, f"The settings file {bad} (NCCL_CONF_FILE) is ignored: it ")
            check(ended.said.count("is ignored: it ") == 1, ended.what)
        (at.path / ".nccl.conf").mkdir()
        Ended(at.path, HOME=at.path, NCCL_DEBUG="WARN").must(GOOD, "/.nccl.conf is ignored: it is a directory")
        Ended(at.path, HOME=at.path).must(GOOD)


def errors_are_reported_also_with_a_settings_file_that_is_none():
    """The handler of an error reads settings, too."""
    with places() as at:
        Ended(at.path, HOME=at.path, NCCL_CONF_FILE=at.directory, NCCL_TOPO_FILE=at.directory).must(
            NCCL_ERROR, "it is a directory; name a regular file")


def topologies_and_graphs_that_are_no_files_are_errors_with_the_settings_name():
    with places() as at:
        for bad in at.unreadable:
            for setting in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"):
                Ended(at.path, SOFTGPU_TOPO=MACHINE, **{setting: bad}).must(
                    NCCL_ERROR, f"cannot read {bad} ({setting}): it ")


def a_machine_of_the_software_gpu_that_is_no_file_is_told_and_ignored():
    with places() as at:
        for bad in at.unreadable + [at.missing]:
            Ended(at.path, SOFTGPU_TOPO=bad).must(GOOD, f"softgpu: SOFTGPU_TOPO={bad} is ignored: it ")


def libraries_that_are_no_files_are_not_waited_for():
    with places() as at:
        for bad in (at.fifo, at.directory):
            Ended(at.path, NCCL_NET_PLUGIN=bad, NCCL_DEBUG="INFO").must(GOOD, f"{bad}: it is a ")
            Ended(at.path, TUTTI_KERNELS_PATH=bad).must(NCCL_ERROR, f"{bad}: it is a ")


def dumps_without_room_are_errors_with_the_settings_name():
    with places() as at:
        for bad in at.unwritable:
            for setting in ("NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE"):
                Ended(at.path, SOFTGPU_TOPO=MACHINE, **{setting: bad}).must(
                    NCCL_ERROR, f"cannot write {bad} ({setting}, rank 0 on host")


def debug_files_without_room_are_told_once():
    with places() as at:
        for bad in at.unwritable:
            ended = Ended(at.path, NCCL_DEBUG="INFO", NCCL_DEBUG_FILE=bad)
            ended.must(GOOD, f"NCCL_DEBUG_FILE={bad} cannot be ")
            check(ended.said.count("NCCL_DEBUG_FILE=") == 1, ended.what)


def a_debug_file_that_nobody_empties_drops_lines():
    with places() as at:
        reader = os.open(at.fifo, os.O_RDONLY | os.O_NONBLOCK)
        try:
            ended = Ended(at.path, NCCL_DEBUG="TRACE", NCCL_DEBUG_SUBSYS="ALL", NCCL_DEBUG_FILE=at.fifo)
            ended.must(GOOD)
            check(b"NCCL INFO" in os.read(reader, 1 << 16), "the FIFO's reader has got nothing")
        finally:
            os.close(reader)


def limits_of_a_files_size_are_errors_and_no_signals():
    with places() as at:
        Ended(at.path, limit=4096).must(CUDA_ERROR, "cudaErrorMemoryAllocation")
        for limit in (1 << 16, 1 << 20, 1 << 24):
            # P2P and SHM may have room to connect the ring, but none for what a direct algorithm connects.
            for algorithm in ("Ring", "OneShot"):
                ended = Ended(at.path, limit=limit, NCCL_ALGO=algorithm)
                check(ended.code in (GOOD, CUDA_ERROR, NCCL_ERROR), ended.what)
        # The memory has room, but not the log.
        for setting in ({}, {"NCCL_DEBUG_FILE": at.path / "log"}):
            with open(at.path / "output", "w+") as output:
                output.truncate(2 << 30)
                output.seek(0, os.SEEK_END)
                Ended(at.path, limit=1 << 30, stdout=output, NCCL_DEBUG="INFO", **setting).must(GOOD)


if __name__ == "__main__":
    main(settings_files_that_are_none_are_told_and_ignored, errors_are_reported_also_with_a_settings_file_that_is_none,
         topologies_and_graphs_that_are_no_files_are_errors_with_the_settings_name,
         a_machine_of_the_software_gpu_that_is_no_file_is_told_and_ignored,
         libraries_that_are_no_files_are_not_waited_for, dumps_without_room_are_errors_with_the_settings_name,
         debug_files_without_room_are_told_once, a_debug_file_that_nobody_empties_drops_lines,
         limits_of_a_files_size_are_errors_and_no_signals)
