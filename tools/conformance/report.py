# SPDX-License-Identifier: BSD-2-Clause
"""Checks by id, what they examined, and what they found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, TextIO

MAX_OFFENDERS = 5


class Skip(Exception):
    """Raised by a check that does not apply; the text is the reason."""


@dataclass
class Check:
    """The outcome of one check on one result folder."""
    ident: str
    title: str
    examined: int = 0
    failures: int = 0
    offenders: list[str] = field(default_factory=list)
    reason: str = ""
    remarks: list[str] = field(default_factory=list)

    def inspected(self, count: int = 1) -> None:
        """COUNT more objects were checked."""
        self.examined += count

    def fail(self, text: str) -> None:
        """One of them is wrong."""
        self.failures += 1
        if len(self.offenders) < MAX_OFFENDERS:
            self.offenders.append(text)

    def expect(self, good: bool, text: str) -> None:
        """Check one thing and report TEXT unless it is GOOD."""
        self.examined += 1
        if not good:
            self.fail(text)

    def note(self, text: str) -> None:
        """Something worth knowing that is no fault."""
        self.remarks.append(text)

    @property
    def status(self) -> str:
        """PASS, FAIL or SKIP."""
        if self.failures:
            return "FAIL"
        return "PASS" if self.examined else "SKIP"


Rule = Callable[[Any, Check], None]


class RuleSet:
    """A group of checks of the same kind of object."""

    def __init__(self) -> None:
        self.rules: list[tuple[str, str, Rule]] = []

    def rule(self, ident: str, title: str) -> Callable[[Rule], Rule]:
        """Register a function as the check IDENT."""
        def register(function: Rule) -> Rule:
            self.rules.append((ident, title, function))
            return function
        return register

    def run(self, subject: Any, ignored: set[str]) -> list[Check]:
        """Run every check; one that trips over the data has failed."""
        checks = []
        for ident, title, function in self.rules:
            check = Check(ident, title)
            checks.append(check)
            if ident in ignored:
                check.reason = "ignored on request"
                continue
            try:
                function(subject, check)
            except Skip as reason:
                check.reason = str(reason)
            except Exception as error:          # data so broken that the check cannot go on
                check.fail(f"cannot be checked: {type(error).__name__}: {error}")
            if not check.examined and not check.failures and not check.reason:
                check.reason = "nothing to look at"
        return checks


def show(checks: list[Check], out: TextIO, verbose: bool) -> int:
    """Print the outcome of CHECKS; return the number of failures."""
    for check in checks:
        detail = f"{check.examined} examined" if check.status != "SKIP" else check.reason
        if check.failures:
            detail += f", {check.failures} wrong"
        if verbose or check.status != "SKIP":
            print(f"{check.status} {check.ident:4} {check.title} ({detail})", file=out)
        for text in check.offenders:
            print(f"       {text}", file=out)
        if check.failures > len(check.offenders):
            print(f"       and {check.failures - len(check.offenders)} more", file=out)
        for text in check.remarks if verbose else ():
            print(f"       note: {text}", file=out)
    return sum(check.status == "FAIL" for check in checks)
