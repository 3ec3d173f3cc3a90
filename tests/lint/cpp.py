"""Enough of C++ for lints: tokens of a source with their lines, and from them what namespaces define.

Comments, literals and preprocessor lines are no tokens; of `#if … #else …` the first branch is read, so braces balance.
"""
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<skip>\s+ | //[^\n]* | /\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)")
  | (?P<literal>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign>::|->|.)
""", re.VERBOSE | re.DOTALL)
KINDS = ("class", "struct", "union", "enum")
OPENERS, CLOSERS = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


def without_directives(text):
    """The text with blank lines for preprocessor lines, and for branches behind #else and #elif."""
    kept, skipping, depth, continued = [], [], 0, False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if continued or directive:
            word = directive.group(1) if directive and not continued else ""
            if word in ("if", "ifdef", "ifndef"):
                depth += 1
            elif word in ("else", "elif") and (not skipping or skipping[-1] < depth):
                skipping.append(depth)
            elif word == "endif":
                if skipping and skipping[-1] == depth:
                    skipping.pop()
                depth -= 1
            continued = line.endswith("\\")
            kept.append("")
        else:
            kept.append("" if skipping else line)
    return "\n".join(kept)


def tokens(text):
    """(token, line) of a source; a literal is the token `""` whatever it says."""
    text, line = without_directives(text), 1
    for match in TOKEN.finditer(text):
        if match.group("word") or match.group("sign") or match.group("number"):
            yield match.group(), line
        elif match.group("raw") or match.group("literal"):
            yield '""', line
        line += match.group().count("\n")


@dataclasses.dataclass(frozen=True)
class Type:
    name: str        # with its namespaces; anonymous ones are `(anonymous)`
    kind: str        # class, struct, union, enum or alias
    line: int


@dataclasses.dataclass(frozen=True)
class Function:
    line: int
    last: int

    @property
    def lines(self):
        return self.last - self.line + 1


class Reader:
    """Reads one source: its types at namespace scope, and the functions that have bodies."""

    def __init__(self, text):
        self.tokens, self.at = list(tokens(text)), 0
        self.types, self.functions = [], []
        self.scope((), True)

    def scope(self, namespace, outer):
        """A namespace or class up to its closing brace. `outer`: what it defines is seen at namespace scope."""
        head = []
        while self.at < len(self.tokens):
            token, _ = self.tokens[self.at]
            if token == "}":
                self.at += 1
                return
            if token == "{":
                head = self.brace(head, namespace, outer)
            elif token == ";":
                self.statement(head, namespace, outer)
                head, self.at = [], self.at + 1
            elif token in ("public", "private", "protected") and self.peek(1) == ":" and not outer:
                head, self.at = [], self.at + 2
            elif token in ("(", "["):
                start = self.at
                self.skip()
                head += self.tokens[start:self.at]
            else:
                head.append(self.tokens[self.at])
                self.at += 1

    def peek(self, distance):
        return self.tokens[self.at + distance][0] if self.at + distance < len(self.tokens) else ""

    def skip(self):
        """Over a balanced pair of brackets that opens here; returns the line where it closes."""
        depth = 0
        while self.at < len(self.tokens):
            token, line = self.tokens[self.at]
            self.at += 1
            depth += (token in OPENERS) - (token in CLOSERS)
            if depth == 0:
                return line
        return self.tokens[-1][1]

    def brace(self, head, namespace, outer):
        """What an opening brace after `head` opens; returns the head to go on with."""
        words = [token for token, _ in head]
        plain = unadorned(words)
        if "namespace" in plain[:2]:
            names = [w for w in plain[plain.index("namespace") + 1:] if w not in ("::", "inline")]
            self.at += 1
            self.scope(namespace + tuple(names or ["(anonymous)"]), outer)
            return []
        if plain[:1] == ["extern"] and plain[1:] == ['""']:
            self.at += 1
            self.scope(namespace, outer)
            return []
        if plain[:1] and plain[0] in KINDS and (name := type_name(plain)) is not None:
            if outer and name:
                self.types.append(Type("::".join((*namespace, name)), plain[0], head[0][1]))
            self.at += 1
            if plain[0] == "enum":
                self.at -= 1
                self.skip()
            else:
                self.scope(namespace + (name,), False)
            return head[:1] if words[0] == "typedef" else [("(type)", 0)]  # what stands before the semicolon
        if opens_body(plain):
            first = head[0][1]
            self.functions.append(Function(first, self.skip()))
            return []
        self.skip()  # an initializer
        return head + [("{", 0), ("}", 0)]

    def statement(self, head, namespace, outer):
        plain = unadorned([token for token, _ in head])
        if not outer:
            return
        if len(plain) > 2 and plain[0] == "using" and "=" in plain:
            self.types.append(Type("::".join((*namespace, plain[1])), "alias", head[0][1]))
        elif head and head[0][0] == "typedef":
            if name := typedef_name(plain):
                self.types.append(Type("::".join((*namespace, name)), "alias", head[0][1]))


