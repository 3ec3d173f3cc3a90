"""What programs print for --help, read as plainly as can be: for tests of what tools/help makes of it."""
import os
import re
import subprocess


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True,
                          env=dict(os.environ, COLUMNS="140"))
    return done.stdout


def options(text):
    """All options that stand at the beginning of a line: {"-n", "--devices"}."""
    found = set()
    for line in text.splitlines():
        if re.match(r" +-", line):
            names = re.split(r" {2,}\S| Needs: ", line.strip())[0]
            found |= set(re.findall(r"(?:^|[ ,])(--?[A-Za-z][\w-]*)", names))
    return found


def subcommands(text):
    part = text.partition("\nSubcommands:\n")[2].split("\n\n")[0]
    return re.findall(r"^  (\w+)", part, re.M)


def commands(program):
    """(words, text of their --help) of a program and of each of its subcommands."""
    text = said(program, "--help")
    yield [], text
    for command in subcommands(text):
        yield [command], said(program, command, "--help")
