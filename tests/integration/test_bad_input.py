#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each failure is reported in one line, with the right exit status, and leaves nothing half-written."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional, Sequence

from harness import (DONE, FAILED, NPUSCOPE, PARTIAL, SANITIZED, SOAK, USAGE, Arg, Case, Result, Session, Skip,
                     add_test, build_library, environment, kernel_leftovers, main, need_job, need_mounts, need_npusim,
                     need_program, need_root, ranks_of, test, wait_for_events)
from records import CHUNK, VERSION, chunks

CUTS = 30 if SOAK else 10
ENOUGH = 1500  # events of a session that is damaged over and over
NOBODY = 65534


def one_line(result: Result, *words: str) -> None:
    """Exactly one complaint, that names what it is about, and nothing on stdout."""
    lines = [line for line in result.err.splitlines() if line.strip()]
    assert len(lines) == 1, f"{len(lines)} lines instead of one: {result}"
    assert lines[0].startswith("npuscope: "), f"the line does not say who speaks: {lines[0]}"
    for word in words:
        assert word in lines[0], f"{word!r} is not in: {lines[0]}"
    assert not result.out, f"a failure printed results: {result.out}"


def nothing_in(path: Path) -> None:
    left = [str(p.relative_to(path)) for p in path.rglob("*")] if path.exists() else []
    assert not left, f"left behind: {left}"


def out_dir(case: Case) -> Path:
    path = case.path("out")
    path.mkdir(exist_ok=True)
    return path


# ---- processes ----------------------------------------------------------------------

def free_pid() -> int:
    top = int(Path("/proc/sys/kernel/pid_max").read_text())
    return next(p for p in range(top - 1, 1, -1) if not Path(f"/proc/{p}").exists())


@test
def a_thread_is_no_process(case: Case) -> None:
    """The number of a thread that is not its process' first: refused
    with the right one, not watched in vain."""
    need_root()
    code = "import threading, time\nt = threading.Thread(target=time.sleep, args=(60,))\nt.start()\n" \
           "print('thread', t.native_id, flush=True)\nt.join()"
    job = case.start([sys.executable, "-c", code])
    tid = int(job.wait_for(r"^thread (\d+)").group(1))
    result = case.npuscope("record", "-p", tid, "-d", "1s", "-o", case.path("out")).expect(FAILED)
    assert result.complaints == [f"npuscope: cannot watch pid {tid}: it is a thread of process {job.pid}: give that "
                                 "number"]
    assert not list(case.path("out").glob("*")), "a session of nothing"


@test
def no_such_pid(case: Case) -> None:
    need_root()
    pid = free_pid()
    result = case.npuscope("record", "-p", pid, "-d", "1s", "-o", out_dir(case)).expect(FAILED)
    one_line(result, str(pid), "no such process")
    nothing_in(case.path("out"))


@test
def one_of_two_pids_missing(case: Case) -> None:
    need_root()
    job = case.start([need_job("storm_job")])
    pid = free_pid()
    result = case.npuscope("record", "-p", f"{job.pid},{pid}", "-d", "1s", "-o", out_dir(case)).expect(FAILED)
    one_line(result, str(pid), "no such process")
    nothing_in(case.path("out"))


@test
def pid_that_exits_at_once(case: Case) -> None:
    """It ends while we attach: either it was too late, or a capture that reports that the target exited."""
    need_root()
    for delay in (0.0, 0.05, 0.15, 0.3, 0.5):
        job = case.start(["sleep", delay])
        result = case.npuscope("record", "-p", job.pid, "-d", "20s", "-o", out_dir(case), "--export", "none")
        result.expect(FAILED, PARTIAL)
        if result.status == FAILED:
            one_line(result, str(job.pid))
        else:
            assert result.session.json["end_reason"] == "targets exited"
            assert result.complaints
        shutil.rmtree(case.path("out")) if result.status == PARTIAL else nothing_in(case.path("out"))


@test
def job_without_cann(case: Case) -> None:
    need_root()
    job = case.start([need_job("storm_job")])
    job.wait_for("^ready")
    result = case.npuscope("record", "-p", job.pid, "-d", "300ms", "-o", out_dir(case), "--export", "none")
    result.expect(PARTIAL)
    assert any("no process has a CANN library" in line for line in result.complaints), result.err
    assert len(result.session.events) > 0


