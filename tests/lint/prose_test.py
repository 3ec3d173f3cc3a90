#!/usr/bin/env python3
"""What tests/lint/prose.py refuses and how it fills paragraphs."""
import unittest

import prose

LONG = " ".join(["word"] * 40)


class Prose(unittest.TestCase):
    def test_refuses_long_prose_but_no_tables_headings_or_code(self):
        text = f"{LONG}\n| {LONG} |\n# {LONG}\n```\n{LONG}\n```\n* {LONG}\n" + "x" * 200
        self.assertEqual(list(prose.too_long(text)), [1, 7])

    def test_fills_a_point_of_a_list_under_its_text_and_leaves_its_neighbours(self):
        text = f"* short\n* {LONG}\n  more\n* last\n\n| {LONG} |\n"
        filled = prose.filled(text)
        self.assertEqual(filled.split(), text.split())
        self.assertEqual(list(prose.too_long(filled)), [])
        self.assertTrue(all(line.startswith("  word") for line in filled.split("\n")[2:3]))
        self.assertEqual(prose.filled(filled), filled)

    def test_leaves_what_is_short_as_it_is_broken(self):
        self.assertEqual(prose.filled("one\ntwo\n\nthree"), "one\ntwo\n\nthree")

    def test_does_not_begin_a_list_by_breaking_a_line(self):
        text = "a" * 118 + " * b"
        self.assertFalse(any(line.startswith("*") for line in prose.filled(text).split("\n")))


if __name__ == "__main__":
    unittest.main()
