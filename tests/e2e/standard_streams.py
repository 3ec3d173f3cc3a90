#!/usr/bin/env python3
"""Processes whose standard streams are closed, or lead to nobody: no descriptor of ours takes their place, no signal
ends a process."""
import os
import pathlib
import subprocess
import tempfile

from support import BUILD, RUN, check, environment, free_port, main

BOUND_SECONDS = 120
ALL = [[fd for fd in range(3) if bits >> fd & 1] for bits in range(8)]


def run(streams, **settings):
    """Two processes; `streams(rank)` is called in each before it becomes the program. Both must succeed."""
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report"
        env = dict(QUIET_REPORT=report, SIZE=2, NCCL_COMM_ID=address, NCCL_DEBUG="INFO", **settings)
        ranks = [subprocess.Popen(RUN + ["-n", "2", BUILD / "tests/e2e/quiet"], preexec_fn=lambda: streams(rank),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=environment(RANK=rank, **env), start_new_session=True) for rank in range(2)]
        try:
            codes = [child.wait(BOUND_SECONDS) for child in ranks]
        except subprocess.TimeoutExpired:
            codes = [child.poll() for child in ranks]
        finally:
            for child in ranks:
                if child.poll() is None:
                    os.killpg(child.pid, 9)
                    child.wait()
        check(codes == [0, 0], f"exit codes {codes} with {settings}: {report.read_text() if report.exists() else 'no report'}")


def close(fds):
    for fd in fds:
        os.close(fd)


def closed_streams_stay_closed():
    for fds in ALL:
        others = [fd for fd in range(3) if fd not in fds]
        run(lambda rank: close(fds))
        run(lambda rank: close(fds if rank == 0 else others), NCCL_P2P_DISABLE=1)
    run(lambda rank: close([0, 1, 2]), NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1)


def what_takes_the_place_of_a_closed_stream_is_not_written_to():
    with tempfile.NamedTemporaryFile() as file:
        run(lambda rank: close([1]), QUIET_OPENS=file.name, NCCL_PARAM_DUMP_ALL=1)


def to_nobody(rank):
    """Standard output and error are pipes that nobody reads any more."""
    out, into = os.pipe()
    os.dup2(into, 1)
    os.dup2(into, 2)
    os.close(out)
    os.close(into)


def streams_that_nobody_reads_end_nothing():
    run(to_nobody)
    run(to_nobody, NCCL_PARAM_DUMP_ALL=1, SOFTGPU_TOPO="/nowhere", SOFTGPU_SCHEDULE="?")


if __name__ == "__main__":
    main(closed_streams_stay_closed, what_takes_the_place_of_a_closed_stream_is_not_written_to,
         streams_that_nobody_reads_end_nothing)
