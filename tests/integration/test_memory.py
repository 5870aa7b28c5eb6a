#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the job allocated, held against the job's own account."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

from harness import DONE, PARTIAL, Case, environment, main, need_job, need_npusim, need_root, test

KB = 1024


@test
def every_layer_and_many_threads(case: Case) -> None:
    """acl, rt and hal, nested and directly: each allocation once, in
    order; memory from before is counted apart."""
    need_root()
    need_npusim()
    job = case.start([need_job("memory_job")], env=environment(sim=True), cwd=case.dir)
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--host-sys", "none")
    job.send("")
    assert job.wait() == 0, job.err
    result = run.result().expect(DONE, PARTIAL)
    assert not result.session.dropped()
    account = [line.split() for line in job.out.splitlines()[1:]]
    *changes, end = account
    folder = next(Path(line) for line in result.out.splitlines() if line.endswith("_ascend_pt"))
    rows = from_db(folder)
    found = [[kind, str(total)] for kind, total, *_ in rows[:len(changes)]]
    assert found == changes, f"{found} {changes}"
    final = {kind: (total, blocks) for kind, total, blocks, _unknown, _device in rows}
    assert final == {"device": (int(end[2]), int(end[6])), "host": (int(end[4]), 0)}
    # Two changes a round and thread, and what each of them holds in the end.
    assert len(rows) == len(changes) + 4 * (2 * 200 - 1)
    assert {device for *_, device in rows} == {0}
    assert rows[0][3] == 0 and rows[-1][3] == 1
    metadata = json.loads((folder / "profiler_metadata.json").read_text())
    assert metadata["npuscope"]["frees_of_memory_from_before_the_capture"] == 1
    counters = from_trace(folder)
    assert counters["Job/Device Memory"][-1] == final["device"][0] / KB
    assert len(counters["Job/Device Memory"]) + len(counters["Job/Pinned Host Memory"]) == len(rows)


def from_db(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """(kind, bytes, blocks, frees of what was there before, device), as written."""
    db = sqlite3.connect(next((folder / "ASCEND_PROFILER_OUTPUT").glob("ascend_pytorch_profiler*.db")))
    return db.execute("SELECT s.value, m.allocated, m.blocks, m.unknownFrees, m.deviceId FROM NPUSCOPE_MEMORY m JOIN"
                      " STRING_IDS s ON s.id = m.kind ORDER BY m.rowid").fetchall()


def from_trace(folder: Path) -> dict[str, list[float]]:
    """Counter -> its values in order."""
    found: dict[str, list[float]] = {}
    for event in json.loads((folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text()):
        if event["ph"] == "C" and event["name"].startswith("Job/"):
            found.setdefault(event["name"], []).append(event["args"]["KB"])
    return found


if __name__ == "__main__":
    sys.exit(main())
