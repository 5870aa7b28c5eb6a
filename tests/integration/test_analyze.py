#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`npuscope analyze`: its options, what it takes, where it writes and what it leaves alone."""

import contextlib
import gzip
import hashlib
import json
import os
import pty
import re
import select
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Optional

from harness import (BUILD, DONE, FAILED, NPUSCOPE, PARTIAL, ROOT, SOAK, USAGE, Arg, Case, Result, need, need_program,
                     slowed,
                     test, main)

SCRATCH = Path(f"/tmp/npuscope-test-analyze-{os.getpid()}")
GEN_CANN = ROOT / "build" / "tests" / "gen-cann"
AUX = ROOT / "tests" / "cannraw_aux"
LARGE = 1_500_000 if SOAK else 100_000  # tasks of a session that takes seconds, where it is slowed()

ALWAYS = {"npuscope_findings.json", "npuscope_notes.txt", "profiler_info_0.json", "profiler_info_1.json",
          "profiler_metadata.json"}
FORMATS = {
    "text": lambda name: name.endswith((".csv", ".csv.gz"))
    or name.startswith(("trace_view.json", "communication", "ftrace_data.db")),
    "db": lambda name: name.endswith(".db"),
    "perfetto": lambda name: name == "npuscope.pftrace",
    "folded": lambda name: name.endswith(".folded"),
}


# ---- inputs, each made once --------------------------------------------------------------------

def generator() -> Path:
    """The program that makes sessions with known content."""
    made = BUILD / "bench" / "gen_session"
    if made.exists():
        return made
    made = SCRATCH / "gen_session"
    if not made.exists():
        SCRATCH.mkdir(exist_ok=True)
        sources = [ROOT / "tools" / "bench" / "gen_session_main.c", ROOT / "tests" / "unit" / "gen_session.c"]
        subprocess.run([need_program("gcc", "gcc"), "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-o", made,
                        f"-I{ROOT}/kheaders", f"-I{ROOT}/analyzer", f"-I{ROOT}/tests/unit", *sources, "-lz", "-lm"],
                       check=True)
    return made


def made_once(name: str, make) -> Path:
    path = SCRATCH / name
    if not path.exists():
        SCRATCH.mkdir(exist_ok=True)
        make(path)
    return path


def session(case: Case, tasks: int = 300) -> Path:
    """A fresh copy of a session of two ranks."""
    made = made_once(f"session{tasks}", lambda path: subprocess.run([generator(), path, str(tasks)], check=True))
    copy = case.path("npuscope_session")
    shutil.copytree(made, copy)
    return copy


def prof(parent: Path) -> Path:
    """A fresh PROF_* directory."""
    need(GEN_CANN.exists(), "build/tests/gen-cann: make witnesses")
    done = subprocess.run([GEN_CANN, "--tasks", "200", "--memcpy-every", "20", parent], capture_output=True, text=True,
                          check=True)
    return Path(done.stdout.splitlines()[-1])


def torch(parent: Path) -> Path:
    """A fresh *_ascend_pt directory with a PROF_* directory inside."""
    below = parent / "only_a_source"
    truth = parent / "truth"
    need(GEN_CANN.exists(), "build/tests/gen-cann: make witnesses")
    done = subprocess.run([GEN_CANN, "--tasks", "200", "--truth", truth, below], capture_output=True, text=True,
                          check=True)
    done = subprocess.run([sys.executable, AUX / "framework.py", parent, "--memory", "--prof",
                           done.stdout.splitlines()[-1], "--prof-truth", truth, "--truth", parent / "fw_truth"],
                          capture_output=True, text=True, check=True)
    shutil.rmtree(below)
    return Path(done.stdout.splitlines()[-1])


def result_of(case: Case, *args: Arg, out: str = "out", statuses: tuple[int, ...] = (DONE,)) -> list[Path]:
    """Analyses with -o OUT and returns the results' paths, which must be what was printed."""
    result = case.npuscope("analyze", *args, "-o", case.path(out), seconds=120).expect(*statuses)
    return [Path(line) for line in result.out.splitlines()]


def names(path: Path) -> set[str]:
    return {p.name for p in path.rglob("*") if p.is_file()}


