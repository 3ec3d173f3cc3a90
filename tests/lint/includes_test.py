#!/usr/bin/env python3
"""What tests/lint/includes.py refuses."""
import unittest

import includes
from trees import tree

HEADER = "#pragma once\n#include <vector>\n#include <utility>\n#include <gtest/gtest.h>\n#include <fmt/format.h>\n"


def found(files):
    with tree({"tools/precompiled.h": HEADER, **files}) as root:
        return list(includes.check(root))


class Includes(unittest.TestCase):
    def test_names_what_is_missing_once_for_a_header(self):
        self.assertEqual(found({"src/a.cc": "int x;\nstd::vector<int> v;\nstd::vector<int> w;\nauto y = std::move(v);"}),
                         ["src/a.cc:2: std::vector needs #include <vector>", "src/a.cc:4: std::move needs #include <utility>"])

    def test_is_content_with_a_header_of_the_project_that_has_it(self):
        self.assertEqual(found({"src/a.cc": '#include "b.h"\nstd::vector<int> v;', "src/b.h": '#include "c/d.h"\n',
                                "src/c/d.h": "#include <vector>\n"}), [])

    def test_knows_libraries_by_how_their_names_begin(self):
        self.assertEqual(found({"tests/a_test.cc": "void f() { EXPECT_EQ(1, 1); fmt::print(\"\"); }"}),
                         ["tests/a_test.cc:1: EXPECT_EQ needs #include <gtest/gtest.h>",
                          "tests/a_test.cc:1: fmt::print needs #include <fmt/format.h>"])
        self.assertEqual(found({"tests/a_test.cc": "#include <gmock/gmock.h>\n#include <fmt/core.h>\n"
                                                   "void f() { EXPECT_EQ(1, 1); fmt::print(\"\"); }"}), [])

    def test_passes_over_what_is_no_use(self):
        self.assertEqual(found({"src/a.cc": "// std::vector\nconst char* a = \"std::vector\"; int vector = mine::vector(1);"}), [])

    def test_wants_names_of_every_precompiled_header(self):
        with tree({"tools/precompiled.h": "#include <regex>\n"}) as root:
            self.assertEqual(list(includes.check(root)), ["tools/precompiled.h: tests/lint/includes.py has no names of <regex>"])


if __name__ == "__main__":
    unittest.main()
