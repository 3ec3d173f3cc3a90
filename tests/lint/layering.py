#!/usr/bin/env python3
"""Checks that every #include "module/..." under src/ is allowed by the table of docs/architecture.md."""
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "device": set(),
    "gpu": {"base", "device"},  # the embedded fatbins and the software GPU's kernel table
    "bootstrap": {"base"},
    "topo": {"base", "gpu"},  # gathering the facts of the live machine
    "plugin": {"base"},
    "proxy": {"base"},
    "softgpu": {"base", "device"},
    "transport": {"base", "gpu", "device", "topo", "plugin", "proxy"},
    "comm": {"base", "gpu", "device", "bootstrap", "topo", "plugin", "proxy", "transport"},
    "api": {"base", "comm"},
}
# Files of a module that others may see, where the table says "only".
ONLY = {
    ("softgpu", "device"): re.compile(r"simt"),
    ("gpu", "device"): re.compile(r"(fatbins|simt_host_abi)\.h"),
    ("transport", "device"): re.compile(r"(conn_view|direction|work|policy|message_turn|packet_ll|packet_ll128)\.h"),
    ("topo", "gpu"): re.compile(r"(driver|nvml)\.h"),
    ("softgpu", "base"): re.compile(r"(handle|hash|fd|dl|clock)\.h"),
}
# Arrows that only some files of a module may use.
FROM = {
    ("topo", "gpu"): re.compile(r"detect_live\.(h|cc)"),
}
FORBIDDEN_IN_DEVICE = re.compile(r"<(vector|string|map|memory|functional|iostream)>")
PUBLIC = {p.name for p in pathlib.Path("include").glob("*.h")}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def problems(path, module):
    for number, line in enumerate(path.read_text().split("\n"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        where = f"{path}:{number}"
        quote, target = match.groups()
        if module == "device" and quote == "<" and FORBIDDEN_IN_DEVICE.match(f"<{target}>") and "host_only" not in line:
            if not path.name.startswith(("kernel_name", "fatbins", "host_")):
                yield f"{where}: device code must not include <{target}>"
        if quote == "<" or "/" not in target:
            if quote == '"' and target not in PUBLIC:
                yield f'{where}: include "{target}" with its module: "module/file.h"'
            continue
        other, rest = target.split("/", 1)
        if other == module:
            continue
        if other not in ALLOWED[module]:
            yield f"{where}: {module} must not include {other} ({target})"
        elif (module, other) in FROM and not FROM[module, other].fullmatch(path.name):
            yield f"{where}: of {module}, only {FROM[module, other].pattern} may include {other} ({target})"
        elif (module, other) in ONLY and not ONLY[module, other].search(rest):
            yield f"{where}: {module} may use of {other} only {ONLY[module, other].pattern}, not {target}"


def main():
    found = []
    for path in sorted(pathlib.Path("src").rglob("*")):
        if path.suffix in (".h", ".cc", ".cu", ".cuh") and path.is_file():
            module = path.relative_to("src").parts[0]
            if module not in ALLOWED:
                found.append(f"{path}: unknown module {module}: add it to the table")
                continue
            found.extend(problems(path, module))
    print("\n".join(found) if found else "layering: every include is allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
