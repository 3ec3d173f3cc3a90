"""What the README says that everybody can do, for tests that do it."""
import pathlib
import re

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
SAYS = "".join(f"device {device}: 4\n" for device in range(4))  # what the first program prints on four devices


def first_program():
    """The C++ source under "A first program"."""
    section = README.read_text(encoding="utf-8").split("## A first program", 1)[1]
    return re.search(r"```cpp\n(.*?)```", section, re.S).group(1)


def pytorch_commands():
    """The commands under "PyTorch without a GPU", a line each."""
    section = README.read_text(encoding="utf-8").split("## PyTorch without a GPU", 1)[1]
    return re.search(r"```\n(.*?)```", section, re.S).group(1)
