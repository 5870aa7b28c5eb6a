# SPDX-License-Identifier: BSD-2-Clause
"""C, Python and shell cut into tokens, so that no comment and no string is taken for code."""

from __future__ import annotations

import re
from typing import NamedTuple

C_NAMES, PYTHON_NAMES, SHELL_NAMES = (".c", ".h", ".cc"), (".py",), (".sh",)

CONTINUED, COMMENT, STRING, NAME, PUNCTUATION = "continued", "comment", "string", "name", "punctuation"


class Token(NamedTuple):
    """A word, a sign, a string or a comment; `directive`: in one of the C preprocessor, comments included."""

    kind: str
    text: str
    line: int
    directive: bool = False


_new = tuple.__new__    # half the time of Token(...)


def _c_pattern(raw_strings: bool) -> re.Pattern[str]:
    raw = r'(?:u8|[uUL])?R"(?P<fence>[^()\\\s"]{0,16})\(.*?\)(?P=fence)"|' if raw_strings else ""
    return re.compile(
        r"[ \t\r\f\v]*+(?:"
        r"(?P<newline>\n)"
        r"|(?P<continued>\\\r?\n)"
        r"|(?P<comment>/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*)"
        rf'|(?P<string>{raw}(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?|[uUL]?\'(?:\\.|[^\'\\\n])*\'?)'
        r"|(?P<name>[A-Za-z_]\w*)"
        r"|(?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)"
        r"|(?P<punctuation>.))", re.S)


_C = _c_pattern(raw_strings=False)
_CC = _c_pattern(raw_strings=True)

_PYTHON = re.compile(
    r"[ \t\r\f\v]*+(?:"
    r"(?P<newline>\n)"
    r"|(?P<continued>\\\r?\n)"
    r"|(?P<comment>#[^\n]*)"
    r"|(?P<string>(?:[rbufRBUF]{1,2})?"
    r'(?:"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'(?:\\.|[^\\])*?(?:\'\'\'|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?))'
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<number>\.?\d[\w.]*)"
    r"|(?P<punctuation>.))", re.S)


def c_tokens(text: str, raw_strings: bool = False) -> list[Token]:
    """All tokens but white space; `raw_strings`: it is C++."""
    tokens: list[Token] = []
    line, fresh, directive = 1, True, False
    for match in (_CC if raw_strings else _C).finditer(text):
        kind = match.lastgroup or PUNCTUATION 
        if kind == "newline":
            line, fresh, directive = line + 1, True, False
            continue
        if kind == CONTINUED:
            line += 1
            continue
        part = match[kind]
        if fresh:
            directive = part == "#"
            fresh = kind == COMMENT
        tokens.append(_new(Token, (kind, part, line, directive)))
        if kind in (COMMENT, STRING):
            line += part.count("\n")
    return tokens


def python_tokens(text: str) -> list[Token]:
    """All tokens but white space. A triple-quoted string that begins a line is a docstring: a comment."""
    tokens: list[Token] = []
    line, fresh = 1, True
    for match in _PYTHON.finditer(text):
        kind = match.lastgroup or PUNCTUATION
        if kind == "newline":
            line, fresh = line + 1, True
            continue
        if kind == CONTINUED:
            line += 1
            continue
        part = match[kind]
        if kind == STRING:
            lines = part.count("\n")
            if fresh and part.startswith(('"""', "'''", 'r"""')):
                kind = COMMENT
            tokens.append(_new(Token, (kind, part, line, False)))
            line += lines
        else:
            tokens.append(_new(Token, (kind, part, line, False)))
        fresh = False
    return tokens


_HEREDOC = re.compile(r"""(?<!<)<<-?\s*\\?(['"]?)([A-Za-z_]\w*)\1""")


def shell_tokens(text: str) -> list[Token]:
    """Comments that fill a line, and any other line that is not blank as one token: shell is not cut further.

    A here-document holds no comment.
    """
    tokens: list[Token] = []
    end = ""
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        if end:
            if words == end:
                end = ""
        elif not words.startswith("#"):
            if match := _HEREDOC.search(line):
                end = match.group(2)
        elif number > 1 or not words.startswith("#!"):
            tokens.append(Token(COMMENT, words, number))
            continue
        if words:
            tokens.append(Token(PUNCTUATION, words, number))
    return tokens


def tokens_of(name: str, text: str) -> list[Token]:
    """The tokens of a file, by the end of its name."""
    if name.endswith(PYTHON_NAMES):
        return python_tokens(text)
    if name.endswith(SHELL_NAMES):
        return shell_tokens(text)
    return c_tokens(text, name.endswith(".cc"))


