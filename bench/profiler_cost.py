#!/usr/bin/env python3
"""What a profiler plugin costs: all_reduce_perf without any and with an empty one in turn, as a ratio of medians.

  bench/profiler_cost.py [--mask 0x7fff] [--net] [--build build] [--ranks 4] [--rounds 15] [--bytes 65536] [--times 2000]

The empty plugin (bench/empty_profiler.c) takes every event and does nothing. --mask 0: it asks for none. --net: all
ranks are joined by TCP, so that steps over the network are told as well.
"""
from ratios import compare, options_of


def main():
    parser = options_of(__doc__)
    parser.add_argument("--mask", default="0x7fff")
    parser.add_argument("--net", action="store_true")
    options = parser.parse_args()
    joined = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"} if options.net else {}
    plugin = {"NCCL_PROFILER_PLUGIN": str((options.build / "bench/libnccl-profiler-empty.so").resolve()),
              "EMPTY_PROFILER_MASK": options.mask}
    print(compare(options, (joined, joined | plugin), f"an empty profiler of mask {options.mask}"))


if __name__ == "__main__":
    main()
