#!/usr/bin/env python3
"""What tests/lint/layering.py refuses."""
import unittest

import layering
import sources
from trees import tree


def room(may=(), **narrowed):
    return {"for": "a purpose", "may": {arrow: narrowed.get(arrow, {}) for arrow in may}}


LOW_AND_HIGH = {"low": room(), "low/deep": room(["low"]), "high": room(["low"])}
FILES = {"src/low/a.h": "", "src/low/deep/b.h": '#include "low/a.h"\n', "src/high/c.cc": '#include "low/deep/b.h"\n'}


def problems(rooms, files):
    with tree(files) as root:
        return layering.check(root, rooms)


class Layering(unittest.TestCase):
    def assert_refused(self, rooms, files, *words):
        found = problems(rooms, files)
        self.assertEqual(len(found), 1, found)
        for word in words:
            self.assertIn(word, found[0])

    def test_accepts_what_the_table_allows(self):
        self.assertEqual(problems(LOW_AND_HIGH, FILES), [])

    def test_refuses_an_include_without_arrow_and_says_where(self):
        files = FILES | {"src/low/a.cc": '#include "low/a.h"\n#include "high/c.h"\n', "src/high/c.h": ""}
        self.assert_refused(LOW_AND_HIGH, files, "src/low/a.cc:2", "low must not include high")

    def test_rooms_of_one_module_need_arrows_too(self):
        files = FILES | {"src/low/other/d.h": '#include "low/deep/b.h"\n', "src/high/d.cc": '#include "low/other/d.h"\n'}
        rooms = {"low": room(), "low/deep": room(["low"]), "low/other": room(), "high": room(["low"])}
        self.assert_refused(rooms, files, "low/other must not include low/deep")

    def test_an_arrow_to_a_room_allows_that_room_alone(self):
        rooms = LOW_AND_HIGH | {"high": room(["low/deep"])}
        self.assertEqual(problems(rooms, FILES), [])
        self.assert_refused(rooms, FILES | {"src/high/d.cc": '#include "low/a.h"\n'}, "high must not include low (a.h)")

    def test_a_dot_means_the_files_of_the_folder_itself(self):
        rooms = LOW_AND_HIGH | {"high": room(["low/."])}
        files = FILES | {"src/high/d.cc": '#include "low/a.h"\n'}
        self.assert_refused(rooms, files, "high must not include low/deep")

    def test_refuses_arrows_that_point_up_or_nowhere(self):
        self.assert_refused({"low": room(["high"]), "high": room()}, {}, "from low to high points up")
        self.assert_refused({"low": room(["lwo"])}, {}, "lwo, which is no room")

    def test_refuses_arrows_that_nothing_uses(self):
        files = FILES | {"src/high/c.cc": ""}
        self.assert_refused(LOW_AND_HIGH, files, "nothing in high includes low")

    def test_refuses_folders_without_room_and_rooms_without_files(self):
        self.assert_refused(LOW_AND_HIGH, FILES | {"src/new/e.cc": ""}, "src/new/e.cc", "is no room")
        self.assert_refused(LOW_AND_HIGH | {"top": room()}, FILES, "top has no files")

    def test_only_and_from_match_whole_names(self):
        files = FILES | {"src/high/c.cc": '#include "low/a.h"\n'}
        narrowed = lambda **how: LOW_AND_HIGH | {"high": room(["low"], low=how)}
        self.assertEqual(problems(narrowed(**{"only": r"a\.h", "from": r"c\.cc"}), files), [])
        self.assert_refused(narrowed(only=r"aa\.h"), files, "high may use of low only")
        self.assert_refused(narrowed(**{"from": r"c"}), files, "of high, only c may include low")

    def test_refuses_headers_in_a_circle_also_public_ones(self):
        files = FILES | {"include/x.h": '#include "y.h"\n', "include/y.h": '#include "z.h"\n',
                         "include/z.h": '#include "x.h"\n'}
        self.assert_refused(LOW_AND_HIGH, files, "include/x.h -> include/y.h -> include/z.h -> include/x.h")
        files = FILES | {"src/low/a.h": '#include "low/e.h"\n', "src/low/e.h": '#include "low/a.h"\n'}
        self.assert_refused(LOW_AND_HIGH, files, "src/low/a.h -> src/low/e.h -> src/low/a.h")

    def test_refuses_tests_of_folders_that_are_not_there(self):
        files = FILES | {"tests/low/deep/b_test.cc": "", "tests/e2e/x/y.cc": "", "tests/low/gone/c_test.cc": ""}
        self.assert_refused(LOW_AND_HIGH, files, "tests/low/gone", "there is no src/low/gone")

    def test_device_code_stays_free_of_the_host_library(self):
        files = {"src/device/k.h": "#include <vector>\n", "src/device/host_k.h": "#include <vector>\n"}
        self.assert_refused({"device": room()}, files, "src/device/k.h:1", "<vector>")

    def test_wants_includes_from_the_root(self):
        self.assert_refused(LOW_AND_HIGH, FILES | {"src/low/b.cc": '#include "a.h"\n'}, "src/low/b.cc:1", "with its folder")

    def test_the_longest_folder_is_the_room(self):
        path = sources.pathlib.Path("src/low/deep/deeper/x.h")
        self.assertEqual(sources.room_of(LOW_AND_HIGH, path), "low/deep")


if __name__ == "__main__":
    unittest.main()
