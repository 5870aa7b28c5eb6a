#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what the rules of layout forbid, and refuses more of it than there is: part of `make lint`.

    check_layout.py             compare with tools/layout_baseline.txt, which has the counts of each file
    check_layout.py --update    lower the baseline to what is counted; no rule's sum may rise by that
    check_layout.py --report    tables of all counts by folder, as Markdown
    check_layout.py --list RULE...  every violation of the rules whose names begin so

Exit status 1, and a line for each violation of a file that has more than the baseline allows; also if a file
has fewer, so that what was gained is kept. A file that moves or is split needs --update.

Rules are in layout/rules.py, the order of layers in layout/order.py, words in layout/words.py. Files that end
in .c, .h, .cc, .py and .sh are read. --root DIR is for tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Iterable, NamedTuple

sys.dont_write_bytecode = True

from layout import lex  # noqa: E402
from layout.order import FOLDERS  # noqa: E402
from layout.rules import RULES, TREE_RULES, Facts, Violation, facts  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
BASELINE = "tools/layout_baseline.txt"
HEAD = "# Violations that each file still has: tools/check_layout.py allows no more, its --update lowers them.\n"
KNOWN = "rules"     # begins the line that names those the file was written with: others are new
UPDATE = "tools/check_layout.py --update"
CHUNK = 16      # files that a process reads at once

Key = tuple[str, str]       # file, rule
Counts = Counter[Key]


class Tree(NamedTuple):
    """All that was found."""

    files: list[Facts]
    violations: list[Violation]


# --- reading --------------------------------------------------------------------------------------

def names(root: Path) -> list[str]:
    """The files that are checked: those git knows or would add; all of them where there is no repository."""
    ends = lex.C_NAMES + lex.PYTHON_NAMES + lex.SHELL_NAMES
    if (root / ".git").exists():
        done = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--",
                               *FOLDERS], capture_output=True, text=True, check=True)
        found: Iterable[str] = set(done.stdout.split("\0"))
    else:
        found = (path.relative_to(root).as_posix() for top in FOLDERS for path in (root / top).rglob("*"))
    return sorted(name for name in found if name.endswith(ends) and (root / name).is_file())


def read(root: Path, name: str) -> Facts:
    """What is to be known of a file."""
    return facts(name, (root / name).read_text(encoding="utf-8", errors="replace"))


def read_tree(root: Path) -> Tree:
    """Read all files and apply all rules."""
    found = names(root)
    if len(found) > CHUNK:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            files = list(pool.map(read, [root] * len(found), found, chunksize=CHUNK))
    else:
        files = [read(root, name) for name in found]
    violations = [violation for fact in files for violation in fact.violations]
    violations += [violation for rule in TREE_RULES for violation in rule(files)]
    return Tree(files, sorted(violations, key=lambda v: (RULES.index(v.rule), v.file, v.line, v.what)))


# --- the baseline ---------------------------------------------------------------------------------

class Baseline(NamedTuple):
    """The committed counts."""

    rules: list[str]    # that there were when it was written
    counts: Counts


def read_baseline(name: Path) -> Baseline:
    """Read them: lines of a file's name and RULE=COUNT for each rule that it violates."""
    found = Baseline([], Counter())
    for number, line in enumerate(name.read_text(encoding="utf-8").splitlines(), 1):
        file, *fields = line.split()
        if file == KNOWN:
            found.rules.extend(fields)
        elif file != "#":
            for field in fields:
                rule, _, value = field.partition("=")
                if rule not in RULES or not value.isdigit() or (file, rule) in found.counts:
                    raise ValueError(f"{name}:{number}: {field}: not RULE=COUNT, or twice")
                found.counts[file, rule] = int(value)
    return found


def write_baseline(name: Path, counts: Counts) -> None:
    """Write them, a line for each file."""
    files: dict[str, list[str]] = defaultdict(list)
    for (file, rule), value in sorted(counts.items(), key=lambda item: (item[0][0], RULES.index(item[0][1]))):
        files[file].append(f"{rule}={value}")
    lines = [" ".join([KNOWN, *RULES]), *(" ".join([file, *fields]) for file, fields in files.items())]
    name.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


def totals(counts: Counts) -> Counter[str]:
    """Sums by rule."""
    sums: Counter[str] = Counter()
    for (_, rule), value in counts.items():
        sums[rule] += value
    return sums


