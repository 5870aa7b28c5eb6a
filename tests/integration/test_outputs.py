#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The result folders: complete, in the vendor's format, the same whenever a session is analysed."""

import csv
import filecmp
import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

from harness import (DONE, FAILED, PARTIAL, ROOT, SANITIZED, SOAK, USAGE, Case, Session, main, need, need_root,
                     pid_list,
                     ranks_of, test, wait_for_events)

CHECK = ROOT / "tools" / "conformance" / "check"
RESULT = re.compile(r"_ascend_pt$")
ENOUGH = 30_000 if SOAK else 7_000  # events


def conforms(case: Case, *arguments: object) -> None:
    run = case.run(["/usr/bin/python3", CHECK, *[str(a) for a in arguments]], seconds=240)
    failures = "\n".join(line for line in run.out.splitlines() if not line.startswith(("PASS", "SKIP", "NOTE")))
    assert run.status == 0, f"{failures[:1500]} {run.err[-500:]}"


def session_of(case: Case, *options: str, marker: bool = True) -> Session:
    """A capture of two ranks that is not analysed yet: it ends when there is
    enough of it, however long that takes."""
    need_root()
    job = case.sim_job("--ranks", 2)
    step = ("--step-marker", "train_step@1") if marker else ()
    where = case.path(f"session{len(case.running)}")
    run = case.record("-p", pid_list(ranks_of(job)), "-o", where, "--export", "none", *step, *options)
    wait_for_events(where, ENOUGH)
    run.signal(signal.SIGINT)
    session = run.result(60).expect(DONE).session
    job.kill()
    return session


_usual: list[Path] = []


def usual_session(case: Case) -> Session:
    """A copy of the one capture without special options that all tests share."""
    if not _usual:
        made = session_of(case).path
        _usual.append(Path(tempfile.mkdtemp(prefix="npuscope-test-outputs.")) / made.name)
        shutil.copytree(made, _usual[0])
    copy = case.path("usual") / _usual[0].name
    shutil.copytree(_usual[0], copy)
    return Session(copy)


def folders(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_dir() and RESULT.search(p.name))


def files(path: Path) -> dict[str, Path]:
    return {str(p.relative_to(path)): p for p in sorted(path.rglob("*")) if p.is_file()}


def suffixes(path: Path) -> set[str]:
    return {p.suffix for p in files(path).values()}


