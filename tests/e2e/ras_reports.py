"""What reports of RAS look like to the programs that read them, for ras.py."""
import json
import re

from support import check

TEXT_REPORT = r"""NCCL version \d+\.\d+\.\d+ compiled with CUDA \d+\.\d+
CUDA runtime version \d+, driver version \d+

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
\(total\)   per node  per process    \(total\)  \(total\)
      1          1            2          1        2

Communicators\.\.\. \(\d+\.\d\ds\)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         2         2         2   RUNNING      OK

"""
ROW = r" +\d+ +\d+ +1 +\d+(-\d+)? +\d+ +\d+ +(INIT|RUNNING|FINALIZE|ABORT) +(OK|ERROR|MISMATCH|ERROR,MISMATCH)\n"
FAULT = r"#\d+-\d+ \([0-9a-f]{16}\) %s\n(  .+\n)+\n"
ANY_REPORT = re.compile(
    r"NCCL version .+\nCUDA runtime version .+\n\nJob summary\n=+\n\n(.+\n){3}\n"
    r"Communicators\.\.\. \(\d+\.\d\ds\)\n=+\n\n"
    rf"Group .+\n    # .+\n({ROW})+\n(Errors\n=+\n\n({FAULT % 'ERROR'})+)?(Warnings\n=+\n\n({FAULT % 'MISMATCH'})+)?")
RANK = ["rank", "host", "pid", "cuda_dev", "nvml_dev"]
STATUS = ["init_state", "async_error", "finalize_called", "destroy_flag", "abort_flag"]
COUNTS = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"]


def check_json(text):
    """The keys that readers know, in their order and before those of tutti; laid out as they are used to."""
    def begins(thing, keys):
        check(list(thing)[:len(keys)] == keys, f"{list(thing)} does not begin with {keys}")

    report = json.loads(text)
    check(text == json.dumps(report, indent=2) + "\n", text)
    begins(report, ["nccl_version", "cuda_runtime_version", "cuda_driver_version", "timestamp", "communicators_count",
                    "communicators", "ras"])
    check(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", report["timestamp"]), text)
    begins(report["ras"], ["collection_time_sec", "timeouts_count"])
    check(report["communicators_count"] == len(report["communicators"]), text)
    names = set()
    for comm in report["communicators"]:
        begins(comm, ["hash", "secondary_hash", "size", "ranks_count", "missing_ranks_count", "ranks", "missing_ranks"])
        check(re.fullmatch("0x[0-9a-f]+", comm["hash"]), comm)
        check(re.fullmatch("0x[0-9a-f]+:0x[0-9a-f]+", comm["secondary_hash"]), comm)
        names.add((comm["hash"], comm["secondary_hash"]))
        check(comm["ranks_count"] == len(comm["ranks"]), comm)
        check(comm["missing_ranks_count"] == len(comm["missing_ranks"]), comm)
        check(sorted(one["rank"] for one in comm["ranks"] + comm["missing_ranks"]) == list(range(comm["size"])), comm)
        for rank in comm["ranks"]:
            begins(rank, RANK + ["status", "collective_counts"])
            check(list(rank["status"]) == STATUS and list(rank["collective_counts"]) == COUNTS, rank)
        for rank in comm["missing_ranks"]:
            begins(rank, RANK + ["status"])
            check(list(rank["status"]) == ["unresponsive", "considered_dead"], rank)
    check(len(names) == len(report["communicators"]), text)
    return report


def check_text(said):
    """The paragraphs in their order, and a row for each group of communicators."""
    check(ANY_REPORT.fullmatch(said), said)
