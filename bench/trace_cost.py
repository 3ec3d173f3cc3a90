#!/usr/bin/env python3
"""What a trace costs: all_reduce_perf with and without TUTTI_TRACE in turn, in one run, as a ratio of medians.

  bench/trace_cost.py [--build build] [--ranks 4] [--rounds 15] [--bytes 65536] [--times 2000]
"""
import os
import tempfile

from ratios import compare, options_of


def main():
    options = options_of(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        def clear():
            for name in os.listdir(folder):
                os.unlink(f"{folder}/{name}")

        print(compare(options, ({}, {"TUTTI_TRACE": f"{folder}/%p.trace"}), "a trace", clear))


if __name__ == "__main__":
    main()
