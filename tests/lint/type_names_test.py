#!/usr/bin/env python3
"""What tests/lint/cpp.py reads, and what tests/lint/type_names.py refuses."""
import unittest

import cpp
import type_names
from trees import tree


def names(text):
    return [found.name for found in cpp.read(text)[0]]


def lengths(text):
    return [(function.line, function.lines) for function in cpp.read(text)[1]]


class Reading(unittest.TestCase):
    def test_finds_every_kind_of_type(self):
        text = """namespace a::b { class C { struct Inner {}; }; struct D final : C { int x{1}; }; enum class E : int { k };
            union U { int i; }; using F = int; typedef int G; typedef void (*H)(int); struct alignas(16) I { int x[4]; };
            template <class T, int N = (1 > 0)> struct J { T t; }; template <class T> using K = J<T>; } enum L { one };"""
        self.assertEqual(names(text), [f"a::b::{n}" for n in "CDEUFGHIJK"] + ["L"])

    def test_passes_over_what_defines_no_type(self):
        text = """struct A; enum class B : int; struct C make() { return {}; } struct C* c = nullptr; using std::swap;
            template <> struct D<int> { int x; }; namespace e = f; // struct G {};
            const char* h = "struct I {"; auto j = R"(struct K {)"; struct L f(int x = {3}) { struct M { int n; }; return {}; }
            Thing thing{1}; int list[] = {1, 2}; friend struct N;"""
        self.assertEqual(names(text), [])

    def test_tells_anonymous_namespaces_apart(self):
        self.assertEqual(names("namespace a { namespace { struct B {}; } struct C {}; }"), ["a::(anonymous)::B", "a::C"])

    def test_reads_the_first_branch_of_a_condition(self):
        text = "#if X\nstruct A {\n#else\nstruct A : B {\n#endif\n};\n#define Z struct Q { \\\n struct R {\nstruct C {};"
        self.assertEqual(names(text), ["A", "C"])

    def test_measures_functions_with_all_they_consist_of(self):
        text = """int a() { return 1; }
struct B {
  B(int x,
    int y)
      : x_{x}, y_(y) {
    for (;;) {
    }
  }
  auto c() const -> int { return 0; }
  int x_{3}, y_ = 4;
};
template <class T, class U = int>
bool operator==(const T& a, const T& b) noexcept {
  auto l = [&] { return a; };
  return l() == b;
}
int d = f({1, 2});
"""
        self.assertEqual(lengths(text), [(1, 1), (3, 6), (9, 1), (12, 5)])


class TypeNames(unittest.TestCase):
    def problems(self, files):
        with tree(files) as root:
            return list(type_names.check(root))

    def test_refuses_a_type_twice_in_a_namespace_and_names_both_places(self):
        files = {"src/a/x.h": "namespace n {\nclass T {};\n}", "src/b/y.cc": "namespace n { using T = int; }"}
        self.assertEqual(self.problems(files), ["src/a/x.h:2: n::T is also defined at src/b/y.cc:1"])

    def test_accepts_one_name_in_different_namespaces_and_forward_declarations(self):
        files = {"src/a/x.h": "namespace n::a { class T {}; }", "src/b/y.h": "namespace n::b { class T {}; }",
                 "src/b/z.h": "namespace n::a { class T; }"}
        self.assertEqual(self.problems(files), [])

    def test_accepts_anonymous_types_of_two_sources_only(self):
        hidden = "namespace n { namespace { struct T {}; } }"
        self.assertEqual(self.problems({"src/a/x.cc": hidden, "src/a/y.cc": hidden}), [])
        self.assertEqual(len(self.problems({"src/a/x.cc": hidden, "src/a/y.h": "namespace n { struct T {}; }"})), 1)
        self.assertEqual(len(self.problems({"src/a/x.h": hidden, "src/a/y.h": hidden})), 1)

    def test_accepts_what_nvcc_and_gpp_see_one_at_a_time(self):
        files = {"src/d/x_cuda.h": "struct T {};", "src/d/x_host.h": "struct T {};"}
        self.assertEqual(self.problems(files), [])


if __name__ == "__main__":
    unittest.main()
