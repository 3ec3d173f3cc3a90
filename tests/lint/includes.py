#!/usr/bin/env python3
"""Checks that who uses a name of a precompiled header includes what has it, itself or by a header of the project.

Builds for sanitizers include tools/precompiled.h everywhere (tools/precompile), so that they do not find what is missing.
Headers are compiled alone (headers.py); this is about all sources."""
import pathlib
import sys

import cpp
import sources

PRECOMPILED = "tools/precompiled.h"
FOLDERS = ("src", "tests", "bench", "examples", "tools")
# By header, its names in namespace std.
STD = {
    "algorithm": """all_of any_of clamp copy copy_if copy_n count_if equal fill fill_n find find_if find_if_not for_each
        generate generate_n is_sorted lexicographical_compare lower_bound max max_element min min_element minmax mismatch
        next_permutation none_of nth_element partition partial_sort ranges remove_if replace reverse rotate search shuffle
        sort stable_partition stable_sort transform unique upper_bound""",
    "array": "array to_array",
    "atomic": """atomic atomic_bool atomic_flag atomic_int atomic_ref atomic_thread_fence memory_order memory_order_acq_rel
        memory_order_acquire memory_order_relaxed memory_order_release memory_order_seq_cst""",
    "chrono": "chrono",
    "condition_variable": "condition_variable condition_variable_any cv_status",
    "cstdint": "int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "cstdlib": "_Exit abort atexit atoi exit free getenv malloc quick_exit strtod strtol strtoll strtoul strtoull system",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strerror strlen strncmp strncpy strrchr strstr",
    "deque": "deque",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": "bind cref function greater invoke less plus reference_wrapper",
    "map": "map multimap",
    "memory": "addressof align make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock try_to_lock unique_lock",
    "optional": "make_optional nullopt optional",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution uniform_real_distribution",
    "set": "multiset set",
    "span": "as_bytes as_writable_bytes span",
    "string": "getline stoi stol stoul stoull string to_string",
    "string_view": "string_view",
    "thread": "jthread this_thread thread",
    "utility": "as_const declval exchange forward index_sequence make_index_sequence make_pair move pair swap",
    "vector": "vector",
}
HEADER = {f"std::{name}": header for header, names in STD.items() for name in names.split()}
# Of these any token that begins so.
OTHERS = {"fmt/format.h": ("fmt::",), "gtest/gtest.h": ("testing::", "EXPECT_", "ASSERT_")}
# What else has these names.
AS_GOOD = {"fmt/format.h": {"fmt/core.h", "fmt/ranges.h", "fmt/chrono.h"}, "gtest/gtest.h": {"gmock/gmock.h"},
           "cstdint": {"stdint.h"}, "cstdlib": {"stdlib.h"}, "cstring": {"string.h"}}


def names(text):
    """(name, line) of what is used: `std::vector` and the like with the namespace, else single tokens."""
    words = list(cpp.tokens(text))
    for place, (word, line) in enumerate(words):
        if place >= 2 and words[place - 1][0] == "::":
            yield f"{words[place - 2][0]}::{word}", line
        else:
            yield word, line


def header_of(name):
    if name in HEADER:
        return HEADER[name]
    return next((header for header, starts in OTHERS.items() if name.startswith(starts)), None)


def precompiled(root):
    return [target for _, _, target in sources.includes(root, pathlib.Path(PRECOMPILED))]


def check(root):
    for header in precompiled(root):
        if header not in STD and header not in OTHERS:
            yield f"{PRECOMPILED}: tests/lint/includes.py has no names of <{header}>"
    files = [path for folder in FOLDERS for path in sources.below(root, folder, (".h", ".cc"))]
    files += sources.below(root, "include", (".h",))
    graph = sources.include_graph(root, files)
    own = {path: {target for _, _, target in sources.includes(root, path)} for path in files}
    for path in files:
        if path.suffix != ".cc" or "fixtures" in path.parts:
            continue
        there = own[path].union(*(own.get(inner, set()) for inner in sources.reached(graph, path)))
        missing = {}
        for name, line in names(sources.text(root, path)):
            header = header_of(name)
            if header and header not in there and not AS_GOOD.get(header, set()) & there:
                missing.setdefault(header, f"{path}:{line}: {name} needs #include <{header}>")
        yield from missing.values()


def main():
    found = list(check(pathlib.Path(".")))
    print("\n".join(found) if found else "includes: every source includes what it uses of the precompiled headers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
