#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The NPU's driver where there is none: device nodes of its names in the job's /dev. Witness: the job's log.

With a driver: tests/vm.
"""

import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path

from harness import DONE, NPUSCOPE, PARTIAL, Case, main, need_job, need_mounts, need_program, need_root, test
from records import DRIVER

OPEN, CLOSE, IOCTL, MMAP = 1, 2, 3, 4
ZERO = 1 << 20 | 5
ALLOC, SIZE, DEVICE = ord("M") << 8 | 3, 1 << 20, 3


def reported(text: str) -> list[tuple[str, int]]:
    """(what, result) of each call."""
    return [(what, int(result)) for what, result in re.findall(r"^((?:open|close|ioctl|mmap) .*) (-?\d+)$", text, re.M)]


@test
def calls_on_nodes(case: Case) -> None:
    """Each call on a node is a record, with its result; calls on other
    devices are none. Of tasks there is a line.

    The nodes are in our own /dev, which is believed. To a second capture they
    are the job's alone, and it refuses them.
    """
    need_root()
    need_mounts()
    need_program("nsenter", "util-linux")
    job = case.start([need_job("driver_job")])
    job.wait_for("^ready")
    run = case.start(["nsenter", "-t", job.pid, "-m", NPUSCOPE, "record", "-p", job.pid, "-o", case.dir,
                      "--driver", "calls,tasks"])
    run.wait_for(r"^npuscope: recording ", err=True)
    outside = case.record("-p", job.pid, "-o", case.path("outside"), "--driver", "calls", "--export", "none")
    job.send("go")
    assert job.wait() == 0, job.err
    result = run.result().expect(PARTIAL)
    session, calls = result.session, reported(job.out)
    missing = [line for line in result.complaints if "not recorded of the NPU's driver: tasks, CQEs, copies" in line]
    how = {kind["how"] for kind in session.json["driver"]["functions"].values()}
    assert len(missing) == 1 and how == {"none"}, (result.err, how)
    assert session.json["driver"]["refused_nodes"] == 0
    events = sorted(session.of(DRIVER, job.pid), key=lambda e: e.start)
    assert session.dropped() == 0
    assert [e.ret for e in events] == [value for _, value in calls], ([(e.call_type, e.ret) for e in events], calls)
    allocs = [e for e in events if e.call_type == IOCTL and e.body.command == ALLOC]
    assert len(allocs) == 5 and all(e.body.bytes == SIZE and e.body.device == DEVICE for e in allocs)
    assert all(e.body.rdev == ZERO for e in events if e.ret != -6)  # ENXIO: no driver has it
    assert Counter(e.call_type for e in events) == {OPEN: 2, CLOSE: 2, IOCTL: 6, MMAP: 1}
    check_results(Path(result.out.splitlines()[-1]), calls)
    strange = outside.result().expect(PARTIAL)
    events = strange.session.of(DRIVER, job.pid)
    assert [e.ret for e in events] == [-6], "but for the one that could not be opened, whose path is all there is of it"
    assert strange.session.json["driver"]["refused_nodes"] == 2
    assert sum("own /dev are not recorded" in line for line in strange.complaints) == 1, strange.err


def check_results(folder: Path, calls: list[tuple[str, int]]) -> None:
    """Names and counts in the table and in the trace are those of the job's log."""
    names = Counter(name for name, _ in calls)
    output = folder / "ASCEND_PROFILER_OUTPUT"
    with open(output / "driver_statistic.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["Name"]: int(row["Count"]) for row in rows} == names, (rows, names)
    errors = Counter(name for name, result in calls if result < 0)
    for row in rows:
        assert int(row["Errors"]) == errors[row["Name"]], row
        low, average, high, most = (float(row[key]) for key in ("Min(us)", "Avg(us)", "Max(us)", "P99(us)"))
        assert 0 < low <= average <= high and low <= most <= high, row
    trace = json.loads((output / "trace_view.json").read_text(encoding="utf-8"))
    layer = [e["pid"] for e in trace if e["name"] == "process_name" and e["args"]["name"] == "NPU Driver"]
    assert len(layer) == 1
    assert Counter(e["name"] for e in trace if e["pid"] == layer[0] and e["ph"] == "X") == names


@test
def of_the_whole_host(case: Case) -> None:
    """With -a calls are recorded within the capture: not before it, nor after it."""
    need_root()
    need_mounts()
    need_program("nsenter", "util-linux")
    job = case.start([need_job("driver_job"), "loop"])
    job.wait_for("^ready")
    run = case.start(["nsenter", "-t", job.pid, "-m", NPUSCOPE, "record", "-a", "-d", "500ms", "-o", case.dir,
                      "--driver",
                      "calls", "--host-sys", "none", "--task-source", "host", "--export", "none"])
    session = run.result().expect(DONE, PARTIAL).session
    job.send("end")
    assert job.wait() == 0, job.err
    window = session.json["capture"]
    events = session.of(DRIVER, job.pid)
    assert events and all(e.call_type == IOCTL for e in events)
    outside = [e for e in events
               if e.start + e.dur < window["begin_monotonic"] or e.start + e.dur > window["end_monotonic"]]
    assert not outside, (len(outside), len(events), window)


@test
def nothing_was_requested(case: Case) -> None:
    """--driver none: nothing is recorded, and nothing is printed."""
    need_root()
    job = case.start([need_job("driver_job")])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--driver", "none", "--export", "none")
    job.send("go")
    assert job.wait() == 0, job.err
    result = run.result().expect(DONE, PARTIAL)
    assert not result.session.of(DRIVER) and "driver" not in result.session.json
    assert not [line for line in result.complaints if re.search("(the|NPU's) driver", line)], result.err


if __name__ == "__main__":
    sys.exit(main())
