#!/usr/bin/env python3
"""Proves that the tests notice every missing order in device code.

Finds each release, acquire, fence, barrier and post of the protocols in src/device and compiles a few kernels from a copy of the
sources in which each of them is weakened or gone if its number says so: one build of all mutants. Runs them under weak
memory and random schedules, one mutant after the other. A mutant must give wrong data, hang or crash; without any the
kernels must be right. New places are found by themselves. Places that cannot be noticed are listed in MAY_SURVIVE with
the reason.

  mutate.py --list                  the places
  mutate.py --only REGEX            only places whose "file:line text" matches
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

# What is looked for, and what takes its place in a mutant. CALL is an object, if any: "crew_.thread." or "t.".
CALL = r"(?:\breturn )?(?:\b\w+::)*(?:\b\w+(?:\([^()]*\)|\[\w+\])?(?:\.|->))*\b"
ARGUMENTS = r"\((?:[^();]|\([^()]*\))*\)"
MUTATIONS = [
    (re.compile(CALL + "storeReleaseSys" + ARGUMENTS + ";"), lambda text: text.replace("Release", "Relaxed")),
    (re.compile(r"\b(?:\w+\.)+loadAcquireSys" + ARGUMENTS), lambda text: text.replace("Acquire", "Relaxed")),
    (re.compile(CALL + "storeLine16" + ARGUMENTS + ";"), lambda text: text.replace("storeLine16", "storeLine16Torn")),
    (re.compile(CALL + r"fence(?:Block|Gpu|Sys)\(\);"), lambda text: ";"),
    (re.compile(r"\bsimt::(?:finishStreaming|orderReads)\(\);"), lambda text: ";"),
    (re.compile(CALL + r"sync(?:Group|Block|Warp)?" + ARGUMENTS + ";"), lambda text: ";"),
    (re.compile(CALL + r"(?:post|release|awaitReaders)\w*" + ARGUMENTS + ";"), lambda text: ";"),
    (re.compile(r"\boffered_(?= &&)"), lambda text: "false"),
]
# The contract between device code and its worlds is not a protocol; numbers have no order to lose; nobody waits for
# stamps.
NOT_PROTOCOLS = re.compile(r"^(simt|number|float|pack|reduce_op|policy|partition|work|kernel_name|stamp)\w*\.h$")

CONSUMED = "what comes after it are the user's own stores to what peers have read, none of which these runs make"
# "file: statement", how often it may survive, and why.
MAY_SURVIVE = {
    "collnet_lane.h: t.loadAcquireSys(counter);":
        (1, "what it covers is stored by the host, and weak memory remembers what was there before stores of kernels alone"),
    "fifo_view.h: t.loadAcquireSys(conn_->headOf(kProtocol)) == step_;": (1, CONSUMED),
    "peer_fifos.h: crew_.thread.loadAcquireSys(head) == shared_.sendStep[i];": (1, CONSUMED),
    "sendrecv.h: crew.thread.loadAcquireSys(conn.headOf(Protocol::Simple)) == sent;": (1, CONSUMED),
    "fifo_view.h: t.storeReleaseSys(conn.pull.addresses->ofAll(), std::uint64_t{1});":
        (1, "said after an abort alone, of which there is none in these runs; unit_device aborts a sender"),
    "fifo_view.h: simt::orderReads();": (1, "matters after an abort alone, as what it comes before"),
    "kernels.h: t.syncBlock();": (1, "keeps the halves of a block together to its end, which orders everything anyway"),
    "peer_fifos.h: sync();":
        (1, "the one that ends finish(): what the next work writes before its first barrier is what is there already"),
    "prims_flagged.h: sync();":
        (1, "the one that ends clean(): takes a thread that is interrupted for eight steps between two stores; fibers are "
            "not. unit_device's real threads found the fault when it was there"),
}

KERNELS = re.compile(r"_(Sum_i32|Copy_i8)$")
FLAGS = ["-std=c++20", "-O1", "-w"]
FEW_SEEDS = 2


class Site:
    def __init__(self, path, text, match, mutation):
        self.path = path
        self.begin, self.end = match.span()
        self.line = text.count("\n", 0, self.begin) + 1
        self.original = match.group(0)
        self.mutant = mutation(self.original)
        if self.mutant == ";" and self.original.startswith("return "):
            self.mutant = "return;"
        shown = self.original if self.original.endswith(";") else text[self.begin:text.index(";", self.end) + 1]
        self.statement = " ".join(shown.split())
        self.key = f"{path.name}: {self.statement}"

    def switched(self, number):
        """Source text that is the mutant if that number was chosen."""
        if self.original.endswith(";"):
            return f"{{ if (::tuttiMutant == {number}) {self.mutant} else {self.original} }}"
        return f"(::tuttiMutant == {number} ? {self.mutant} : {self.original})"

    def __str__(self):
        return f"{self.path.name}:{self.line} {self.statement}"


def without_comments(text):
    return re.sub(r"//[^\n]*", lambda m: " " * len(m.group(0)), text)


def find_sites(folder):
    sites = []
    for path in sorted(folder.rglob("*.h")):
        if NOT_PROTOCOLS.match(path.name):
            continue
        text = without_comments(path.read_text())
        for pattern, mutation in MUTATIONS:
            sites += [Site(path, text, match, mutation) for match in pattern.finditer(text)]
    return sorted(sites, key=lambda s: (s.path.name, s.begin))


TORN = """
  void storeLine16Torn(Group, Pack16* p, Pack16 value) const {
    if (p != nullptr) storeUnit(p, value);
  }
  void storeLine16("""

CHOICE = """#include <cstdlib>
static int chosen() {
  const char* text = std::getenv("TUTTI_MUTANT");
  return text == nullptr ? -1 : std::atoi(text);
}
int tuttiMutant = chosen();
"""


def write_mutants(folder, sites, target):
    """A copy of the device sources that holds all mutants."""
    target.mkdir(parents=True)
    for path in folder.rglob("*.h"):
        text = path.read_text()
        for number, site in reversed(list(enumerate(sites))):
            if site.path == path:
                text = text[:site.begin] + site.switched(number) + text[site.end:]
        if path.name == "simt_host.h":
            text = text.replace("\n  void storeLine16(", TORN, 1)
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)


class Builder:
    """Compiles kernels with all mutants in them and links each source's with the probe."""

    def __init__(self, args, sites):
        self.args = args
        self.work = args.work
        shutil.rmtree(self.work, ignore_errors=True)
        write_mutants(args.source / "src/device", sites, self.work / "src/device")
        gen = args.source / "src/device/kernels/gen_kernels.py"
        only = ["--only", KERNELS.pattern]
        names = subprocess.run([sys.executable, gen, *only, "list", "host"], check=True, capture_output=True,
                               text=True).stdout.split()
        self.units = {}
        for name in sorted(names, key=lambda n: (not n.startswith("Simple"), not n.startswith("SendRecv"), n)):
            self.units[name] = self.work / f"{name}.cc"
            subprocess.run([sys.executable, gen, *only, "write", "host", name, self.units[name]], check=True)
        self.prelude = self.compile_prelude()
        choice = self.work / "choice.cc"
        choice.write_text(CHOICE)
        self.choice = self.compile(choice)

    def compile_prelude(self):
        """What no mutant changes of what device code includes, compiled once; and how a mutant is known."""
        prelude = self.work / "prelude.h"
        texts = [path.read_text() for path in (self.args.source / "src/device").rglob("*.h")]
        names = set(re.findall(r"^#include (<\w+(?:\.h)?>)$", "\n".join(texts), re.MULTILINE))
        lines = [f"#include {n}\n" for n in sorted(names) if not n.startswith("<cuda")]
        prelude.write_text("".join(lines) + "extern int tuttiMutant;\n")
        self.run([*self.args.cxx, *FLAGS, "-x", "c++-header", prelude, "-o", f"{prelude}.gch"], 120)
        return prelude

    def run(self, command, timeout, env=None):
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, errors="replace", env=env)

    def compile(self, source):
        output = source.with_suffix(".o")
        include = [f"-I{self.work / 'src'}", f"-I{self.args.source / 'src'}", f"-I{self.args.source / 'include'}"]
        done = self.run([*self.args.cxx, *FLAGS, "-include", self.prelude, *include, "-c", source, "-o", output], 240)
        if done.returncode != 0:
            raise RuntimeError(f"{source.name} does not compile:\n{done.stderr[-3000:]}")
        return output

    def table(self, name):
        """The object that lists the kernels of a source."""
        kernels = [line.split("(")[1].split(",")[0] for line in self.units[name].read_text().split("\n")
                   if line.startswith("TUTTI_KERNEL(")]
        source = self.work / f"table_{name}.cc"
        gen = self.args.source / "src/device/kernels/gen_kernels.py"
        subprocess.run([sys.executable, gen, "--only", "^(" + "|".join(kernels) + ")$", "table", source], check=True)
        return self.compile(source)

    def build(self, name):
        objects = [self.compile(self.units[name]), self.table(name), self.choice]
        linked = self.run([*self.args.cxx, *objects, *self.args.libraries, "-lboost_context", "-pthread", "-o",
                           self.work / name], 240)
        if linked.returncode != 0:
            raise RuntimeError(f"the probe does not link:\n{linked.stderr[-3000:]}")

    def probe(self, name, seeds, mutant):
        """Runs the kernels of a source; None if all is right, else what is wrong. No mutant: -1."""
        try:
            done = self.run([self.work / name, str(seeds)], 120, {**os.environ, "TUTTI_MUTANT": str(mutant)})
        except subprocess.TimeoutExpired:
            return "it does not end"
        if done.returncode == 0:
            return None
        return done.stdout.strip() or f"it ends with status {done.returncode}"

    def build_and_probe(self, name):
        self.build(name)
        return self.probe(name, FEW_SEEDS, -1)   # the device tests run them with more


