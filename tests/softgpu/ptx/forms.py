#!/usr/bin/env python3
"""Every form of an instruction (opcode, types, spaces, orders) that GPU code of this build has is run by a test.

  forms.py UNIT_TEST PTX_TEXT IMAGE...           runs UNIT_TEST in weak memory, and names what none of its tests runs
  forms.py --table UNIT_TEST PTX_TEXT IMAGE...   prints docs/ptx.md instead

IMAGE is a fatbin or PTX text; PTX_TEXT (ptx_text.cc) prints either as text. What tests run they leave in a folder.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

INSTRUCTION = re.compile(r"(?:^|[;{}:\n])\s*(?:@!?%?\w+\s+)?([a-z]\w*(?:\.[\w:]+)*)(?=[ \t]+[\[%{(_$\w!-]|;)")
NOTES = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
SEED = "7"
INTRODUCTION = """# Instructions of GPU code

Each form of a PTX instruction that occurs in the library's own kernels (as `./check` compiles them, and AllReduce as it
ships) or in the sample programs of the tests, how often, and a test that runs it on the software GPU. Written by
`tests/softgpu/ptx/forms.py --table`; the test `ptx forms` fails where a form has no test. An instruction that the
software GPU does not translate is named with its kernel and line when that is launched.

| form | uses | tests | one of them |
|---|---|---|---|
"""


def forms_of(text):
    return collections.Counter(INSTRUCTION.findall(NOTES.sub("", text)))


def tested(unit_test):
    """The forms that tests run, with the names of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, SOFTGPU_PTX_KEEP=folder, SOFTGPU_WEAK_MEMORY=SEED)
        done = subprocess.run([unit_test], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"in weak memory (SOFTGPU_WEAK_MEMORY={SEED}):\n{done.stdout[-8000:]}")
        tests = collections.defaultdict(set)
        for file in pathlib.Path(folder).iterdir():
            for form in forms_of(file.read_text()):
                tests[form].add(".".join(file.name.split(".")[:2]))
    return tests


def main():
    table = sys.argv[1] == "--table"
    unit_test, ptx_text, *images = sys.argv[2:] if table else sys.argv[1:]
    used = collections.Counter()
    for image in images:
        used += forms_of(subprocess.run([ptx_text, image], stdout=subprocess.PIPE, text=True, check=True).stdout)
    tests = tested(unit_test)
    if table:
        rows = (f"| `{form}` | {used[form]} | {len(tests[form])} | {min(tests[form], default='')} |" for form in used)
        print(INTRODUCTION + "\n".join(sorted(rows)))
        return
    missing = [form for form in sorted(used) if form not in tests]
    if missing or (images and not used):
        sys.exit(f"forms of {len(images)} images that no test runs: {' '.join(missing)}")
    print(f"{len(used)} forms in {len(images)} images, each run by a test; all tests pass in weak memory")


if __name__ == "__main__":
    main()
