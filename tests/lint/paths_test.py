#!/usr/bin/env python3
"""What tests/lint/paths.py refuses."""
import unittest

import paths
from trees import tree

FILES = {"src/comm/links.h": "", "tools/bundle": "", "docs/a.md": "# One thing: `x`, twice\n", "README.md": ""}


class Paths(unittest.TestCase):
    def problems(self, text):
        with tree(FILES | {"docs/b.md": text}) as root:
            return list(paths.check(root))

    def test_accepts_what_exists_however_it_is_named(self):
        text = """`src/comm/links.h`, `comm/links.h:12`, `links.h`, `src/comm/*.h`, `tools/bundle`, `./tools/bundle`,
            `build/tools/x`, `and/or`, `a.md`, [a](a.md#one-thing-x-twice), [b](../README.md), [c](https://x.y/z.md)"""
        self.assertEqual(self.problems(text), [])

    def test_refuses_paths_that_are_gone(self):
        for word in ("src/comm/gone.h", "comm/gone.h", "gone.h", "tools/gone", "src/comm/*.cc", "docs/gone.md:3"):
            found = self.problems(f"first\nsee `{word}` there")
            self.assertEqual(found, [f"docs/b.md:2: there is no {word.removesuffix(':3')}"])

    def test_refuses_links_to_files_and_headings_that_are_gone(self):
        self.assertIn("leads nowhere", self.problems("[x](gone.md)")[0])
        self.assertIn("a.md has no heading #two", self.problems("[x](a.md#two)")[0])
        self.assertIn("has no heading #here", self.problems("[x](#here)")[0])

    def test_leaves_blocks_of_code_alone(self):
        self.assertEqual(self.problems("```\n`src/gone.h` [x](gone.md)\n```"), [])


if __name__ == "__main__":
    unittest.main()
