#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The helper library must be no burden to whatever it is preloaded into, and the collector none to
the command it starts; neither may be led astray by a job. Witness: the same program without the helper."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from harness import AGENT, DONE, PARTIAL, SIM, Case, environment, main, need, need_job, pid_list, ranks_of, test

PYTHON = "/usr/bin/python3"


def both(case: Case, argv: list[str]) -> None:
    """Fail unless a command does the same with the helper as without."""
    plain = subprocess.run(argv, env=environment(), capture_output=True, check=False, timeout=60)
    helped = subprocess.run(argv, env=environment(agent=True), capture_output=True, check=False, timeout=60)
    assert (helped.returncode, helped.stdout, helped.stderr) == (plain.returncode, plain.stdout, plain.stderr), \
        f"{argv}: {plain} became {helped}"
    assert plain.returncode == 0, f"{argv} fails anyway: {plain}"


@test
def helper_occupies_no_descriptor(case: Case) -> None:
    """The job may close any number and use it again, in forked children too."""
    case.path("file").write_text("hello\n")
    code = ("import os\n"
            "print(sorted(os.listdir('/proc/self/fd')))\n"
            "os.closerange(3, 64)\n"
            f"fd = os.open({str(case.path('file'))!r}, os.O_RDONLY)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    print(fd, os.read(fd, 9), flush=True)\n"
            "    os._exit(0)\n"
            "print(os.waitpid(pid, 0)[1])\n")
    both(case, [PYTHON, "-c", code])


@test
def helper_respects_file_size_limit(case: Case) -> None:
    both(case, ["bash", "-c", f"ulimit -f 100; {PYTHON} -c 'print(1)'; /bin/echo $?"])


@test
def helper_leaves_other_programs_single_threaded(case: Case) -> None:
    """A process with a second thread may not enter a user namespace."""
    probe = subprocess.run(["unshare", "-U", "true"], capture_output=True, check=False)
    need(probe.returncode == 0, "user namespaces")
    both(case, ["unshare", "-U", "true"])
    both(case, ["sh", "-c", "ls /proc/self/task | wc -l"])


@test
def cann_is_loaded_later(case: Case) -> None:
    """In a program that is not linked with CANN the helper is nothing but a mapped library,
    until a plugin brings CANN and a thread."""
    job = case.start([need_job("late_cann_job"), "200"], env=environment(sim=True, agent=True), cwd=case.dir)
    job.wait_for("^ready")
    maps = Path(f"/proc/{job.pid}/maps").read_text()
    assert "libnpuscope_agent.so" in maps and "/memfd:npuscope" not in maps, maps
    assert len(os.listdir(f"/proc/{job.pid}/task")) == 1
    capture_run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("")
    job.wait_for("^copied", seconds=60)
    job.send("")
    assert job.wait() == 0, job.err
    run = capture_run.result().expect(DONE, PARTIAL)
    process = run.session.json["processes"][0]
    assert process["task_source"] == "agent", process["task_source_reason"]
    assert not any("no device task log" in line for line in run.complaints), run.err


@test
def command_gets_callers_umask(case: Case) -> None:
    old = subprocess.run(["sh", "-c", "umask 022; exec \"$@\"", "sh", "sh", "-c", "umask"], capture_output=True,
                         check=True)
    run = case.record("-q", "-o", case.dir, "--export", "none", "--", "sh", "-c", "umask", wait=False,
                      preexec_fn=lambda: os.umask(0o022)).result()
    assert old.stdout.decode().strip() in run.out.split(), run


@test
def any_process_name_is_recorded(case: Case) -> None:
    """Names are bytes; session.json is UTF-8 whatever they are, and no
    control character reaches the terminal."""
    code = ("import ctypes, time\n"
            "ctypes.CDLL(None).prctl(15, b'\\xff\\x1b[2J\"\\\\', 0, 0, 0)\n"
            "time.sleep(1.5)\n")
    run = case.record("-o", case.dir, "--", PYTHON, "-c", code, wait=False).result()
    run.expect(PARTIAL)
    text = (run.session.path / "session.json").read_bytes().decode("utf-8")
    json.loads(text)
    assert "\x1b" not in run.err


@test
def storm_of_mappings_does_not_stop_the_clock(case: Case) -> None:
    """Processes that map code all the time may cost us a look now and then, not the end of the capture."""
    code = ("import mmap\n"
            "keep = [mmap.mmap(-1, 4096, prot=mmap.PROT_READ if i % 2 else mmap.PROT_WRITE) for i in range(2000)]\n"
            "while True:\n"
            "    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()\n")
    jobs = [case.start([PYTHON, "-c", code]) for _ in range(3)]
    time.sleep(1)
    # They do not end: nor would a capture that waits for a moment without a mapping.
    run = case.record("-d", "2s", "-o", case.dir, "--export", "none", "-p", pid_list([j.pid for j in jobs])).result()
    run.expect(DONE, PARTIAL)
    assert all(job.alive() for job in jobs)


@test
def stalled_collector_resumes_the_log(case: Case) -> None:
    """The helper lets go of a collector that is silent for 5 s; one
    that comes back reports it and continues."""
    job = case.sim_job("--ranks", "1", "--seconds", "40")
    rec = case.record("-d", "14s", "-o", case.dir, "--export", "none", "-p", pid_list(ranks_of(job)))
    time.sleep(2)
    rec.signal(signal.SIGSTOP)
    time.sleep(7)
    rec.signal(signal.SIGCONT)
    time.sleep(3)
    slices = list(case.dir.glob("npuscope_*/PROF_*/device_*/data/*.slice_*"))
    before = sum(p.stat().st_size for p in slices if not p.name.endswith(".done"))
    run = rec.result().expect(PARTIAL)
    slices = list(case.dir.glob("npuscope_*/PROF_*/device_*/data/*.slice_*"))
    after = sum(p.stat().st_size for p in slices if not p.name.endswith(".done"))
    assert after > before, f"the task log stopped at {before} bytes"
    assert any("gap in its task log" in line for line in run.complaints), run


@test
def job_that_exits_leaves_no_task_behind(case: Case) -> None:
    """What the driver still holds when the job exits is handed over: no task of the end is without its time.

    Those before the first that the device timed were submitted before the log
    was open: on a busy machine there are some.
    """
    need(AGENT.exists(), "the helper library: make")
    env = environment(sim=True)
    sim = SIM / "bin" / "npusim-train"
    run = case.record("-o", case.dir, "--export", "db", "--", sim, "--ranks", "1", "--steps", "20", wait=False,
                      env=env).result(120)
    run.expect(DONE)
    databases = list(case.dir.rglob("ascend_pytorch_profiler_*.db"))
    assert len(databases) == 1, run
    with sqlite3.connect(f"file:{databases[0]}?mode=ro", uri=True) as db:
        sources = [source for source, in db.execute(
            "SELECT source FROM TASK JOIN NPUSCOPE_TASK_TIME USING (globalTaskId) ORDER BY startNs")]
    timed = sources[sources.index("device log"):]
    assert len(timed) > len(sources) / 2 and set(timed) == {"device log"}, f"{sources.count('device log')} timed: {run}"


if __name__ == "__main__":
    sys.exit(main())
