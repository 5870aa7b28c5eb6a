#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Marks and ranges that a job sets with mstx. Witness: the job's own clock around each call."""

import json
import sqlite3
import sys

from harness import DONE, PARTIAL, Case, add_test, build_library, environment, main, need_job, need_root

MARKER, RANGE = 0, 2


def marks(case: Case, how: str, numbers: int) -> None:
    need_root()
    build_library(case, "mstx_lib.c", "libms_tools_ext.so", case.path("lib"))
    job = case.start([need_job("mstx_job"), how], env=environment(libs=[case.path("lib")], NUMBERS=numbers))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.tell("")
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


if __name__ == "__main__":
    sys.exit(main())