def digest(path: Path) -> dict[str, str]:
    """Every entry below a directory with its content."""
    found = {}
    for entry in sorted(path.rglob("*")):
        name = str(entry.relative_to(path))
        if entry.is_symlink():
            found[name] = f"-> {os.readlink(entry)}"
        elif entry.is_file():
            found[name] = hashlib.sha256(entry.read_bytes()).hexdigest()
        else:
            found[name] = "directory"
    return found


def same(one: Path, other: Path) -> None:
    a, b = digest(one), digest(other)
    different = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    assert not different, f"{one} and {other} differ in {different[:8]}"


def no_temporary(path: Path) -> None:
    left = [str(p) for p in path.rglob("*") if p.name.endswith((".tmp", ".old"))]
    assert not left, f"left behind: {left}"


def complaint(result: Result, *words: str) -> None:
    """One line that names what is wrong, and no result."""
    lines = [line for line in result.err.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("npuscope"), f"not one line: {result}"
    for word in words:
        assert word in lines[0], f"{word!r} is not in: {lines[0]}"
    assert not result.out, f"named a result: {result.out}"


# ---- formats -----------------------------------------------------------------------------------

def check_formats(path: Path, wanted: set[str]) -> None:
    for name in names(path):
        kinds = {kind for kind, fits in FORMATS.items() if fits(name)}
        assert name in ALWAYS or kinds & wanted, f"{name} was not asked for: {sorted(wanted)}"
    for kind in wanted:
        assert any(FORMATS[kind](name) for name in names(path)), f"no {kind} in {sorted(names(path))}"


@test
def export_each(case: Case) -> None:
    """Each format alone, all together: the same bytes, and nothing that was not requested."""
    source = session(case)
    together = result_of(case, source, "--export", ",".join(FORMATS), out="all")
    assert len(together) == 2, together
    check_formats(together[0], set(FORMATS))
    for kind in FORMATS:
        alone = result_of(case, source, "--export", kind, out=kind)
        for one, whole in zip(alone, together):
            assert one.name == whole.name
            check_formats(one, {kind})
            all_of = digest(whole)
            for name, content in digest(one).items():
                is_listed = name.startswith("profiler_info")  # holds the list of formats
                assert is_listed or all_of.get(name) == content, f"{kind}: {name} is another with --export {kind}"


@test
def export_default(case: Case) -> None:
    """Text and databases."""
    source = session(case)
    for one, other in zip(result_of(case, source), result_of(case, source, "-e", "db,text", out="both")):
        same(one, other)
        check_formats(one, {"text", "db"})


@test
def export_none(case: Case) -> None:
    """Only the table of counts."""
    source = session(case)
    before = digest(source)
    result = case.analyze(source, "--export", "none").expect(DONE)
    assert not result.out and "rank 0" in result.err, result
    assert digest(source) == before


@test
def export_junk(case: Case) -> None:
    for text in ("", ",", "x", "text,x", "none,text", "text,none", "TEXT", " text", "text;db"):
        result = case.npuscope("analyze", "--export", text, "/nowhere").expect(USAGE)
        assert "--export" in result.err and not result.out, result


@test
def compressed_trace(case: Case) -> None:
    source = session(case)
    for plain, small in zip(result_of(case, source), result_of(case, source, "--gzip", out="small")):
        one, other = digest(plain), digest(small)
        trace = one.pop("ASCEND_PROFILER_OUTPUT/trace_view.json")
        assert other.pop("ASCEND_PROFILER_OUTPUT/trace_view.json.gz")
        assert one == other, "--gzip changes other files"
        packed = (small / "ASCEND_PROFILER_OUTPUT" / "trace_view.json.gz").read_bytes()
        assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == trace


# ---- generations -------------------------------------------------------------------------------

def schema_version(result: Path) -> Optional[str]:
    database = next(result.rglob("ascend_pytorch_profiler*.db"))
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        row = db.execute("SELECT value FROM META_DATA WHERE name = 'SCHEMA_VERSION'").fetchone()
    return row[0] if row else None


def kernel_columns(result: Path) -> str:
    return next(result.rglob("kernel_details.csv")).read_text().splitlines()[0]


@test
def generations(case: Case) -> None:
    source = session(case)
    old = result_of(case, source, "--compat", "a", out="a")[0]
    new = result_of(case, source, "--compat", "b", out="b")[0]
    own = result_of(case, source, "--compat", "auto", out="auto")[0]
    assert (schema_version(old), schema_version(new)) == ("1.0.0", "1.2.0")
    assert "Block Dim" in kernel_columns(old) and "Block Num" in kernel_columns(new)
    assert '"HCCL"' in (old / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text() or \
        '"Communication"' not in (old / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text()
    same(new, own)


@test
def generation_of_a_database(case: Case) -> None:
    """auto keeps that of the database, and the other can be chosen."""
    source = session(case)
    old = result_of(case, source, "--compat", "a", "-e", "db", out="a")[0]
    database = next(old.rglob("ascend_pytorch_profiler*.db"))
    assert schema_version(result_of(case, database, out="kept")[0]) == "1.0.0"
    assert schema_version(result_of(case, database, "--compat", "b", out="new")[0]) == "1.2.0"


@test
def generation_junk(case: Case) -> None:
    for text in ("", "A", "c", "ab"):
        result = case.npuscope("analyze", "--compat", text, "/nowhere").expect(USAGE)
        assert "--compat" in result.err and not result.out, result


# ---- several at once ---------------------------------------------------------------------------

@test
def processes(case: Case) -> None:
    """However many results are made at the same time, they are the same, and in the same order."""
    source = session(case)
    expected = result_of(case, source, "--max-process-number", "1", out="one")
    for number in (2, 16, 4096):
        found = result_of(case, source, "--max-process-number", number, out=f"n{number}")
        assert [p.name for p in found] == [p.name for p in expected]
        same(case.path("one"), case.path(f"n{number}"))


@test
def process_number_junk(case: Case) -> None:
    for text in ("", "0", "-1", "4097", "x", "1x", "1.5", "99999999999999999999"):
        result = case.npuscope("analyze", "--max-process-number", text, "/nowhere").expect(USAGE)
        assert "--max-process-number" in result.err and not result.out, result


@test
def several_sessions(case: Case) -> None:
    """As arguments and as a folder: one path a result, inputs in order, the same bytes as one by one."""
    sources = []
    for number in range(3):
        source = session(case)
        moved = case.path("jobs") / f"{number}"
        moved.parent.mkdir(exist_ok=True)
        source.rename(moved)
        sources.append(moved)
    for number, source in enumerate(sources):  # one capture begins later, so that names differ
        text = json.loads((source / "session.json").read_text())
        text["start"]["realtime"] = 1736408883704643212 + number * 10**9
        (source / "session.json").write_text(json.dumps(text))
    one_by_one = [p for n, s in enumerate(sources) for p in result_of(case, s, out=f"alone{n}")]
    for out, args in (("args", sources), ("folder", [case.path("jobs")])):
        found = result_of(case, *args, out=out)
        assert [p.name for p in found] == [p.name for p in one_by_one], (found, one_by_one)
        for one, other in zip(found, one_by_one):
            same(one, other)


@test
def two_of_one_name(case: Case) -> None:
    """One result must not silently replace another."""
    one = result_of(case, session(case), "-e", "db")[0]
    for name in ("a", "b"):
        shutil.copytree(one, case.path("jobs") / name / "x_ascend_pt")
    result = case.npuscope("analyze", case.path("jobs"), "-o", case.path("two"))
    if result.status == DONE:
        assert len(set(result.out.splitlines())) == 2, f"one result replaced the other: {result.out}"
    else:
        assert result.status in (FAILED, USAGE) and result.complaints, result


@test
def one_of_several_is_missing(case: Case) -> None:
    """The others are analysed; the status reports that some failed."""
    source = session(case)
    result = case.npuscope("analyze", case.path("nowhere"), source, "-o", case.path("out")).expect(FAILED)
    assert len(result.out.splitlines()) == 2, result
    assert any("nowhere" in line for line in result.complaints), result.err


@test
def every_kind_at_once(case: Case) -> None:
    """A session, CANN's raw data, PyTorch's and a database in one folder, and each as an argument."""
    jobs = case.path("jobs")
    for name in ("cann", "torch", "old"):
        (jobs / name).mkdir(parents=True)
    session(case).rename(jobs / "npuscope_session")
    prof(jobs / "cann")
    torch(jobs / "torch")
    made = result_of(case, jobs / "npuscope_session", out="first")[0]
    database = next(made.rglob("ascend_pytorch_profiler*.db"))
    shutil.copytree(made, jobs / "old" / "vendor_ascend_pt", ignore=shutil.ignore_patterns("*.json", "*.csv"))
    before = digest(jobs)
    found = result_of(case, jobs, out="out", statuses=(DONE, PARTIAL))
    assert digest(jobs) == before, "an input was changed"
    assert len(found) == 5, found
    kinds = [next(iter(p.glob("*OUTPUT")), next(iter(p.glob("mindstudio*")), p)).name for p in found]
    assert kinds.count("ASCEND_PROFILER_OUTPUT") == 4 and kinds.count("mindstudio_profiler_output") == 1, kinds
    assert any(p.name == "vendor_ascend_pt" for p in found), found
    direct = result_of(case, database, out="direct", statuses=(DONE, PARTIAL))
    assert len(direct) == 1 and (direct[0] / "ASCEND_PROFILER_OUTPUT").is_dir(), direct


# ---- in place ----------------------------------------------------------------------------------

def check_beside_input(case: Case, source: Path, new: set[str]) -> None:
    """In the input's own directory: what was there stays, what is new is whole, twice is the same."""
    before = digest(source)
    result = case.npuscope("analyze", source, "-e", "text,db", seconds=120).expect(DONE, PARTIAL)
    after = digest(source)
    assert all(after[name] == content for name, content in before.items()), "an input was changed"
    added = {name.split("/")[0] for name in after.keys() - before.keys()}
    assert added == new or new <= added and all(re.fullmatch(r"msprof_\d+\.db", n) for n in added - new), added
    assert all(Path(line).is_dir() for line in result.out.splitlines()) and result.out, result
    no_temporary(source)
    case.npuscope("analyze", source, "-e", "text,db", seconds=120).expect(DONE, PARTIAL)
    assert digest(source) == after, "a second analysis gives other results"


@test
def beside_input_session(case: Case) -> None:
    source = session(case)
    names_of = {p.name for p in result_of(case, source)}
    check_beside_input(case, source, names_of)


@test
def beside_input_cann(case: Case) -> None:
    check_beside_input(case, prof(case.path("cann")), {"mindstudio_profiler_output", "analyze"})


@test
def beside_input_torch(case: Case) -> None:
    case.path("torch").mkdir()
    check_beside_input(case, torch(case.path("torch")), {"ASCEND_PROFILER_OUTPUT"})


@test
def beside_input_database(case: Case) -> None:
    """It would be replaced by its own result."""
    made = result_of(case, session(case), "-e", "db")[0]
    before = digest(case.path("out"))
    for path in (made, made / "ASCEND_PROFILER_OUTPUT", next(made.rglob("ascend_pytorch_profiler*.db"))):
        complaint(case.npuscope("analyze", path).expect(USAGE), "-o")
    assert digest(case.path("out")) == before
    result = case.npuscope("analyze", made, "--export", "none").expect(DONE)
    assert not result.out and "rank 0" in result.err, result
    assert digest(case.path("out")) == before


@test
def over_raw_data(case: Case) -> None:
    """-o that names the input's parent would replace the input: refused, nothing is touched."""
    source = prof(case.path("cann"))
    before = digest(source.parent)
    complaint(case.npuscope("analyze", source, "-o", source.parent).expect(FAILED), "raw data")
    assert digest(source.parent) == before
    case.path("torch").mkdir()
    source = torch(case.path("torch"))
    before = digest(source.parent)
    complaint(case.npuscope("analyze", source, "-o", source.parent).expect(FAILED), "raw data")
    assert digest(source.parent) == before


@test
def over_a_database(case: Case) -> None:
    """The same for a database, whose directory holds no raw data."""
    made = result_of(case, session(case), "-e", "db")[0]
    before = digest(made.parent)
    result = case.npuscope("analyze", next(made.rglob("ascend_pytorch_profiler*.db")), "-o", made.parent)
    result.expect(FAILED, USAGE)
    complaint(result)
    assert digest(made.parent) == before, "a database was replaced by its own result"


@test
def over_other_files(case: Case) -> None:
    """A result has the name of its input's directory: what has that name already may be anything."""
    made = result_of(case, session(case), "-e", "db")[0]
    mine = case.path("home") / made.name / "src" / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    complaint(case.npuscope("analyze", made, "-o", case.path("home")).expect(FAILED), "other files")
    assert mine.read_text() == "mine"
    shutil.rmtree(mine.parent)
    for _ in range(2):  # over nothing, and over the result
        case.npuscope("analyze", made, "-o", case.path("home")).expect(DONE)


@test
def beside_input_without_framework(case: Case) -> None:
    """Data of a framework are only in the results once its files are removed."""
    case.path("torch").mkdir()
    source = torch(case.path("torch"))
    case.npuscope("analyze", source).expect(DONE)
    shutil.rmtree(source / "FRAMEWORK")
    before = digest(source)
    complaint(case.npuscope("analyze", source).expect(FAILED), "FRAMEWORK")
    assert digest(source) == before
    case.npuscope("analyze", source, "-o", case.path("out")).expect(DONE)


@test
def replaces_whole(case: Case) -> None:
    """Nothing of an older result of the same name stays."""
    source = session(case)
    made = result_of(case, source, "-e", "perfetto,folded")[0]
    (made / "ASCEND_PROFILER_OUTPUT" / "stale.csv").write_text("x")
    again = result_of(case, source, "-e", "text")[0]
    assert again == made
    check_formats(made, {"text"})
    no_temporary(case.path("out"))


# ---- links and modes ---------------------------------------------------------------------------

@test
def result_name_is_a_link(case: Case) -> None:
    """A link of the result's name is replaced, not followed."""
    source = session(case)
    made = result_of(case, source)[0]
    shutil.rmtree(made)
    elsewhere = case.path("elsewhere")
    (elsewhere / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    (elsewhere / "mine").write_text("mine")
    made.symlink_to(elsewhere)
    before = digest(elsewhere)
    result = case.npuscope("analyze", source, "-o", case.path("out"))
    assert digest(elsewhere) == before, "written through a link"
    if result.status == DONE:
        assert not made.is_symlink() and (made / "ASCEND_PROFILER_OUTPUT").is_dir()
    else:
        assert result.status == FAILED and result.complaints, result
    no_temporary(case.path("out"))


@test
def output_inside_is_a_link(case: Case) -> None:
    """In place, the same for mindstudio_profiler_output."""
    source = prof(case.path("cann"))
    elsewhere = case.path("elsewhere")
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")
    (source / "mindstudio_profiler_output").symlink_to(elsewhere)
    case.npuscope("analyze", source).expect(DONE, PARTIAL, FAILED)
    assert names(elsewhere) == {"mine"}, "written through a link"
    no_temporary(source)


@test
def input_through_a_link(case: Case) -> None:
    """A link is followed, named or below a folder; what several lead to is one input."""
    source = session(case)
    link = case.path("link")
    link.symlink_to(source)
    assert len(result_of(case, link)) == 2
    folder = case.path("folder")
    folder.mkdir()
    (folder / "link").symlink_to(source)
    (folder / "the same").symlink_to(source)
    assert len(result_of(case, folder, out="linked")) == 2
    # A folder that leads into itself ends, too.
    (folder / "again").symlink_to(folder)
    assert len(result_of(case, folder, out="circle")) == 2
    empty = case.path("empty")
    empty.mkdir()
    (empty / "again").symlink_to(empty)
    complaint(case.npuscope("analyze", empty, "-o", case.path("none")).expect(FAILED), str(empty))


@test
def modes(case: Case) -> None:
    """0750 and 0640, whatever the umask would allow."""
    source = session(case)
    for mask in (0o000, 0o022, 0o027):
        out = case.path(f"out{mask:o}")
        run = subprocess.run([NPUSCOPE, "analyze", source, "-o", out, "-e", "text,db,perfetto,folded"], check=False,
                             capture_output=True, text=True, umask=mask)
        assert run.returncode == DONE, run.stderr
        for path in [out, *out.rglob("*")]:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode == (0o750 if path.is_dir() else 0o640), f"umask {mask:03o}: {path} has mode {mode:o}"


# ---- progress ----------------------------------------------------------------------------------

def on_a_terminal(case: Case, *args: Arg, slow: bool = True) -> tuple[int, str]:
    """Status, and what is shown on a terminal that is stderr only."""
    parent, child = pty.openpty()
    with open(case.path("stdout"), "wb") as out:
        run = subprocess.Popen([NPUSCOPE, "analyze", *map(str, args)], stdout=out, stderr=child,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    os.close(child)
    shown = b""
    end = time.monotonic() + 400
    with slowed(run.pid) if slow and not SOAK else contextlib.nullcontext():
        while time.monotonic() < end:
            if not select.select([parent], [], [], 1)[0]:
                continue
            try:
                part = os.read(parent, 65536)
            except OSError:
                break  # nobody has it open any more
            if not part:
                break
            shown += part
    os.close(parent)
    return run.wait(30), shown.decode(errors="replace")


PROGRESS = re.compile(r"npuscope: (?:[\w ]+: )*[\w ]+: (?:[\d.]+ MB, [\d.]+ MB/s|\d+ [\w ]+, \d+/s)(?:, \d+%, \d+ s "
                      r"left)?")


@test(seconds=900)
def progress_on_a_terminal(case: Case) -> None:
    """A line for work over a second, overwritten, and erased at the end."""
    source = session(case, LARGE)
    status, shown = on_a_terminal(case, source, "-o", case.path("out"))
    assert status == DONE, shown
    lines = PROGRESS.findall(shown)
    assert lines, f"nothing like progress in {shown[:600]!r}"
    assert any(re.search(r"\d+%, \d+ s left", line) for line in lines), f"no time left: {lines[:5]}"
    assert len({line.split(":")[1] for line in lines}) >= 2, f"one stage only: {lines[:5]}"
    last = shown.rfind("\r\x1b[K")
    assert last >= 0 and not PROGRESS.search(shown[last:]), f"the line stays: {shown[last:]!r}"
    for line in re.split(r"[\r\n]", shown):
        assert len(line) < 120, f"wider than a terminal: {line!r}"
    assert len(case.path("stdout").read_text().splitlines()) == 2


@test(seconds=900)
def progress_never(case: Case) -> None:
    source = session(case, LARGE)
    status, shown = on_a_terminal(case, source, "-o", case.path("out"), "--progress", "never")
    assert status == DONE and not PROGRESS.search(shown) and "\x1b" not in shown, shown[:600]


@test(seconds=900)
def progress_without_a_terminal(case: Case) -> None:
    """auto is silent, always gives whole lines."""
    source = session(case, LARGE)

    def slowly(*options: Arg) -> Result:
        run = case.start([NPUSCOPE, "analyze", source, "-o", case.path("out"), *options], stdin=subprocess.DEVNULL)
        with contextlib.nullcontext() if SOAK else slowed(run.pid, stop=0.145):
            return run.result(400).expect(DONE)
    result = slowly()
    assert not result.complaints and "\r" not in result.err, result.err
    result = slowly("--progress", "always")
    assert any(PROGRESS.fullmatch(line) for line in result.err.splitlines()), result.err
    assert "\r" not in result.err and "\x1b" not in result.err, result.err


@test
def progress_of_little(case: Case) -> None:
    """Nothing is shown of what is done at once."""
    status, shown = on_a_terminal(case, session(case), "-o", case.path("out"), slow=False)
    assert status == DONE and not PROGRESS.search(shown) and "\x1b" not in shown, shown
    for text in ("", "yes", "Always"):
        result = case.npuscope("analyze", "--progress", text, "/nowhere").expect(USAGE)
        assert "--progress" in result.err, result


# ---- what is no input --------------------------------------------------------------------------

@test
def no_input(case: Case) -> None:
    case.path("empty").mkdir()
    case.path("file").write_text("hello\n")
    os.mkfifo(case.path("fifo"))
    for name in ("empty", "file", "fifo", "nowhere"):
        complaint(case.npuscope("analyze", case.path(name), "-o", case.path("out")).expect(FAILED), name)
    assert not list(case.path("out").rglob("*"))
    case.npuscope("analyze").expect(USAGE)


if __name__ == "__main__":
    try:
        outcome = main()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    sys.exit(outcome)
