# SPDX-License-Identifier: BSD-2-Clause
"""What the code base's layout forbids, each rule a function that finds violations.

Some rules need one file (`FILE_RULES`), some the whole tree (`TREE_RULES`).
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections import defaultdict
from typing import Callable, Iterator, NamedTuple

from layout import lex
from layout.order import ALLOWED, ALONE, BORDERS, LAYERS, SEARCHED, SHIPPED, Layer
from layout.words import PHRASES, STRING_FOLDERS, VENDOR_FOLDERS, VENDOR_NAMES, WORDS, Word

FILE_LINES, FUNCTION_LINES = 800, 80
COMMENT_COLUMNS, LINE_COLUMNS = 110, 120
TAB = 8


class Violation(NamedTuple):
    """One of them."""

    rule: str
    file: str
    line: int
    what: str       # "WHAT: what to do"


class Source(NamedTuple):
    """A file, cut into tokens."""

    name: str       # from the root of the tree
    lines: list[str]
    tokens: list[lex.Token]

    @property
    def is_c(self) -> bool:
        """C, or C++."""
        return self.name.endswith(lex.C_NAMES)

    def violation(self, rule: str, line: int, what: str) -> Violation:
        """One in this file."""
        return Violation(rule, self.name, line, what)


class Lines(NamedTuple):
    """How many lines a file has."""

    code: int
    comment: int
    blank: int


class Facts(NamedTuple):
    """What is kept of a file: what it violates by itself, and what rules of the whole tree need."""

    name: str
    lines: Lines
    violations: list[Violation]
    includes: list[lex.Include]
    tags: list[lex.Tag]
    statics: list[tuple[str, int]]


# --- rules of one file ----------------------------------------------------------------------------

def untyped_arguments(source: Source) -> Iterator[Violation]:
    """`args[` in C, outside of kheaders: an event's fields have names."""
    if not source.is_c or source.name.startswith("kheaders/"):
        return
    code = [token for token in source.tokens if token.kind != lex.COMMENT]
    for token, after in zip(code, code[1:]):
        if token.text == "args" and after.text == "[":
            yield source.violation("args", token.line, "args[: use the field of the event's struct, or another name")


def long_file(source: Source) -> Iterator[Violation]:
    """Files over 800 lines."""
    if len(source.lines) > FILE_LINES:
        yield source.violation("long-file", 1,
                               f"{len(source.lines)} lines, {FILE_LINES} at most: split it, one idea a file")


def long_function(source: Source) -> Iterator[Violation]:
    """C functions over 80 lines, from the line of the name to the closing brace."""
    for function in lex.functions(source.tokens) if source.is_c else []:
        lines = function.end - function.line + 1
        if lines > FUNCTION_LINES:
            yield source.violation("long-function", function.line,
                                   f"{function.name}() has {lines} lines, {FUNCTION_LINES} at most: split it")


def no_error_yet(source: Source) -> Iterator[Violation]:
    """`if (!err)` in C: a chain of them is early returns, or one label, written the long way."""
    if not source.is_c:
        return
    code = [token for token in source.tokens if token.kind != lex.COMMENT]
    for at, token in enumerate(code):
        if token.text == "if" and [after.text for after in code[at + 1:at + 5]] == ["(", "!", "err", ")"]:
            yield source.violation("if-not-err", token.line, "if (!err): return early, or jump to one label")


def columns(text: str) -> int:
    """How many columns a line takes."""
    return len(text.expandtabs(TAB))


def wide_comment(source: Source) -> Iterator[Violation]:
    """Lines of comments that go past column 110."""
    for number, begin, end in comment_lines(source):
        line = source.lines[number - 1]
        wide = columns(line[:end].rstrip())
        if wide > COMMENT_COLUMNS and line[begin:end].strip():
            yield source.violation("wide-comment", number,
                                   f"a comment of {wide} columns, {COMMENT_COLUMNS} at most: wrap it")


