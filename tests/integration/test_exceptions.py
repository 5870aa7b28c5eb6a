#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Exceptions, longjmp and pthread_exit across probed functions. Witness: the job's own output and exit
status. At level 2, where every row of the catalogue is attached."""

import re
import sys

from harness import ROOT, Case, Running, build_library, catalogue, environment, main, need_job, need_root, test
from records import MARK

TIMES = 10000


def libraries(case: Case) -> dict[str, str]:
    """Environment with our own libnnopbase.so and libacl_rt.so."""
    where = case.path("lib")
    build_library(case, "nnopbase_lib.cc", "libnnopbase.so", where)
    build_library(case, "acl_rt_lib.c", "libacl_rt.so", where)
    return environment(libs=[where])


def outcome(job: Running, seconds: float = 120) -> tuple[int, str]:
    status = job.wait(seconds)
    return status, re.sub(r"^ready \d+\n", "", job.out)


def undisturbed_and_traced(case: Case, name: str, attach: bool) -> Running:
    """Run the job alone and under npuscope: same output, same status. Returns the capture."""
    need_root()
    program, env = need_job(name), libraries(case)
    alone = case.start([program, TIMES], env=env)
    alone.send("go")
    expected = outcome(alone)
    assert expected[0] > 0, f"the job itself fails: {expected} {alone.err}"
    if attach:
        job = case.start([program, TIMES], env=env)
        job.wait_for("^ready")
        tracer = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--level", 2)
        job.send("go")
        found = outcome(job)
    else:
        (case.path("go")).write_text("go\n")
        with open(case.path("go"), "rb") as go:
            tracer = case.record("-o", case.dir, "--export", "none", "--level", 2, "--", program, TIMES, env=env,
                                 stdin=go,
                                 wait=False)
        tracer.wait(120)
        printed = [line for line in tracer.out.splitlines() if not line.startswith(("ready ", "/"))]
        session = tracer.result().expect(0, 3).session
        ended = [p["exit_code"] >> 8 for p in session.json["processes"] if p["comm"] == name]
        found = ended[0] if ended else -1, "\n".join(printed) + "\n"
    assert found == expected, f"{found} {tracer.err} instead of {expected}"
    return tracer


def marks_are_entry_only(tracer: Running) -> None:
    """Each of the four C++ functions was hit as often as the job called it."""
    session = tracer.result(60).expect(0, 3).session
    mangled = {s for s in catalogue() if s.startswith("_Z") and "aclOpExecutor" in s}
    assert len(mangled) == 4, mangled
    probes = [p for p in session.json["probes"] if p["symbol"] in mangled]
    assert {p["symbol"] for p in probes} == mangled, probes
    assert all(p["how"] == "entry" for p in probes), probes
    ids = catalogue()
    marks = session.of(MARK)
    for symbol in mangled:
        hits = sum(e.probe == ids[symbol][0] for e in marks)
        assert hits + session.dropped() >= TIMES + 2 and hits <= TIMES + 2, f"{symbol}: {hits} marks"
        assert session.dropped() or [p["hits"] for p in probes if p["symbol"] == symbol] == [TIMES + 2], probes


@test
def exceptions_attached(case: Case) -> None:
    marks_are_entry_only(undisturbed_and_traced(case, "throw_job", attach=True))


@test
def exceptions_from_the_start(case: Case) -> None:
    undisturbed_and_traced(case, "throw_job", attach=False).wait()


@test
def longjmp_and_pthread_exit(case: Case) -> None:
    tracer = undisturbed_and_traced(case, "leave_job", attach=True)
    session = tracer.result(60).expect(0, 3).session
    ids = catalogue()
    returned = [e for e in session.events if e.probe == ids["aclrtSynchronizeDevice"][0] and e.kind == 1]
    assert len(returned) + session.dropped() >= TIMES, f"{len(returned)} calls that returned, of {TIMES}"
    left = [e for e in session.events if e.probe == ids["aclrtSynchronizeStream"][0] and e.kind == 1]
    assert not left, f"{len(left)} calls that never returned have a record"


@test
def longjmp_from_the_start(case: Case) -> None:
    undisturbed_and_traced(case, "leave_job", attach=False).wait()


@test
def no_return_probe_on_cpp(_case: Case) -> None:
    """An exception that crosses a return-probed frame ends the job."""
    counter = "_ZN2at15sequence_number17get_and_incrementEv"  # adds one to a number: nothing to throw
    wrong = [symbol for symbol, (_id, returns) in catalogue().items() if returns and symbol.startswith("_Z")]
    assert wrong == [counter], wrong
    assert sum(symbol.startswith("_Z") for symbol in catalogue()) == 18
    assert (ROOT / "kheaders" / "catalog_rows.h").read_text().count('"_Z') == 18


if __name__ == "__main__":
    sys.exit(main())
