"""Small trees of sources for the tests of lints."""
import contextlib
import io
import pathlib
import tempfile


@contextlib.contextmanager
def tree(files):
    """A folder with these files ({path: text}) for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield pathlib.Path(folder)


def printed(function, *arguments):
    """What a function returns, and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = function(*arguments)
    return result, out.getvalue()
