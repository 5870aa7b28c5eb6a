#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Damaged, absurd and hostile input of `npuscope analyze` and `npuscope show`.

Whatever the input: no crash, a documented exit status, a line that names what is wrong, what
could be read is in the results and what could not is counted, and every result that was
written passes the checks of tools/conformance.
"""

from __future__ import annotations

import fnmatch
import functools
import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional

from harness import ROOT, SOAK, Skip, Tests, execute

BUILD = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build"))
NPUSCOPE = BUILD / "npuscope"
GEN_CANN = ROOT / "build" / "tests" / "gen-cann"
AUX = ROOT / "tests" / "cannraw_aux"
DONE, FAILED, USAGE, PARTIAL = 0, 1, 2, 3
SECONDS = 100       # for one analysis, also of a file that claims to be huge, on a busy machine
HUGE = 100 << 30    # bytes of a sparse file
SEED = int(os.environ.get("NPUSCOPE_TEST_SEED", "1"))     # another one: other damage
VERSION, MAGIC = 2, 0x4B43504E     # of a session's chunks
CHUNK = struct.Struct("<IHHQIIII")
EVENT = struct.Struct("<BBHIIiQQ4Q")
STRING = struct.Struct("<BBHIQQ128s")
API, COMM, TEXT = 1, 65, 64
STARS = 64          # bytes of a record of the device's task log
# What cannot hold when the input contradicts itself, one table or event differing from the
# next: by the first word of a test's name.
CONTRADICTED = {
    "session": "T9 V8 C1 C6 C14 C16 C21 D10 D11 E2 E3 W2",
    "database": "F7 T8 T9 C6 C7 C16 C17 C21 J3 J4 D2 D3 D4 D6 D9 D10 D11 D14 D15 S3 W2 W3 W4",
    "cann": "T8 T9 V8 C1 C2 C6 C7 D3 D4 D6 D14 J2 J4 J5 W1 W2",
    "torch": "T7 C9 W2",
}
BESIDE_TORCH = "--tasks 200 --comm-every 20"
NASTY = [b'say "hi", then\n\r\tleave', b"NUL\0inside", b"\xff\xfe\xc0\x80", b"=1+1", b"\x1b[31m", b",", b'"', b"",
         "名\U0001f600".encode(), b"\xed\xa0\x80", b"</script>", b"%s%n", b"x" * 127, b"\\", b"'; DROP TABLE TASK; --"]

all_tests: list[tuple[str, Callable[[], None]]] = []
SCRATCH = Path()    # set by main


def test(function: Callable[[], None]) -> Callable[[], None]:
    all_tests.append((function.__name__, function))
    return function


# --- running ------------------------------------------------------------------------------------------------

class Outcome(NamedTuple):
    """What became of a run."""
    status: int
    out: str
    err: str

    @property
    def results(self) -> list[Path]:
        return [Path(line) for line in self.out.splitlines()]

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("npuscope")]


def analyze(*args: object, before: Optional[Callable[[], None]] = None) -> Outcome:
    return run("analyze", *args, before=before)


def run(subcommand: str, *args: object, before: Optional[Callable[[], None]] = None) -> Outcome:
    """Run it; a signal or a run without end is a failure in every case."""
    command = [str(NPUSCOPE), subcommand, *map(str, args)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, preexec_fn=before,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{' '.join(command)} takes more than {SECONDS} s") from error
    outcome = Outcome(done.returncode, done.stdout.decode(errors="surrogateescape"),
                      done.stderr.decode(errors="backslashreplace"))
    assert done.returncode in (DONE, FAILED, USAGE, PARTIAL), f"status {done.returncode}: {outcome.err[-1500:]}"
    assert "Sanitizer" not in outcome.err and "runtime error" not in outcome.err, outcome.err[-3000:]
    if done.returncode != DONE:
        assert outcome.complaints, f"status {done.returncode} without a word"
    return outcome


def check(result: Path, loose: bool = False) -> None:
    """The checks of the formats; LOOSE: only those of their form."""
    names = CONTRADICTED[_running.partition("_")[0]].split() if loose else []
    ignored = [word for name in names for word in ("--ignore", name)]
    done = execute("tools/conformance/check", *ignored, result)
    failures = "\n".join(line for line in done.stdout.splitlines() if not line.startswith(("PASS", "SKIP", "NOTE")))
    assert done.returncode == 0 or "nothing to check" in done.stderr, \
        f"{result.name}: {failures[:1500]} {done.stderr[:300]}"


def no_temporary(*folders: Path) -> None:
    left = [str(p) for folder in folders for p in folder.rglob(".*") if p.name.endswith((".tmp", ".old"))]
    assert not left, f"left behind: {left[:5]}"


_running = ""       # the test
_number = 0
_last: Optional[Path] = None    # the latest result of survive()


def fresh(name: str = "out") -> Path:
    """A path that does not exist."""
    global _number
    _number += 1
    return SCRATCH / f"{name}{_number}"


def survive(what: str, path: Path, *statuses: int, args: tuple[object, ...] = (), loose: bool = False) -> Outcome:
    """Analyse PATH: one of these statuses, and everything written is
    right. The result stays until the next one."""
    global _last
    if _last:
        shutil.rmtree(_last, ignore_errors=True)
    out = _last = fresh()
    outcome = analyze(path, "-o", out, *args)
    assert outcome.status in statuses, f"{what}: status {outcome.status}, not {statuses}: {outcome.err[-1500:]}"
    if outcome.status == FAILED:
        assert not outcome.out, f"{what}: failed, but named {outcome.out}"
        assert not out.exists() or not list(out.iterdir()), f"{what}: failed, but left {list(out.iterdir())}"
    for result in outcome.results:
        try:
            check_once(result, loose)
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error
    no_temporary(*([out] if out.exists() else []))
    return outcome


_good: set[tuple[str, ...]] = set()     # results that have passed


def check_once(result: Path, loose: bool) -> None:
    """Both checks, unless the same bytes under the same name have
    passed them: much damage changes nothing."""
    known = (_running.partition("_")[0] if loose else "", result.name,
             *(text for file in digest(result).items() for text in file))
    if known not in _good:
        check(result, loose)
        nothing_backwards(result)
        _good.add(known)


def nothing_backwards(result: Path) -> None:
    """No interval of a database ends before it starts, whatever the input has."""
    for database in [*result.rglob("ascend_pytorch_profiler*.db"), *result.rglob("msprof_*.db")]:
        for (name,) in query(database, "SELECT name FROM sqlite_master WHERE type = 'table'"):
            columns = {row[1] for row in query(database, f"PRAGMA table_info({name})")}
            if {"startNs", "endNs"} <= columns:
                wrong = query(database,
                              f"SELECT count(*) FROM {name} WHERE CAST(endNs AS INTEGER) < CAST(startNs AS INTEGER)")
                assert wrong == [(0,)], f"{name}: {wrong[0][0]} rows end before they start"


def one_line(outcome: Outcome, *words: str) -> None:
    assert len(outcome.err.splitlines()) == 1, f"not one line: {outcome.err}"
    for word in words:
        assert word in outcome.err, f"{word!r} is not in {outcome.err}"


def digest(folder: Path) -> dict[str, str]:
    """Content of every file below, links not followed."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()}


