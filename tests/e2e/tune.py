#!/usr/bin/env python3
"""tools/tutti-tune writes a file that the plugin tuner_csv reads, and that covers all sizes."""
import pathlib
import subprocess
import sys
import tempfile

import support
from support import check


def writes_a_file_that_the_plugin_reads():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "decisions.csv"
        done = subprocess.run(
            [sys.executable, str(support.SOURCE / "tools/tutti-tune"), "--build", str(support.BUILD), "--ranks", "2",
             "--collectives", "allreduce,allgather", "--sizes", "1K,64K", "--algorithms", "ring", "--rounds", "2",
             "--iterations", "2", "-o", str(file)], env=support.environment(), capture_output=True, text=True,
            timeout=300, check=False)
        check(done.returncode == 0, done.stdout + done.stderr)
        check("allgather 65536: auto " in done.stderr and "ring/simple" in done.stderr, done.stderr)
        rows = [line.split(",") for line in file.read_text().splitlines() if not line.startswith("#")]
        for collective in ("allreduce", "allgather"):
            low = 0
            for row in (row for row in rows if row[0] == collective):
                check(int(row[1]) == low and row[3] in ("ring", "-1") and row[6:] == ["1", "2"], f"{row} in {rows}")
                low = int(row[2]) + 1
            check(low == 0, f"sizes of {collective} are left over in {rows}")
        # What it has measured may be anything; that the plugin decides is seen by a line of its own.
        file.write_text(file.read_text().replace("allreduce,0", "allreduce,0,-1,tree,ll,-1,-1,-1\nallreduce,0", 1))
        said = support.run(2, support.BUILD / "bench/all_reduce_perf", "-b", 1024, "-t", 2, "-n", 1,
                           NCCL_TUNER_PLUGIN=support.BUILD / "examples/libnccl-tuner-csv.so", TUNER_CSV_FILE=file,
                           NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,TUNING")
        check("Algo TREE proto LL " in said and "tuner_csv: " in said, said)


support.main(writes_a_file_that_the_plugin_reads)
