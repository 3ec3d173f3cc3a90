"""What the modules of the campaign share."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402, F401