def same(one: Path, other: Path) -> None:
    a, b = digest(one), digest(other)
    different = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    assert not different, f"{one} and {other} differ: {different[:6]}"


# --- inputs, each made once ---------------------------------------------------------------------------------

def need(path: Path, how: str) -> Path:
    if not path.exists():
        raise Skip(f"{path} is missing: {how}")
    return path


@functools.cache
def session_program() -> Path:
    made = BUILD / "bench" / "gen_session"
    if made.exists():
        return made
    made = SCRATCH / "gen_session"
    sources = [ROOT / "tools" / "bench" / "gen_session_main.c", ROOT / "tests" / "unit" / "gen_session.c"]
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-o", made, f"-I{ROOT}/kheaders",
                    f"-I{ROOT}/analyzer", f"-I{ROOT}/tests/unit", *sources, "-lz", "-lm"], check=True)
    return made


@functools.cache
def good_session(tasks: int = 400) -> Path:
    path = SCRATCH / f"session{tasks}"
    subprocess.run([session_program(), path, str(tasks)], check=True)
    return path


@functools.cache
def good_results() -> Path:
    """Of the session, in every format."""
    out = SCRATCH / "results"
    outcome = analyze(good_session(), "-o", out, "-e", "text,db,perfetto,folded")
    assert outcome.status == DONE and len(outcome.results) == 2, outcome
    return out


@functools.cache
def good_cann(options: str = "--tasks 200 --memcpy-every 16 --slice-kib 9") -> tuple[Path, Path]:
    """A PROF_* directory and its truth."""
    need(GEN_CANN, "make witnesses")
    out, truth = fresh("cann"), fresh("truth")
    done = subprocess.run([GEN_CANN, *options.split(), "--truth", truth, out], capture_output=True, text=True,
                          check=True)
    return Path(done.stdout.splitlines()[-1]), truth


@functools.cache
def good_torch() -> Path:
    """A *_ascend_pt directory over CANN's data."""
    prof, truth = good_cann(BESIDE_TORCH)
    out = fresh("torch")
    done = subprocess.run([sys.executable, AUX / "framework.py", out, "--memory", "--python-stacks", "--prof", prof,
                           "--prof-truth", truth, "--truth", fresh("truth")], capture_output=True, text=True,
                          check=True)
    return Path(done.stdout.splitlines()[-1])


def copy_of(path: Path, name: str = "copy") -> Path:
    """A copy that may be damaged, under its own name."""
    copy = fresh(name) / path.name
    if path.is_dir():
        shutil.copytree(path, copy)
    else:
        copy.parent.mkdir(parents=True)
        shutil.copy(path, copy)
    return copy


def database_copy() -> Path:
    """A result with its database alone."""
    made = next(good_results().glob("*_4000_*"))
    copy = fresh("database") / made.name
    shutil.copytree(made, copy,
                    ignore=shutil.ignore_patterns("*.csv", "npuscope*", "trace_view.json", "communication*"))
    return next(copy.rglob("ascend_pytorch_profiler*.db"))


def database_in(result: Path) -> Path:
    found = [*result.rglob("ascend_pytorch_profiler*.db"), *result.rglob("msprof_*.db")]
    assert len(found) == 1, f"databases in {result}: {found}"
    return found[0]


def query(database: Path, sql: str) -> list[tuple]:
    with sqlite3.connect(f"file:{database}?immutable=1", uri=True) as db:
        return db.execute(sql).fetchall()


def tasks_in(result: Path) -> list[tuple]:
    return query(database_in(result), "SELECT startNs, endNs, deviceId, streamId, taskId FROM TASK")


def expect_rows(what: str, got: list[tuple], truth: list[tuple], most_lost: int) -> None:
    """Nothing was made up, and no more is missing than was damaged."""
    strange = set(got) - set(truth)
    assert not strange, f"{what}: {len(strange)} rows that never were, such as {next(iter(strange))}"
    lost = len(truth) - len(got)
    assert lost <= most_lost, f"{what}: {lost} of {len(truth)} rows are missing, {most_lost} were damaged"


# --- own sessions -------------------------------------------------------------------------------------------

def chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    data, at = path.read_bytes(), 0
    while at < len(data):
        _, _, kind, _, size, _, _, _ = CHUNK.unpack_from(data, at)
        yield kind, data[at + CHUNK.size:at + CHUNK.size + size]
        at += CHUNK.size + size


def write_chunks(path: Path, content: list[tuple[int, bytes]], version: int = VERSION) -> None:
    with open(path, "wb") as file:
        for number, (kind, payload) in enumerate(content):
            file.write(CHUNK.pack(MAGIC, version, kind, number, len(payload), zlib.crc32(payload), 0, 0) + payload)


