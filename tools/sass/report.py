"""Disassembles the fatbins of a build and prints what their loops do: kernel by kernel, by algorithm and protocol, and
which targets are met. The package defines the words."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from sass import code, loops

ARCH = "sm_90"
ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ("packs copied", "packs reduced", "lines copied", "lines reduced")
IN_FLIGHT = ("loads in flight", "kernels", *KINDS, "stores a turn")
OTHER = ("fences, polls, accesses", "fences in data loops", "a step", "outside steps", "polls", "generic in data loops",
         "generic", "local")


class Missing(Exception):
    """There is nothing to disassemble, or nothing to do it with."""


def tool(name):
    folders = [os.environ.get("CUDA_HOME", "") + "/bin", "/usr/local/cuda/bin", str(ROOT / ".deps/cuda/bin"),
               *os.environ.get("PATH", "").split(os.pathsep)]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if not found:
        raise Missing(f"{name} is neither in PATH nor in the bin folder of a CUDA toolkit (CUDA_HOME, /usr/local/cuda, "
                      ".deps/cuda); the packages cuda-cuobjdump and cuda-nvdisasm have it, and nvidia-cuda-cuobjdump "
                      "and nvidia-cuda-nvdisasm of PyPI")
    return found


def disassembled(fatbin):
    """The machine code of a fatbin for ARCH as text; "" if it has none."""
    with tempfile.TemporaryDirectory() as folder:
        output_of(folder, "cuobjdump", "-xelf", "all", fatbin.resolve())
        cubins = sorted(pathlib.Path(folder).glob(f"*.{ARCH}.cubin"))
        return "".join(output_of(folder, "nvdisasm", "-c", "-hex", cubin) for cubin in cubins)


def output_of(folder, name, *arguments):
    done = subprocess.run([tool(name), *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"{name} {arguments[-1]} failed: {done.stderr.strip()}")
    return done.stdout


def kernels_of(build):
    fatbins = sorted((build / "src/device/kernels").glob("*.fatbin"))
    if not fatbins:
        raise Missing(f"{build}/src/device/kernels has no fatbins; build with nvcc (-Dgpu_kernels=enabled)")
    found = [loops.measure(name, lines) for fatbin in fatbins for name, lines in code.parse(disassembled(fatbin))]
    if not found:
        raise Missing(f"the fatbins of {build} have no machine code for {ARCH} (-Dgpu_archs={ARCH})")
    return sorted(found, key=lambda kernel: kernel.name)


def counts(counter):
    return " ".join(f"{key} {n}" for key, n in sorted(counter.items()) if n) or "-"


def kernel_lines(kernel):
    """A kernel and its data loops."""
    places = "; ".join(f"{place} {counts(kernel.fences[place])}" for place in ("data", "step", "else"))
    yield (f"{kernel.name}: fences ({places}), {kernel.per_step} a step; {kernel.polls} polls; {kernel.generic} of "
           f"{kernel.accesses} accesses generic; {kernel.local} local" +
           (f"; {kernel.unknown} jumps to unknown places" if kernel.unknown else ""))
    for data in kernel.loops:
        yield (f"  {data.loop.head:>7x} {data.kind:<14} {len(data.loads):>5} {len(data.stores):>6} {len(data.run):>9} "
               f"{data.bytes:>5} {data.outstanding:>11}  {counts(data.places):<28} {counts(data.fences)}" +
               (" (remainder)" if data.remainder else ""))


def group_of(name):
    """"Ring Simple" of tutti_AllReduce_Ring_Simple_Sum_f32; sends and receives are one group."""
    words = name.removeprefix("tutti_").split("_")
    return words[0] if len(words) < 5 else f"{words[1]} {words[2]}"


def grouped(kernels):
    groups = collections.defaultdict(list)
    for kernel in kernels:
        groups[group_of(kernel.name)].append(kernel)
    return dict(sorted(groups.items()))


def judged(kernels, kind):
    return [data for kernel in kernels for data in kernel.loops if data.kind == kind and not data.remainder]


def span(values, shown=str):
    """The worst and the best."""
    least, most = (shown(value) for value in (min(values), max(values))) if values else ("-", "-")
    return least if least == most else f"{least} to {most}"


def in_flight(found):
    return span([(data.bytes, len(data.run)) for data in found], lambda pair: f"{pair[1]} ({pair[0]} B)")


def judged_loops(kernels):
    return [data for kind in KINDS for data in judged(kernels, kind)]


def row_in_flight(group, kernels):
    return [group, str(len(kernels)), *(in_flight(judged(kernels, kind)) for kind in KINDS),
            span([len(data.stores) for data in judged_loops(kernels)])]


def row_other(group, kernels):
    found = judged_loops(kernels)
    return [group, span([kernel.fences["data"]["SYS"] for kernel in kernels]),
            span([kernel.per_step for kernel in kernels]), span([kernel.fences["else"]["SYS"] for kernel in kernels]),
            span([kernel.polls for kernel in kernels]),
            f"{sum(data.generic for data in found)} of {sum(len(data.accesses) for data in found)}",
            f"{sum(kernel.generic for kernel in kernels)} of {sum(kernel.accesses for kernel in kernels)}",
            span([kernel.local for kernel in kernels])]


def table(head, rows):
    first, *rest = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return [first, "|" + "---|" * len(head), *rest]


def target(what, goal, found, least=False):
    """A line: the worst of `found` (values by group), its goal (at most, or with `least` at least), whether it is met
    and which groups miss it."""
    missed = sorted(group for group, value in found.items() if (value < goal if least else value > goal))
    worst = (min if least else max)(found.values(), default="-")
    who = "all" if len(missed) == len(found) > 1 else ", ".join(missed)
    met = "NO" if missed else "yes" if found else "-"
    return [what, f"{'>=' if least else '<='} {goal}", str(worst), met, who or "-"]


def targets(groups):
    def least(kind):
        runs = {group: [len(data.run) for data in judged(kernels, kind)] for group, kernels in groups.items()}
        return {group: min(values) for group, values in runs.items() if values}

    def most(value, protocol=""):
        return {group: max(map(value, kernels)) for group, kernels in groups.items()
                if re.search(rf"\b(SendRecv|{protocol})$" if protocol == "Simple" else rf"{protocol}$", group)}

    def inside(kernel):
        return kernel.fences["data"]["SYS"]

    def anywhere(kernel):
        return inside(kernel) + kernel.fences["step"]["SYS"]

    return [target("copies of packs: loads of 16 bytes in flight", 8, least("packs copied"), least=True),
            target("reductions of packs: loads of 16 bytes in flight", 6, least("packs reduced"), least=True),
            target("copies of lines: loads in flight", 8, least("lines copied"), least=True),
            target("reductions of lines: loads in flight", 6, least("lines reduced"), least=True),
            target("LL: system fences in loops", 0, most(anywhere, " LL")),
            target("LL128: system fences in loops", 0, most(anywhere, " LL128")),
            target("Simple: system fences in data loops", 0, most(inside, "Simple")),
            target("Simple: system fences a step", 1, most(lambda kernel: kernel.per_step, "Simple")),
            target("generic accesses in data loops", 0, most(lambda kernel: sum(d.generic for d in kernel.loops))),
            target("accesses to local memory (spills, arrays)", 0, most(lambda kernel: kernel.local))]


def print_report(build):
    """Returns how many kernels use local memory."""
    kernels = kernels_of(build)
    print(f"  {'loop':>7} {'kind':<14} {'loads':>5} {'stores':>6} {'in flight':>9} {'bytes':>5} {'outstanding':>11}  "
          f"{'accesses':<28} fences")
    for kernel in kernels:
        print("\n".join(kernel_lines(kernel)))
    groups = grouped(kernels)
    print("", *table(IN_FLIGHT, [row_in_flight(*item) for item in groups.items()]), "", sep="\n")
    print(*table(OTHER, [row_other(*item) for item in groups.items()]), "", sep="\n")
    print(*table(("target", "goal", "worst", "met", "not by"), targets(groups)), sep="\n")
    return sum(kernel.local > 0 for kernel in kernels)
