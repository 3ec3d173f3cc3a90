#!/usr/bin/env python3
"""What tools/house-report measures, and tests/lint/duplicates.py finds."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

import duplicates
from trees import tree

TOOL = pathlib.Path(__file__).parents[2] / "tools/house-report"
loader = importlib.machinery.SourceFileLoader("house_report", str(TOOL))
house = importlib.util.module_from_spec(importlib.util.spec_from_loader("house_report", loader))
loader.exec_module(house)


def run(first, count, indent=""):
    return "".join(f"{indent}call{n}(x);\n" for n in range(first, first + count))


def statements(name):
    return f"""int {name}(Things& things) {{
  if (things.empty() || things.front() == nullptr) return -1;
  int sum = {len(name)};
  for (const Thing* {name}Of : things) sum += {name}Of->{name};
  log("{name}: ", sum);
  return sum * {len(name)}0;
}}
"""


def names(name, count):
    cases = "".join(f'    case {name}::Value{n}: return "{n}";\n' for n in range(count))
    return f'const char* {name}Name({name} value) {{\n  switch (value) {{\n{cases}  }}\n  return "{name}";\n}}\n'


class Duplicates(unittest.TestCase):
    def test_finds_a_run_once_however_it_is_written(self):
        other = "// other\n" + run(0, 8, "  ").replace("call3(x);", "call3( x );  // why\n\n}\n")
        self.assertEqual(duplicates.pairs({"a": "int a;\n" + run(0, 8), "b": other}), [(8, ("a", 2, 9), ("b", 2, 12))])

    def test_five_lines_are_no_duplicate_and_six_are(self):
        for lines, found in ((5, 0), (6, 1)):
            self.assertEqual(len(duplicates.pairs({"a": run(0, lines) + "a;", "b": run(0, lines) + "b;"})), found)

    def test_finds_two_places_of_one_file_but_no_table(self):
        self.assertEqual(len(duplicates.pairs({"a": run(0, 6) + "x;\n" + run(0, 6)})), 1)
        self.assertEqual(duplicates.pairs({"a": "row(1);\n" * 8}), [])

    def test_finds_statements_with_other_names_numbers_and_texts(self):
        found = duplicates.pairs({"a": statements("sum"), "b": "int x;\n" + statements("heights")})
        self.assertEqual(found, [(6, ("a", 1, 6), ("b", 2, 7))])

    def test_other_keywords_are_another_shape(self):
        other = statements("heights").replace("return sum", "throw sum")
        self.assertEqual(duplicates.pairs({"a": statements("sum"), "b": other}), [])

    def test_names_of_values_are_lists_and_no_duplicates(self):
        self.assertEqual(duplicates.pairs({"a": names("Color", 9), "b": names("Fruit", 9)}), [])

    def test_a_copy_is_no_second_pair_for_its_shape(self):
        self.assertEqual(len(duplicates.pairs({"a": statements("sum"), "b": statements("sum")})), 1)

    def test_includes_and_comments_do_not_count(self):
        text = "".join(f'#include "a/{n}.h"\n// {n}\n' for n in range(9))
        self.assertEqual(duplicates.pairs({"a": text, "b": text}), [])


class Figures(unittest.TestCase):
    def figures(self, measure, files, *more):
        with tree(files) as root:
            report = house.Report()
            measure(report, root, house.sources.below(root, "src", house.UNITS), *more)
            return {what: (value, holds) for what, value, _, holds in report.rows}, report

    def test_a_header_and_its_source_are_one_concept(self):
        files = {f"src/a/{n}.{end}": "" for n in range(21) for end in ("h", "cc")}
        figures, report = self.figures(house.sizes, files)
        self.assertEqual(figures["concepts in the fullest folder"], ("21", "NO"))
        self.assertEqual(report.missed, 1)

    def test_measures_lines_of_files_and_functions(self):
        body = "int f() {\n" + "  g();\n" * 59 + "}\n"
        figures, _ = self.figures(house.sizes, {"src/a/x.cc": body, "src/device/y.h": body, "src/a/z.h": "int z;\n"})
        self.assertEqual(figures["lines of a function, longest"], ("61", "NO"))
        self.assertEqual(figures["lines of a function of src/device, longest"], ("61", "yes"))
        self.assertEqual(figures["lines of a file, longest"], ("61", "yes"))

    def test_counts_headers_that_are_reached_by_way_of_others(self):
        files = {"src/a/a.cc": '#include "a/b.h"\n#include "n.h"\n', "src/a/b.h": '#include "a/c.h"\n', "src/a/c.h": "",
                 "include/n.h": ""}
        figures, _ = self.figures(house.reach, files)
        self.assertEqual(figures["headers that a source reaches, most"], ("3", "yes"))

    def test_compares_tests_with_sources(self):
        figures, _ = self.figures(house.tests, {"src/a/a.cc": "x\n" * 10, "tests/a/a_test.cc": "x\n" * 6})
        self.assertEqual(figures["lines of tests per line of src"], ("0.60", "NO"))

    def test_kept_duplicates_are_listed_with_their_reason_and_not_counted(self):
        files = {"src/a/a.cc": statements("sum"), "src/a/b.cc": statements("heights")}
        figures, report = self.figures(house.repeated, files, {})
        self.assertEqual(figures[house.REPEATED], ("1", "yes"))
        kept = {frozenset(files): "they are tested apart"}
        figures, report = self.figures(house.repeated, files, kept)
        self.assertEqual(figures[house.REPEATED], ("0", "yes"))
        self.assertIn("they are tested apart", report.markdown())

    def test_a_kept_duplicate_that_is_gone_must_leave_the_table(self):
        figures, report = self.figures(house.repeated, {"src/a/a.cc": statements("sum")}, {frozenset(["x", "y"]): "?"})
        self.assertIn("x, y", report.markdown())

    def test_the_share_of_a_list_is_one_of_its_values(self):
        self.assertEqual([house.share(range(1, 101), part) for part in (50, 90, 99, 100)], [50, 90, 99, 100])


if __name__ == "__main__":
    unittest.main()