def comment_lines(source: Source) -> Iterator[tuple[int, int, int]]:
    """Each comment's lines: number, and the part of the line that is the comment's, as begin and end."""
    for token in source.tokens:
        if token.kind != lex.COMMENT:
            continue
        for number, part in enumerate(token.text.split("\n"), token.line):
            line = source.lines[number - 1]
            begin = max(line.find(part), 0) if number == token.line else 0
            yield number, begin, begin + len(part)


def wide_line(source: Source) -> Iterator[Violation]:
    """Lines over 120 columns."""
    for number, line in enumerate(source.lines, 1):
        if len(line) * TAB > LINE_COLUMNS and columns(line) > LINE_COLUMNS:
            yield source.violation("wide-line", number, f"{columns(line)} columns, {LINE_COLUMNS} at most: wrap it")


def words(source: Source) -> Iterator[Violation]:
    """Words of the glossary's left column: in names once a file, in comments and strings each time."""
    if source.name.endswith(lex.SHELL_NAMES) or source.name.startswith(VENDOR_FOLDERS):
        return
    top = source.name.split("/", 1)[0]
    for name in posixpath.splitext(posixpath.basename(source.name))[0].replace(".", "_").split("_"):
        for word in by_form().get(name, ()):
            yield from word_violation(source, top, word, 1, "the file's name")
    named: set[str] = set()
    for token in source.tokens:
        if token.kind == lex.NAME and token.text not in named:
            named.add(token.text)
            for part in set(without_vendor_names(token.text).lower().split("_")) & by_form().keys():
                for word in by_form()[part]:
                    yield from word_violation(source, top, word, token.line, f"`{token.text}`")
        elif token.kind == lex.COMMENT or (token.kind == lex.STRING and not token.directive and top in STRING_FOLDERS):
            yield from words_of_text(source, top, token)


def without_vendor_names(name: str) -> str:
    """An identifier without the parts that CANN named."""
    return functools.reduce(lambda text, part: text.replace(part, ""), VENDOR_NAMES, name)


def words_of_text(source: Source, top: str, token: lex.Token) -> Iterator[Violation]:
    """Those of a comment or a string."""
    matched, one = text_patterns(token.kind)
    text = phrases().sub(lambda match: " " * len(match.group()), token.text) if matched.search(token.text) else ""
    for match in matched.finditer(text):
        word = next(word for word, pattern in one if pattern.match(text, match.start()))
        line = token.line + text.count("\n", 0, match.start())
        yield from word_violation(source, top, word, line, f"\"{match.group()}\" in a {token.kind}")


def word_violation(source: Source, top: str, word: Word, line: int, where: str) -> Iterator[Violation]:
    """One, unless the word is not counted in that folder."""
    if top in word.folders:
        yield source.violation(rule_of(word), line, f"{where}: write {word.instead}")


def rule_of(word: Word) -> str:
    """The name of a word's rule."""
    return "word:" + word.name.replace(" ", "-")


@functools.cache
def by_form() -> dict[str, list[Word]]:
    """The words that a part of an identifier stands for."""
    found: dict[str, list[Word]] = defaultdict(list)
    for word in WORDS:
        for form in word.forms:
            found[form].append(word)
    return dict(found)


@functools.cache
def phrases() -> re.Pattern[str]:
    """What is no term."""
    return re.compile(re.sub(" ", r"\\s+", PHRASES), re.I)


@functools.cache
def text_patterns(kind: str) -> tuple[re.Pattern[str], list[tuple[Word, re.Pattern[str]]]]:
    """Any of the words in a comment or a string, and each of them."""
    rows = [(word, text) for word in WORDS if (text := word.comments if kind == lex.COMMENT else word.strings)]
    return (re.compile(rf"\b(?:{'|'.join(text for _, text in rows)})(?!\w)", re.I),
            [(word, re.compile(rf"(?:{text})(?!\w)", re.I)) for word, text in rows])


FILE_RULES: tuple[Callable[[Source], Iterator[Violation]], ...] = (
    untyped_arguments, long_file, long_function, no_error_yet, wide_comment, wide_line, words)


