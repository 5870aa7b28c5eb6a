#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Communicators: all of those that one call makes, and names only where the caller's struct has one."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from pathlib import Path

from harness import DONE, PARTIAL, Case, Session, catalogue, environment, main, need_program, need_root, test
from records import API

LIBRARY = """
#include <stdint.h>
static volatile int sink;
int HcclCommInitAll(uint32_t n, int *devices, void **comms)
{
	for (uint32_t i = 0; i < n; i++)
		comms[i] = (void *)(uintptr_t)(0xc0000 + 16 * i);
	return sink++ * 0;
}
int HcclCommInitRootInfoConfig(uint32_t n, void *root, uint32_t rank, void *config, void **comm)
{
	*comm = (void *)(uintptr_t)(0xd0000 + 16 * rank);
	return sink++ * 0;
}
"""

JOB = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
int HcclCommInitAll(uint32_t, int *, void **);
int HcclCommInitRootInfoConfig(uint32_t, void *, uint32_t, void *, void **);
struct config { uint64_t size; uint32_t magic, version; uint64_t rsv; uint32_t buffer, deterministic; char name[128]; };
int main(void)
{
	void *comms[80];
	struct config config = { .magic = 0xf0f0f0f0, .name = "group_of_the_job" };

	puts("ready");
	fflush(stdout);
	getchar();
	HcclCommInitAll(5, NULL, comms);
	HcclCommInitAll(80, NULL, comms);
	config.size = 32; /* of an older interface: what follows is not the struct's */
	HcclCommInitRootInfoConfig(2, NULL, 0, &config, comms);
	config.size = sizeof(config);
	HcclCommInitRootInfoConfig(2, NULL, 1, &config, comms);
	return 0;
}
"""


def capture(case: Case, export: str) -> tuple[Session, str]:
    need_root()
    compiler = need_program("gcc", "gcc")
    case.path("lib.c").write_text(LIBRARY)
    case.path("job.c").write_text(JOB)
    library, program = case.path("libhccl.so"), case.path("job")
    case.run([compiler, "-O1", "-w", "-fPIC", "-shared", case.path("lib.c"), "-o", library]).expect(0)
    case.run([compiler, "-O1", "-w", case.path("job.c"), "-o", program, library]).expect(0)
    job = case.start([program], env=environment(libs=[library.parent]))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", export)
    job.send("")
    assert job.wait() == 0
    result = run.result().expect(DONE, PARTIAL)
    return result.session, result.out


@test
def all_communicators_of_a_call(case: Case) -> None:
    session, _ = capture(case, "none")
    events = [e for e in session.of(API) if e.probe == catalogue()["HcclCommInitAll"][0]]
    five, many = [[e for e in events if e.body.slot[0] == n] for n in (5, 80)]
    assert [e.body.slot[1] for e in five] == [0xC0000 + 16 * i for i in range(5)]
    assert [e.body.slot[2] for e in five] == list(range(5))
    assert len({(e.start, e.dur) for e in five}) == 1
    assert len(many) == 64, len(many)


@test
def a_name_is_read_where_there_is_one(case: Case) -> None:
    session, _ = capture(case, "none")
    events = [e for e in session.of(API) if e.probe == catalogue()["HcclCommInitRootInfoConfig"][0]]
    names = {e.body.slot[1] & 0xFFFFFFFF: session.strings.get(e.body.slot[3]) for e in events}
    assert names == {0: None, 1: "group_of_the_job"}, names
    assert not any(e.flags for e in events)


@test
def one_row_for_one_call(case: Case) -> None:
    _, out = capture(case, "db")
    folder = next(Path(line) for line in out.splitlines() if line.endswith("_ascend_pt"))
    db = sqlite3.connect(next((folder / "ASCEND_PROFILER_OUTPUT").glob("ascend_pytorch_profiler*.db")))
    rows = db.execute("SELECT count(*) FROM CANN_API a JOIN STRING_IDS s ON s.id = a.name WHERE s.value ="
                      " 'HcclCommInitAll'").fetchone()[0]
    assert rows == 2, rows


@test
def numbers_of_another_catalogue(case: Case) -> None:
    """Read by the session's list: a probe that it does not list is left out, with a line."""
    session, _ = capture(case, "none")
    for listed, calls in ((True, 2), (False, 0)):
        copy = case.path(f"copy{listed}")
        shutil.copytree(session.path, copy)
        text = session.json
        text["catalogue"] = 1
        if not listed:
            text["probes"] = [p for p in text["probes"] if p["symbol"] != "HcclCommInitAll"]
        (copy / "session.json").write_text(json.dumps(text))
        result = case.analyze(copy, "--export", "db").expect(DONE, PARTIAL)
        assert any("does not list" in line for line in result.complaints) != listed, result.err
        db = sqlite3.connect(next(copy.glob("**/ascend_pytorch_profiler*.db")))
        rows = db.execute("SELECT count(*) FROM CANN_API a JOIN STRING_IDS s ON s.id = a.name WHERE s.value ="
                          " 'HcclCommInitAll'").fetchone()[0]
        assert rows == calls, (listed, rows)


if __name__ == "__main__":
    sys.exit(main())
