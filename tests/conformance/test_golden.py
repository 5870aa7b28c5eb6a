#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""All results of fixed inputs are byte for byte as in
tests/golden/expected.txt, and changes to them are detected.

    test_golden.py [WORD...]     only cases whose name holds a WORD
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Callable

sys.dont_write_bytecode = True

from harness import ROOT, Skip, Tests  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "golden"))
import golden  # noqa: E402

Test = Callable[[], None]


def able() -> None:
    """Last digits of what is computed in floating point are those of one processor."""
    if not golden.PROGRAM.exists():
        raise Skip(f"{golden.PROGRAM} is missing: make")
    if platform.machine() != "x86_64":
        raise Skip("expected.txt is of x86_64: compilers for others join multiplications and additions")


def as_expected(name: str, found: Future[golden.Files], known: dict[str, golden.Files]) -> Test:
    """A case's test."""
    def test() -> None:
        able()
        printed = golden.differences(known.get(name), found.result())
        assert not printed, "; ".join(printed[:8]) + (f"; {len(printed) - 8} more" if len(printed) > 8 else "") + \
            ". `make golden GOLDEN='keep=DIR against=DIR'` shows it"
    return test


def no_other_cases(known: dict[str, golden.Files]) -> None:
    """Nothing is expected of cases that are no more, and names of cases are distinct in file names."""
    names = [case.name for case in golden.CASES]
    assert set(known) == set(names), f"GOLDEN=update: {set(known) ^ set(names)}"
    assert len({golden.folder_name(name) for name in names}) == len(names)


def differences_are_found() -> None:
    """Of contents, rows, names and inputs."""
    file = golden.File
    want = {"input .": file("1"), "text a.csv": file("2"), "text,db a.csv": file("2"),
            "db x.db": file("3", "TASK=5 B=1")}
    assert not golden.differences(want, dict(want))
    for changed, line in (({"text a.csv": file("9")}, "differs: text a.csv"),
                          ({"db x.db": file("4", "TASK=4 B=1")}, "TASK 5 -> 4"),
                          ({"db x.db": file("4", "B=1")}, "TASK 5 -> 0"), ({"folded f": file("7")}, "new: folded f"),
                          ({"input .": file("8")}, "input")):
        (printed,) = golden.differences(want, {**want, **changed})
        assert line in printed, printed
    for missing in list(want)[1:]:
        assert golden.differences(want, {key: want[key] for key in want if key != missing}) == [f"missing: {missing}"]
    assert golden.differences(None, want)


def expected_reads_back() -> None:
    """What is written is what is read: also a file that differs by export."""
    with tempfile.TemporaryDirectory() as folder:
        kept, golden.EXPECTED = golden.EXPECTED, Path(folder) / "expected.txt"
        try:
            name = golden.CASES[0].name
            files = {"input .": golden.File("1"), "text a b.csv": golden.File("2"), "db a b.csv": golden.File("3"),
                     "text,db a b.csv": golden.File("2"), "db x.db": golden.File("4", "TASK=5 B=1")}
            golden.write({name: files})
            assert golden.expected() == {name: files}, golden.expected()
        finally:
            golden.EXPECTED = kept


def databases_are_separate() -> None:
    """By a value, its type, the order of rows and of columns, an index; not by how SQLite lays them out."""
    def dumped(script: str) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.db"
            db = sqlite3.connect(path)
            db.executescript(script)
            db.close()
            return golden.dump(path)[0]

    rows = "INSERT INTO T VALUES(1,'x'),(2,'y');"
    made = "CREATE TABLE T (a,b);"
    one = dumped(made + rows)
    assert one == dumped(made + rows + "CREATE TABLE U (a); DROP TABLE U; VACUUM;")
    others = [made + "INSERT INTO T VALUES(1,'x'),(2,'z');", made + "INSERT INTO T VALUES(1,'x'),('2','y');",
              made + "INSERT INTO T VALUES(1,'x'),(2.0,'y');", made + "INSERT INTO T VALUES(1,'x'),(2,x'79');",
              made + "INSERT INTO T VALUES(2,'y'),(1,'x');", made + "INSERT INTO T VALUES(1,'x');",
              "CREATE TABLE T (b,a);" + rows, made + rows + "CREATE INDEX I ON T (a);",
              made + rows + "PRAGMA user_version=3;"]
    for other in others:
        assert dumped(other) != one, other


def kept_results_are_compared() -> None:
    """The first line that differs is shown, of a long one the offset."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "old", Path(folder) / "new"
        for root, text in ((old, "same\nab" + "x" * 5000 + "cd\n"), (new, "same\nab" + "x" * 5000 + "ef\n")):
            (root / "case" / "out" / "text").mkdir(parents=True)
            (root / "case" / "out" / "text" / "a.csv").write_text(text)
        (new / "case" / "out" / "text" / "b.csv").write_text("")
        first, second = golden.compare_kept(old, new)
        assert "line 2, column 5003" in first and "xcd" in first and "xef" in first and len(first) < 800, first
        assert second.startswith("only in") and second.endswith("b.csv"), second
        assert not list(golden.compare_kept(old, old))


def main() -> int:
    """Entry point."""
    tests, words, known = Tests(), sys.argv[1:], golden.expected()
    cases = [case for case in golden.CASES if not words or any(word in case.name for word in words)]
    with tempfile.TemporaryDirectory(prefix="npuscope-golden.") as folder, \
            ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for test in (differences_are_found, expected_reads_back, databases_are_separate, kept_results_are_compared):
            tests.run(test.__name__, test)
        tests.run("no_other_cases", lambda: no_other_cases(known))
        if golden.PROGRAM.exists() and platform.machine() == "x86_64":
            found = {case.name: pool.submit(golden.results, case, Path(folder)) for case in cases}
        else:
            found = {case.name: Future() for case in cases}
        for case in cases:
            tests.run(case.name, as_expected(case.name, found[case.name], known))
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