def count(violations: Iterable[Violation]) -> Counts:
    """By file and rule."""
    return Counter((violation.file, violation.rule) for violation in violations)


def show(violations: Iterable[Violation]) -> None:
    """A line for each."""
    for violation in violations:
        print(f"{violation.file}:{violation.line}: {violation.what} [{violation.rule}]")


def check(tree: Tree, baseline: Counts) -> int:
    """Compare with the baseline; the exit status."""
    now = count(tree.violations)
    above = {key for key in now if now[key] > baseline[key]}
    below = sorted(key for key in baseline if now[key] < baseline[key])
    show(violation for violation in tree.violations if (violation.file, violation.rule) in above)
    for key in sorted(above):
        print(f"layout: {key[0]}: {key[1]}: {now[key]}, {baseline[key]} allowed: see the lines above "
              f"(if they came from another file: {UPDATE})")
    for key in below:
        print(f"layout: {key[0]}: {key[1]}: {now[key]}, the baseline has {baseline[key]}: "
              f"lower the baseline: run {UPDATE}")
    return 1 if above or below else 0


def update(tree: Tree, name: Path) -> int:
    """Write what is counted as the baseline, unless a rule's sum rises; the exit status."""
    now = count(tree.violations)
    if name.exists():
        old = read_baseline(name)
        before, after = totals(old.counts), totals(now)
        risen = [rule for rule in old.rules if after[rule] > before[rule]]
        if risen:
            above = {key for key in now if now[key] > old.counts[key] and key[1] in risen}
            show(v for v in tree.violations if (v.file, v.rule) in above)
            for rule in risen:
                print(f"layout: {rule}: {after[rule]} in all, {before[rule]} allowed: the baseline may only fall")
            return 1
    write_baseline(name, now)
    return 0


# --- tables ---------------------------------------------------------------------------------------

def folder(name: str) -> str:
    """The folder by which a file's violations are counted: analyzer/import/session, tests/unit, tools."""
    parts = name.split("/")[:-1]
    return "/".join(parts[:3] if parts[:2] in (["analyzer", "import"], ["user", "sources"]) else parts[:2])


def table(head: list[str], rows: list[list[object]]) -> None:
    """A Markdown table; the first column is text."""
    print("| " + " | ".join(head) + " |")
    print("|---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def report(tree: Tree) -> int:
    """Lines and violations by folder."""
    plain = [rule for rule in RULES if not rule.startswith("word:")]
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for fact in tree.files:
        lines[folder(fact.name)].update(files=1, **fact.lines._asdict())
    for violation in tree.violations:
        rule = "words" if violation.rule.startswith("word:") else violation.rule
        found[folder(violation.file)][rule] += 1
    kinds, rules = ["files", "code", "comment", "blank"], [*plain, "words"]
    rows: list[list[object]] = [[name, *(lines[name][kind] for kind in kinds), *(found[name][rule] for rule in rules)]
                                for name in sorted(lines)]
    rows.append(["all", *(sum(lines[name][kind] for name in lines) for kind in kinds),
                 *(sum(found[name][rule] for name in found) for rule in rules)])
    table(["folder", *kinds, *rules], rows)

    tops = list(FOLDERS)
    by_word: Counter[tuple[str, str]] = Counter(
        (v.rule, v.file.split("/", 1)[0]) for v in tree.violations if v.rule.startswith("word:"))
    table(["word", *tops, "all"],
          [[rule.split(":", 1)[1], *(by_word[rule, top] for top in tops), sum(by_word[rule, top] for top in tops)]
           for rule in RULES if rule.startswith("word:")])
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description="Counts what the rules of layout forbid.")
    parser.add_argument("--update", action="store_true", help="lower the baseline to what is counted")
    parser.add_argument("--report", action="store_true", help="tables of all counts by folder")
    parser.add_argument("--list", nargs="+", metavar="RULE", help="all violations of the rules that begin so")
    parser.add_argument("--root", type=Path, default=ROOT)
    options = parser.parse_args()
    path = options.root / BASELINE
    try:
        tree = read_tree(options.root)
        if options.report:
            return report(tree)
        if options.list:
            show(violation for violation in tree.violations if violation.rule.startswith(tuple(options.list)))
            return 0
        if options.update:
            return update(tree, path)
        return check(tree, read_baseline(path).counts)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"layout: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
