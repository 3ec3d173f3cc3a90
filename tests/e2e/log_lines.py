#!/usr/bin/env python3
"""What the log says of operations, connections and costs at NCCL_DEBUG=TRACE and INFO."""
import re

from support import BUILD, check, main, run

PREFIX = r"^\S+:\d+:\d+ \[\d\] \d+\.\d+ \w+:\d+ NCCL TRACE "
TRACES = {
    "COLL": r"launch of operation (AllReduce|SendRecv) \(kernel \S+\) on device \d: grid \d+ block \d+ stream 0x[0-9a-f]+: 0$",
    "P2P": r"(Send: opCount [0-9a-f]+ rank \d ->|Recv: opCount [0-9a-f]+ rank \d <-) rank \d elements 1000 datatype \d+$",
    "NET": r"(isend|irecv) \d+ of connection 0x[0-9a-f]+(: (up to )?\d+ bytes at 0x[0-9a-f]+, tag \d+, request 0x[0-9a-f]+| is done.*)$",
    "PROXY": r"progress engine [^:]+: (\d+ tasks of group 0x[0-9a-f]+ are driven from now on|group 0x[0-9a-f]+ rests)$",
}


def lines(level, subsystems):
    return run(2, BUILD / "tests/e2e/conformance", "--ranks", 2, "--quick", "--only", "all_reduce,sendrecv", "--types",
               "float", "--counts", "1000", NCCL_DEBUG=level, NCCL_DEBUG_SUBSYS=subsystems, NCCL_P2P_DISABLE=1,
               NCCL_SHM_DISABLE=1)


def each_subsystem_has_its_trace_lines():
    for subsystem, shape in TRACES.items():
        said = lines("TRACE", subsystem)
        traces = [line for line in said.splitlines() if " NCCL TRACE " in line]
        strangers = [line for line in traces if not re.search(PREFIX + shape, line)]
        check(traces and not strangers, f"{subsystem}: {len(traces)} lines, others are {strangers[:3]}")


def calls_are_written_as_they_were_made():
    said = lines("TRACE", "CALL")
    check(re.search(r"NCCL CALL ncclAllReduce\([0-9a-f]+,[0-9a-f]+,1000,7,\d,0,[0-9a-f]+,[0-9a-f]+\)$", said, re.M), said[:3000])


def info_has_no_traces_and_tells_the_costs():
    said = lines("INFO", "ALL")
    check(" NCCL TRACE " not in said and " NCCL CALL " not in said, "traces at INFO")
    for rank in range(2):
        costs = (rf"Init costs - ncclCommInitRank: rank {rank} nranks 2 device memory \d+\.\d KiB for tables, \d+\.\d KiB for "
                 r"connections; \d+ channels connected; [1-9]\d* ends of connections to 1 peers, [1-9]\d* of them driven by")
        check(len(re.findall(costs, said)) == said.count(f"rank {rank} nranks 2 total "), said[:3000])
        check(re.search(costs, said), said[:3000])


if __name__ == "__main__":
    main(each_subsystem_has_its_trace_lines, calls_are_written_as_they_were_made, info_has_no_traces_and_tells_the_costs)
