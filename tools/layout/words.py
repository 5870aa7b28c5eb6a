# SPDX-License-Identifier: BSD-2-Clause
"""Words that the code base does not use, and what to write for them: what a script can check of its glossary.

Left out is what is as often plain English as what is meant: "see x.h", "it takes 5 us", "sort by time".
"""

from __future__ import annotations

from typing import NamedTuple


class Word(NamedTuple):
    """A word, where it is counted, and what to write for it.

    `forms`: parts of identifiers, which are cut at their underscores. `comments` and `strings`: regular
    expressions of what is counted there, in either case; "": nothing.
    """

    name: str
    forms: tuple[str, ...]
    comments: str
    strings: str
    instead: str
    folders: tuple[str, ...] = ("bpf", "kheaders", "user", "analyzer", "tools", "tests")


def _everywhere(name: str, forms: tuple[str, ...], instead: str, **others: tuple[str, ...]) -> Word:
    text = "|".join(forms)
    return Word(name, forms, text, text, instead, **others)


VENDOR_NAMES = ("PLACE_HOLDER",)        # parts of identifiers that CANN named so
VENDOR_FOLDERS = ("tools/npusim/abi/",)  # structs as CANN declares them
STRING_FOLDERS = ("user", "analyzer")   # whose strings users read
# Phrases that are English and no term: they are taken out before words are counted.
PHRASES = r"\bin place\b|\btak(?:e|es|en|ing) place\b|\b(?:decimal|binary) places?\b|\bside effects?\b" \
          r"|\bside by side\b|\b(?:left|right)(?:-hand)? side\b|\bthat is to say\b|\bsort order\b"

WORDS = (
    _everywhere("place", ("place", "places", "placed"),
                "the one that is meant: output directory, align, ordinal, offset, index, address"),
    _everywhere("side", ("side", "sides"), "loader, tracer, BPF programs, auxiliary file, end"),
    _everywhere("ask", ("ask", "asks", "asked", "asking"), "query, request"),
    _everywhere("say", ("say", "says", "said", "saying"), "report, state, print"),
    _everywhere("tell", ("tell", "tells", "told", "telling"), "report, announce, distinguish"),
    # Not `seen`: that is the usual name of a mark on what was visited.
    Word("see", ("see", "sees", "saw"), "", "", "observe, read"),
    Word("look", ("look", "looks", "looked", "looking"), "", "", "read, inspect, search"),
    Word("take", ("take", "takes", "took", "taken"), "", "", "read, drain, claim, acquire"),
    Word("give", ("give", "gives", "gave", "given"), "", "", "return, release, drop"),
    Word("sort", (),
         r"(?:sorts? of(?! (?:all|the|an?)\b)|(?:a|each|every|one|this|that|what|which|another|any|two|three) sorts?"
         r"(?= (?:a|of|is|that|in)\b|[,.;:)]))",
         r"a sort a|(?:each|every|this|that|which|another) sort\b", "kind, event class"),
    Word("recording", ("recording", "recordings"), "", "", "session"),
    _everywhere("sieve", ("sieve", "sieves", "sieved"), "outlier filter"),
    Word("pieces", ("piece", "pieces"), "straight pieces?", "straight pieces?", "piecewise fit, segment, part"),
    _everywhere("doubts", ("doubt", "doubts"), "loss interval"),
    _everywhere("strangers", ("stranger", "strangers"), "unknown table, foreign process"),
    # Strings may name CANN's folders of stub libraries.
    Word("stubs", ("stub", "stubs"), "stub|stubs", r"(?<!/)\bstubs?\b", "trampoline",
         folders=("bpf", "kheaders", "user", "analyzer")),
    _everywhere("gone", ("gone",), "detached, freed, exited"),
    Word("as it should be", (), r"as (?:it|they) should be", r"as (?:it|they) should be", "PASS, or what is expected"),
    Word("of its own will", (), r"of (?:its|their) own will", r"of (?:its|their) own will",
         "by its own request (sleep, poll, timed wait)"),
)