class Include(NamedTuple):
    """`#include "name"` or `#include <name>`."""

    name: str
    line: int
    quoted: bool


def includes(tokens: list[Token]) -> list[Include]:
    """What a C file includes."""
    found: list[Include] = []
    for at, token in enumerate(tokens):
        if not token.directive or token.text != "#" or at + 2 >= len(tokens) or tokens[at + 1].text != "include":
            continue
        first = tokens[at + 2]
        if first.kind == STRING:
            found.append(Include(first.text.strip('"'), token.line, True))
        elif first.text == "<":
            rest = []
            for part in tokens[at + 3:]:
                if not part.directive or part.text == ">":
                    break
                rest.append(part.text)
            found.append(Include("".join(rest), token.line, False))
    return found


class Function(NamedTuple):
    """A function with a body."""

    name: str
    line: int       # of its name
    end: int        # of its closing brace
    static: bool


ATTRIBUTES = ("__attribute__", "__attribute", "__declspec", "_Alignas", "__asm__", "asm")


def _function_name(head: list[Token]) -> Token | None:
    """The name in what stands before a brace that is in no other, or None where that is no function's."""
    if not head or head[-1].text != ")":    # a struct's, perhaps after a macro that no semicolon ends
        return None
    depth, name, opening = 0, None, -1
    for at, token in enumerate(head):
        if token.text == "(":
            before = head[at - 1] if at else None
            if not depth and before and before.kind == NAME and before.text not in ATTRIBUTES:
                name, opening = before, at
            depth += 1
        elif token.text == ")":
            depth -= 1
        elif not depth and token.text == "=":
            return None
    # BPF_PROG(name, ...): the name is its first argument.
    if name and name.text.isupper() and opening + 1 < len(head) and head[opening + 1].kind == NAME:
        name = head[opening + 1]
    return name


def functions(tokens: list[Token]) -> list[Function]:
    """Every function with a body, in all branches of the preprocessor's conditions."""
    found: list[Function] = []
    head: list[Token] = []      # since the end of the last declaration
    depth = 0
    begun: tuple[Token, bool] | None = None
    branches: list[tuple[int, list[Token], tuple[Token, bool] | None]] = []
    for at, token in enumerate(tokens):
        if token.kind == COMMENT:
            continue
        if token.directive:
            # Each branch begins in the state before the first one: braces of two branches are not added up.
            word = tokens[at + 1].text if token.text == "#" and at + 1 < len(tokens) else ""
            if word in ("if", "ifdef", "ifndef"):
                branches.append((depth, list(head), begun))
            elif word in ("else", "elif") and branches:
                depth, kept, begun = branches[-1]
                head = list(kept)
            elif word == "endif" and branches:
                branches.pop()
            continue
        if token.text == "{" and token.kind == PUNCTUATION:
            if not depth:
                if len(head) == 2 and head[0].text == "extern" and head[1].kind == STRING:
                    head = []
                    continue    # extern "C" {: its closing brace is ignored below
                name = _function_name(head)
                begun = (name, any(part.text == "static" for part in head)) if name else None
            depth += 1
        elif token.text == "}" and token.kind == PUNCTUATION:
            depth = max(depth - 1, 0)
            if not depth:
                if begun:
                    found.append(Function(begun[0].text, begun[0].line, token.line, begun[1]))
                    begun = None
                head = []
        elif not depth:
            head.append(token)
            if token.text == ";":
                head = []
    return found


class Tag(NamedTuple):
    """`struct name {`, or a union's or an enumeration's."""

    name: str
    line: int


def tags(tokens: list[Token]) -> list[Tag]:
    """The tags that a C file defines."""
    found: list[Tag] = []
    code = [token for token in tokens if token.kind != COMMENT and not token.directive]
    for at, token in enumerate(code):
        if token.kind != NAME or token.text not in ("struct", "union", "enum"):
            continue
        end = _past_attributes(code, at + 1)
        if end >= len(code) or code[end].kind != NAME:
            continue
        after = _past_attributes(code, end + 1)
        if after < len(code) and code[after].text == "{":
            found.append(Tag(f"{token.text} {code[end].text}", code[end].line))
    return found


def _past_attributes(code: list[Token], at: int) -> int:
    """The index of the first token from `at` that belongs to no attribute."""
    while at < len(code) and code[at].text in ATTRIBUTES:
        at += 1
        depth = 0
        while at < len(code):
            depth += {"(": 1, ")": -1}.get(code[at].text, 0)
            at += 1
            if not depth:
                break
    return at
