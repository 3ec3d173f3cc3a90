#!/usr/bin/env python3
"""What the shell completion of the programs offers.

  completion_test.py bash|zsh FOLDER PROGRAM...    FOLDER: with the completions; exit status 77: there is no such shell
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import help_output

FOLDER = None
PROGRAMS = {}
WITH_COMMANDS = ("tutti-info", "tutti-topo")
# compopt is only for the shell's own calls.
BASH = r"""
compopt() { :; }
source "$1"
function=_${2//-/_}
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
$function
printf '%s\n' "${COMPREPLY[@]}"
"""
# zsh does the work in _arguments, which is told here what there is.
ZSH = r"""
given=("${@:3}")
_arguments() { print -rl -- "$@"; state=$wanted; line=($given); }
_describe() { print -rl -- "${(P@)2}"; }
_normal() { print other program; }
wanted=$2
source "$1"
"""


def bash(*words, path=None):
    """What bash offers for the last of the words."""
    env = dict(os.environ) if path is None else dict(os.environ, PATH=str(path))
    done = subprocess.run([shutil.which("bash"), "-c", BASH, "bash", str(FOLDER / words[0]), *words], capture_output=True,
                          text=True, timeout=60, env=env, check=True)
    if done.stderr:
        raise AssertionError(done.stderr)
    return set(done.stdout.split())


def zsh(program, state="", *line):
    done = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", str(FOLDER / f"_{program}"), state, *line],
                          capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


class Bash(unittest.TestCase):
    def test_every_option_that_help_prints_is_completed(self):
        for name, program in PROGRAMS.items():
            for words, text in help_output.commands(program):
                options = help_output.options(text)
                self.assertIn("--help", options)
                self.assertEqual(bash(name, *words, "-"), options, f"{name} {words}")

    def test_every_subcommand_is_completed(self):
        for name in WITH_COMMANDS:
            offered = bash(name, "")
            self.assertEqual(offered, set(help_output.subcommands(help_output.said(PROGRAMS[name], "--help"))))
            self.assertGreater(len(offered), 3)

    def test_what_is_typed_narrows_the_choice(self):
        self.assertEqual(bash("softgpu-run", "--t"), {"--torch", "--topo"})
        self.assertEqual(bash("tutti-info", "t"), {"top", "trace"})

    def test_values_with_names_are_completed(self):
        self.assertEqual(bash("tutti-info", "ras", "--format", ""), {"text", "json"})
        self.assertEqual(bash("tutti-info", "ras", "--format", "=", "j"), {"json"})
        self.assertEqual(bash("tutti-topo", "draw", "m.xml", "--graph", "coll"), {"collnetChain", "collnetDirect"})
        self.assertEqual(bash("tutti-info", "ras", "--port", ""), set())

    def test_what_softgpu_run_starts_is_completed_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "all_of_them_perf"
            program.write_text("#!/bin/sh\n", encoding="utf-8")
            program.chmod(0o755)
            for options in ([], ["-n", "2"], ["--nccl"], ["--"]):
                self.assertEqual(bash("softgpu-run", *options, "all_of_t", path=folder), {program.name})
            self.assertEqual(bash("softgpu-run", program.name, "-", path=folder), set())


class Zsh(unittest.TestCase):
    def test_every_option_that_help_prints_is_completed(self):
        for name, program in PROGRAMS.items():
            for words, text in help_output.commands(program):
                specs = zsh(name, "argument" if words else "", *words)
                offered = re.findall(r"^(?:\(.*?\))?(-[\w-]+)\[", "\n".join(specs), re.M)
                offered = offered[-len(help_output.options(text)):]  # before, there are those of the program itself
                self.assertEqual(set(offered), help_output.options(text), f"{name} {words}: {specs}")

    def test_every_subcommand_is_completed(self):
        for name in WITH_COMMANDS:
            said = "\n".join(zsh(name, "command"))
            for command in help_output.subcommands(help_output.said(PROGRAMS[name], "--help")):
                self.assertIn(f"\n{command}:", said)

    def test_what_softgpu_run_starts_is_completed_by_itself(self):
        self.assertIn("*::command:_normal", zsh("softgpu-run"))


if __name__ == "__main__":
    shell, folder, *programs = sys.argv[1:]
    if shutil.which(shell) is None:
        print(f"skipped: {shell} is not installed")
        sys.exit(77)
    FOLDER = pathlib.Path(folder)
    PROGRAMS = {pathlib.Path(program).name: program for program in programs}
    unittest.main(argv=sys.argv[:1], defaultTest=shell.capitalize())
