"""tutti for Python: what programs need beside libnccl.so.2. `tutti.torch` runs PyTorch on the software GPU, `tutti.launch`
starts the ranks of a job. `library()` and `include()` say where the library and its headers are, for those who load or
compile with them."""
import pathlib

_FOLDER = pathlib.Path(__file__).resolve().parent
__version__ = (_FOLDER / "VERSION").read_text().strip()


def _installed(name, *folders):
    """The path of a file in the first of the folders that has it. They are relative to the package."""
    for folder in folders:
        path = (_FOLDER / folder / name).resolve()
        if path.exists():
            return path
    raise FileNotFoundError(f"tutti's {name} is not near {_FOLDER}: install the wheel (tools/wheel makes it), or tutti "
                            "with meson")


def library():
    """The path of libnccl.so.2, as text: of the wheel that this package came in, or of the prefix that Meson installed
    it to. Raises FileNotFoundError where there is none, as in the source tree."""
    return str(_installed("libnccl.so.2", "lib", "../../.."))


def include():
    """The folder with nccl.h and the headers that plugins are written against, as text. As for library()."""
    return str(_installed("nccl.h", "include", "../../../../include", "../../../../../include").parent)