@test
def step_marker_that_is_not_there(case: Case) -> None:
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("loader_job")])
    job.send(f"load {library}")
    job.wait_for("^loaded")
    result = case.npuscope("record", "-p", job.pid, "-d", "300ms", "-o", out_dir(case), "--export", "none",
                           "--step-marker", "no_such_step@1").expect(PARTIAL)
    assert sum("no_such_step" in line for line in result.complaints) == 1, result.err


@test
def command_that_cannot_run(case: Case) -> None:
    need_root()
    for command, words in (("/no/such/program", "No such file"), ("/etc/passwd", "ermission denied")):
        result = case.npuscope("record", "-o", out_dir(case), "--", command).expect(FAILED)
        one_line(result, command, words)
        nothing_in(case.path("out"))


# ---- privileges -----------------------------------------------------------------------

def copy_for_nobody(case: Case) -> Path:
    """The program where everybody can run it."""
    folder = Path("/tmp") / f"npuscope-test-{os.getpid()}-{case.name}"
    folder.mkdir(mode=0o755)
    case.at_end.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    for name in ("npuscope", "libnpuscope_agent.so"):
        shutil.copy(NPUSCOPE.parent / name, folder / name)
    (folder / "out").mkdir()
    os.chmod(folder / "out", 0o777)
    return folder


def refused(case: Case, result: Result, out: Path, *words: str) -> None:
    result.expect(FAILED)
    one_line(result, *words)
    nothing_in(out)


@test
def not_root(case: Case) -> None:
    need_root()
    setpriv = need_program("setpriv", "util-linux")
    folder = copy_for_nobody(case)
    job = case.start([need_job("storm_job")])
    result = case.run([setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", folder / "npuscope",
                       "record",
                       "-p", job.pid, "-d", "1s", "-o", folder / "out"])
    refused(case, result, folder / "out", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "run as root")
    doctor = case.run([setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", folder / "npuscope",
                       "doctor"]).expect(FAILED)
    assert re.search(r"privileges\s+no\s.*CAP_BPF", doctor.out), doctor.out
    assert re.search(r"^  kernel memory +\? +not known", doctor.out, re.M), doctor.out


def without_capability(case: Case, dropped: str, named: str, others: Sequence[str]) -> None:
    need_root()
    setpriv = need_program("setpriv", "util-linux")
    job = case.start([need_job("storm_job")])
    result = case.run([setpriv, f"--bounding-set={dropped}", NPUSCOPE, "record", "-p", job.pid, "-d", "300ms", "-o",
                       out_dir(case), "--export", "none"])
    refused(case, result, case.path("out"), named)
    assert not any(other in result.err for other in others), result.err


