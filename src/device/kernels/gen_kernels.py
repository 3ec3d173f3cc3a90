#!/usr/bin/env python3
"""Writes the kernel sources.

A kernel is (collective, algorithm, protocol, op, type). A GPU source ("family") holds all ops of one method and
type and becomes one fatbin; a host source holds all collectives of one protocol and type, whose inner loops are the
same. With --together a source holds all kernels of its world for one type, and is named after it: reading headers is
most of what a kernel costs that is compiled quickly.

  gen_kernels.py [OPTION]... list gpu|host                    names of the sources, one per line
  gen_kernels.py [OPTION]... write gpu NAME OUTPUT            one source
  gen_kernels.py [OPTION]... write host NAME OUTPUT
  gen_kernels.py [OPTION]... table OUTPUT                     tuttiHostKernels(), for all kernels
  gen_kernels.py [OPTION]... embed OUTPUT SOURCE=FATBIN...    embeddedFatbins(), with the fatbins as data
"""
import argparse
import re
import sys

REDUCING = ["AllReduce", "ReduceScatter", "Reduce"]
# Collective, algorithm, protocols; kernel_name.h (methodExists) has the same list.
METHODS = [
    ("AllReduce", "Ring", ["LL", "LL128", "Simple"]),
    ("ReduceScatter", "Ring", ["LL", "LL128", "Simple"]),
    ("Reduce", "Ring", ["LL", "LL128", "Simple"]),
    ("AllGather", "Ring", ["LL", "LL128", "Simple"]),
    ("Broadcast", "Ring", ["LL", "LL128", "Simple"]),
    ("AllReduce", "Tree", ["LL", "LL128", "Simple"]),
    ("AllReduce", "OneShot", ["LL", "Simple"]),
    ("AllReduce", "Direct", ["LL", "Simple"]),
    ("ReduceScatter", "Direct", ["LL", "Simple"]),
    ("AllGather", "Direct", ["LL", "Simple"]),
    ("AllGather", "Pat", ["Simple"]),
    ("ReduceScatter", "Pat", ["Simple"]),
    ("AllReduce", "CollNetDirect", ["Simple"]),
    ("ReduceScatter", "CollNetDirect", ["Simple"]),
    ("AllGather", "CollNetDirect", ["Simple"]),
    ("AllReduce", "CollNetChain", ["Simple"]),
]
# Where the name of an algorithm differs from the enumerator's.
NAMES = {"Pat": "PAT"}
# Algorithms, by name, whose kernels have more in shared memory than others, and the start of the names of their host
# sources: blocks that talk to many peers at once, and blocks of several crews that talk to a network.
PEER_ALGORITHMS = ["OneShot", "Direct", "PAT"]
COLLNET_ALGORITHMS = ["CollNetDirect", "CollNetChain"]
SHARED = {**dict.fromkeys(PEER_ALGORITHMS, ("PeerKernelShared", "peers_")),
          **dict.fromkeys(COLLNET_ALGORITHMS, ("CollNetKernelShared", "collnet_"))}
TYPES = {
    "i8": "std::int8_t", "u8": "std::uint8_t", "i32": "std::int32_t", "u32": "std::uint32_t", "i64": "std::int64_t",
    "u64": "std::uint64_t", "f16": "tutti::device::Half", "bf16": "tutti::device::BFloat16", "f32": "float",
    "f64": "double", "e4m3": "tutti::device::Float8E4M3", "e5m2": "tutti::device::Float8E5M2",
}


def ops_of(type_name):
    """Any is every operation but Sum, chosen at run time. Sums modulo 2^n are the signed type's."""
    return ["Any"] if type_name[0] == "u" else ["Sum", "Any"]


def variants(func):
    """Yields (op, kernel's type) of a collective."""
    if func not in REDUCING:
        yield "Copy", "i8"
        return
    for type_name in TYPES:
        for op in ops_of(type_name):
            yield op, type_name


def kernels():
    """Yields (kernel name, GPU family, host source, body)."""
    for func, algorithm, protocols in METHODS:
        for protocol in protocols:
            method = (f"tutti::device::Method<tutti::device::Func::{func}, tutti::device::Algorithm::{algorithm}, "
                      f"tutti::device::Protocol::{protocol}>")
            for op, type_name in variants(func):
                body = f"(tutti::device::collectiveKernel<{method}, {TYPES[type_name]}, tutti::device::{op}Op>)"
                name = f"{func}_{NAMES.get(algorithm, algorithm)}_{protocol}"
                host = f"{protocol}_copy" if op == "Copy" else f"{protocol}_{type_name}"
                host = SHARED.get(name.split("_")[1], ("KernelShared", ""))[1] + host
                yield f"tutti_{name}_{op}_{type_name}", f"{name}_{type_name}", host, body
    yield "tutti_SendRecv_Copy_i8", "SendRecv_i8", "SendRecv", "(tutti::device::sendRecvKernel)"


