#!/usr/bin/env python3
"""What tools/tidy makes of what clang-tidy says; a program of a few lines stands in for that."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

TOOL = pathlib.Path(__file__).parents[2] / "tools/tidy"
loader = importlib.machinery.SourceFileLoader("tidy", str(TOOL))
tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader("tidy", loader))
loader.exec_module(tidy)

CLEAN = "echo '12 warnings generated.'"
HEADER = "/h.h:1:2: warning: a header's [bugprone-x]"


class Tidy(unittest.TestCase):
    def run_with(self, script, options=""):
        """tools/tidy over two sources, compiled with options; its result and what it prints."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            program = build / "clang-tidy"
            program.write_text(f"#!/bin/sh\nfor source; do :; done\n{script}\n")
            program.chmod(0o755)
            entries = [{"directory": str(tidy.ROOT), "file": f"src/base/{name}.cc",
                        "command": f"c++ -c src/base/{name}.cc{options}"} for name in ("clock", "log")]
            (build / "compile_commands.json").write_text(json.dumps(entries))
            said = io.StringIO()
            with (mock.patch.object(sys, "argv", ["tidy", "-p", folder, "-j", "1"]),
                  mock.patch.object(tidy, "EVERYTHING", ["src"]),
                  mock.patch.object(tidy.shutil, "which", lambda name: str(program)),
                  contextlib.redirect_stdout(said)):
                return tidy.main(), said.getvalue()

    def test_clean_sources_end_with_success(self):
        self.assertEqual(self.run_with(CLEAN), (0, "tidy: 2 sources, 0 findings\n"))

    def test_a_program_that_the_system_ends_is_no_clean_source(self):
        result, said = self.run_with("kill -9 $$")
        self.assertEqual(result, 1)
        self.assertIn("src/base/clock.cc: clang-tidy ended with -9", said)

    def test_options_that_clang_does_not_know_are_kept_from_it(self):
        script = 'grep -q fno-gnu-unique "$2/compile_commands.json" && echo "$0:1:2: error: unknown argument [x]"; true'
        self.assertEqual(self.run_with(script, " -fno-gnu-unique -O1"), (0, "tidy: 2 sources, 0 findings\n"))
        script = 'grep -q "log.cc -O1" "$2/compile_commands.json" || echo "$0:1:2: error: an option less [x]"'
        self.assertEqual(self.run_with(script, " -fno-gnu-unique -O1"), (0, "tidy: 2 sources, 0 findings\n"))

    def test_a_finding_of_a_header_is_told_once(self):
        result, said = self.run_with(f"echo \"{HEADER}\"; echo \"$source:3:1: error: its own [bugprone-y]\"; exit 1")
        self.assertEqual(result, 1)
        self.assertEqual(said.count("a header's"), 1)
        self.assertEqual(said.count("its own"), 2)
        self.assertIn("3 findings", said)


if __name__ == "__main__":
    unittest.main()
