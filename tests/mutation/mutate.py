#!/usr/bin/env python3
"""Proves that the tests notice every missing order in device code.

Finds each release, fence, barrier and post of the protocols in src/device, and for each makes a copy of the sources in
which exactly this one is weakened or gone, compiles a few kernels from it and runs them under weak memory and random
schedules. A mutant must give wrong data, hang or crash; the unchanged sources must not. New places are found by
themselves. Places that cannot be noticed are listed in MAY_SURVIVE with the reason.

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
import threading
import time

# What is looked for, what it becomes. CALL is an object, if any: "crew_.thread." or "t.".
CALL = r"(?:\b\w+(?:\([^()]*\)|\[\w+\])?(?:\.|->))*\b"
ARGUMENTS = r"\((?:[^(){};]|\([^()]*\))*\)"
MUTATIONS = [
    (re.compile(r"\bstoreReleaseSys(?=\()"), "storeRelaxedSys"),
    (re.compile(r"\bstoreLine16(?=\()"), "storeLine16Torn"),
    (re.compile(CALL + r"fence(?:Block|Gpu|Sys)\(\);"), ";"),
    (re.compile(r"\bsimt::finishStreaming\(\);"), ";"),
    (re.compile(CALL + r"sync(?:Group|Block|Warp)?" + ARGUMENTS + ";"), ";"),
    (re.compile(CALL + r"(?:post|release|awaitReaders)\w*" + ARGUMENTS + ";"), ";"),
    (re.compile(r"\boffered_(?= &&)"), "false"),
]
# The contract between device code and its worlds is not a protocol; numbers have no order to lose.
NOT_PROTOCOLS = re.compile(r"^(simt|number|float|pack|reduce_op|policy|partition|work|kernel_name)\w*\.h$")

# "file: statement", how often it may survive, and why.
MAY_SURVIVE = {
    "kernels.h: t.syncBlock();": (1, "keeps the halves of a block together to its end, which orders everything anyway"),
    "peer_fifos.h: storeReleaseSys(shared_.recv[i]->headOf(protocol_), ++shared_.recvStep[i]);":
        (1, "keeps loads of a slot before the credit that gives it back; weak memory does not delay loads"),
    "peer_fifos.h: sync();":
        (1, "the one that ends finish(): what the next work writes before its first barrier is what is there already"),
    "prims_flagged.h: sync();":
        (1, "the one that ends clean(): takes a thread that is interrupted for eight steps between two stores; fibers are "
            "not. unit_device's real threads found the fault when it was there"),
}

# In this order: a source is compiled only if the kernels of those before it did not notice.
KERNELS = re.compile(r"_(Sum_i32|Copy_i8)$")
FLAGS = ["-std=c++20", "-O1", "-w"]


class Site:
    def __init__(self, path, text, match, replacement):
        self.path = path
        self.begin, self.end = match.span()
        self.replacement = replacement
        self.line = text.count("\n", 0, self.begin) + 1
        self.statement = " ".join(match.group(0).split())
        if replacement != ";":  # show the whole call
            self.statement = text[self.begin:text.index(";", self.end) + 1]
        self.key = f"{path.name}: {' '.join(self.statement.split())}"

    def __str__(self):
        return f"{self.path.name}:{self.line} {self.statement}"


def without_comments(text):
    return re.sub(r"//[^\n]*", lambda m: " " * len(m.group(0)), text)


def find_sites(folder):
    sites = []
    for path in sorted(folder.glob("*.h")):
        if NOT_PROTOCOLS.match(path.name):
            continue
        text = without_comments(path.read_text())
        for pattern, replacement in MUTATIONS:
            sites += [Site(path, text, match, replacement) for match in pattern.finditer(text)]
    return sorted(sites, key=lambda s: (s.path.name, s.begin))


class Builder:
    """Compiles kernels from a folder of sources and links them with the probe."""

    def __init__(self, args, work):
        self.args = args
        self.work = work
        gen = args.source / "src/device/gen_kernels.py"
        only = ["--only", KERNELS.pattern]
        names = subprocess.run([sys.executable, gen, *only, "list", "host"], check=True, capture_output=True,
                               text=True).stdout.split()
        self.units = {}
        for name in sorted(names, key=lambda n: (not n.startswith("Simple"), not n.startswith("SendRecv"), n)):
            self.units[name] = work / f"{name}.cc"
            subprocess.run([sys.executable, gen, *only, "write", "host", name, self.units[name]], check=True)
        self.tables = {}
        self.lock = threading.Lock()
        self.prelude = self.compile_prelude()

    def compile_prelude(self):
        """The standard headers that device code includes, compiled once: no mutant changes them."""
        prelude = self.work / "prelude.h"
        texts = [path.read_text() for path in (self.args.source / "src/device").glob("*.h")]
        names = set(re.findall(r"^#include (<\w+(?:\.h)?>)$", "\n".join(texts), re.MULTILINE))
        prelude.write_text("".join(f"#include {n}\n" for n in sorted(names) if not n.startswith("<cuda")))
        self.run([*self.args.cxx, *FLAGS, "-x", "c++-header", prelude, "-o", f"{prelude}.gch"], 120)
        return prelude

    def run(self, command, timeout):
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, errors="replace")

    def table(self, names):
        """The object that lists the kernels of these sources."""
        with self.lock:
            return self.make_table(names)

    def make_table(self, names):
        key = "+".join(names)
        if key not in self.tables:
            kernels = [line.split("(")[1].split(",")[0] for n in names for line in
                       self.units[n].read_text().split("\n") if line.startswith("TUTTI_KERNEL(")]
            source = self.work / f"table_{len(self.tables)}.cc"
            pattern = "^(" + "|".join(kernels) + ")$"
            gen = self.args.source / "src/device/gen_kernels.py"
            subprocess.run([sys.executable, gen, "--only", pattern, "table", source], check=True)
            self.tables[key] = self.compile(source, self.args.source / "src", source.with_suffix(".o"))
        return self.tables[key]

    def compile(self, source, sources, output):
        include = [f"-I{sources}", f"-I{self.args.source / 'src'}", f"-I{self.args.source / 'include'}"]
        done = self.run([*self.args.cxx, *FLAGS, "-include", self.prelude, *include, "-c", source, "-o", output], 120)
        if done.returncode != 0:
            raise RuntimeError(f"{source.name} does not compile:\n{done.stderr[-3000:]}")
        return output

    def probe(self, names, sources, folder, seeds):
        """Runs the kernels of these sources; None if all is right, else what is wrong."""
        objects = [self.compile(self.units[n], sources, folder / f"{n}.o") for n in names]
        program = folder / "probe"
        linked = self.run([*self.args.cxx, *objects, self.table(names), *self.args.libraries, "-lboost_context",
                           "-pthread", "-o", program], 120)
        if linked.returncode != 0:
            raise RuntimeError(f"the probe does not link:\n{linked.stderr[-3000:]}")
        try:
            done = self.run([program, str(seeds)], 120)
        except subprocess.TimeoutExpired:
            return "it does not end"
        if done.returncode == 0:
            return None
        return done.stdout.strip() or f"it ends with status {done.returncode}"


    def probe_unchanged(self, name):
        folder = self.work / f"unchanged_{name}"
        folder.mkdir(exist_ok=True)
        return self.probe([name], self.args.source / "src", folder, 2)   # the device tests run them with more


TORN = """
  void storeLine16Torn(Group, Pack16* p, Pack16 value) const {
    if (p != nullptr) storeUnit(p, value);
  }
  void storeLine16("""


# Which kernels likely notice a change of a file: part of the file's name, start of the source's.
HINTS = [("ll128", "LL128_"), ("_ll", "LL_"), ("flagged", "LL_"), ("peer", "peers_"), ("direct", "peers_"),
         ("pat", "peers_"), ("sendrecv", "SendRecv"), ("", "Simple")]


def units_for(site, builder):
    """Groups of sources to try for a place, the likeliest to notice first. Of a place that may survive, only those."""
    start = next(unit for part, unit in HINTS if part in site.path.name)
    likely = [[name] for name in builder.units if name.startswith(start)]
    rest = [[name] for name in builder.units if not name.startswith(start)]
    return likely if site.key in MAY_SURVIVE else likely + rest


def test_site(site, builder, index):
    folder = builder.work / f"mutant_{index}"
    shutil.rmtree(folder, ignore_errors=True)
    copies = folder / "src/device"
    copies.mkdir(parents=True)
    for path in site.path.parent.glob("*.h"):
        shutil.copy(path, copies)
    text = site.path.read_text()
    (copies / site.path.name).write_text(text[:site.begin] + site.replacement + text[site.end:])
    if "Torn" in site.replacement:
        world = copies / "simt_host.h"
        world.write_text(world.read_text().replace("\n  void storeLine16(", TORN, 1))
    try:
        for names in units_for(site, builder):
            noticed = builder.probe(names, folder / "src", folder, builder.args.seeds)
            if noticed is not None:
                return noticed
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
    sites = [s for s in find_sites(args.source / "src/device") if re.search(args.only, str(s))]
    if args.list:
        print("\n".join(str(s) for s in sites))
        return 0
    if not sites:
        print("PROBLEM: no place to change was found")
        return 1
    args.work.mkdir(parents=True, exist_ok=True)
    builder = Builder(args, args.work)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for wrong in pool.map(builder.probe_unchanged, builder.units):
            if wrong is not None:
                print(f"PROBLEM: the unchanged sources fail: {wrong}")
                return 1
    print(f"{len(sites)} places; the unchanged kernels are right ({time.time() - start:.0f} s)", flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(zip(sites, pool.map(lambda job: test_site(job[1], builder, job[0]), enumerate(sites))))
    problems = report(results)
    print(f"{len(sites)} mutants, {problems} problems, {time.time() - start:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
