#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Damaged, absurd and hostile input of `npuscope analyze` and `npuscope show`.

Whatever the input: no crash, a documented exit status, a line that names what is wrong, what
could be read is in the results and what could not is counted, and every result that was
written passes the checks of tools/conformance.
"""

from __future__ import annotations

import fnmatch
import gzip
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Callable, Iterator

from damage import (DONE, FAILED, HUGE, NPUSCOPE, PARTIAL, SECONDS, SEED, Outcome, analyze, check, copy_of,
                    database_copy, database_in, digest, expect_rows, fresh, good_cann, good_results, good_session,
                    good_torch, main, one_line, query, run, survive, tasks_in, test)
from harness import SOAK, Skip

VERSION, MAGIC = 2, 0x4B43504E     # of a session's chunks
CHUNK = struct.Struct("<IHHQIIII")
EVENT = struct.Struct("<BBHIIiQQ4Q")
STRING = struct.Struct("<BBHIQQ128s")
API, COMM, TEXT = 1, 65, 64
STARS = 64          # bytes of a record of the device's task log
NASTY = [b'say "hi", then\n\r\tleave', b"NUL\0inside", b"\xff\xfe\xc0\x80", b"=1+1", b"\x1b[31m", b",", b'"', b"",
         "名\U0001f600".encode(), b"\xed\xa0\x80", b"</script>", b"%s%n", b"x" * 127, b"\\", b"'; DROP TABLE TASK; --"]


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


if __name__ == "__main__":
    sys.exit(main())
