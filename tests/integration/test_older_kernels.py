#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The other rows of the table of fallbacks, on this kernel, which is made to refuse
the links that older ones do not have."""

import json
import os
import platform
import sys
from pathlib import Path

from harness import (DONE, FAILED, JOB_SOURCES, NPUSCOPE, PARTIAL, Case, add_test, build_library, catalogue,
                     environment, main, need, need_job, need_program, need_root, test, wait_until)
from records import API, MARK

MULTI, SESSION = "48", "57"  # attach types of links
ROWS = {"multi link": SESSION, "perf event": f"{MULTI},{SESSION}"}


def shim(case: Case, row: str) -> dict[str, str]:
    """Environment of a program to which the kernel is one of that row."""
    need_root()
    library = build_library(case, "no_links_lib.c", "libno_links.so", case.path("shim"))
    env = {**os.environ, "LD_PRELOAD": str(library), "NO_LINKS": ROWS[row]}
    printed = case.npuscope("doctor", env=env).expect(DONE).out
    need(row in printed, f"a kernel with uprobes by {row}: {printed}")
    return env


def calls_are_seen(case: Case, row: str) -> None:
    """Every call with its return, marks, a function that is loaded later, and one that has not returned."""
    env = shim(case, row)
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("loader_job")], env=environment(libs=[library.parent]))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--step-marker", "aclInit", env=env)
    job.send("load libacl_rt.so")
    job.send("call aclInit 3")
    job.send("call aclrtSynchronizeDevice 400")
    job.send("quit 3")
    assert job.wait() == 3
    session = run.result().expect(DONE, PARTIAL).session
    sync = [e for e in session.of(API, job.pid) if e.probe == catalogue()["aclrtSynchronizeDevice"][0]]
    assert len(sync) == 400 and all(e.dur > 0 and not e.ret for e in sync), len(sync)
    inits = [e for e in session.of(API, job.pid) if e.probe == catalogue()["aclInit"][0]]
    marks = session.of(MARK, job.pid)
    assert (len(inits), len(marks)) in ((3, 0), (3, 3)), "a step marker where a probe already is adds nothing"
    assert session.dropped() == 0


def one_is_refused(case: Case, row: str) -> None:
    """A function whose first instruction the kernel does not probe costs no other its probe, and is named."""
    need(platform.machine() == "x86_64", "x86-64: lock prefixes")
    env = shim(case, row)
    compiler = need_program("gcc", "gcc")
    source = (JOB_SOURCES / "acl_rt_lib.c").read_text().replace("int aclInit(const char *config)\n{\n\treturn act(1, "
                                                                "(void *)config);\n}\n", "")
    source += ('int lock_word;\n__asm__(".globl aclInit\\n.type aclInit,@function\\naclInit: lock incl (%rdi)\\n '
               'ret\\n"'
               '".size aclInit,.-aclInit");\n')
    case.path("lib.c").write_text(source)
    library = Path(case.path("lib")) / "libacl_rt.so"
    library.parent.mkdir()
    case.run([compiler, "-O1", "-w", "-fPIC", "-shared", case.path("lib.c"), "-o", library]).expect(0)
    job = case.start([need_job("loader_job")], env=environment(libs=[library.parent]))
    job.send("load libacl_rt.so")
    job.wait_for("^loaded")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", env=env)
    job.send("call aclrtSynchronizeDevice 9")
    job.send("quit 3")
    assert job.wait() == 3
    result = run.result().expect(PARTIAL)
    named = [line for line in result.complaints if "cannot probe" in line]
    assert len(named) == 1 and "cannot probe aclInit of" in named[0], result.err
    assert len(result.session.of(API, job.pid)) == 9, result.err
    assert "aclInit" not in {p["symbol"] for p in result.session.json["probes"]}


CAP_SYS_ADMIN = 1 << 21


def admins(pid: int) -> set[str]:
    """Names of the threads of a capture that have CAP_SYS_ADMIN, of those that live as long as it."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            status, name = (task / "status").read_text(), (task / "comm").read_text().strip()
        except OSError:  # a thread of the start that is done
            continue
        rights = next(line for line in status.splitlines() if line.startswith("CapEff"))
        if int(rights.split()[1], 16) & CAP_SYS_ADMIN:
            found.add("main" if task.name == str(pid) else name)
    return found & {"main", "nps_reader", "nps_stacks"}


def record_late_library(case: Case, env: dict[str, str], *options: str) -> set[str]:
    """Every call of a library that the job loads while it is recorded. Returns
    whose threads had CAP_SYS_ADMIN before."""
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("loader_job")])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--verbose", *options, env=env)
    have = admins(run.pid)
    job.send(f"load {library}")
    run.wait_for(r"libacl_rt.so: [1-9]\d* probes", err=True)
    job.send("call aclrtSynchronizeDevice 40")
    job.send("quit 0")
    assert job.wait() == 0
    result = run.result().expect(DONE, PARTIAL)
    assert len(result.session.of(API, job.pid)) == 40, result.err
    return have


def late_library(case: Case, wants_admin: bool) -> None:
    """A library that comes while it is recorded is probed: who does it has kept the
    right that it takes, and nobody else."""
    env = shim(case, "perf event")
    if wants_admin:
        env["UPROBES_WANT_ADMIN"] = "1"
    have = record_late_library(case, env, "--stacks", "cpu")
    if wants_admin:
        assert have == {"main"}, have
    # Without the shim's word it is this kernel that decides.
    assert not have - {"main"}, have


@test
def a_late_library(case: Case) -> None:
    late_library(case, False)


@test
def a_late_library_where_uprobes_want_admin(case: Case) -> None:
    late_library(case, True)


@test
def a_late_library_without_btf(case: Case) -> None:
    """The programs of the oldest kernels report mappings of code, too."""
    record_late_library(case, {**os.environ, "NPUSCOPE_FORBID": "btf"})


@test
def who_may_not_attach_is_reported(case: Case) -> None:
    """Where uprobes take CAP_SYS_ADMIN, and npuscope was started with the others alone."""
    env = shim(case, "perf event")
    env["UPROBES_WANT_ADMIN"] = "1"
    setpriv = need_program("setpriv", "util-linux")
    job = case.start(["sleep", "99"])
    result = case.run([setpriv, "--bounding-set=-sys_admin", NPUSCOPE, "record", "-p", job.pid, "-d", "1s", "-o",
                       case.dir], env=env).expect(FAILED)
    assert len(result.complaints) == 1 and "lacks CAP_SYS_ADMIN:" in result.complaints[0], result.err


@test
def costs_are_measured_by_perf_events(case: Case) -> None:
    """Where leaving a probe takes long, too: the child that measures has the time, so
    --max-overhead is held by what is true."""
    env = shim(case, "perf event")
    job = case.start(["sleep", "99"])
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--max-overhead", "100%", env=env)
    session = wait_until(lambda: next(case.dir.glob("*/session.json"), None), "the session")
    wait_until(lambda: json.loads(session.read_text())["cost"]["source"] != "estimated", "costs that were measured", 90)
    job.kill()
    result = run.result().expect(PARTIAL)
    assert "--max-overhead" not in " ".join(result.complaints), result.err
    assert min(kind["call_ns"] for kind in result.session.json["cost"]["probes"].values()) > 0


for name in ROWS:
    slug = name.replace(" ", "_")
    add_test(f"calls_are_seen_by_{slug}", lambda case, name=name: calls_are_seen(case, name))
    add_test(f"one_is_refused_by_{slug}", lambda case, name=name: one_is_refused(case, name))


if __name__ == "__main__":
    sys.exit(main())