# Which kernels likely notice a change of a file: part of the file's name, start of the source's.
HINTS = [("collnet", "collnet_"), ("ll128", "LL128_"), ("_ll", "LL_"), ("flagged", "LL_"), ("peer", "peers_"),
         ("direct", "peers_"), ("pat", "peers_"), ("sendrecv", "SendRecv"), ("", "Simple")]


def units_for(site, builder):
    """The sources to try for a place, the likeliest to notice first. Of a place that may survive, only those."""
    start = next(unit for part, unit in HINTS if part in site.path.name)
    likely = [name for name in builder.units if name.startswith(start)]
    rest = [name for name in builder.units if not name.startswith(start)]
    return likely if site.key in MAY_SURVIVE else likely + rest


def test_site(site, builder, number):
    for seeds in (FEW_SEEDS, builder.args.seeds):   # the wrong source's every seed takes longer than all sources' few
        for name in units_for(site, builder):
            noticed = builder.probe(name, seeds, number)
            if noticed is not None:
                return noticed
    return None


def report(results):
    """Prints what was noticed and what was not; returns how many problems there are."""
    survivors = {}
    for site, noticed in results:
        print(f"{'noticed ' if noticed else 'SURVIVED'}  {site}\n          {noticed or 'no run went wrong'}", flush=True)
        if not noticed:
            survivors.setdefault(site.key, []).append(site)
    problems = 0
    for key, sites in survivors.items():
        allowed, why = MAY_SURVIVE.get(key, (0, ""))
        if len(sites) > allowed:
            problems += 1
            print(f"PROBLEM: nobody notices when this goes ({len(sites)} times, {allowed} allowed): {key}")
        else:
            print(f"allowed: {key}: {why}")
    for key, (allowed, _) in MAY_SURVIVE.items():
        if key in {site.key for site, _ in results} and len(survivors.get(key, [])) < allowed:
            problems += 1
            print(f"PROBLEM: noticed after all, take it from the list: {key}")
    return problems


def main():
    parser = argparse.ArgumentParser(description="Removes each order from device code in turn; tests must notice.")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the project's folder")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for what is built")
    parser.add_argument("--cxx", required=True, help="the compiler's command")
    parser.add_argument("--libraries", default="", help="what the probe consists of, separated by :")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    args.cxx = args.cxx.split()
    args.libraries = args.libraries.split(":")
    start = time.time()
    sites = find_sites(args.source / "src/device")
    wanted = [(number, site) for number, site in enumerate(sites) if re.search(args.only, str(site))]
    if args.list:
        print("\n".join(str(site) for _, site in wanted))
        return 0
    if not wanted:
        print("PROBLEM: no place to change was found")
        return 1
    builder = Builder(args, sites)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for wrong in pool.map(builder.build_and_probe, builder.units):
            if wrong is not None:
                print(f"PROBLEM: the unchanged sources fail: {wrong}")
                return 1
    print(f"{len(wanted)} places; the unchanged kernels are right ({time.time() - start:.0f} s)", flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        noticed = pool.map(lambda job: test_site(job[1], builder, job[0]), wanted)
        results = list(zip([site for _, site in wanted], noticed))
    problems = report(results)
    print(f"{len(wanted)} mutants, {problems} problems, {time.time() - start:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