def change_events(session: Path, change: Callable[[list], None]) -> None:
    """Each event, as a list of its fields, may be changed."""
    out = []
    for kind, payload in chunks(session / "events.nps"):
        if kind == 1:
            events = [list(EVENT.unpack_from(payload, at)) for at in range(0, len(payload), EVENT.size)]
            for event in events:
                change(event)
            payload = b"".join(EVENT.pack(*event) for event in events)
        out.append((kind, payload))
    write_chunks(session / "events.nps", out)


def calls_in(results: list[Path]) -> list[tuple]:
    return [row for r in results
            for row in query(database_in(r), "SELECT startNs, endNs, globalTid, type FROM CANN_API")]


@test
def session_without_a_file() -> None:
    for name, statuses in (("session.json", (FAILED, PARTIAL)), ("events.nps", (FAILED, PARTIAL)),
                           ("strings.nps", (PARTIAL,)), ("clocks.nps", (PARTIAL,))):
        copy = copy_of(good_session())
        (copy / name).unlink()
        outcome = survive(f"no {name}", copy, *statuses, loose=True)
        # without its document a session is nothing, but what the device wrote can be read
        assert name in outcome.err or name == "session.json", f"{name} is not named: {outcome.err}"


@test
def session_without_a_device_log() -> None:
    copy = copy_of(good_session())
    shutil.rmtree(copy / "PROF_4000")
    outcome = survive("no device log", copy, PARTIAL)
    assert len(outcome.results) == 2 and "4000" in outcome.err, outcome.err


@test
def session_cut() -> None:
    """What lies before the cut is in the results."""
    rng = random.Random(SEED)
    whole = calls_in(sorted(good_results().iterdir()))
    for name in ("events.nps", "strings.nps", "clocks.nps", "PROF_4000/device_0/data/stars_soc.data.0.slice_0"):
        for _ in range(4):
            copy = copy_of(good_session())
            at = rng.randrange((copy / name).stat().st_size)
            os.truncate(copy / name, at)
            outcome = survive(f"seed {SEED}: {name} cut at {at}", copy, PARTIAL, FAILED, DONE, loose=True)
            if name == "events.nps" and outcome.results:
                calls = calls_in(outcome.results)
                assert {c[0] for c in calls} <= {c[0] for c in whole}, "calls that never were"