def count_lines(source: Source) -> Lines:
    """Lines with code; those that only hold a comment; those that hold nothing."""
    code: set[int] = set()
    for token in source.tokens:
        if token.kind != lex.COMMENT:
            code.add(token.line)
            if token.kind == lex.STRING:
                code.update(range(token.line, token.line + token.text.count("\n") + 1))
    blank = {number for number, line in enumerate(source.lines, 1) if not line.strip()} - code
    return Lines(len(code), len(source.lines) - len(code) - len(blank), len(blank))


def facts(name: str, text: str) -> Facts:
    """Read a file, NAME from the root of the tree."""
    lines = text.split("\n")
    source = Source(name, lines[:-1] if lines[-1] == "" else lines, lex.tokens_of(name, text))
    violations = [violation for rule in FILE_RULES for violation in rule(source)]
    if not source.is_c:
        return Facts(name, count_lines(source), violations, [], [], [])
    statics = [(function.name, function.line) for function in lex.functions(source.tokens) if function.static]
    return Facts(name, count_lines(source), violations, lex.includes(source.tokens), lex.tags(source.tokens), statics)


# --- rules of the whole tree ----------------------------------------------------------------------

class Edge(NamedTuple):
    """One file includes another, which is of the tree; names from its root."""

    file: str
    line: int
    target: str


def edges(tree: list[Facts]) -> Iterator[Edge]:
    """What includes what, as the compiler does. A skeleton stands for the program of bpf/ it is made of."""
    known = {fact.name for fact in tree}
    for fact in tree:
        top = fact.name.split("/", 1)[0]
        for include in fact.includes:
            folders = [posixpath.dirname(fact.name)] if include.quoted else []
            folders += SEARCHED.get(top, ())
            names = [posixpath.normpath(f"{where}/{include.name}") for where in folders]
            if include.name.endswith(".skel.h"):
                names.append("bpf/" + include.name[:-len(".skel.h")] + ".bpf.c")
            target = next((name for name in names if name in known), None)
            if target:
                yield Edge(fact.name, include.line, target)


def component(name: str) -> str:
    """The part of the tree that a file belongs to, whose border is checked."""
    return next((key for key in BORDERS if name.startswith(key + "/")), "")


def room_of(layers: tuple[Layer, ...], inner: str) -> tuple[int, str]:
    """Which layer a file of a component is in, and its room: the longest that its name begins with."""
    best, level, found = -1, 0, ""
    for at, layer in enumerate(layers):
        for room in layer.rooms:
            match = re.match(re.escape(room).replace(r"\*", "[^/]+"), inner)
            # Of two that are as long the first: import/common/ is no import/*/.
            if match and len(match.group()) > best:
                best, level, found = len(match.group()), at, match.group()
    # Files that have no folder yet are one room, and so is what builds alone.
    return level, found if found.endswith("/") and layers[level].name not in ALONE else layers[level].name


def includes_go_down(tree: list[Facts]) -> Iterator[Violation]:
    """Includes across a component's border, or of a layer that is not below."""
    for edge in edges(tree):
        what = forbidden(edge)
        if what:
            yield Violation("include-up", edge.file, edge.line, f"includes {edge.target}: {what}")


def forbidden(edge: Edge) -> str:
    """Why an include is, and what to do; "" if it is allowed."""
    here = component(edge.file)
    layers = LAYERS.get(here, ())
    inner, wanted = edge.file[len(here) + 1:], edge.target[len(here) + 1:]
    if not here:
        return ""
    if edge.target.startswith(here + "/"):
        return between_layers(layers, inner, wanted) if layers else ""
    if not edge.target.startswith(BORDERS[here]):
        return f"{here}/ includes nothing of it: move what both need to where both may include it"
    alone = layers and layers[room_of(layers, inner)[0]].name in ALONE
    return "it builds alone, with kheaders/" if alone and not edge.target.startswith("kheaders/") else ""