def after_template(words):
    """What follows `template <…>`."""
    depth = inner = 0
    for place, word in enumerate(words[1:], 1):
        inner += (word in OPENERS) - (word in CLOSERS)
        depth += ((word == "<") - (word == ">")) * (inner == 0)
        if depth == 0:
            return words[place + 1:]
    return []


def after_brackets(words):
    """What follows the bracket that opens first in `words`."""
    depth = 0
    for place, word in enumerate(words):
        depth += (word in OPENERS) - (word in CLOSERS)
        if depth == 0 and word in CLOSERS:
            return words[place + 1:]
    return []


def unadorned(words):
    """A declaration without what may stand before it: templates, attributes, storage."""
    while words:
        if words[0] == "template" and words[1:2] == ["<"]:
            words = after_template(words)
        elif words[0] == "requires" and "(" in words:
            words = after_brackets(words)
        elif words[0] == "[":
            words = after_brackets(words)
        elif words[0] in ("static", "inline", "constexpr", "const", "typedef") and words[1:2] != ["namespace"]:
            words = words[1:]
        else:
            break
    return words


def type_name(words):
    """The name of the type that these words open ("" if it has none), or None: they open something else."""
    rest = words[1:]
    if rest[:1] and rest[0] in ("class", "struct"):
        rest = rest[1:]
    while rest and (rest[0] in ("[", "alignas", "__attribute__") or (rest[1:2] == ["("] and rest[0].isupper())):
        rest = after_brackets(rest)
    name = []
    while rest and (re.match(r"[A-Za-z_]", rest[0]) or rest[0] == "::") and rest[0] != "final":
        if name and name[-1] != "::" and rest[0] != "::":
            return None  # a second word: `struct Stream make`
        name.append(rest[0])
        rest = rest[1:]
    if rest[:1] == ["<"]:
        return None if "(" in rest and ":" not in rest else ""  # a specialization
    if rest[:1] == ["final"]:
        rest = rest[1:]
    return "".join(name) if not rest or rest[0] == ":" else None


def typedef_name(words):
    """What a typedef names: `typedef int X`, `typedef int (*X)(int)`, `typedef int X[4]`, `typedef int X(int)`."""
    text = " ".join(words)
    if match := re.search(r"\( \* (?:const )?(\w+) \)", text):
        return match.group(1)
    while words and words[-1] in CLOSERS:
        depth, place = 0, len(words)
        while place and (depth or place == len(words)):
            place -= 1
            depth += (words[place] in CLOSERS) - (words[place] in OPENERS)
        words = words[:place]
    return words[-1] if words and re.match(r"[A-Za-z_]", words[-1]) else None


def opens_body(words):
    """Whether a brace after these words opens a function's body, and not an initializer."""
    depth, parameters, initializers = 0, False, False
    for place, word in enumerate(words):
        if word in OPENERS:
            depth += 1
        elif word in CLOSERS:
            depth -= 1
            parameters = parameters or (word == ")" and depth == 0)
        elif depth == 0 and word == "=" and not parameters and "operator" not in words[max(place - 3, 0):place]:
            return False
        elif depth == 0 and word == ":" and parameters:
            initializers = True
    if not parameters or not words:
        return False
    return not initializers or words[-1] in (")", "}")


def read(text):
    reader = Reader(text)
    return reader.types, reader.functions