CAPS = ("CAP_BPF", "CAP_PERFMON", "CAP_CHECKPOINT_RESTORE", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH")
for _dropped, _named in (("-sys_admin,-bpf", "CAP_BPF"), ("-sys_admin,-perfmon", "CAP_PERFMON"),
                         ("-sys_admin,-checkpoint_restore", "CAP_CHECKPOINT_RESTORE"),
                         ("-sys_ptrace", "CAP_SYS_PTRACE"), ("-dac_read_search", "CAP_DAC_READ_SEARCH")):
    add_test(f"without_{_named}", lambda case, d=_dropped, n=_named: without_capability(
        case, d, n, [c for c in CAPS if c != n]))


@test
def with_the_named_capabilities_only(case: Case) -> None:
    """What the message requests is enough: no root, these few, a job of somebody else."""
    need_root()
    setpriv = need_program("setpriv", "util-linux")
    folder = copy_for_nobody(case)
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    job = case.start([need_job("loader_job")])
    job.send(f"load {library}")
    job.wait_for("^loaded")

    def with_caps(*names: str) -> list[Arg]:
        caps = ",".join(["-all"] + [f"+{name[4:].lower()}" for name in names])
        return [setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--inh-caps={caps}",
                f"--ambient-caps={caps}", f"--bounding-set={caps}", folder / "npuscope"]

    # Of some kernels before 6.6.
    more = ["CAP_SYS_ADMIN"] if "CAP_SYS_ADMIN" in case.run([*with_caps(*CAPS), "doctor"]).out else []
    run = case.start([*with_caps(*CAPS, *more), "record", "-p", job.pid, "-o", folder / "out", "--export", "none"],
                     stdin=subprocess.DEVNULL)
    run.wait_for("^npuscope: recording", err=True)
    job.send("call aclrtSynchronizeDevice 70")
    job.wait_for("^called")
    job.send("quit 0")
    session = run.result().expect(DONE, PARTIAL).session
    assert len(session.of(1)) == 70, f"{len(session.of(1))} calls: {run.err}"


@test
def bpf_refused(case: Case) -> None:
    """As in a container whose seccomp profile has no bpf(2)."""
    need_root()
    job = case.start([need_job("storm_job")])
    result = case.run([need_job("nobpf"), NPUSCOPE, "record", "-p", job.pid, "-d", "1s", "-o", out_dir(case)])
    refused(case, result, case.path("out"), "bpf(2)", "Operation not permitted")
    doctor = case.run([need_job("nobpf"), NPUSCOPE, "doctor"]).expect(FAILED)
    assert re.search(r"bpf\(2\)\s+no\s", doctor.out), doctor.out


# ---- output directory --------------------------------------------------------------------

def record_into(case: Case, out: Path, prefix: Sequence[Arg] = ()) -> Result:
    need_root()
    job = case.start([need_job("storm_job")])
    job.wait_for("^ready")
    return case.run([*prefix, NPUSCOPE, "record", "-p", job.pid, "-d", "300ms", "-o", out, "--export", "none"])


@test
def output_exists(case: Case) -> None:
    out = out_dir(case)
    (out / "somebody's file").write_text("stays")
    result = record_into(case, out).expect(PARTIAL)
    assert result.session.path.parent == out.resolve()
    assert (out / "somebody's file").read_text() == "stays"


@test
def output_is_created(case: Case) -> None:
    record_into(case, case.path("new")).expect(PARTIAL)
    assert case.path("new").stat().st_mode & 0o777 == 0o750


@test
def output_is_a_symlink(case: Case) -> None:
    case.path("elsewhere").mkdir()
    case.path("link").symlink_to("elsewhere")
    result = record_into(case, case.path("link")).expect(FAILED)
    one_line(result, str(case.path("link")), "symbolic link")
    nothing_in(case.path("elsewhere"))


@test
def output_is_a_dangling_symlink(case: Case) -> None:
    case.path("link").symlink_to("nowhere")
    result = record_into(case, case.path("link")).expect(FAILED)
    one_line(result, str(case.path("link")))
    assert not case.path("nowhere").exists()


@test
def output_is_a_file(case: Case) -> None:
    case.path("file").write_text("mine")
    result = record_into(case, case.path("file")).expect(FAILED)
    one_line(result, str(case.path("file")), "Not a directory")
    assert case.path("file").read_text() == "mine"


@test
def output_has_no_parent(case: Case) -> None:
    result = record_into(case, case.path("no") / "parent").expect(FAILED)
    one_line(result, str(case.path("no") / "parent"), "No such file or directory")
    assert not case.path("no").exists()


@test
def output_is_read_only(case: Case) -> None:
    need_mounts()
    out = out_dir(case)
    result = record_into(case, out, ["unshare", "-m", "sh", "-c",
                                     f"mount -t tmpfs -o ro none '{out}' && exec \"$@\"", "sh"]).expect(FAILED)
    one_line(result, str(out), "Read-only file system")


@test
def analyze_output(case: Case) -> None:
    """`analyze` is as careful with -o as `record`."""
    session = small_session(case)
    for path, word in ((case.path("no") / "parent", "No such file"), (case.path("file"), "Not a directory"),
                       (case.path("link"), "symbolic link")):
        if path.name == "file":
            path.write_text("mine")
        if path.name == "link":
            case.path("elsewhere").mkdir()
            path.symlink_to("elsewhere")
        result = case.analyze(session.path, "-o", path).expect(FAILED)
        one_line(result, str(path), word)
    nothing_in(case.path("elsewhere"))


# ---- a full disk ----------------------------------------------------------------------------

def small_disk(case: Case, options: str) -> Path:
    need_mounts()
    disk = case.path("disk")
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], check=False, capture_output=True,
                             text=True)
    if mounted.returncode:
        raise Skip(f"needs tmpfs: {mounted.stderr.strip()}")
    case.at_end.append(lambda: subprocess.run(["umount", "-l", disk], check=False) and None)
    return disk


