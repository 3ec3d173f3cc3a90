#!/usr/bin/env python3
"""A plugin answers in place of the environment: its answers count, it begins and ends once, and what goes wrong is told.

  env_plugin.py V1 V2   the env plugins for tests (tests/plugin/test_env.h)
"""
import pathlib
import re
import sys
import tempfile

from support import BUILD, check, main, run, run_for_code

PLUGINS = sys.argv[1:3]
QUIET = BUILD / "tests/e2e/quiet"
NCCL_ERROR = 5


def chosen(**env):
    """What is said, and the algorithm and protocol of an all-reduce of two ranks of a process."""
    said = run(2, BUILD / "tests/e2e/conformance", "--ranks", 2, "--quick", "--only", "all_reduce", "--types", "float",
               "--counts", "1000", NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,ENV,TUNING", **env)
    return said, set(re.findall(r"Algo (\w+) proto (\w+)", said))


def its_answers_count():
    _, usual = chosen()
    check(("RING", "LL") not in usual, f"the test proves nothing: {usual}")
    for version, plugin in enumerate(PLUGINS, 1):
        said, methods = chosen(NCCL_ENV_PLUGIN=plugin, TEST_ENV_ANSWERS="NCCL_ALGO=Ring;NCCL_PROTO=LL", NCCL_PROTO="Simple")
        check(f"ENV/Plugin: Using testenv{version} (v{version})" in said, said[:2000])
        check(methods == {("RING", "LL")}, f"chosen were {methods}:\n{said[:3000]}")


def it_begins_and_ends_once():
    for plugin in PLUGINS:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "events"
            run(2, BUILD / "tests/e2e/leftovers", "cycles", 3, NCCL_ENV_PLUGIN=plugin, TEST_ENV_FILE=file)
            events = file.read_text().splitlines()
            check(events == ["init 2.32.3 ''", "finalize"], f"{plugin}: {events}")


def a_settings_file_may_name_it():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "nccl.conf"
        file.write_text(f"NCCL_ENV_PLUGIN={PLUGINS[0]}\nTEST_ENV_ANSWERS=NCCL_ALGO=Ring;NCCL_PROTO=LL\n")
        said, methods = chosen(NCCL_CONF_FILE=file)
        check(methods == {("RING", "LL")}, f"chosen were {methods}:\n{said[:3000]}")


def refused(fault, *parts):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report"
        code, said = run_for_code(2, QUIET, NCCL_ENV_PLUGIN=PLUGINS[1], TEST_ENV_FAULT=fault, QUIET_REPORT=report)
        check(code == NCCL_ERROR, f"{fault}: ended with {code}:\n{said}")
        for part in parts:
            check(part in report.read_text(), f"{part!r} is missing: {report.read_text()}")


def what_it_cannot_do_fails_the_call():
    refused("init", "Env plugin testenv2 (v2 of ", "init failed with ncclSystemError; it said: test env: no settings today",
            "NCCL_ENV_PLUGIN=none goes on without it")
    refused("calls-back", "init failed with ncclInvalidUsage")


def what_cannot_be_loaded_is_told_once():
    for name in ("NCCL_ENV_PLUGIN", "NCCL_NET_PLUGIN"):
        said = run(2, BUILD / "tests/e2e/leftovers", "cycles", 3, NCCL_DEBUG="WARN", **{name: "/nowhere/plugin.so"})
        warnings = [line for line in said.splitlines() if re.search(r" NCCL WARN (?!TUTTI_(BUILD|SOURCE) )", line)]
        check(len(warnings) == 1 and name in warnings[0] and "cannot be used: not found: /nowhere/plugin.so" in warnings[0],
              f"{name}: {warnings}")
    said = run(2, QUIET, NCCL_DEBUG="WARN")
    check("cannot be used" not in said, f"libraries that nobody has named are missed:\n{said}")


if __name__ == "__main__":
    main(its_answers_count, it_begins_and_ends_once, a_settings_file_may_name_it, what_it_cannot_do_fails_the_call,
         what_cannot_be_loaded_is_told_once)