@test
def formats(case: Case) -> None:
    """Text alone, database alone, both: each complete, and both have the same."""
    session = usual_session(case)
    outs = {}
    for name in ("text", "db", "text,db"):
        outs[name] = case.path(name)
        result = case.analyze(session.path, "-o", outs[name], "--export", name).expect(DONE)
        assert sorted(result.out.splitlines()) == [str(p) for p in folders(outs[name])], result.out
        assert len(folders(outs[name])) == 2, "one folder for each rank"
        conforms(case, outs[name])
    for folder in folders(outs["text"]):
        databases = [p.name for p in folder.rglob("*.db")]
        assert databases == ["ftrace_data.db"], \
            f"{databases}: a profiler's database hides trace_view.json from MindStudio Insight"
        assert (folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").exists()
    for folder in folders(outs["db"]):
        assert not list(folder.rglob("trace_view.json")) and not list(folder.rglob("*.csv"))
    for text, db in zip(folders(outs["text"]), folders(outs["db"])):
        conforms(case, "--same-session", text, db)
    for both in folders(outs["text,db"]):
        conforms(case, "--same-session", both, both)


@test
def bounds_and_no_steps(case: Case) -> None:
    """A poorer capture is still in the format."""
    session = session_of(case, "--task-source", "host", marker=False)
    out = case.path("out")
    case.analyze(session.path, "-o", out).expect(DONE)
    conforms(case, out)


@test
def nothing_measured(case: Case) -> None:
    """Times that nobody measured: empty in tables, the least length where
    viewers add up, and a note about them."""
    session = session_of(case, "--task-source", "host")
    out = case.path("out")
    case.analyze(session.path, "-o", out).expect(DONE)
    conforms(case, out)
    for folder in folders(out):
        output = folder / "ASCEND_PROFILER_OUTPUT"
        with open(output / "kernel_details.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) > 20 and all(not row["Duration(us)"] for row in rows), rows[:3]
        with open(output / "op_statistic.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows and all(row["Total Time(us)"] == "N/A" for row in rows), rows[:3]
        with open(output / "step_trace_time.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        reported = [row for row in rows if not row["Step"] or row["Computing"] or row["Free"]]
        assert rows and not reported, f"zeros that say that the device did nothing: {reported[:3]}"
        notes = (output / "npuscope_notes.txt").read_text()
        assert "kernel_details.csv" in notes and "step_trace_time.csv" in notes, notes
        [path] = output.glob("ascend_pytorch_profiler_*.db")
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT DISTINCT endNs - startNs FROM TASK").fetchall() == [(1,)]
            assert db.execute("SELECT sum(endNs - startNs) FROM OVERLAP_ANALYSIS WHERE type != 1").fetchone()[0] > 0


@test
def ranks_and_the_whole_host(case: Case) -> None:
    """Of a capture of both, each can be given to MindStudio Insight alone."""
    need_root()
    job = case.sim_job("--ranks", 2)
    # Task logs of jobs that other tests record beside this one stay theirs.
    run = case.record("-a", "-d", "2s", "-o", case.path("session"), "--host-sys", "cpu,mem,disk,network",
                      "--task-source", "host")
    result = run.result(90).expect(DONE, PARTIAL)
    job.kill()
    session = result.session.path
    ranks = folders(session)
    assert {path.parent for path in ranks} == {session / "ranks"} and len(ranks) >= 2, ranks
    [whole] = (session / "whole_host").iterdir()
    assert whole.name.startswith("PROF_"), whole
    assert set(result.out.splitlines()[1:]) == {str(path) for path in (*ranks, whole)}, result.out
    conforms(case, session / "ranks")
    with sqlite3.connect(next(whole.glob("msprof_*.db"))) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        assert not tables & {"TASK", "COMMUNICATION_OP", "OVERLAP_ANALYSIS"}, tables
        names = dict(db.execute("SELECT pid, name FROM NPUSCOPE_PROCESS"))
        assert all(names.get(pid) for pid in ranks_of(job)), names
        for table in ("HOST_DISK_USAGE", "HOST_NETWORK_USAGE"):
            assert db.execute(f"SELECT count(*) FROM {table} WHERE usage IS NULL").fetchone() == (0,), table


@test
def show_prints_what_findings_have(case: Case) -> None:
    """One set of findings: in the result, and on the terminal, of the
    session, of both forms of the result."""
    session = session_of(case, "--host-sys", "cpu,mem,osrt")
    for name in ("text", "db", "text,db"):
        out = case.path(name)
        case.analyze(session.path, "-o", out, "--export", name).expect(DONE)
        for folder in folders(out):
            stored = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "npuscope_findings.json").read_text())
            shown = case.npuscope("show", "--json", folder).expect(DONE, PARTIAL)
            [result] = json.loads(shown.out)["results"]
            assert {key: value for key, value in result.items() if key != "path"} == stored, f"{name}: {folder}"


@test
def helper_threads(case: Case) -> None:
    """What npuscope itself runs in the job is no part of the job, unless it is requested."""
    session = session_of(case, "--host-sys", "cpu,osrt", "--stacks=cpu,offcpu")
    name = "npuscope_agent"
    for options, there in (((), False), (("--show-self",), True)):
        out = case.path(f"out{len(options)}")
        case.analyze(session.path, "-o", out, "--export", "text,db,folded", *options).expect(DONE)
        for folder in folders(out):
            output = folder / "ASCEND_PROFILER_OUTPUT"
            [path] = output.glob("ascend_pytorch_profiler_*.db")
            with sqlite3.connect(path) as db:
                rows = db.execute("SELECT globalTid FROM NPUSCOPE_THREAD JOIN STRING_IDS ON id = name WHERE value = ?",
                                  (name,))
                tids = {gtid for (gtid,) in rows}
                calls = {gtid for (gtid,) in db.execute("SELECT DISTINCT globalTid FROM OSRT_API")}
                stacks = {gtid for (gtid,) in db.execute("SELECT DISTINCT globalTid FROM NPUSCOPE_STACK")}
            assert bool(tids) == there and bool(tids & calls) == there and bool(tids & stacks) == there, (options, tids)
            lanes = {event["args"]["name"] for event in json.loads((output / "trace_view.json").read_text())
                     if event["ph"] == "M" and event["name"] == "thread_name"}
            assert any(lane.startswith(name) for lane in lanes) == there, (options, lanes)
            for stem in ("npuscope_oncpu", "npuscope_offcpu"):
                # a job that waits for its device need not have been seen on a CPU
                folded = output / f"{stem}.folded"
                lines = folded.read_text().splitlines() if folded.exists() else []
                assert there or not any(line.startswith(name) for line in lines), (stem, lines[:5])


@test
def level_two(case: Case) -> None:
    session = session_of(case, "--level", "2")
    out = case.path("out")
    case.analyze(session.path, "-o", out).expect(DONE)
    conforms(case, out)


@test
def level_zero(case: Case) -> None:
    """What runs on the device, by name, and no layer of the host."""
    session = session_of(case, "--level", "0")
    assert not [p for p in session.json["probes"] if p["symbol"] == "aclrtMalloc"]
    out = case.path("out")
    case.analyze(session.path, "-o", out).expect(DONE)
    conforms(case, out)
    for folder in folders(out):
        with open(folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        names = {row["Name"] for row in rows}
        assert len(rows) > 100 and any("MatMulV2" in name for name in names), names


@test
def without_osrt(case: Case) -> None:
    session = session_of(case, "--host-sys", "none")
    out = case.path("out")
    case.analyze(session.path, "-o", out).expect(DONE)
    conforms(case, out)


def same_file(a: Path, b: Path) -> bool:
    if a.suffix != ".db":
        return filecmp.cmp(a, b, shallow=False)
    dumps = []
    for path in (a, b):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            dumps.append(list(db.iterdump()))
    return dumps[0] == dumps[1]


@test
def analysed_again_elsewhere(case: Case) -> None:
    """The session moves to another directory; what is written there is the same, byte for byte."""
    session = usual_session(case)
    first, second = case.path("first"), case.path("second")
    case.analyze(session.path, "-o", first).expect(DONE)
    moved = case.path("moved") / session.path.name
    shutil.copytree(session.path, moved)
    shutil.rmtree(session.path)
    case.analyze(moved, "-o", second, cwd="/").expect(DONE)
    assert files(first).keys() == files(second).keys()
    different = [name for name, path in files(first).items() if not same_file(path, files(second)[name])]
    assert not different, different
    assert not folders(moved), "results were written into the session although -o was given"


@test
def record_and_analyze_agree(case: Case) -> None:
    """What `record` writes at the end of a capture is what `analyze` writes later."""
    need_root()
    job = case.sim_job("--ranks", 1)
    run = case.record("-p", ranks_of(job)[0], "-o", case.path("out"), "--step-marker", "train_step@1")
    wait_for_events(case.path("out"), ENOUGH)
    run.signal(signal.SIGINT)
    result = run.result(60).expect(DONE)
    job.kill()
    paths = result.out.splitlines()
    assert paths[0] == str(result.session.path) and len(paths) == 2, result.out
    again = case.path("again")
    case.analyze(result.session.path, "-o", again).expect(DONE)
    names = files(Path(paths[1]))
    assert names.keys() == files(folders(again)[0]).keys()
    different = [n for n, p in names.items() if not same_file(p, files(folders(again)[0])[n])]
    assert not different, different


@test
def nothing_for_the_world(case: Case) -> None:
    """Directories 0750 and files 0640, whatever the umask: captures hold other people's arguments."""
    session = usual_session(case)
    case.analyze(session.path, "-o", case.path("out"), preexec_fn=lambda: os.umask(0) and None).expect(DONE)
    for top in (session.path, *folders(case.path("out"))):
        for path in (top, *top.rglob("*")):
            mode = path.stat().st_mode & 0o777
            assert mode == (0o750 if path.is_dir() else 0o640), f"{path}: {mode:o}"


@test
def sanitized_analyzer(case: Case) -> None:
    """The same results from the build with ASan and UBSan, and not a word from either."""
    need(SANITIZED.exists(), "build/san/npuscope: make SAN=1")
    session = usual_session(case)
    for name, program in (("plain", None), ("sanitized", SANITIZED)):
        kwargs = {"program": program} if program else {}
        result = case.analyze(session.path, "-o", case.path(name), seconds=140, **kwargs).expect(DONE)
        assert "runtime error" not in result.err
    plain, sanitized = files(case.path("plain")), files(case.path("sanitized"))
    assert plain.keys() == sanitized.keys()
    assert not [n for n, p in plain.items() if not same_file(p, sanitized[n])]


@test
def several_sessions(case: Case) -> None:
    """Sessions of several hosts or moments in one call; one that is none costs the status, not the others."""
    one, two = usual_session(case), session_of(case)
    out = case.path("out")
    result = case.npuscope("analyze", one.path, two.path, "-o", out).expect(DONE)
    assert len(folders(out)) == len(result.out.splitlines()) == 4, result.out
    result = case.npuscope("analyze", one.path, case.path("none"), "-o", case.path("more"))
    result.expect(FAILED, PARTIAL)
    assert len(folders(case.path("more"))) == 2 and any(str(case.path("none")) in c for c in result.complaints)


@test
def trace_is_what_viewers_read(case: Case) -> None:
    """trace_view.json with a JSON parser that is not ours: every slice has its fields, none is negative."""
    session = usual_session(case)
    case.analyze(session.path, "-o", case.path("out"), "--export", "text").expect(DONE)
    now = time.time() * 1e6
    for folder in folders(case.path("out")):
        trace = json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
        slices = [e for e in trace if e["ph"] == "X"]
        assert len(slices) > 1000, len(slices)
        for e in slices:
            assert float(e["dur"]) >= 0 and abs(float(e["ts"]) - now) < 600e6, e
            assert e["name"] and "pid" in e and "tid" in e, e
        starts = {e["id"] for e in trace if e["ph"] == "s"}
        ends = {e["id"] for e in trace if e["ph"] == "f"}
        assert starts == ends and starts, "arrows without a beginning or an end"
        named = {(e["pid"], e["tid"]) for e in trace if e["ph"] == "M" and e["name"] == "thread_name"}
        assert {(e["pid"], e["tid"]) for e in slices} <= named, "a lane without a name"


def reference_data() -> Path:
    path = os.environ.get("NPUSCOPE_REFERENCE_DATA")
    need(path is not None, "NPUSCOPE_REFERENCE_DATA: a directory with captures of the vendor's profiler")
    assert path and Path(path).is_dir(), f"NPUSCOPE_REFERENCE_DATA={path} is no directory"
    return Path(path)


@test
def the_checker_accepts_real_captures(case: Case) -> None:
    """Otherwise it would measure us against something else than the vendor's profiler."""
    real = folders(reference_data())
    assert real, "no *_ascend_pt in NPUSCOPE_REFERENCE_DATA"
    conforms(case, *real)


@test
def export_words(case: Case) -> None:
    session = usual_session(case)
    for junk in ("", "pdf", "text,pdf", "TEXT"):
        result = case.analyze(session.path, "-o", case.path("junk"), "--export", junk).expect(USAGE)
        assert result.err.strip() and not case.path("junk").exists(), result
    case.analyze(session.path, "-o", case.path("none"), "--export", "none").expect(DONE)


if __name__ == "__main__":
    try:
        status = main()
    finally:
        for made in _usual:
            shutil.rmtree(made.parent, ignore_errors=True)
    sys.exit(status)
