#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Marks and ranges that a job sets with mstx. Witness: the job's own clock around each call."""

import json
import sqlite3
import sys

from collections import Counter
from pathlib import Path
from typing import Optional

from harness import (BUILD, DONE, PARTIAL, USAGE, Arg, Case, Result, add_test, build_library, environment, main,
                     need_job,
                     need_root, test)

MARKER, RANGE = 0, 2


def marks(case: Case, how: str, numbers: int) -> None:
    need_root()
    build_library(case, "mstx_lib.c", "libms_tools_ext.so", case.path("lib"))
    job = case.start([need_job("mstx_job"), how], env=environment(libs=[case.path("lib")], NUMBERS=numbers))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("")
    assert job.wait() == 0
    session = run.result().expect(DONE, PARTIAL).session
    out = case.path("out")
    case.analyze(session.path, "-o", out).expect(DONE)

    wanted = [line.split("|") for line in job.out.splitlines() if "|" in line]
    assert len(wanted) == 3
    database = next(out.rglob("ascend_pytorch_profiler*.db"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        rows = {row[0]: row[1:] for row in db.execute(
            "SELECT m.value, d.value, globalTid & 0xffffffff, endGlobalTid & 0xffffffff, startNs, endNs, eventType"
            " FROM MSTX_EVENTS JOIN STRING_IDS m ON m.id = message JOIN STRING_IDS d ON d.id = domainId")}
    assert set(rows) == {line[0] for line in wanted}, rows
    for message, domain, *fields in wanted:
        first, last, began, begun, ending, ended = map(int, fields)
        row = rows[message]
        assert row[:3] == (domain, first, last), f"{message}: {row}"
        assert began <= row[3] <= begun and ending <= row[4] <= ended, f"{message}: {row}, {fields}"
        assert row[5] == (MARKER if message.startswith("here") else RANGE), row
        assert (row[3] == row[4]) == message.startswith("here"), row
    trace = json.loads(next(out.rglob("trace_view.json")).read_text())
    events = [e for e in trace if isinstance(e.get("args"), dict) and "event_type" in e["args"]]
    assert {(e["name"], e["args"]["domain"]) for e in events} == {(line[0], line[1]) for line in wanted}, events


for way, count in (("one", 1), ("one", 0), ("threads", 1)):
    add_test(f"ranges_{'with' if count else 'without'}_numbers_{way}", lambda case, way=way, count=count:
             marks(case, way, count))


# ---- jobs that have mstx from its headers ------------------------------------------------------------------

INJECTION = BUILD / "libnpuscope_mstx.so"
ROUNDS = 20
LENGTHS = (127, 128, 255, 508, 509, 65536)
LONGEST = 508
# One round of mstx_header_job, and what each belongs to.
ROUND = {"step": "default", "batch": "input", "read": "input", "write": "output", "whole": "default"}


def long_text(i: int) -> str:
    """As mstx_header_job makes it, and as it is shown."""
    text = "".join(chr(ord("a") + (k + k // 26) % 26) for k in range(LENGTHS[i] - 1)) + chr(ord("A") + i)
    return text if len(text) <= LONGEST else chr(ord("A") + i) + text[1:LONGEST] + " [cut]"


def header_job(case: Case, how: str, *options: Arg,
               injection: Optional[Path] = INJECTION) -> tuple[Result, Counter[tuple[str, str]]]:
    """Runs it under a capture: (the capture, how often each message was recorded in which domain)."""
    need_root()
    more: dict[str, Arg] = {"MSTX_INJECTION_PATH": injection} if injection else {}
    job = case.start([need_job("mstx_header_job"), ROUNDS, how], env=environment(**more))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--task-source", "host", *options)
    job.send("")
    assert job.wait() == 7
    assert f"last {3 * ROUNDS if injection else 0}\n" in job.out, job.out
    return run.result(), recorded(case, run.result())


def recorded(case: Case, result: Result) -> Counter[tuple[str, str]]:
    out = case.path("analysed")
    case.analyze(result.session.path, "-o", out)
    found: Counter[tuple[str, str]] = Counter()
    for database in out.rglob("ascend_pytorch_profiler*.db"):
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'MSTX_EVENTS'").fetchone():
                continue
            found.update(db.execute("SELECT m.value, d.value FROM MSTX_EVENTS JOIN STRING_IDS m ON m.id = message"
                                    " JOIN STRING_IDS d ON d.id = domainId"))
    return found


def expected(*domains: str) -> dict[tuple[str, str], int]:
    """What a job that makes ROUNDS rounds has in these domains."""
    wanted = {(message, domain): ROUNDS for message, domain in ROUND.items() if domain in domains}
    if "default" in domains:
        wanted.update({(long_text(i), "default"): 1 for i in range(len(LENGTHS))})
    return wanted


ALL = ("default", "input", "output")


def by_headers(case: Case, how: str) -> None:
    """Every mark, under the name of its domain, also of one that was made before the
    capture; texts whole or with a label."""
    result, found = header_job(case, how)
    assert found == expected(*ALL), found
    session = result.expect(DONE, PARTIAL).session
    assert session.json["texts_cut"] == sum(n > LONGEST for n in LENGTHS)
    assert sum("texts were longer than" in line for line in result.complaints) == 1, result.err
    assert session.json["mstx_filtered"] == session.json["mstx_unnamed_domains"] == 0 == session.dropped()
    with_probes = [lib["path"] for lib in session.json["libraries"] if lib["probes"]]
    assert with_probes == [str(INJECTION)], with_probes


for _way in ("early", "late", "fork"):
    add_test(f"headers_{_way}", lambda case, way=_way: by_headers(case, way))


@test
def headers_without_injection(case: Case) -> None:
    """Nothing can be seen, and the job is as it is alone."""
    _result, found = header_job(case, "late", injection=None)
    assert not found, found


@test
def injection_without_a_capture(case: Case) -> None:
    """The library alone changes nothing but the numbers of ranges."""
    outputs = []
    for env in ({}, {"MSTX_INJECTION_PATH": INJECTION}, {"LD_PRELOAD": INJECTION}):
        command = [need_job("mstx_header_job"), ROUNDS, "late"]
        job = case.start(command, env=environment(**env))  # type: ignore[arg-type]
        job.wait_for("^ready")
        job.send("")
        assert job.wait() == 7 and not job.err
        outputs.append(job.out.splitlines()[1])
    assert outputs == ["last 0", f"last {3 * ROUNDS}", f"last {3 * ROUNDS}"], outputs


@test
def through_the_library_with_injection(case: Case) -> None:
    """libms_tools_ext.so calls the injection library as well: its calls are recorded once."""
    need_root()
    build_library(case, "mstx_ext_lib.c", "libms_tools_ext.so", case.path("lib"))
    job = case.start([need_job("mstx_job"), "one"],
                     env=environment(libs=[case.path("lib")], MSTX_INJECTION_PATH=INJECTION))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--task-source", "host")
    job.send("")
    assert job.wait() == 0
    found = recorded(case, run.result())
    assert found == {("training step", "default"): 1, ("here, \"now\"", "default"): 1, ("read batch", "input"): 1}, \
        found


# ---- which of them -----------------------------------------------------------------------------------------

def only(case: Case, wanted: tuple[str, ...], how: str, *options: str) -> None:
    result, found = header_job(case, how, *options)
    assert found == expected(*wanted), f"{options}: {found}"
    session = result.session
    # Each range is two calls of which both are left out, each mark one.
    calls = {"default": 3 * ROUNDS + len(LENGTHS), "input": 3 * ROUNDS, "output": 2 * ROUNDS}
    assert session.json["mstx_filtered"] == sum(n for domain, n in calls.items() if domain not in wanted), session.json
    assert not any("mstx" in line for line in result.complaints), result.err


for _name, _wanted, _options in (("include", ("input", "output"), ("--mstx-domain-include", "input,output,none such")),
                                 ("include_default", ("default",), ("--mstx", "--mstx-domain-include=default")),
                                 ("exclude", ("default", "input"), ("--mstx-domain-exclude=output,output",)),
                                 ("exclude_default", ("input", "output"),
                                  ("--mstx=on", "--mstx-domain-exclude=default"))):
    for _way in ("early", "late"):
        add_test(f"{_name}_{_way}", lambda case, w=_wanted, o=_options, h=_way: only(case, w, h, *o))


@test
def include_wins(case: Case) -> None:
    """Both given: as the vendor's profiler, with a line."""
    result, found = header_job(case, "late", "--mstx-domain-include=input", "--mstx-domain-exclude=input")
    assert found == expected("input"), found
    assert sum("are both given: only the first" in line for line in result.complaints) == 1, result.err


@test
def mstx_off(case: Case) -> None:
    """No marks, no probes for them, and no meaning in domains."""
    result, found = header_job(case, "late", "--mstx=off", "--mstx-domain-include=input")
    assert not found, found
    assert sum("have no effect" in line for line in result.complaints) == 1, result.err
    assert not result.session.json["probes"]


@test
def domains_that_cannot_be_named(case: Case) -> None:
    """Made before the capture, by a consumer that is not ours: left out or kept, and a line reports which."""
    need_root()
    build_library(case, "mstx_lib.c", "libms_tools_ext.so", case.path("lib"))
    for option, kept in (("include", False), ("exclude", True)):
        job = case.start([need_job("mstx_job"), "early"], env=environment(libs=[case.path("lib")], NUMBERS=1))
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-o", case.path(option), "--export", "none", "--task-source", "host",
                          f"--mstx-domain-{option}", "input")
        job.send("")
        assert job.wait() == 0
        result = run.result().expect(PARTIAL)
        assert sum("1 mstx domains were made before the capture" in line and ("kept" if kept else "left out") in line
                   for line in result.complaints) == 1, result.err
        names = [name for name, domain in recorded(case, result) if domain.startswith("domain 0x")]
        assert names == (["read batch"] if kept else []), names


@test
def names_of_domains_that_make_no_sense(case: Case) -> None:
    for value in ("", "a,,b", "x" * 128, ",".join(f"d{i}" for i in range(257))):
        result = case.npuscope("record", "-p", 1, "--mstx-domain-include", value).expect(USAGE)
        assert "--mstx-domain-include" in result.err, result.err


if __name__ == "__main__":
    sys.exit(main())
