#!/usr/bin/env python3
"""Makes a man page of what a program prints for --help, with help2man.

  man_page.py HELP2MAN VERSION PROGRAM OUTPUT

help2man runs a program that prints the help anew, in the form that it understands best: subcommands one by one, and what
stands below a list above it. Examples get a section of lines as they are.
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import help_text


def entries_text(entries):
    for entry in entries:
        yield f"  {entry.pretty()}  {entry.meaning}" if entry.meaning else f"  {entry.pretty()}"


def plain_text(found, name):
    """The help as help2man is to read it."""
    lines = [f"Usage: {found.usage}", ""]
    for paragraph in found.paragraphs:
        paragraph = [re.sub(rf"^{re.escape(name)}: ", "", line) for line in paragraph]
        lines += [paragraph[0][0].upper() + paragraph[0][1:], *paragraph[1:], ""]
    for title, entries in found.sections:
        lines += [f"{title}:", *entries_text(entries), ""]
    for command, more in found.subcommands.items():
        own = [entry for _, entries in more.sections for entry in entries if "--help" not in entry.names]
        if own:
            lines += [f"{more.usage or command}:", *entries_text(own), ""]
    return "\n".join(lines)


def roff(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line.startswith((".", "'")) else line


def summary_of(found, name):
    """What NAME says: the first sentence."""
    text = " ".join(found.paragraphs[0]) if found.paragraphs else name
    text = re.sub(rf"^{re.escape(name)}: ", "", text)
    sentence = re.split(r"[.;](?: |$)|, and ", text)[0]
    return sentence[0].lower() + sentence[1:]


def main():
    help2man, version, program, output = sys.argv[1:]
    name = pathlib.Path(program).name
    found = help_text.of_program(program)
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "help").write_text(plain_text(found, name), encoding="utf-8")
        speaker = place / name
        speaker.write_text(f"#!/bin/sh\nexec cat {shlex.quote(str(place / 'help'))}\n", encoding="utf-8")
        speaker.chmod(0o755)
        command = [help2man, "--no-info", "--locale=C.UTF-8", f"--version-string={version}", f"--source=tutti {version}",
                   f"--name={summary_of(found, name)}", f"--output={output}"]
        if found.examples:
            lines = ["[EXAMPLES]", ".EX", *map(roff, found.examples), ".EE"]
            (place / "more").write_text("\n".join(lines) + "\n", encoding="utf-8")
            command.append(f"--include={place / 'more'}")
        subprocess.run([*command, str(speaker)], timeout=60, check=True)


if __name__ == "__main__":
    main()
