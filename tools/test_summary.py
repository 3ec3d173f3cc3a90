#!/usr/bin/env python3
"""Adds up Meson's JUnit logs: prints what failed and was skipped, the tests that took longest, and at the end the line
`N passed, N failed, N skipped`.

usage: test_summary.py NAME=LOG.junit.xml ... [--failed TEXT]...   (--failed counts a step that could not run at all)
Exits with 1 if anything failed or nothing passed.
"""
import sys
import xml.etree.ElementTree

LONGEST = 10


def cases(log):
    for suite in xml.etree.ElementTree.parse(log).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if "DISABLED_" in case.get("name", ""):
                continue  # what a test starts as a process of its own, not a test
            name = f"{suite.get('name', '')}: {case.get('classname', '')}.{case.get('name', '')}"
            if case.find("failure") is not None or case.find("error") is not None:
                yield name, "failed", ""
            elif case.find("skipped") is not None or case.get("status") == "notrun" or case.get("result") == "skipped":
                skipped = case.find("skipped")
                yield name, "skipped", (skipped.get("message") or "") if skipped is not None else ""
            else:
                yield name, "passed", ""


def seconds(element):
    try:
        return float(element.get("time") or 0)
    except ValueError:
        return 0.0


def times(log):
    """{test: seconds}. Meson logs a program of many cases as suites named after it and after groups of its cases."""
    took = {}
    for suite in xml.etree.ElementTree.parse(log).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            group = case.get("classname", "")
            name = case.get("name", "") if group == suite.get("name") else suite.get("name", "").removesuffix("." + group)
            took[name] = took.get(name, 0) + seconds(case)
    return took


def print_longest(rows):
    """Of (seconds, build, test)."""
    if rows:
        print("The ten longest tests:" if len(rows) >= LONGEST else "The longest tests:")
    for took, label, name in sorted(rows, reverse=True)[:LONGEST]:
        print(f"{took:8.1f} s  [{label}] {name}")


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    longest = []
    arguments = sys.argv[1:]
    while arguments:
        argument = arguments.pop(0)
        if argument == "--failed":
            counts["failed"] += 1
            print(f"FAILED   {arguments.pop(0)}")
            continue
        label, log = argument.split("=", 1)
        longest += [(took, label, name) for name, took in times(log).items()]
        for name, state, why in cases(log):
            counts[state] += 1
            if state != "passed":
                reason = " ".join(why.split())
                print(f"{state.upper():8} [{label}] {name} {reason}".rstrip())
    print_longest(longest)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
