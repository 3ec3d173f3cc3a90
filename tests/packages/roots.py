#!/usr/bin/env python3
"""The README's commands on systems that have nothing yet: empty roots of Debian 12 and of Ubuntu 24.04.

usage: roots.py [--only NAME]... [--folder FOLDER] [--wheel WHEEL | --demo CLONE]

By itself it makes the wheel (tools/wheel), and in each root a new environment, with what the README's block under
"PyTorch without a GPU" installs, and runs that block's program. With --demo it runs `./demo` of a clone instead, which
installs what it needs, builds and runs.

By hand only, as root: it downloads a system (about 100 MB) and PyTorch (3 GB), which takes minutes, and needs
debootstrap, unshare and 12 GB. The exit status is 0 where all roots did all of it.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "tests/support"))
import readme  # noqa: E402

LIMITS = {"root": 1200, "commands": 3600, "wheel": 7200}  # seconds
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
PASSED_ON = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy",
             "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# By name: the release, where it comes from, the parts of it, and whose signature it has. Debian's debootstrap need not
# know the newest releases of Ubuntu: they are all made as `gutsy` was.
ROOTS = {
    "debian-12": ("bookworm", "http://deb.debian.org/debian", "main", "debian-archive-keyring.gpg", []),
    "ubuntu-24.04": ("noble", "http://archive.ubuntu.com/ubuntu", "main,universe", "ubuntu-archive-keyring.gpg",
                     ["gutsy"]),
}
# In a mount namespace of its own, so that nothing stays mounted whatever happens.
ENTER = """set -eu
root=$1; shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
exec chroot "$root" "$@"
"""


def say(text):
    print(f"roots: {text}", flush=True)


def run(*command, limit, **options):
    """Ends the program where a command fails or takes too long."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, timeout=limit, stdin=subprocess.DEVNULL, check=False, **options)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"roots: {shlex.join(words)} took more than {limit} s") from None
    if done.returncode != 0:
        raise SystemExit(f"roots: {shlex.join(words)} ended with {done.returncode}\n{done.stdout or ''}")
    return done.stdout


class Root:
    """An empty system below a folder."""

    def __init__(self, name, folder):
        self.name = name
        self.path = folder / name
        if not (self.path / "made").exists():
            self._make()

    def _make(self):
        release, mirror, components, keyring, script = ROOTS[self.name]
        shutil.rmtree(self.path, ignore_errors=True)
        signed = pathlib.Path("/usr/share/keyrings", keyring)
        if not signed.exists():
            say(f"there is no {signed}, so nobody looks at the signature of {release}")
        check = [f"--keyring={signed}"] if signed.exists() else ["--no-check-gpg"]
        say(f"{self.name}: fetching {release} from {mirror}")
        run("debootstrap", "--variant=minbase", f"--components={components}", "--include=ca-certificates,python3-venv",
            *check, release, self.path, mirror, *script, limit=LIMITS["root"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        (self.path / "made").touch()

    def run(self, script, folder):
        """A script of bash in the root, in one of its folders; what it says goes where ours does."""
        for name in ("etc/resolv.conf", CERTIFICATES):  # it trusts whom this machine trusts
            if pathlib.Path("/", name).exists():
                shutil.copy(pathlib.Path("/", name), self.path / name)
        hosts = f"127.0.0.1 localhost\n127.0.1.1 {socket.gethostname()}\n::1 localhost\n"
        (self.path / "etc/hosts").write_text(hosts)  # as installers write it
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                       "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "SSL_CERT_FILE": f"/{CERTIFICATES}"}
        environment |= {name: value for name, value in os.environ.items() if name in PASSED_ON}
        environment |= {"PIP_CERT": f"/{CERTIFICATES}"}
        run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", self.path, "bash", "-exc",
            f"cd {shlex.quote(folder)}\n{script}", limit=LIMITS["commands"], env=environment)

    def fresh(self, folder):
        """A folder of the root, emptied."""
        inside = self.path / folder.lstrip("/")
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir(parents=True)
        return inside


def try_wheel(root, wheel):
    """The README's block about PyTorch, word for word, where only what it names lies."""
    sources = root.fresh("/root/tutti")
    shutil.copytree(SOURCE / "examples", sources / "examples")
    (sources / "dist").mkdir()
    shutil.copy(wheel, sources / "dist")
    root.fresh("/root/venv")
    root.run("python3 -m venv /root/venv\n. /root/venv/bin/activate\n" + readme.pytorch_commands(), "/root/tutti")


def try_demo(root, clone):
    shutil.rmtree(root.fresh("/root/demo"))
    run("git", "clone", "-q", "--no-hardlinks", clone, root.path / "root/demo", limit=600)
    root.run("./demo", "/root/demo")


def made_wheel(folder):
    say("making the wheel")
    said = run(SOURCE / "tools/wheel", folder, limit=LIMITS["wheel"], stdout=subprocess.PIPE, text=True)
    return pathlib.Path(said.splitlines()[-1])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=ROOTS, help="one of the roots (default: all)")
    parser.add_argument("--folder", type=pathlib.Path, help="where roots stay for the next time (default: none do)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--wheel", type=pathlib.Path, help="a wheel that tools/wheel has made")
    what.add_argument("--demo", type=pathlib.Path, metavar="CLONE", help="run ./demo of this clone, and no wheel")
    given = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("only root can make roots and enter them")
    for tool in ("debootstrap", "unshare"):
        if shutil.which(tool) is None:
            parser.error(f"{tool} is missing; apt-get install {'debootstrap' if tool == 'debootstrap' else 'util-linux'}")
    return given


def main():
    given = arguments()
    with tempfile.TemporaryDirectory() as passing:
        folder = (given.folder or pathlib.Path(passing)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        wheel = given.wheel or (None if given.demo else made_wheel(folder / "dist"))
        for name in given.only or ROOTS:
            start = time.monotonic()
            root = Root(name, folder)
            if given.demo:
                try_demo(root, given.demo.resolve())
            else:
                try_wheel(root, wheel)
            say(f"{name}: did it all in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
