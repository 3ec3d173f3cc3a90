#!/usr/bin/env python3
"""Adds up Meson's JUnit logs: prints what was skipped, what failed with the end of what it printed, the tests that took
longest, how long steps took, and at the end the line `N passed, N failed, N skipped`.

usage: test_summary.py NAME=LOG.junit.xml ... [--failed TEXT]... [--took TEXT]...
--failed counts a step that could not run at all; --took is a line to print near the end.
Exits with 1 if anything failed or nothing passed.
"""
import sys
import xml.etree.ElementTree

LONGEST = 10
LAST_LINES = 15  # of what a failed test printed
LINE_WIDTH = 300


def last_words(*elements):
    """The last lines of what a failed case says: of each of its texts."""
    lines = []
    for element in elements:
        text = "" if element is None else (element.text or element.get("message") or "")
        lines += [line for line in text.splitlines() if line.strip()][-LAST_LINES:]
    return "".join(f"\n           | {line[:LINE_WIDTH]}" for line in lines)


def cases(log):
    for suite in xml.etree.ElementTree.parse(log).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if "DISABLED_" in case.get("name", ""):
                continue  # what a test starts as a process of its own, not a test
            name = f"{suite.get('name', '')}: {case.get('classname', '')}.{case.get('name', '')}"
            if case.find("failure") is not None or case.find("error") is not None:
                failure = case.find("failure") if case.find("failure") is not None else case.find("error")
                outer = suite if suite.find("system-out") is not None else case
                yield name, "failed", last_words(failure, *(outer.find(f"system-{way}") for way in ("out", "err")))
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
    longest, failures, steps = [], [], []
    arguments = sys.argv[1:]
    while arguments:
        argument = arguments.pop(0)
        if argument == "--failed":
            counts["failed"] += 1
            failures.append(f"FAILED   {arguments.pop(0)}")
            continue
        if argument == "--took":
            steps.append(arguments.pop(0))
            continue
        label, log = argument.split("=", 1)
        longest += [(took, label, name) for name, took in times(log).items()]
        for name, state, why in cases(log):
            counts[state] += 1
            if state == "failed":
                failures.append(f"FAILED   [{label}] {name}{why}")
            if state == "skipped":
                print(f"SKIPPED  [{label}] {name} {' '.join(why.split())}".rstrip())
    # After what was skipped: whoever sees the end of a long log alone needs these.
    for failure in failures:
        print(failure)
    print_longest(longest)
    for step in steps:
        print(step)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