@test
def disk_fills_up(case: Case) -> None:
    """The capture ends with a line, what was captured stays readable, the job goes on."""
    disk = small_disk(case, "size=2m")
    alone = case.start([need_job("storm_job"), 10000000])
    job = case.start([need_job("storm_job"), 10000000])
    job.wait_for("^ready")
    result = case.npuscope("record", "-p", job.pid, "-o", disk, "--export", "none", "--osrt-threshold", "0")
    result.expect(PARTIAL)
    assert sum("No space left" in line and "capture stopped" in line for line in result.complaints) == 1, result.err
    assert job.wait() == alone.wait() == 9
    assert re.sub("ready.*", "", job.out) == re.sub("ready.*", "", alone.out), "the job computed something else"
    session = result.session
    assert len(session.events) > 5000, f"{len(session.events)} events on a disk for some 30,000"
    assert session.json["format"] == "npuscope-session"
    assert not list(session.path.glob("*.new")), "half of a session.json"
    analysed = case.analyze(session.path, "-o", case.path("analysed")).expect(DONE, PARTIAL, FAILED)
    assert analysed.status != FAILED or "no NPU" in analysed.err or "CANN" in analysed.err, analysed


@test
def disk_fills_up_under_npu_job(case: Case) -> None:
    """The same with device data: what fits is in the results."""
    disk = small_disk(case, "size=2m")
    job = case.sim_job("--ranks", 1, "--rate", 2000)
    result = case.npuscope("record", "-p", ranks_of(job)[0], "-o", disk, "--export", "none").expect(PARTIAL)
    assert any("No space left" in line for line in result.complaints), result.err
    assert job.alive()
    analysed = case.analyze(result.session.path, "-o", case.path("analysed")).expect(PARTIAL)
    assert list(case.path("analysed").rglob("trace_view.json")), analysed


@test
def results_do_not_fit(case: Case) -> None:
    """`analyze` onto a disk that is too small fails with a line and leaves no half of a result."""
    session = small_session(case)
    disk = small_disk(case, "size=200k")
    result = case.analyze(session.path, "-o", disk).expect(FAILED, PARTIAL)
    assert any("No space left" in line or "disk" in line for line in result.complaints), result
    assert not result.out, f"named a result that is not complete: {result.out}"
    assert not list(disk.rglob("*_ascend_pt")), f"left behind: {list(disk.rglob('*'))[:5]}"


@test
def no_room_for_a_session(case: Case) -> None:
    disk = small_disk(case, "size=1m,nr_inodes=3")
    result = record_into(case, disk).expect(FAILED)
    one_line(result, str(disk), "No space left")
    nothing_in(disk)


# ---- options ------------------------------------------------------------------------------

JUNK: dict[str, tuple[str, ...]] = {
    "-p": ("", "x", "-1", "0", "1,", "1,,2", "99999999999", "1 2", "1x"),
    "-d": ("", "x", "0", "-1s", "10 parsecs", "1e99", "nan", "inf", "s"),
    "-o": ("",),
    "--task-source": ("", "x", "AUTO", "agent,host"),
    "--step-marker": ("", "label:", "@1", "f@", "f@0", "f@5", "f@x", "f@12", "x" * 300),
    "--host-sys": ("", "x", "osrt,none"),
    "--level": ("", "x", "7", "-1", "1.5"),
    "--export": ("", "x", "text,x", "none,text"),
    "--ring-size": ("", "x", "0", "-8M", "8Q", "1", "9999G", "nan"),
}


def option_with_junk(case: Case, option: str) -> None:
    for value in JUNK[option]:
        pid = [] if option == "-p" else ["-p", str(os.getpid())]
        result = case.npuscope("record", *pid, option, value, *([] if option == "-o" else ["-o", out_dir(case)]))
        assert result.status == USAGE, f"{option} {value!r}: {result}"
        lines = result.err.splitlines()
        assert len(lines) == 1 and not result.out, f"{option} {value!r}: {result}"
        assert re.match(rf"npuscope: record: --[a-z-]+: '{re.escape(value)}'(: '[^']*')? (is (not|none of) |stands "
                        r"alone)", lines[0]), lines[0]
        nothing_in(case.path("out"))


for _option in JUNK:
    add_test(f"junk_{_option.strip('-').replace('-', '_')}", lambda case, o=_option: option_with_junk(case, o))


@test
def pid_and_command(case: Case) -> None:
    for argv in (["-p", str(os.getpid()), "--", "true"], []):
        result = case.npuscope("record", "-o", out_dir(case), *argv).expect(USAGE)
        assert not result.out and len(result.err.splitlines()) == 1 and result.err.startswith("npuscope"), result.err
        assert "-p" in result.err and "command" in result.err
        nothing_in(case.path("out"))