def between_layers(layers: tuple[Layer, ...], file: str, target: str) -> str:
    """The same for two files of a component."""
    (from_level, from_room), (to_level, to_room) = room_of(layers, file), room_of(layers, target)
    upper, lower = layers[from_level], layers[to_level]
    if from_room == to_room or any(from_room == room and target == name for room, name, _ in ALLOWED):
        return ""
    if upper.name in ALONE:
        return f"{upper.name} builds alone: move what both need to kheaders/"
    if from_level == to_level:
        return f"{from_room} and {to_room} are neighbours: move what both need to a layer below"
    if to_level > from_level:
        return f"{lower.name} is not below {upper.name}: move it down, or pass it as an argument"
    if lower.readers and upper.name not in lower.readers:
        return f"only {' and '.join(lower.readers)} may include {lower.name}: go through the model"
    return ""


def cycles(tree: list[Facts]) -> Iterator[Violation]:
    """Includes between two folders of a component that are in a cycle, where the first file does so.

    Those that go down are not to blame: where all do, there is no cycle.
    """
    graph: dict[str, set[str]] = defaultdict(set)
    first: dict[tuple[str, str], Edge] = {}
    for edge in edges(tree):
        pair = posixpath.dirname(edge.file), posixpath.dirname(edge.target)
        if pair[0] != pair[1] and component(edge.file) == component(edge.target) != "":
            graph[pair[0]].add(pair[1])
            first.setdefault(pair, edge)
    for (begin, end), edge in sorted(first.items()):
        if folder_level(begin) <= folder_level(end) and (back := path(graph, end, begin)):
            yield Violation("cycle", edge.file, edge.line,
                            f"includes {edge.target}, a cycle of folders: {' -> '.join([begin, *back])}: break it here")


def folder_level(name: str) -> int:
    """The layer of what is in a folder, or 0 where there is no order."""
    top, _, inner = name.partition("/")
    return room_of(LAYERS[top], inner + "/" if inner else "")[0] if top in LAYERS else 0


def path(graph: dict[str, set[str]], begin: str, end: str) -> list[str]:
    """The shortest way from one folder to another, both included; [] if there is none."""
    before = {begin: ""}
    todo = [begin]
    for name in todo:
        if name == end:
            way = [name]
            while before[way[-1]]:
                way.append(before[way[-1]])
            return way[::-1]
        for following in sorted(graph.get(name, ())):
            if following not in before:
                before[following] = name
                todo.append(following)
    return []


def name_space(name: str) -> str:
    """Files whose names meet in one program, or in one debugger; "": a program by itself."""
    if name.split("/", 1)[0] in SHIPPED:
        return "npuscope"
    # The mock's kernel modules and its libraries are two programs, which both know the vendor's structs.
    return next((mock for mock in ("tools/npusim/kmod", "tools/npusim") if name.startswith(mock + "/")), "")


def one_tag(tree: list[Facts]) -> Iterator[Violation]:
    """Tags of structs, unions and enumerations that several files define."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for fact in tree:
        space = name_space(fact.name)
        for tag in fact.tags if space else []:
            found[space, tag.name].append((fact.name, tag.line))
    for (_, tag_name), where in sorted(found.items()):
        files = sorted({file for file, _ in where})
        for file, line in where if len(files) > 1 else []:
            others = ", ".join(name for name in files if name != file)
            yield Violation("tag", file, line, f"{tag_name} is defined in {others} too: name it for its object")


def unique_statics(tree: list[Facts]) -> Iterator[Violation]:
    """Names of static functions that several files of a component have."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for fact in tree:
        part = component(fact.name)
        for name, line in fact.statics if part else []:
            found[part, name].append((fact.name, line))
    for (_, static), where in sorted(found.items()):
        files = sorted({file for file, _ in where})
        for file, line in where if len(files) > 1 else []:
            others = ", ".join(name for name in files if name != file)
            yield Violation("static-name", file, line,
                            f"static {static}() is in {others} too: name it for its object and verb")


TREE_RULES: tuple[Callable[[list[Facts]], Iterator[Violation]], ...] = (
    includes_go_down, cycles, one_tag, unique_statics)

# All rules, in the order of tables.
RULES = ("args", "long-file", "long-function", "if-not-err", "include-up", "cycle", "tag", "static-name",
         "wide-comment", "wide-line", *map(rule_of, WORDS))
