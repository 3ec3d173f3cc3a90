"""What the lints and reports know of the sources: files, their includes, and the rooms they belong to."""
import functools
import pathlib
import re
import subprocess

SOURCE = (".h", ".cc", ".c", ".cu", ".cuh", ".def")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def tracked(root="."):
    """The files that git tracks or would track, as paths below root; all files where this is no checkout."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return sorted(p.relative_to(root) for p in pathlib.Path(root).rglob("*") if p.is_file())
    names = (pathlib.Path(name) for name in result.stdout.split("\0") if name)
    return sorted({name for name in names if (pathlib.Path(root) / name).is_file()})


def below(root, folder, suffixes=SOURCE):
    """The sources below a folder of root, as paths relative to root."""
    root = pathlib.Path(root)
    return sorted(p.relative_to(root) for p in (root / folder).rglob("*") if p.suffix in suffixes and p.is_file())


@functools.lru_cache(None)
def text(root, path):
    return (pathlib.Path(root) / path).read_text()


def includes(root, path):
    """The #include lines of a file: (line number, quote, what is included)."""
    for number, line in enumerate(text(root, path).split("\n"), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1), match.group(2)


def resolve(root, path, target):
    """The project's file that an include in `path` names, or None: it is somebody else's."""
    root = pathlib.Path(root)
    folders = ["src", "include", ""] if path.parts[0] in ("src", "include") else ["", "tests", "tools", "src", "include"]
    for folder in [*folders, path.parent]:
        if (root / folder / target).is_file():
            return pathlib.Path(folder, target)
    return None


def include_graph(root, files):
    """For each file the set of the project's files that it includes itself."""
    graph = {}
    for path in files:
        found = {resolve(root, path, target) for _, _, target in includes(root, path)}
        graph[path] = found - {None}
    return graph


def reached(graph, path):
    """What a file includes, directly or not."""
    seen, todo = set(), [path]
    while todo:
        for inner in graph.get(todo.pop(), ()):
            if inner not in seen:
                seen.add(inner)
                todo.append(inner)
    return seen - {path}


def cycles(graph):
    """Circles of files that include each other, the shortest through each file that is in one, each circle once."""
    found = {}
    for start in sorted(graph):
        before, todo = {}, [start]
        while todo and start not in before:
            here = todo.pop(0)
            for inner in sorted(graph.get(here, ())):
                if inner not in before:
                    before[inner] = here
                    todo.append(inner)
        if start in before:
            circle = [start]
            while (previous := before[circle[-1]]) != start:
                circle.append(previous)
            circle = [start] + circle[1:][::-1]
            found.setdefault(frozenset(circle), circle)
    return list(found.values())


def module_of(room):
    return room.split("/", 1)[0]


def room_of(rooms, path):
    """The room of a file under src/ (a path that begins with src), or None."""
    folders = path.parts[1:-1]
    for length in range(len(folders), 0, -1):
        if (room := "/".join(folders[:length])) in rooms:
            return room
    return None


def rooms_of_arrow(rooms, room, arrow):
    """The rooms that an arrow from a room means, see rooms.py; none if it means nothing."""
    if arrow.endswith("/."):
        return [arrow[:-2]] if arrow[:-2] in rooms else []
    if "/" in arrow or module_of(room) == arrow:
        return [arrow] if arrow in rooms else []
    return [other for other in rooms if module_of(other) == arrow]