@test
def session_cut_device_log() -> None:
    """A log that ends early costs the device times behind the cut, and no task."""
    copy = copy_of(good_session())
    log = copy / "PROF_4000/device_0/data/stars_soc.data.0.slice_0"
    size = log.stat().st_size
    os.truncate(log, size // 2 // STARS * STARS)
    outcome = survive("half a device log", copy, PARTIAL, DONE)
    for result in outcome.results:
        before = query(database_in(good_results() / result.name), "SELECT count(*) FROM TASK")
        assert query(database_in(result), "SELECT count(*) FROM TASK") == before, "tasks were lost"
    measured = query(database_in(next(r for r in outcome.results if "_4000_" in r.name)),
                     "SELECT count(*) FROM NPUSCOPE_TASK_TIME WHERE source = 'device log'")[0][0]
    assert 0 < measured <= size // STARS // 4 + 1, f"{measured} tasks are measured"


@test
def session_of_version_1() -> None:
    """One line names both versions, and nothing is written."""
    copy = copy_of(good_session())
    document = json.loads((copy / "session.json").read_text())
    assert document["version"] == VERSION, document["version"]
    (copy / "session.json").write_text(json.dumps({**document, "version": 1}))
    one_line(survive("a session of version 1", copy, FAILED), "version 1,", f"version {VERSION}:")
    copy = copy_of(good_session())
    write_chunks(copy / "events.nps", list(chunks(copy / "events.nps")), version=1)
    outcome = survive("events of version 1", copy, FAILED)
    assert "events.nps: it has version 1," in outcome.err, outcome.err


@test
def session_chunks_out_of_order() -> None:
    """Swapped, repeated and foreign chunks end the reading, or are left out; nothing appears twice."""
    session = good_session(1000)   # of more than one chunk
    whole = calls_in(analyze(session, "-o", fresh(), "-e", "db").results)
    content = list(chunks(session / "events.nps"))
    data = (session / "events.nps").read_bytes()
    assert len(content) > 1, "one chunk only"
    first = CHUNK.size + len(content[0][1])
    for what, bytes_ in (("twice", data + data), ("first chunk again", data[:first] + data),
                         ("first chunk missing", data[first:]), ("a foreign chunk", data[:first] + b"\0" * 4096)):
        copy = copy_of(session)
        (copy / "events.nps").write_bytes(bytes_)
        outcome = survive(f"events.nps with {what}", copy, PARTIAL, FAILED, loose=True)
        assert len(calls_in(outcome.results)) <= len(whole), what
    copy = copy_of(session)
    shutil.copy(copy / "events.nps", copy / "strings.nps")
    survive("events in the place of strings", copy, PARTIAL, FAILED, loose=True)
    copy = copy_of(session)
    shutil.rmtree(copy / "PROF_4000" / "device_0")
    shutil.copytree(copy / "PROF_4100" / "device_1", copy / "PROF_4000" / "device_0")
    survive("the log of another process", copy, PARTIAL, DONE, loose=True)


@test
def session_times() -> None:
    """Backwards, all the same, 2^63, 2^64 - 1, and ends before begins."""
    def backwards(event: list) -> None:
        event[6] = 2 * 10**12 - event[6]

    def at(number: int, every: int) -> Callable[[list], None]:
        counter = iter(range(10**9))

        def change(event: list) -> None:
            if next(counter) % every == 0:
                event[6] = number
        return change

    def long(event: list) -> None:
        event[7] = 2**64 - 1 if event[0] == API else event[7]

    for what, change in (("backwards", backwards), ("zero", at(0, 3)), ("2^63", at(2**63, 5)),
                         ("2^64-1", at(2**64 - 1, 7)), ("the same", at(10**12 + 1, 1)), ("long", long)):
        copy = copy_of(good_session())
        change_events(copy, change)
        survive(f"times: {what}", copy, DONE, PARTIAL, FAILED, loose=True)


@test
def session_impossible_events() -> None:
    """Unknown kinds, probes, pids and flags."""
    rng = random.Random(SEED)

    def random_fields(event: list) -> None:
        if rng.random() < 0.1:
            event[rng.choice((0, 1))] = rng.randrange(256)
            event[2] = rng.choice((0, 1, 65535, event[2]))
            event[rng.choice((3, 4))] = rng.choice((0, 1, 2**32 - 1, event[3]))
            event[8 + rng.randrange(4)] = rng.choice((0, 2**63, 2**64 - 1, 2**32))
    for _ in range(5):
        copy = copy_of(good_session())
        change_events(copy, random_fields)
        survive(f"seed {SEED}: random fields", copy, DONE, PARTIAL, FAILED, loose=True)


@test
def session_names() -> None:
    """Names that break careless writers: every format stays what it is, and the name is in it."""
    copy = copy_of(good_session())
    names = iter(NASTY * 1000)
    out = []
    for kind, payload in chunks(copy / "strings.nps"):
        if kind == 2:
            rows = [list(STRING.unpack_from(payload, at)) for at in range(0, len(payload), STRING.size)]
            for row in rows:
                row[6] = next(names)
                row[2] = len(row[6])
            payload = b"".join(STRING.pack(*row) for row in rows)
        out.append((kind, payload))
    write_chunks(copy / "strings.nps", out)
    outcome = survive("nasty names", copy, DONE, PARTIAL, args=("-e", "text,db,perfetto,folded"), loose=True)
    text = (outcome.results[0] / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text(encoding="utf-8")
    json.loads(text, strict=True)
    words = {row[0] for row in query(database_in(outcome.results[0]), "SELECT value FROM STRING_IDS")}
    assert any('say "hi", then\n' in word for word in words), "the name with quotes is not in the database"
    copy = copy_of(good_session())
    document = (copy / "session.json").read_bytes().replace(b'"node7"', b'"no\xff\\u0000,\\"de"')
    (copy / "session.json").write_bytes(document.replace(b"python3", b"py\xfe\\n"))
    survive("nasty host name", copy, DONE, PARTIAL, FAILED, loose=True)


@test
def session_string_lengths() -> None:
    """A length beyond the record."""
    copy = copy_of(good_session())
    out = []
    for kind, payload in chunks(copy / "strings.nps"):
        rows = [list(STRING.unpack_from(payload, at)) for at in range(0, len(payload), STRING.size)]
        for row in rows:
            row[2] = 65535
        out.append((kind, b"".join(STRING.pack(*row) for row in rows)))
    write_chunks(copy / "strings.nps", out)
    survive("lengths of 65535", copy, DONE, PARTIAL, loose=True)


@test
def session_sizes() -> None:
    """Files of 100 GB that hold nothing, chunks that claim 4 GB, a document of 100 GB."""
    for name in ("events.nps", "strings.nps", "clocks.nps", "session.json",
                 "PROF_4000/device_0/data/stars_soc.data.0.slice_0"):
        copy = copy_of(good_session())
        os.truncate(copy / name, HUGE)
        survive(f"{name} of 100 GB", copy, DONE, PARTIAL, FAILED, loose=True)
        shutil.rmtree(copy)
    for kind in (1, 2, 3):
        copy = copy_of(good_session())
        with open(copy / "events.nps", "ab") as file:
            file.write(CHUNK.pack(MAGIC, VERSION, kind, len(list(chunks(good_session() / "events.nps"))), 2**32 - 1, 0,
                                  0, 0))
        outcome = survive("a chunk of 4 GB", copy, PARTIAL)
        assert len(outcome.results) == 2


# --- databases ----------------------------------------------------------------------------------------------

@test
def database_locked() -> None:
    path = database_copy()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE META_DATA SET value = value")
    # The lock belongs to this process; the run is another one.
    outcome = survive("a locked database", path, FAILED)
    one_line(outcome, str(path))
    holder.execute("ROLLBACK")
    holder.close()
    survive("no lock any more", path, DONE)


@test
def database_of_a_running_program() -> None:
    for suffix in ("-wal", "-journal"):
        path = database_copy()
        Path(str(path) + suffix).write_bytes(b"x" * 100)
        before = digest(path.parent)
        one_line(survive(f"with {suffix}", path, FAILED), suffix)
        assert digest(path.parent) == before, "the database was changed"


@test
def database_read_only() -> None:
    """On a file system that cannot be written: read, and nothing is left beside it."""
    if os.geteuid() != 0:
        raise Skip("needs root: mounts")
    path = database_copy()
    out = fresh()
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" analyze "$3" -o "$4"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", path.parent, NPUSCOPE, path, out], check=False,
                          capture_output=True, text=True, timeout=SECONDS)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        raise Skip(f"needs mounts: {done.stderr.strip()}")
    assert done.returncode == DONE, done.stderr
    check(Path(done.stdout.splitlines()[0]))
    path.chmod(0o400)
    survive("a read-only file", path, DONE)


