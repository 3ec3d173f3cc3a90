#!/usr/bin/env python3
"""What tests/lint/fortified.py refuses."""
import unittest

import fortified
from trees import tree


class Fortified(unittest.TestCase):
    def problems(self, text):
        with tree({"src/a.cc": f"void f() {{\n{text}\n}}\n"}) as root:
            return list(fortified.check(root))

    def test_refuses_results_that_go_nowhere_whatever_they_are_cast_to(self):
        for text in ("::write(1, text, size(text));", "static_cast<void>(::write(1, text, 2));", "(void)::write(1, x, 2);",
                     "if (on) ::write(1, text, 2);", "for (;;) { ::write(1, text, 2); }", "if (a) b(); else ::write(1, c, 2);"):
            self.assertEqual(self.problems(text), ["src/a.cc:2: nobody looks at the result of write()"], text)

    def test_accepts_results_that_are_looked_at(self):
        for text in ("if (::write(1, text, 2) != 2) return;", "const auto n = ::read(0, text, 2);", "return ::pipe(fds);",
                     "static_cast<void>(!::write(1, text, 2));", "EXPECT_EQ(::ftruncate(fd, 0), 0);",
                     "while (::read(0, text, 2) > 0) {}", "done = (ready) && ::read(0, text, 1) == 1;"):
            self.assertEqual(self.problems(text), [], text)

    def test_leaves_other_functions_and_comments_alone(self):
        for text in ("::close(1);", "static_cast<void>(::poll(nullptr, 0, 1));", "file.write(text);", "write(text);",
                     "words::write(text);", "// ::write(1, text, 2);", 'say("; ::write(1, text, 2);");'):
            self.assertEqual(self.problems(text), [], text)


if __name__ == "__main__":
    unittest.main()
