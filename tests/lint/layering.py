#!/usr/bin/env python3
"""Checks that the includes below src/ keep to the table of tests/lint/rooms.py, and that the table keeps to them.

Refused are folders without a room and rooms without a folder, includes without an arrow, arrows up, arrows that no
include uses, headers that include each other in a circle, and folders of tests that have no like in src/.
"""
import pathlib
import re
import sys

import sources
from rooms import ROOMS, TEST_FOLDERS

NARROWINGS = {"only", "from"}
FORBIDDEN_IN_DEVICE = re.compile(r"<(vector|string|map|memory|functional|iostream)>")
HOST_FILES_OF_DEVICE = ("kernel_name", "fatbins", "host_")


def table_problems(rooms):
    """What is wrong with the table by itself."""
    order = {room: place for place, room in enumerate(rooms)}
    for room, entry in rooms.items():
        if not entry.get("for"):
            yield f"rooms.py: {room} does not say what it is for"
        for arrow, narrowed in entry["may"].items():
            meant = sources.rooms_of_arrow(rooms, room, arrow)
            if not meant:
                yield f"rooms.py: {room} may include {arrow}, which is no room"
            for other in meant:
                if order[other] >= order[room]:
                    yield f"rooms.py: the arrow from {room} to {other} points up: what is included stands first"
            if unknown := set(narrowed) - NARROWINGS:
                yield f"rooms.py: the arrow from {room} to {arrow} has {', '.join(sorted(unknown))}"


def arrow_for(rooms, room, other):
    """The arrow by which a room may include another, the one that says most first; or None."""
    may = rooms[room]["may"]
    meant = [arrow for arrow in may if other in sources.rooms_of_arrow(rooms, room, arrow)]
    return max(meant, key=len) if meant else None


class Includes:
    """The includes of all files, seen against the table."""

    def __init__(self, root, rooms):
        self.root, self.rooms, self.used = root, rooms, set()
        self.public = {p.name for p in (pathlib.Path(root) / "include").glob("*.h")}

    def of_file(self, path):
        room = sources.room_of(self.rooms, path)
        if room is None:
            yield f"{path}: {path.parent} is no room of tests/lint/rooms.py"
            return
        for number, quote, target in sources.includes(self.root, path):
            if problem := self.of_include(path, room, quote, target):
                yield f"{path}:{number}: {problem}"

    def of_include(self, path, room, quote, target):
        if quote == "<":
            if (sources.module_of(room) == "device" and FORBIDDEN_IN_DEVICE.match(f"<{target}>")
                    and not path.name.startswith(HOST_FILES_OF_DEVICE)):
                return f"device code must not include <{target}>"
            return None
        if "/" not in target:
            return None if target in self.public else f'include "{target}" with its folder: "module/room/file.h"'
        other = sources.room_of(self.rooms, pathlib.Path("src", target))
        if other == room:
            return None
        if other is None:
            return f"{target} lies in no room of tests/lint/rooms.py"
        return self.over_arrow(path, room, other, pathlib.Path(target).name)

    def over_arrow(self, path, room, other, name):
        arrow = arrow_for(self.rooms, room, other)
        if arrow is None:
            return f"{room} must not include {other} ({name})"
        self.used.add((room, arrow))
        narrowed = self.rooms[room]["may"][arrow]
        if "from" in narrowed and not re.fullmatch(narrowed["from"], path.name):
            return f"of {room}, only {narrowed['from']} may include {other} ({name})"
        if "only" in narrowed and not re.fullmatch(narrowed["only"], name):
            return f"{room} may use of {other} only {narrowed['only']}, not {name}"
        return None

    def unused(self):
        for room, entry in self.rooms.items():
            for arrow in entry["may"]:
                if (room, arrow) not in self.used:
                    yield f"rooms.py: nothing in {room} includes {arrow}: take the arrow away"


def empty_rooms(root, rooms, files):
    living = {sources.room_of(rooms, path) for path in files}
    for room in rooms:
        if room not in living:
            yield f"rooms.py: {room} has no files: there is no src/{room}, or all of it lies in other rooms"


def circles(root, files):
    headers = [path for path in [*files, *sources.below(root, "include")] if path.suffix != ".cc"]
    for circle in sources.cycles(sources.include_graph(root, headers)):
        yield f"{circle[0]}: headers include each other: {' -> '.join(map(str, [*circle, circle[0]]))}"


def test_folders(root):
    """Tests lie where in src/ lies what they test."""
    root = pathlib.Path(root)
    for folder in sorted({path.parent for path in sources.below(root, "tests")}):
        inner = folder.relative_to("tests")
        if inner.parts and inner.parts[0] not in TEST_FOLDERS and not (root / "src" / inner).is_dir():
            yield f"{folder}: there is no src/{inner}: tests lie in the folder of what they test"


def check(root, rooms):
    """All that is wrong."""
    found = list(table_problems(rooms))
    if found:
        return found
    files, seen = sources.below(root, "src"), Includes(root, rooms)
    for path in files:
        found.extend(seen.of_file(path))
    return [*found, *seen.unused(), *empty_rooms(root, rooms, files), *circles(root, files), *test_folders(root)]


def main():
    found = check(".", ROOMS)
    print("\n".join(found) if found else "layering: every include is allowed, and every arrow of the table is used")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
