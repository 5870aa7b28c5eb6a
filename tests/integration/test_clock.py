#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Device times while the device's oscillator drifts and changes its rate, and the driver answers late."""

import json
import sqlite3
import subprocess
import sys

from harness import DONE, ROOT, SIM, Case, environment, main, need, need_npusim, need_program, need_root, test

SECONDS = 20


@test
def a_step_of_the_oscillator(case: Case) -> None:
    """make device-truth, but short: within a few microseconds at worst, and
    the result knows how wrong it can be."""
    need_root()
    need_npusim()
    run = case.run(["bash", ROOT / "tools" / "device-truth.sh", SECONDS, case.path("out")], seconds=120)
    assert run.status == DONE, f"{run.status}: {run.err}"
    numbers = json.loads((case.path("out") / "truth.json").read_text())
    assert numbers["tasks_found"] > 5000 and numbers["bounds_between"] == 0, numbers
    assert numbers["bounds_tasks"] < numbers["tasks_found"] / 100, numbers  # before the log began
    assert numbers["start_error_us_p99"] < 2 and numbers["end_error_us_p99"] < 2, numbers
    assert numbers["bound_coverage"] >= 0.999, numbers
    assert numbers["causality_violations"] == 0
    # The stated error is neither 0 nor unlimited.
    assert 0.5 < numbers["bound_us_p50"] < 20, numbers
    assert "<svg" in (case.path("out") / "clocks.svg").read_text()
    reported = clocks_of(case)
    assert len(reported) == 2, reported
    for clock in reported:
        assert clock["fitted"] and clock["lines"] >= 2, clock  # the step was seen
        assert 50 < clock["drift_ppm"] < 70, clock
        assert 0 < clock["error_us"] <= clock["worst_error_us"], clock
        assert clock["samples_used"] <= clock["samples"], clock


@test
def a_job_in_a_time_namespace(case: Case) -> None:
    """The helper in the job reads clocks that are an hour ahead of ours: device tasks
    are beside their launches all the same."""
    need_root()
    need_npusim()
    need_program("unshare", "util-linux")
    can = subprocess.run(["unshare", "--time", "--monotonic", "3600", "--fork", "true"], capture_output=True,
                         check=False)
    need(can.returncode == 0, "time namespaces (Linux 5.6, and unshare that knows them)")
    job = case.start(["unshare", "--time", "--monotonic", "3600", "--boottime", "3600", "--fork",
                      SIM / "bin" / "npusim-train",
                      "--ranks", "1", "--rate", "300"], env=environment(sim=True, agent=True), stdin=subprocess.DEVNULL,
                     cwd=case.dir)
    pid = int(job.wait_for(r"^ready (\d+)").group(1))
    result = case.record("-p", pid, "-d", "2s", "-o", case.path("out"), "--export", "db").result(60).expect(DONE)
    assert not [line for line in result.complaints if "seem to start before" in line], result.err
    [path] = result.session.path.rglob("ascend_pytorch_profiler_*.db")
    with sqlite3.connect(path) as db:
        tasks = db.execute("SELECT count(*), min(t.startNs - a.startNs), max(t.startNs - a.startNs) FROM TASK t JOIN "
                           "CANN_API a"
                           " USING (connectionId) JOIN NPUSCOPE_TASK_TIME USING (globalTaskId) WHERE source = 'device "
                           "log'").fetchone()
        begin, end = db.execute("SELECT startTimeNs, endTimeNs FROM SESSION_TIME_INFO").fetchone()
    assert tasks[0] > 20 and tasks[1] >= 0 and tasks[2] < 60e9, tasks
    assert end - begin < 300e9, end - begin


def clocks_of(case: Case) -> list[dict[str, float]]:
    """What the results state of their clocks, in META_DATA; their tables have the same."""
    found = []
    for path in sorted(case.path("out").glob("npuscope_*/*_ascend_pt/ASCEND_PROFILER_OUTPUT/*.db")):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'TASK'").fetchone():
            continue
        text = db.execute("SELECT value FROM META_DATA WHERE name = 'npuscope'").fetchone()[0]
        found += json.loads(text)["device_clocks"]
        rows = db.execute("SELECT deviceId, startNs, endNs, errorNs FROM NPUSCOPE_CLOCK ORDER BY 1, 2").fetchall()
        assert len(rows) >= SECONDS - 2, rows
        assert all(error > 0 and start < end for _, start, end, error in rows), rows
        assert all(one[2] == other[1] for one, other in zip(rows, rows[1:]) if one[0] == other[0]), rows
        late = db.execute("SELECT count(*) FROM TASK t WHERE NOT EXISTS (SELECT 1 FROM NPUSCOPE_CLOCK c WHERE"
                          " c.deviceId = t.deviceId AND t.startNs BETWEEN c.startNs AND c.endNs)").fetchone()[0]
        # what ran when the capture began or ended
        assert late <= 20, f"{late} tasks have no stated error"
        db.close()
    return found


if __name__ == "__main__":
    sys.exit(main())
