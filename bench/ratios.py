"""What something costs: all_reduce_perf with and without it in turn, in one run, as a ratio. For scripts that measure."""
import argparse
import os
import pathlib
import statistics
import subprocess


def options_of(description, ranks=4):
    """What such scripts are called with. `ranks`: how many, where nothing is said; None: nothing can be said."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    if ranks is not None:
        parser.add_argument("--ranks", type=int, default=ranks)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--bytes", type=int, default=65536)
    parser.add_argument("--times", type=int, default=2000)
    return parser


def microseconds(options, settings):
    """Of one operation, with these settings of the environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "TUTTI_"))}
    env["LD_LIBRARY_PATH"] = str(options.build / "src")
    env.update(settings)
    command = [options.build / "softgpu-run", "-n", options.ranks, options.build / "bench/all_reduce_perf",
               "-b", options.bytes, "-e", options.bytes, "-g", options.ranks, "-n", options.times,
               "-w", options.times // 10, "-c", 0]
    said = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, check=True,
                          timeout=300)
    row = next(line.split() for line in said.stdout.splitlines() if line.split()[:1] == [str(options.bytes)])
    return float(row[5])


def quartile(times):
    return statistics.quantiles(times, n=4)[0]


def compare(options, settings, name, after=lambda: None):
    """A line about `settings`, a pair of them: without and with what `name` calls. `after`: to be done after each round."""
    without, with_it = [], []
    for i in range(options.rounds):
        pair = [(without, settings[0]), (with_it, settings[1])]
        for times, chosen in pair if i % 2 == 0 else reversed(pair):
            times.append(microseconds(options, chosen))
        after()
    ratios = [b / a for a, b in zip(without, with_it)]
    return (f"{options.ranks} ranks, {options.bytes} bytes, {options.rounds} rounds of {options.times}: "
            f"{statistics.median(without):.2f} us without, {statistics.median(with_it):.2f} us with {name}; "
            f"ratio of lower quartiles {quartile(with_it) / quartile(without):.3f}, ratio of medians "
            f"{statistics.median(with_it) / statistics.median(without):.3f}, median of ratios "
            f"{statistics.median(ratios):.3f}")
