#!/usr/bin/env python3
"""Compares our nccl.h with the vendor's where one is installed: sizes, offsets, values and prototypes of what both have.

usage: vendor_probe.py OUR_INCLUDE_DIR CUDA_INCLUDE_DIR
"""
import os, re, shlex, subprocess, sys, tempfile

ours, cuda = sys.argv[1:3]
vendor = next((d for d in (cuda, "/usr/include", "/usr/local/cuda/include") if os.path.exists(d + "/nccl.h")), None)
if vendor is None:
    print("SKIP vendor_probe: no vendor nccl.h is installed")
    sys.exit(77)

text = open(ours + "/nccl.h").read()
# A name is compared if the vendor's header mentions it: older headers know fewer.
theirs = open(vendor + "/nccl.h").read()
known = set(re.findall(r"\w+", theirs))
functions = [f for f in re.findall(r"NCCL_DECLARE_\([^,]+, (\w+),", text) if "nccl" + f in known]
values = [v for v in re.findall(r"^  (nccl\w+) = ", text, re.M) if v in known]
macros = [m for m in re.findall(r"^#define (NCCL_\w+) ", text, re.M) if m in known]
MAY_DIFFER = {"ncclNumResults", "NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH", "NCCL_VERSION_CODE", "NCCL_H_"}
fields = re.search(r"ncclConfig_v23100 \{(.*?)\}", text, re.S).group(1)
fields = [f for f in re.findall(r"^  [\w ]+[ *](\w+);", fields, re.M) if f in known]


def probe(include):
    lines = ["#include <nccl.h>", "#include <cstdio>", "#include <cstddef>", "#include <typeinfo>", "int main() {"]
    show = lambda name, expr: lines.append(f'std::printf("{name} %lld\\n", (long long)({expr}));')
    for v in values:
        show(v, v)
    for m in macros:
        if not re.search(r"SUFFIX|UNDEF|INITIALIZER|COMM_NULL|API_MAGIC|HAS_CUDA", m):
            show(m, m)
    for f in fields:
        show("config." + f, f"offsetof(ncclConfig_t, {f})")
    for t in ("ncclUniqueId", "ncclSimInfo_t", "ncclRedOp_t", "ncclResult_t", "ncclDataType_t", "ncclScalarResidence_t"):
        show("sizeof " + t, f"sizeof({t})")
    for f in functions:
        for p in ("nccl", "pnccl"):
            lines.append(f'std::printf("{p}{f} %s\\n", typeid(decltype(&{p}{f})).name());')
    lines.append("}")
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/probe.cc", "w") as f:
            f.write("\n".join(lines))
        # Types only: nothing is linked, no function is called.
        subprocess.run([*shlex.split(os.environ.get("CXX", "g++")), "-std=c++20", "-w", "-I" + include, "-I" + cuda, d + "/probe.cc",
                        "-o", d + "/probe"], check=True)
        out = subprocess.run([d + "/probe"], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    return dict(line.rsplit(" ", 1) for line in out.splitlines())


a, b = probe(ours), probe(vendor)
bad = [f"{k}: ours {a[k]}, vendor {b[k]}" for k in a if a[k] != b[k] and k not in MAY_DIFFER]
# The struct's tag carries the version; its name is mangled into prototypes.
bad = [line for line in bad if re.sub(r"ncclConfig_v\d+", "", line.split(": ours ")[1].split(", vendor ")[0])
       != re.sub(r"ncclConfig_v\d+", "", line.split(", vendor ")[1])]
print(f"{len(a)} facts compared with {vendor}/nccl.h, {len(bad)} differ")
print("\n".join(bad))
sys.exit(1 if bad else 0)