@test
def too_many_pids(case: Case) -> None:
    result = case.npuscope("record", "-p", ",".join(["1"] * 5000), "-o", out_dir(case)).expect(USAGE)
    assert len(result.err) < 60000 and not result.out


# ---- sessions that are not as they were written ----------------------------------------------

_session: Optional[Path] = None


def small_session(case: Case) -> Session:
    """A short capture of the simulated job, made once."""
    global _session
    need_root()
    if _session is None:
        need_npusim()
        job = case.sim_job("--ranks", 1)
        run = case.record("-p", ranks_of(job)[0], "-o", case.path("small"), "--export", "none", "--step-marker",
                          "train_step@1")
        wait_for_events(case.path("small"), ENOUGH)
        run.signal(signal.SIGINT)
        made = run.result().expect(DONE).session
        job.kill()
        _session = Path("/tmp") / f"npuscope-test-session-{os.getpid()}" / made.path.name
        shutil.copytree(made.path, _session)
    return Session(_session)


def damaged(case: Case, number: int) -> Path:
    """A fresh copy of it."""
    path = case.path(f"damaged{number}")
    shutil.copytree(small_session(case).path, path)
    return path


def analyzer() -> Path:
    return SANITIZED if SANITIZED.exists() else NPUSCOPE


def survives(case: Case, path: Path, what: str, *statuses: int) -> Result:
    """Analyse with the sanitized build: no crash, an expected status, a line when it is not 0."""
    out = case.path(f"out_{path.name}")
    result = case.analyze(path, "-o", out, program=analyzer(), seconds=100)
    assert result.status in statuses, f"{what}: {result}"
    assert result.status == DONE or result.complaints, f"{what}: status {result.status} without a word: {result}"
    if result.status == FAILED:
        assert not result.out, f"{what}: failed, but printed {result.out}"
        nothing_in(out)
    shutil.rmtree(path)
    shutil.rmtree(out, ignore_errors=True)
    return result


@test(seconds=300)
def session_cut_short(case: Case) -> None:
    """At random offsets of its files: what is before the cut is analysed, and the cut is mentioned."""
    seed = int.from_bytes(os.urandom(4), "little")
    rng = random.Random(seed)
    # What CANN's parser wants beside the log has nothing that the session does not have itself.
    names = [p.relative_to(small_session(case).path) for p in small_session(case).path.rglob("*") if p.is_file()
             and (p.suffix in (".nps", ".json") and "PROF_" not in str(p) or ".data." in p.name
                  and p.suffix != ".done")]
    weights = [8 if n.name == "events.nps" else 3 for n in names]
    for number in range(max(CUTS, len(names))):  # each file once at least
        path = damaged(case, number)
        name = names[number] if number < len(names) else rng.choices(names, weights)[0]
        size = (path / name).stat().st_size
        at = rng.randrange(size)
        os.truncate(path / name, at)
        what = f"seed {seed}: {name} cut to {at} of {size} bytes"
        # A chunk's end, or the last newline of session.json, cannot be distinguished from the end of the
        # file; slices have a note beside them.
        between = at in boundaries(path / name) or (".data." not in name.name and at >= size - 2)
        survives(case, path, what, PARTIAL, FAILED, *((DONE,) if between else ()))


def boundaries(path: Path) -> set[int]:
    """Sizes at which the file looks whole."""
    if path.suffix != ".nps":
        return set()
    ends, at = {0}, 0
    for _kind, payload in chunks(path):
        at += CHUNK.size + len(payload)
        ends.add(at)
    return ends


