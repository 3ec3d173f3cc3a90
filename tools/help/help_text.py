"""Reads what programs print for --help: from that man pages and shell completions are made.

Three kinds of text are understood: those of CLI11 (descriptions at column 30), of Python's argparse, and the one of
softgpu-run, which is written by hand. All have a usage, paragraphs, and sections of entries, names at the left and what
they mean at the right or on lines below that are indented further.
"""
import dataclasses
import os
import re
import subprocess

CLI11_COLUMN = 30
ENTRY = re.compile(r" {2,6}(?=\S)")
KINDS = {"options": "Options", "positionals": "Positionals", "positional arguments": "Positionals",
         "subcommands": "Subcommands", "examples": "Examples"}


@dataclasses.dataclass
class Entry:
    """A line of a section, such as `-n, --devices DEVICES  number of devices`."""
    left: str
    meaning: str

    @property
    def names(self):
        return [word for word in re.split(r"[ ,]+", self.left.split(" Needs:")[0]) if re.match(r"--?[A-Za-z]", word)]

    @property
    def value(self):
        """What is to be put in: `INT`, `FILE`; None for a flag and what is no option."""
        words = [word for word in re.split(r"[ ,]+", self.left.split(" Needs:")[0])
                 if word and not re.match(r"--?[A-Za-z]", word)]
        return words[0] if words and self.names else None

    @property
    def choices(self):
        found = re.search(r"\{([\w,]+)\}", self.left)
        return found.group(1).split(",") if found else []

    @property
    def is_file(self):
        return bool(re.search(r"FILE|\.xml|\.svg", self.left))

    def pretty(self):
        """The left side as people write it: CLI11 names types twice, and leaves out the space after a comma."""
        text = re.sub(r"^(-\w),(?=--)", r"\1, ", self.left)
        text = re.sub(r"\bINT:(?=INT )|\bFLOAT:(?=FLOAT )|\bTEXT:(?=\{)", "", text)
        text = re.sub(r"\bUINT:SIZE \[.*?\]", "SIZE", text)
        return re.sub(r"\b(INT):(?:NON)?(?:NEGATIVE|POSITIVE)\b", r"\1", text)


@dataclasses.dataclass
class Help:
    usage: str = ""
    paragraphs: list = dataclasses.field(default_factory=list)  # lists of lines; those before and after sections
    sections: list = dataclasses.field(default_factory=list)  # (title, [Entry])
    examples: list = dataclasses.field(default_factory=list)  # lines
    subcommands: dict = dataclasses.field(default_factory=dict)  # name: Help

    def entries(self, title):
        return [entry for name, entries in self.sections if name == title for entry in entries]


def entry_of(line):
    text = line.strip()
    if match := re.match(r"(\S.*?) {2,}(\S.*)$", text):
        return Entry(*match.groups())
    # CLI11 separates a long name by one space, if it ends just before the column of descriptions.
    left, right = line[:CLI11_COLUMN], line[CLI11_COLUMN:]
    if right and left.endswith(" ") and left.count("[") == left.count("]"):
        return Entry(left.strip(), right.strip())
    return Entry(text, "")


class Reader:
    """Line by line: where it is (usage, paragraph, section), and what it has found."""

    def __init__(self):
        self.help = Help()
        self.open = None  # what a further line belongs to: "usage", a list of lines, or entries

    def line(self, line):
        if not line.strip():
            if not (isinstance(self.open, tuple)):
                self.open = None
        elif match := re.match(r"usage: *(.*)", line, re.I):
            self.help.usage = match.group(1)
            self.open = "usage"
        elif match := re.fullmatch(r"(\S.*):", line):
            self.section(match.group(1))
        elif line.startswith(" "):
            self.indented(line)
        else:
            self.paragraph(line)

    def section(self, title):
        title = KINDS.get(title.lower(), title)
        entries = self.help.examples if title == "Examples" else []
        if title != "Examples":
            self.help.sections.append((title, entries))
        self.open = (title, entries)

    def indented(self, line):
        if self.open == "usage":
            self.help.usage += " " + line.strip()
        elif not isinstance(self.open, tuple):
            self.paragraph(line)
        elif self.open[0] == "Examples":
            self.open[1].append(line.strip())
        elif ENTRY.match(line) or not self.open[1]:
            self.open[1].append(entry_of(line))
        else:
            entry = self.open[1][-1]
            entry.meaning = f"{entry.meaning} {line.strip()}".strip()

    def paragraph(self, line):
        if not isinstance(self.open, list):
            self.open = []
            self.help.paragraphs.append(self.open)
        self.open.append(line)


def parse(text):
    reader = Reader()
    for line in text.splitlines():
        reader.line(line)
    return reader.help


def said(command):
    """What a program prints. It is to be wide, and in no language but its own."""
    env = dict(os.environ, COLUMNS="140", LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
    ended = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)
    if ended.returncode != 0 or not ended.stdout:
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


def of_program(program):
    """The help of a program and of its subcommands."""
    found = parse(said([program, "--help"]))
    for entry in found.entries("Subcommands"):
        found.subcommands[entry.left] = parse(said([program, entry.left, "--help"]))
    return found