@test
def database_is_none() -> None:
    for what, content in (("empty", b""), ("text", b"hello\n" * 100), ("only a head", b"SQLite format 3\0"),
                          ("zeros", b"SQLite format 3\0" + b"\0" * 4080)):
        path = database_copy()
        path.write_bytes(content)
        one_line(survive(f"a database that is {what}", path, FAILED), str(path))
    path = database_copy()
    with sqlite3.connect(path) as db:
        for name, kind in db.execute("SELECT name, type FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute(f"DROP {kind} {name}")
    db.close()
    one_line(survive("a database without tables", path, FAILED), str(path))


@test
def database_corrupt() -> None:
    """Flipped bytes and cut pages: what SQLite still reads is in the result."""
    rng = random.Random(SEED)
    whole = set(tasks_in(next(good_results().glob("*_4000_*"))))
    for number in range(24):
        path = database_copy()
        data = bytearray(path.read_bytes())
        if number % 2:
            for _ in range(rng.choice((1, 8, 60))):
                data[rng.randrange(100, len(data))] = rng.randrange(256)
        else:
            del data[rng.randrange(len(data)):]
        path.write_bytes(data)
        outcome = survive(f"seed {SEED}, number {number}", path, DONE, PARTIAL, FAILED, loose=True)
        if outcome.results and not number % 2:
            assert set(tasks_in(outcome.results[0])) <= whole, "tasks that never were"


@test
def database_values() -> None:
    """Cells that no profiler writes: counted, and the row's neighbours stay."""
    for table, column in (("TASK", "startNs"), ("TASK", "endNs"), ("CANN_API", "startNs"), ("CANN_API", "name"),
                          ("COMPUTE_TASK_INFO", "globalTaskId"), ("STRING_IDS", "value"), ("COMMUNICATION_OP", "endNs"),
                          ("TASK", "streamId"), ("STEP_TIME", "startNs")):
        for value in ("NULL", "-1", "9223372036854775807", "-9223372036854775808", "1e300", "'text'", "x'00ff'",
                      "9e999",
                      "'a\"b,' || char(10) || char(0)", "CAST(x'fffe' AS TEXT)"):
            path = database_copy()
            with sqlite3.connect(path) as db:
                try:
                    db.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = (SELECT max(rowid) / 2 FROM "
                               f"{table})")
                except sqlite3.IntegrityError:
                    continue  # an id that SQLite itself refuses
            db.close()
            outcome = survive(f"{table}.{column} = {value}", path, DONE, PARTIAL, loose=True)
            rows = query(path, "SELECT count(*) FROM TASK")[0][0]
            assert len(tasks_in(outcome.results[0])) >= rows - 1, f"{table}.{column} = {value}: tasks were lost"


@test
def database_sizes() -> None:
    """A text and a blob of 1 GB, and a file that claims to be larger than the disk."""
    for value in ("zeroblob(999000000)", "CAST(zeroblob(999000000) AS TEXT)"):
        path = database_copy()
        with sqlite3.connect(path) as db:
            db.execute(f"UPDATE STRING_IDS SET value = {value} WHERE id = (SELECT max(id) FROM STRING_IDS)")
        db.close()
        survive(value, path, PARTIAL, DONE, args=("-e", "db"), loose=True)
        shutil.rmtree(path.parent)
    path = database_copy()
    os.truncate(path, HUGE)
    survive("a database of 100 GB", path, DONE, PARTIAL, FAILED, loose=True)


@test
def database_with_code() -> None:
    """Views and triggers of a foreign database are not run."""
    path = database_copy()
    with sqlite3.connect(path) as db:
        db.execute("ALTER TABLE CANN_API RENAME TO other")
        db.execute("CREATE VIEW CANN_API AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i "
                   "AS startNs,"
                   " i AS endNs, 0 AS type, 0 AS globalTid, i AS connectionId, 0 AS name FROM n")
    db.close()
    survive("a view without end", path, DONE, PARTIAL, FAILED, loose=True)


# --- CANN's raw data ----------------------------------------------------------------------------------------

def truth_tasks(truth: Path) -> list[tuple]:
    rows = (json.loads(line) for line in truth.read_text().splitlines())
    return [(r["start_ns"], r["end_ns"], r["device"], r["stream"], r["task"]) for r in rows if r["k"] == "task"]


def slices(prof: Path, pattern: str) -> list[Path]:
    return sorted((p for p in prof.rglob("*.slice_*") if fnmatch.fnmatch(p.name, pattern)
                   and not p.name.endswith(".done")),
                  key=lambda p: int(p.name.rsplit("_", 1)[1]))


def task_log(prof: Path) -> Path:
    return slices(prof, "stars_soc.data.*")[0]


def cann_tasks(what: str, prof: Path, most_lost: int, *statuses: int) -> Outcome:
    outcome = survive(what, prof, *statuses, loose=True)
    if outcome.results:
        expect_rows(what, tasks_in(outcome.results[0]), truth_tasks(good_cann()[1]), most_lost)
    return outcome


@test
def cann_good() -> None:
    outcome = survive("nothing is damaged", good_cann()[0], DONE)
    expect_rows("nothing is damaged", tasks_in(outcome.results[0]), truth_tasks(good_cann()[1]), 0)


@test
def cann_missing() -> None:
    """Each kind of file is missing once; the device's tasks stay as long as their log is there."""
    prof = good_cann()[0]
    kinds = sorted({p.name.rsplit(".slice_", 1)[0] for p in prof.rglob("*.slice_*")})
    kinds += sorted(p.name for p in prof.rglob("*") if p.is_file() and ".slice_" not in p.name)
    for kind in kinds:
        copy = copy_of(prof)
        lost = 0
        for path in copy.rglob(f"{kind}*"):
            if path.name.startswith("stars_soc"):
                lost = 10**9
            path.unlink()
        outcome = survive(f"no {kind}", copy, DONE, PARTIAL, FAILED, loose=True)
        if outcome.results and not lost and "start" not in kind and "info" not in kind:
            got = tasks_in(outcome.results[0])
            assert len(got) == len(truth_tasks(good_cann()[1])), f"no {kind}: {len(got)} tasks"
        shutil.rmtree(copy.parent)


@test
def cann_missing_slice() -> None:
    """One slice of several: the tasks of the others stay."""
    found = slices(good_cann()[0], "aging.api_event.data.slice_*") + slices(good_cann()[0], "stars_soc.data.*.slice_*")
    for path in found[1:3] + found[-1:]:
        copy = copy_of(good_cann()[0])
        victim = copy / path.relative_to(good_cann()[0])
        lost = victim.stat().st_size // STARS + 2 if "stars" in victim.name else 0
        victim.unlink()
        cann_tasks(f"no {path.name}", copy, lost, DONE, PARTIAL)
        shutil.rmtree(copy.parent)


@test
def cann_cut() -> None:
    """A task log that was cut loses what is behind the cut and nothing else."""
    rng = random.Random(SEED)
    for kind in ("stars_soc.data.*", "aging.compact.task_track.*", "aging.api_event.data.*",
                 "unaging.additional.hash_dic.*",
                 "aging.additional.hccl_info.*", "aging.compact.node_basic_info.*"):
        copy = copy_of(good_cann()[0])
        victim = slices(copy, kind)[-1]
        size = victim.stat().st_size
        at = rng.randrange(size)
        os.truncate(victim, at)
        lost = (size - at) // STARS + 2 if "stars" in kind else 0
        cann_tasks(f"seed {SEED}: {victim.name} cut at {at}", copy, lost, DONE, PARTIAL)
        shutil.rmtree(copy.parent)


@test
def cann_twice() -> None:
    """A slice that is there again under the next number is not counted twice."""
    for kind in ("stars_soc.data.*", "aging.compact.task_track.*", "aging.api_event.data.*"):
        copy = copy_of(good_cann()[0])
        last = slices(copy, kind)[-1]
        stem, number = last.name.rsplit("_", 1)
        shutil.copy(last, last.with_name(f"{stem}_{int(number) + 1}"))
        outcome = survive(f"{last.name} twice", copy, DONE, PARTIAL, loose=True)
        got = tasks_in(outcome.results[0])
        assert set(got) <= set(truth_tasks(good_cann()[1])), f"{last.name} twice: tasks that never were"
        shutil.rmtree(copy.parent)


@test
def cann_out_of_order() -> None:
    """Two slices with exchanged names."""
    for kind in ("stars_soc.data.*", "aging.compact.task_track.*", "aging.api_event.data.*"):
        copy = copy_of(good_cann()[0])
        found = slices(copy, kind)
        if len(found) < 2:
            continue
        spare = found[0].with_name("spare")
        found[0].rename(spare)
        found[1].rename(found[0])
        spare.rename(found[1])
        survive(f"{found[0].name} and {found[1].name} exchanged", copy, DONE, PARTIAL, loose=True)
        shutil.rmtree(copy.parent)


@test
def cann_foreign() -> None:
    """Slices of another capture, of another kind, directories and links instead of files."""
    other = good_cann("--tasks 100 --seed 7 --devices 2")[0]
    for kind in ("stars_soc.data.0*", "aging.api_event.data.*", "aging.compact.task_track.*",
                 "unaging.additional.hash_dic.*"):
        copy = copy_of(good_cann()[0])
        shutil.copy(slices(other, kind)[0], slices(copy, kind)[0])
        survive(f"{kind} of another capture", copy, DONE, PARTIAL, loose=True)
        shutil.copy(task_log(other), slices(copy, kind)[0])
        survive(f"a task log as {kind}", copy, DONE, PARTIAL, FAILED, loose=True)
        shutil.rmtree(copy.parent)
    copy = copy_of(good_cann("--tasks 100 --seed 7 --devices 2")[0])
    victims = slices(copy, "*")
    victims[0].unlink()
    victims[0].mkdir()
    victims[1].unlink()
    victims[1].symlink_to("/dev/zero")
    victims[2].unlink()
    os.mkfifo(victims[2])
    victims[3].unlink()
    victims[3].symlink_to(victims[3])
    survive("a directory, a device, a pipe and a loop", copy, DONE, PARTIAL, FAILED, loose=True)


@test
def cann_impossible() -> None:
    """Random records, and every eighth byte pair of the extreme."""
    rng = random.Random(SEED)
    prof = good_cann("--tasks 120 --seed 7 --devices 2")[0]
    for path in slices(prof, "*"):
        for value in (None, rng.choice((b"\xff" * 8, b"\0" * 8, b"\0" * 7 + b"\x80"))):
            copy = copy_of(prof)
            victim = copy / path.relative_to(prof)
            data = bytearray(victim.read_bytes())
            for _ in range(max(1, len(data) // 400)):
                at = rng.randrange(max(1, len(data) - 8)) & ~7
                data[at:at + 8] = value or rng.randbytes(8)
            victim.write_bytes(data)
            survive(f"seed {SEED}: {path.name} with {value!r}", copy, DONE, PARTIAL, FAILED, loose=True)
            shutil.rmtree(copy.parent)


@test
def cann_collectives_impossible() -> None:
    """Each field of every third task of collectives: ranks, planes, transports, sizes that cannot be."""
    prof = good_cann("--tasks 100 --seed 7 --devices 2")[0]
    victim, = (path for path in slices(prof, "*hccl_info*"))
    for field in range(24, 144, 8):
        for value in (b"\xff" * 8, b"\0" * 7 + b"\x80"):
            copy = copy_of(prof)
            data = bytearray(victim.read_bytes())
            for at in range(field, len(data), 3 * 256):
                data[at:at + 8] = value
            (copy / victim.relative_to(prof)).write_bytes(data)
            survive(f"{value!r} at {field} of hccl_info", copy, DONE, PARTIAL, loose=True)
            shutil.rmtree(copy.parent)


@test
def cann_control_files() -> None:
    """start_info, info.json, sample.json and the clocks with other content."""
    rng = random.Random(SEED)
    prof = good_cann("--tasks 100 --seed 7 --devices 2")[0]
    content = [b"", b"{", b"[]", b"null", b"\0" * 100, b'{"clockMonotonicRaw": "-1"}', b"[" * 100000, b"x" * (1 << 20),
               b'{"collectionTimeBegin": 1e999, "clockMonotonicRaw": 18446744073709551616}']
    for path in (p for p in prof.rglob("*") if p.is_file() and ".slice_" not in p.name
                 and not p.name.endswith(".done")):
        text = path.read_bytes()
        numbers = bytes(rng.choice(b"0123456789") if 48 <= c < 58 and rng.random() < 0.3 else c for c in text)
        for what in (*rng.sample(content, 2), numbers, text[:len(text) // 2], text.replace(b"1", b"9" * 25, 1)):
            copy = copy_of(prof)
            (copy / path.relative_to(prof)).write_bytes(what)
            survive(f"seed {SEED}: {path.name} is {what[:60]!r}", copy, DONE, PARTIAL, FAILED, loose=True)
            shutil.rmtree(copy.parent)


@test
def cann_names() -> None:
    survive("nasty names", good_cann("--tasks 300 --nasty-names --mstx-every 5")[0], DONE, PARTIAL,
            args=("-e", "text,db,perfetto,folded"), loose=True)


@test
def cann_sizes() -> None:
    """Slices of 100 GB of nothing."""
    prof = good_cann("--tasks 100 --seed 7 --devices 2")[0]
    for kind in ("stars_soc.data.0*", "aging.api_event.data.*", "unaging.additional.hash_dic.*",
                 "aging.additional.tensor_info.*"):
        copy = copy_of(prof)
        os.truncate(slices(copy, kind)[-1], HUGE)
        survive(f"{kind} of 100 GB", copy, DONE, PARTIAL, FAILED, loose=True)
        shutil.rmtree(copy.parent)


# --- PyTorch's raw data -------------------------------------------------------------------------------------

@test
def torch_damaged() -> None:
    """Each file of FRAMEWORK cut, with random and extreme bytes, huge, and missing."""
    rng = random.Random(SEED)
    for path in sorted((good_torch() / "FRAMEWORK").iterdir()):
        for kind in range(5):
            copy = copy_of(good_torch())
            victim = copy / "FRAMEWORK" / path.name
            data = bytearray(victim.read_bytes())
            if kind == 0:
                victim.unlink()
            elif kind == 1:
                victim.write_bytes(data[:rng.randrange(len(data) + 1)])
            elif kind == 2:
                os.truncate(victim, HUGE)
            else:
                for _ in range(max(1, len(data) // 200)):
                    at = rng.randrange(max(1, len(data) - 4))
                    data[at:at + 4] = rng.randbytes(4) if kind == 3 else b"\xff" * 4
                victim.write_bytes(data)
            survive(f"seed {SEED}: {path.name}, damage {kind}", copy, DONE, PARTIAL, FAILED, loose=True)
            shutil.rmtree(copy.parent)


# --- traces -------------------------------------------------------------------------------------------------

def trace_copy() -> Path:
    return copy_of(next(good_results().glob("*_4000_*")) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json", "traces")


def shown(what: str, path: Path) -> None:
    """`npuscope show` reads traces: no crash, numbers that are JSON, or a line that names what is wrong."""
    for args in (("--json",), ()):
        outcome = run("show", *args, path)
        results = json.loads(outcome.out)["results"] if args else outcome.out
        assert bool(results) == (outcome.status != FAILED), f"{what}: status {outcome.status}, but {results!r:.200}"
        assert "\x1b" not in outcome.out, f"{what}: control characters reach the terminal"


@test
def trace_damaged() -> None:
    rng = random.Random(SEED)
    text = trace_copy().read_bytes()
    assert run("show", trace_copy()).status == DONE
    for what in (b"", b"[", b"{}", b"[]", b'{"traceEvents": 1}', b"[" * 10**6, b'[{"a":' * 10**6, text[:len(text) // 2],
                 text + text, text.replace(b'"ts": ', b'"ts": -'), text.replace(b'"dur": ', b'"dur": 1e999'),
                 text.replace(b'"name"', b'"\xff"'), text.replace(b'"name": "', b'"name": "\\u001b[31m'),
                 text.replace(b",", b"", 1), b"\0" * 1000):
        path = trace_copy()
        path.write_bytes(what)
        shown(f"a trace of {what[:40]!r}", path)
    for number in range(12):
        data = bytearray(text)
        for _ in range(rng.choice((1, 20))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = trace_copy()
        path.write_bytes(data)
        shown(f"seed {SEED}: trace {number}", path)


@test
def trace_bombs() -> None:
    """2 GB in 2 MB of zeros, 200 MB of one text, of spaces and of brackets;
    and a plain file of 100 GB of nothing."""
    for what, head, fill in (("zeros", b"", b"\0"), ("a text", b'[{"name": "', b"a"), ("spaces", b"[", b" "),
                             ("depth", b"[", b"[")):
        path = fresh("bomb") / "trace_view.json.gz"
        path.parent.mkdir()
        member = gzip.compress(fill * (10 << 20), 6)
        path.write_bytes(gzip.compress(head) + member * (200 if SOAK or what == "zeros" else 20))
        shown(f"a bomb of {what}", path)
        shutil.rmtree(path.parent)
    path = trace_copy()
    os.truncate(path, HUGE)
    shown("a trace of 100 GB", path)
    for cut in (10, 1000):
        path = fresh("gz") / "trace_view.json.gz"
        path.parent.mkdir()
        path.write_bytes(gzip.compress(trace_copy().read_bytes())[:-cut])
        shown("a cut gzip file", path)


# --- space, signals, company --------------------------------------------------------------------------------

def inputs() -> list[Path]:
    """One of each kind that can be made here."""
    found = [good_session(3000), database_copy()]
    if GEN_CANN.exists():
        found += [good_cann(BESIDE_TORCH)[0], good_torch()]
    return found


ALL = ("-e", "text,db,perfetto,folded")


def whole_result(path: Path) -> Path:
    out = fresh("whole")
    outcome = analyze(path, "-o", out, *ALL)
    assert outcome.status in (DONE, PARTIAL), outcome.err
    return out


@test
def twice_the_same() -> None:
    for path in inputs():
        one, other = whole_result(path), whole_result(path)
        same(one, other)
        outcome = analyze(path, "-o", one, *ALL)
        assert outcome.status in (DONE, PARTIAL)
        same(one, other)
        no_temporary(one)


def nothing_half(what: str, out: Path, outcome: Outcome, whole: Path) -> None:
    """Only whole results have a name, whatever the status."""
    no_temporary(out)
    for entry in out.iterdir():
        assert str(out / entry.name) in outcome.out, f"{what}: {entry.name} was left, but not named"
        same(entry, whole / entry.name)


@test
def no_space() -> None:
    """A disk that is too small by more or less."""
    if os.geteuid() != 0:
        raise Skip("needs root: mounts")
    for path in inputs():
        whole = whole_result(path)
        size = sum(p.stat().st_size for p in whole.rglob("*") if p.is_file())
        full = 0
        for share in (0.02, 0.2, 0.5, 0.8, 0.97):
            disk = fresh("disk")
            disk.mkdir()
            done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={max(4096, int(size * share))}", "none", disk],
                                  check=False, capture_output=True, text=True)
            if done.returncode:
                raise Skip(f"needs tmpfs: {done.stderr.strip()}")
            try:
                outcome = analyze(path, "-o", disk, *ALL)
                full += outcome.status == FAILED
                assert outcome.status != FAILED or "No space left" in outcome.err, outcome.err
                assert len(outcome.complaints) <= 3, f"many words: {outcome.err}"
                nothing_half(f"{path.name} on {share} of what it needs", disk, outcome, whole)
            finally:
                subprocess.run(["umount", "-l", disk], check=False)
        assert full >= 3, f"{path.name}: {full} of 5 disks were too small"


@test
def file_size_limit() -> None:
    """ulimit -f: an error, not a signal."""
    for path in inputs():
        whole = whole_result(path)
        for limit in (1, 4096, 65536, 300000):
            out = fresh()
            outcome = analyze(path, "-o", out, *ALL,
                              before=lambda n=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)))
            if outcome.status == FAILED:
                assert "cannot" in outcome.err and len(outcome.complaints) <= 3, outcome.err
            if out.exists():
                nothing_half(f"{path.name} with files of {limit}", out, outcome, whole)


@test
def no_memory() -> None:
    """Little address space: an error, not a crash."""
    for path in inputs():
        whole = whole_result(path)
        for megabytes in (40, 80, 160, 320):
            out = fresh()
            outcome = analyze(path, "-o", out, *ALL, before=lambda n=megabytes: resource.setrlimit(
                resource.RLIMIT_AS, (n << 20, n << 20)))
            if out.exists():
                nothing_half(f"{path.name} with {megabytes} MB", out, outcome, whole)


@test
def no_files() -> None:
    """Few open files."""
    for path in inputs():
        whole = whole_result(path)
        for files in (8, 16, 32):
            out = fresh()
            outcome = analyze(path, "-o", out, *ALL, before=lambda n=files: resource.setrlimit(
                resource.RLIMIT_NOFILE, (n, n)))
            if out.exists():
                nothing_half(f"{path.name} with {files} files", out, outcome, whole)


@test
def killed() -> None:
    """kill -9 at random moments: nothing half under a name; the next run clears what was left."""
    rng = random.Random(SEED)
    for path in inputs():
        begin = time.monotonic()
        whole = whole_result(path)
        elapsed = time.monotonic() - begin
        out = fresh()
        for number in range(12):
            run = subprocess.Popen([NPUSCOPE, "analyze", path, "-o", out, *ALL], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(rng.random() * elapsed)
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            for entry in out.iterdir() if out.exists() else ():
                if not entry.name.startswith("."):
                    same(entry, whole / entry.name)
            if number % 4 == 3:
                assert analyze(path, "-o", out, *ALL).status in (DONE, PARTIAL)
                same(out, whole)
                no_temporary(out)
                shutil.rmtree(out)


@test
def killed_beside_input() -> None:
    """The same in the input's own directory."""
    rng = random.Random(SEED)
    for path in (p for p in inputs() if p.is_dir()):
        copy = copy_of(path)
        begin = time.monotonic()
        assert analyze(copy).status in (DONE, PARTIAL)
        elapsed = time.monotonic() - begin
        whole = digest(copy)
        for _ in range(6):
            run = subprocess.Popen([NPUSCOPE, "analyze", copy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
            time.sleep(rng.random() * elapsed)
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            now = {name: content for name, content in digest(copy).items() if not name.startswith(".")}
            assert all(whole.get(name) == content for name, content in now.items()), "half of a result"
        assert analyze(copy).status in (DONE, PARTIAL)
        assert digest(copy) == whole
        no_temporary(copy)


@test
def two_at_once() -> None:
    """Several analyses into one directory: each one ends well, and the result is one of theirs, whole."""
    for path in inputs():
        whole = whole_result(path)
        for _ in range(3):
            out = fresh()
            runs = [subprocess.Popen([NPUSCOPE, "analyze", path, "-o", out, *ALL], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True) for _ in range(3)]
            for run in runs:
                _, err = run.communicate(timeout=SECONDS)
                assert run.returncode in (DONE, PARTIAL), f"{path.name}: status {run.returncode}: {err[-600:]}"
            same(out, whole)
            no_temporary(out)


def main() -> int:
    global SCRATCH, _running
    tests = Tests()
    wanted = sys.argv[1:] or ["*"]
    if not NPUSCOPE.exists():
        raise SystemExit(f"{NPUSCOPE} is missing: make")
    with tempfile.TemporaryDirectory(prefix="npuscope-damaged-") as scratch:
        SCRATCH = Path(scratch)
        for name, function in all_tests:
            if any(fnmatch.fnmatch(name, pattern) for pattern in wanted):
                _running = name
                tests.run(name, function)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
