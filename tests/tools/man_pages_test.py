#!/usr/bin/env python3
"""The man pages have all that --help has, in sections that man and whatis know.

  man_pages_test.py FOLDER PROGRAM...    FOLDER: with the pages; exit status 77: there are none
"""
import pathlib
import re
import sys
import unittest

import help_output

PAGES = {}  # program: text of its page, without roff's escapes


def plain(page):
    return re.sub(r"\\f[BIRP]|\\&", "", page.read_text(encoding="utf-8")).replace("\\-", "-")


class ManPages(unittest.TestCase):
    def test_have_the_options_of_help(self):
        for program, page in PAGES.items():
            tagged = "\n".join(re.findall(r"^\.[TH]P\n(.*)", page, re.M))
            for words, text in help_output.commands(program):
                for option in help_output.options(text) - {"-h", "--help"}:
                    self.assertRegex(tagged, rf"(?m)(^|[ ,]){option}\b", f"{program} {words}")

    def test_say_in_one_line_what_the_program_does(self):
        for program, page in PAGES.items():
            name = re.escape(pathlib.Path(program).name)
            self.assertRegex(page, rf"\n\.SH NAME\n{name} - [a-z][^.\n]{{10,100}}\n\.SH SYNOPSIS\n", program)

    def test_tell_types_as_people_do(self):
        for program, page in PAGES.items():
            self.assertNotRegex(page, r"INT:INT|TEXT:\{|-h,--help|UINT", program)
            self.assertNotIn("TEXT\n", page.partition("SYNOPSIS")[0], program)

    def test_have_a_section_for_each_subcommand_with_options(self):
        for program, page in PAGES.items():
            for words, text in help_output.commands(program):
                if words and help_output.options(text) - {"-h", "--help"}:
                    self.assertRegex(page, rf'\n\.SS "{pathlib.Path(program).name} {words[0]} .*:"\n', program)

    def test_have_examples_as_they_are_typed(self):
        page = next(page for program, page in PAGES.items() if program.endswith("tutti-topo"))
        self.assertRegex(page, r"\.SH EXAMPLES\n\.EX\ntutti-topo show live +this machine as a tree\n")


if __name__ == "__main__":
    folder, *programs = sys.argv[1:]
    pages = pathlib.Path(folder)
    if not list(pages.glob("*.1")):
        print("skipped: no man pages were made, for help2man is not installed")
        sys.exit(77)
    PAGES = {program: plain(pages / f"{pathlib.Path(program).name}.1") for program in programs}
    unittest.main(argv=sys.argv[:1])