@test(seconds=300)
def session_with_flipped_bytes(case: Case) -> None:
    """Some random bytes are others: never a crash; a chunk that does not check ends the reading."""
    seed = int.from_bytes(os.urandom(4), "little")
    rng = random.Random(seed)
    names = [p.relative_to(small_session(case).path) for p in small_session(case).path.rglob("*") if p.is_file()]
    for number in range(max(CUTS, len(names))):
        path = damaged(case, number)
        name = names[number] if number < len(names) else rng.choice(names)
        data = bytearray((path / name).read_bytes())
        if not data:
            continue
        for _ in range(rng.choice((1, 1, 8, 200))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (path / name).write_bytes(data)
        survives(case, path, f"seed {seed}, number {number}: {name} flipped", DONE, PARTIAL, FAILED)


@test
def session_without_a_file(case: Case) -> None:
    for number, (name, statuses) in enumerate((("session.json", (FAILED,)), ("events.nps", (FAILED, PARTIAL)),
                                               ("strings.nps", (FAILED, PARTIAL)), ("clocks.nps", (FAILED, PARTIAL)))):
        path = damaged(case, number)
        (path / name).unlink()
        result = survives(case, path, f"no {name}", *statuses)
        assert any(name in line for line in result.complaints), f"{name} is not named: {result.err}"


@test
def session_of_another_version(case: Case) -> None:
    """Of an older one, and of one that is not made yet: one line names both versions."""
    for other in (1, 77):
        path = damaged(case, 0)
        document = json.loads((path / "session.json").read_text())
        document["version"] = other
        (path / "session.json").write_text(json.dumps(document))
        result = survives(case, path, f"session.json of version {other}", FAILED)
        one_line(result, f"version {other},", f"version {VERSION}:")
        path = damaged(case, 1)
        data = bytearray((path / "events.nps").read_bytes())
        data[4:6] = other.to_bytes(2, "little")
        (path / "events.nps").write_bytes(data)
        result = survives(case, path, f"chunks of version {other}", FAILED, PARTIAL)
        assert any(f"version {other}," in line for line in result.complaints), result.err


GARBAGE = {
    "empty": "", "text": "hello\n", "array": "[]", "number": "17", "null": "null", "object": "{}",
    "binary": "\x00\x01\x02", "open": f'{{"format": "npuscope-session", "version": {VERSION}',
    "deep": "[" * 100000, "other format": f'{{"format": "something", "version": {VERSION}}}',
    "bare": f'{{"format": "npuscope-session", "version": {VERSION}}}',
    "huge number": '{"format": "npuscope-session", "version": 1e999}',
}


@test
def garbage_session_json(case: Case) -> None:
    for number, (what, text) in enumerate(GARBAGE.items()):
        path = damaged(case, number)
        (path / "session.json").write_text(text)
        result = survives(case, path, f"session.json is {what}", FAILED)
        one_line(result)


def wrong_types(rng: random.Random, value: Any, depth: int = 0) -> Any:
    """The document with something else in a few of its values."""
    if rng.random() < (0.02 if depth > 1 else 0.04) and depth:
        return rng.choice((None, True, -1, 0, 1e300, "x" * 500, "", [], {}, [[]], 2**53, "../../etc", "/etc/passwd"))
    if isinstance(value, dict):
        return {k: wrong_types(rng, v, depth + 1) for k, v in value.items() if rng.random() > 0.02}
    if isinstance(value, list):
        return [wrong_types(rng, v, depth + 1) for v in value]
    return value


@test(seconds=300)
def session_json_of_wrong_types(case: Case) -> None:
    """JSON that parses and lies: some values are of another type, absurd or missing."""
    seed = int.from_bytes(os.urandom(4), "little")
    rng = random.Random(seed)
    good = small_session(case).json
    for number in range(CUTS):
        path = damaged(case, number)
        (path / "session.json").write_text(json.dumps(wrong_types(rng, good)))
        survives(case, path, f"seed {seed}, number {number}", DONE, PARTIAL, FAILED)


@test
def not_a_session(case: Case) -> None:
    case.path("empty").mkdir()
    case.path("file").write_text("x")
    for path in (case.path("empty"), case.path("file"), case.path("nowhere")):
        result = case.npuscope("analyze", path, program=analyzer()).expect(FAILED)
        one_line(result, str(path))
    nothing_in(case.path("empty"))


@test
def session_that_is_being_written(case: Case) -> None:
    """analyze during the capture: what is there so far, and a word about it."""
    need_root()
    job = case.sim_job("--ranks", 1)
    run = case.record("-p", ranks_of(job)[0], "-o", case.path("live"), "--export", "none")
    session = next(case.path("live").glob("npuscope_*"))
    wait_for_events(case.path("live"), ENOUGH)
    result = case.analyze(session, "-o", case.path("early")).expect(PARTIAL)
    assert result.complaints and list(case.path("early").rglob("*_ascend_pt"))
    run.signal(signal.SIGINT)
    run.result().expect(DONE)
    assert not kernel_leftovers()


if __name__ == "__main__":
    try:
        status = main()
    finally:
        if _session:
            shutil.rmtree(_session.parent, ignore_errors=True)
    sys.exit(status)
