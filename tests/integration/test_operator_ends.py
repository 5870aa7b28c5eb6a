#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ends of aclnn operators, which are probed in front of their returns. Witnesses: the simulator's log,
and what a job that throws through them prints."""

import signal
import sys
from bisect import bisect_right
from collections import Counter
from typing import Any

from harness import (Case, Session, build_library, catalogue, environment, main, need_job, need_npusim, need_root,
                     pid_list, ranks_of, test, wait_for_events)
from records import MARK

TIMES = 2000
FIRST, SECOND = "aclnn*GetWorkspaceSize (end)", "aclnn* (end)"


def ends(session: Session, pid: int) -> list[tuple[int, int, str, int]]:
    """(tid, time, operator, phase) of each end, by thread and time."""
    ids, texts = catalogue(), session.strings
    phases = {ids[FIRST][0]: 1, ids[SECOND][0]: 2}
    return sorted((e.tid, e.start, texts[e.body.slot[0]], phases[e.probe]) for e in session.of(MARK, pid)
                  if e.probe in phases)


class Truth:
    """The simulator's log of operators, in CLOCK_MONOTONIC."""

    def __init__(self, path: Any) -> None:
        lines = [line.split("\t") for line in path.read_text().splitlines()]
        self.clock = sorted((int(f[1]), int(f[2])) for f in lines if f[0] == "clock")
        self.ops = sorted((int(f[1]), self.mono(int(f[6])), f[2], int(f[4]), self.mono(int(f[5]))) for f in lines
                          if f[0] == "op" and f[4] in "12")

    def mono(self, raw: int) -> int:
        i = max(bisect_right(self.clock, (raw, 0)) - 1, 0)
        at = self.clock[i]
        return raw - at[0] + at[1]


@test
def ends_are_those_of_the_simulator(case: Case) -> None:
    """Each end in its order; none before the operator's last act, none after the thread's next operator."""
    need_root()
    need_npusim()
    case.path("truth").mkdir()
    job = case.sim_job("--ranks", 1, truth=case.path("truth"))
    pids = ranks_of(job)
    run = case.record("-p", pid_list(pids), "-o", case.path("out"), "--level", 2, "--export", "none")
    wait_for_events(case.path("out"), 4000)
    run.signal(signal.SIGINT)
    result = run.result(90).expect(0, 3)
    job.signal(15)
    job.wait(30)
    found = ends(result.session, pids[0])
    truth = Truth(case.path("truth") / f"truth.{pids[0]}.tsv").ops
    assert len(found) > 200 and not result.session.dropped(), f"{len(found)} ends"
    for tid in {f[0] for f in found}:
        ours = [f for f in found if f[0] == tid]
        real = [t for t in truth if t[0] == tid]
        # The last that was over when the first end was seen; clocks agree within 2 us.
        first = max(i for i, t in enumerate(real) if t[1] <= ours[0][1] + 2000)
        real = real[first:first + len(ours)]
        assert [t[2:4] for t in real] == [f[2:] for f in ours], f"thread {tid}: other operators, or another order"
        early = [(f, t) for f, t in zip(ours, real) if f[1] < t[1] - 2000]
        late = [(f, t) for f, t in zip(ours, real[1:]) if f[1] > t[4] + 2000]
        assert not early and not late, f"{len(early)} ends too early, {len(late)} too late: {(early + late)[:3]}"


@test
def operators_that_do_not_return(case: Case) -> None:
    """Exceptions, longjmp, the end of the thread: the job's output is that of the job alone, and an end
    is recorded of each call that returned and of no other."""
    need_root()
    job_path, where = need_job("op_ends_job"), case.path("lib")
    build_library(case, "nnopbase_lib.cc", "libnnopbase.so", where)
    build_library(case, "opapi_lib.cc", "libopapi.so", where, "-fstack-protector-all")
    env = environment(libs=[where])
    alone = case.start([job_path, TIMES], env=env)
    alone.send("go")
    expected = alone.wait(120), alone.out.split("\n", 1)[1]
    job = case.start([job_path, TIMES], env=env)
    job.wait_for("^ready")
    pid = job.pid
    tracer = case.record("-p", pid, "-o", case.dir, "--export", "none", "--level", 2)
    job.send("go")
    found = job.wait(120), job.out.split("\n", 1)[1]
    assert found == expected and expected[0] == 11, f"{found} instead of {expected}"
    assert expected[1] == (f"returned {2 * TIMES} caught {2 * TIMES} nested {TIMES} jumps {TIMES} "
                           f"ends {TIMES // 50}\n"), expected
    session = tracer.result(60).expect(0, 3).session
    counted = Counter((name, phase) for _tid, _time, name, phase in ends(session, pid))
    wanted = {("aclnnPlain", 1): TIMES, ("aclnnPlain", 2): TIMES, ("aclnnDeep", 2): 4 * TIMES}
    missing = sum(wanted.values()) - counted.total()
    assert missing <= session.dropped(), f"{counted}, lost {session.dropped()}"
    assert all(counted[key] <= number for key, number in wanted.items()) and set(counted) == set(wanted), counted
    assert all(p["class"] == "emulated" for p in session.json["probes"] if p["how"] == "end")


if __name__ == "__main__":
    sys.exit(main())
