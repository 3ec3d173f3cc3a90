"""The programs of the wheel: each command of the environment's bin folder runs the file of its name in `tutti/bin`."""
import os
import pathlib
import sys

PROGRAMS = pathlib.Path(__file__).resolve().parent / "bin"


def run():
    """Becomes the program that this command is named after. Python's are run by the same Python."""
    program = PROGRAMS / os.path.basename(sys.argv[0])
    with open(program, "rb") as file:
        first = file.readline()
    command = [sys.executable] if first.startswith(b"#!") and b"python" in first else []
    command += [str(program), *sys.argv[1:]]
    os.execv(command[0], command)