def selected(only):
    pattern = re.compile(only)
    return [k for k in kernels() if pattern.search(k[0])]


def source_of(world, kernel, together):
    """The name of the source that holds a kernel."""
    _, family, host_source, _ = kernel
    source = family if world == "gpu" else host_source
    return "all_" + source.split("_")[-1] if together else source


def sources(world, args):
    return list(dict.fromkeys(source_of(world, k, args.together) for k in selected(args.only)))


def write_source(args):
    lines = ["// Written by gen_kernels.py.", '#include "device/kernels/kernels.h"', ""]
    for row in selected(args.only):
        kernel, _, _, body = row
        if args.name == source_of(args.world, row, args.together):
            shared = SHARED.get(kernel.split("_")[2], ("KernelShared", ""))[0]
            lines.append(f"TUTTI_KERNEL({kernel}, tutti::device::KernelArgs, tutti::device::{shared}, "
                         f"tutti::device::kMaxThreads, {body})")
    write(args.output, lines)


def write_table(output, only):
    names = [k[0] for k in selected(only)]
    lines = ["// Written by gen_kernels.py.", "#include <vector>", "", '#include "device/simt/simt_host_abi.h"', ""]
    lines += [f"extern const tutti::simt::HostKernel {name}_hostKernel;" for name in names]
    lines += ["", "__attribute__((visibility(\"default\"))) const tutti::simt::HostKernelTable* tuttiHostKernels() {",
              "  // Never destroyed: exit handlers may launch kernels after the end of static objects.",
              "  static const auto& kKernels = *new std::vector<tutti::simt::HostKernel>{"]
    lines += [f"      {name}_hostKernel," for name in names]
    lines += ["  };",
              "  static const tutti::simt::HostKernelTable kTable{",
              "      tutti::simt::kHostAbiVersion, static_cast<std::uint32_t>(kKernels.size()), kKernels.data()};",
              "  return &kTable;", "}"]
    write(output, lines)


def write_embedding(args):
    """C++ with top-level asm: the assembler reads the fatbins, no compiler has to parse megabytes of numbers."""
    lines = ["// Written by gen_kernels.py.", '#include "device/kernels/fatbins.h"', ""]
    number = {}  # of a fatbin, by the name of its source
    for index, (source, path) in enumerate(pair.split("=", 1) for pair in args.fatbins):
        number[source] = index
        lines += [f'asm(".section .rodata.tutti_fatbin, \\"a\\", @progbits\\n.balign 64\\n"',
                  f'    ".hidden tuttiFatbin{index}\\n.globl tuttiFatbin{index}\\ntuttiFatbin{index}:\\n"',
                  f'    ".incbin \\"{path}\\"\\n"',
                  f'    ".hidden tuttiFatbin{index}End\\n.globl tuttiFatbin{index}End\\ntuttiFatbin{index}End:\\n"',
                  f'    ".byte 0\\n.previous\\n");',
                  f'extern "C" const std::byte tuttiFatbin{index}[];',
                  f'extern "C" const std::byte tuttiFatbin{index}End[];']
    rows = {k[1]: number[source_of("gpu", k, args.together)] for k in selected(args.only)} if number else {}
    lines += ["", "namespace tutti::device {", "", "std::span<const Fatbin> embeddedFatbins() {"]
    if rows:
        lines.append("  static const Fatbin kFatbins[] = {")
        lines += [f'      {{"{family}", tuttiFatbin{i}, tuttiFatbin{i}End}},' for family, i in rows.items()]
        lines += ["  };", "  return kFatbins;"]
    else:
        lines.append("  return {};")
    lines += ["}", "", "}  // namespace tutti::device"]
    write(args.output, lines)


def write(output, lines):
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description="Writes the kernel sources.")
    parser.add_argument("--only", default="", metavar="REGEX", help="only kernels whose name matches")
    parser.add_argument("--together", action="store_true", help="all kernels of a type in one source")
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list")
    listing.add_argument("world", choices=["gpu", "host"])
    writing = commands.add_parser("write")
    writing.add_argument("world", choices=["gpu", "host"])
    writing.add_argument("name")
    writing.add_argument("output")
    table = commands.add_parser("table")
    table.add_argument("output")
    embedding = commands.add_parser("embed")
    embedding.add_argument("output")
    embedding.add_argument("fatbins", nargs="*", metavar="SOURCE=FATBIN")
    args = parser.parse_args()
    if args.command == "list":
        print("\n".join(sources(args.world, args)))
    elif args.command == "write":
        write_source(args)
    elif args.command == "table":
        write_table(args.output, args.only)
    else:
        write_embedding(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
