#!/usr/bin/env python3
"""CuPy's NCCL interface on the first GPU: `gpu_check_cupy.py [RANKS]`, ranks as threads that share it."""
import sys
import threading

import cupy
from cupy.cuda import nccl


def run(rank, size, ident, failures):
    try:
        with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True) as stream:
            comm = nccl.NcclCommunicator(size, ident, rank)
            data = cupy.arange(100_000, dtype=cupy.float32) * (rank + 1)
            result = cupy.empty_like(data)
            comm.allReduce(data.data.ptr, result.data.ptr, data.size, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
            stream.synchronize()
            expected = cupy.arange(100_000, dtype=cupy.float32) * (size * (size + 1) // 2)
            if not bool(cupy.all(result == expected)):
                failures.append(f"rank {rank}: all_reduce is wrong")
            stream.synchronize()
            comm.destroy()
    except Exception as error:
        failures.append(f"rank {rank}: {error!r}")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    cupy.arange(10).sum()  # compiles before any rank waits for another
    cupy.all(cupy.arange(10, dtype=cupy.float32) * 2 == cupy.arange(10, dtype=cupy.float32))
    shared, found = nccl.get_unique_id(), []
    threads = [threading.Thread(target=run, args=(rank, count, shared, found)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if found:
        sys.exit("\n".join(found))
    print(f"cupy {cupy.__version__}, nccl {nccl.get_version()}, {count} ranks: correct")
