#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a user meets first: help, version, doctor, installation."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from harness import (AGENT, BUILD, DONE, FAILED, NPUSCOPE, PARTIAL, ROOT, USAGE, Case, build_library, environment,
                     main, need_job, need_root, test, wait_until)
from records import API

COMMANDS = ("record", "analyze", "show", "doctor")


@test
def output_that_cannot_be_written(case: Case) -> None:
    """Paths that nobody got to know are no success."""
    with open("/dev/full", "wb") as full:
        for argv in (["doctor", "--probes"], ["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)):
            run = subprocess.run([NPUSCOPE, *argv], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            assert run.returncode == FAILED, f"{argv}: {run.returncode}"
            assert re.fullmatch(r"npuscope: cannot write to standard output: [^\n]+\n", run.stderr), run.stderr


@test
def no_sysfs(case: Case) -> None:
    """The number of CPUs cannot be known: the file is named, not the number that an error happens to be."""
    need_root()
    job = case.start(["sleep", "60"])
    run = subprocess.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys && exec "$@"', "sh", NPUSCOPE,
                          "record", "-p",
                          str(job.pid), "-d", "200ms", "-o", case.dir, "--export", "none"], capture_output=True,
                         text=True, check=False)
    assert run.returncode == FAILED, run.stderr
    assert "cannot attach: /sys/devices/system/cpu/possible cannot be read: No such file" in run.stderr, run.stderr


@test
def results_whose_paths_cannot_be_written(case: Case) -> None:
    """Files that are there, but whose names are lost, are a part of
    success; tables that are lost are none."""
    need_root()
    job = case.start(["sleep", "60"])
    session = case.record("-p", job.pid, "-d", "300ms", "-o", case.dir, "--export", "none").result().session.path
    with open("/dev/full", "wb") as full:
        for argv, status in ((["analyze", "-o", case.dir, session], PARTIAL), (["show", session], FAILED),
                             (["show", "--json", session], FAILED)):
            run = subprocess.run([NPUSCOPE, *argv], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            assert run.returncode == status, f"{argv}: {run.returncode} {run.stderr}"
            assert "cannot write to standard output" in run.stderr, run.stderr


@test
def how_the_command_ended(case: Case) -> None:
    """record's status is its own; the command's is not lost."""
    need_root()
    for script, word in (("exit 42", "the command ended with status 42"),
                         ("kill -SEGV $$", "the command was killed by signal 11 (Segmentation fault)"), ("exit 0", "")):
        run = case.npuscope("record", "-q", "--export", "none", "-o", case.dir, "--", "sh", "-c",
                            script).expect(DONE, PARTIAL)
        found = [line for line in run.complaints if "the command" in line]
        assert len(found) == bool(word) and all(word in line for line in found), run.err


@test
def the_host_alone(case: Case) -> None:
    """A job without CANN of which only the host's part was requested: nothing is
    missing, and there are no rows of zeros."""
    need_root()
    job = case.start(["sh", "-c", "while :; do sleep 0.01; done"])
    run = case.npuscope("record", "-p", job.pid, "-d", "1s", "--level", "none", "--host-sys", "cpu,mem,osrt", "-o",
                        case.dir).expect(DONE)
    assert "CANN" not in run.err and " 0 API calls" not in run.err and "device tasks" not in run.err, run.err
    for folder in run.session.path.glob("*_ascend_pt"):
        output = folder / "ASCEND_PROFILER_OUTPUT"
        tables = {path.stem for path in output.glob("*.csv")}
        assert "os_runtime_statistic" in tables or "npuscope_threads" in tables, tables
        assert not tables & {"step_trace_time", "op_statistic", "kernel_details", "task_time", "api_statistic"}, tables
        layers = {event["args"]["name"] for event in json.loads((output / "trace_view.json").read_text())
                  if event["ph"] == "M" and event["name"] == "process_name"}
        assert "CPU Usage" in layers and not layers & {"Ascend Hardware", "Communication", "Overlap Analysis"}, layers


@test
def the_host_by_name(case: Case) -> None:
    """--host-sys is enough: no CANN is no mistake."""
    need_root()
    job = case.start(["sh", "-c", "while :; do sleep 0.01; done"])
    run = case.npuscope("record", "-p", job.pid, "-d", "500ms", "--host-sys", "cpu,mem,osrt", "-o",
                        case.dir).expect(DONE)
    assert "only what the host saw was recorded" in run.err and "is this the NPU job" not in run.err, run.err
    bare = case.npuscope("record", "-p", job.pid, "-d", "500ms", "--export", "none", "-o", case.dir).expect(PARTIAL)
    assert "is this the NPU job" in bare.err, bare.err


@test
def targets_that_do_nothing(case: Case) -> None:
    """A stopped process, a thread of the kernel, a 32-bit program:
    reported first, not only by an empty result."""
    need_root()
    stopped = case.start(["sleep", "60"])
    stopped.signal(signal.SIGSTOP)
    wait_until(lambda: "T (stopped)" in Path(f"/proc/{stopped.pid}/status").read_text(), "the stop")
    kernel = next((int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")
                  if path.read_text().rpartition(")")[2].split()[1] == "2"), None)
    # A program of two instructions, which loops; nothing has to be installed to build it.
    program = case.path("program32")
    program.write_bytes(bytes.fromhex("7f454c460101010000000000000000000200030001000000548004083400000000000000000000"
                                      "00340020000100"
                                      "0000000000000100000000000000008004080080040856000000560000000500000000100000")
                        + b"\xeb\xfe")
    program.chmod(0o755)
    expected = [(stopped.pid, "is stopped: it does nothing until it continues: kill -CONT")]
    if kernel:                                  # not in a pid namespace
        expected.append((kernel, "is a thread of the kernel"))
    try:
        expected.append((case.start([program]).pid, "runs a 32-bit program"))
    except OSError:
        pass                                    # a kernel without them
    for pid, word in expected:
        run = case.npuscope("record", "-q", "-p", pid, "-d", "200ms", "-o", case.dir, "--export",
                            "none").expect(PARTIAL)
        assert any(f"pid {pid} {word}" in line for line in run.complaints), run.err


@test
def marks_alone(case: Case) -> None:
    """--level none: no system calls that nobody requested, and no cost of what was not measured."""
    need_root()
    job = case.start([need_job("osrt_job"), "files"])
    run = case.npuscope("record", "-p", job.pid, "-d", "500ms", "--level", "none", "-o", case.dir, "--export", "none")
    request = run.session.json["request"]
    assert request["host_sys"] == [] and request["activities"] == "cpu", request
    assert not re.search(r"^(system calls|time slices|lock waits)", run.err, re.M), run.err
    assert "-1 ns" not in run.err and "a system call" not in run.err, run.err
    both = case.npuscope("record", "-p", job.pid, "-d", "500ms", "--level", "none", "--host-sys", "osrt", "-o",
                         case.dir,
                         "--export", "none").session.json["request"]
    assert both["host_sys"] == ["osrt"] and both["activities"] == "cpu,osrt", both


@test
def name_of_the_jobs_host(case: Case) -> None:
    """A job in a container: its host's name, not that of the host of the container."""
    need_root()
    job = case.start(["unshare", "--uts", "sh", "-c", "hostname node-of-job && exec sleep 60"])
    wait_until(lambda: Path(f"/proc/{job.pid}/comm").read_text() == "sleep\n", "the job's name")
    run = case.npuscope("record", "-p", job.pid, "-d", "300ms", "-o", case.dir, "--host-sys",
                        "osrt,mem").expect(DONE, PARTIAL)
    [folder] = run.session.path.glob("*_ascend_pt")
    assert folder.name.startswith("node-of-job_"), folder
    [path] = folder.rglob("ascend_pytorch_profiler_*.db")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT hostName FROM HOST_INFO").fetchall() == [("node-of-job",)]


@test
def name_of_a_later_host(case: Case) -> None:
    """A process that goes to a UTS namespace of its own during the capture, when nobody
    may enter that: no other host's name."""
    need_root()
    job = case.start(["sh", "-c", "read line; unshare --uts sh -c 'hostname later && exec sleep 7' & sleep 7"])
    run = case.record("-p", job.pid, "-o", case.dir, "--host-sys", "osrt", "--export", "none")
    job.send("go")
    session = run.result().expect(DONE, PARTIAL).session
    names = [p["host_name"] for p in session.json["processes"] if p["cmdline"] == ["sleep", "7"]]
    assert len(names) == 2 and set(names) == {None, os.uname().nodename}, session.json["processes"]


@test
def help_texts(case: Case) -> None:
    text = case.npuscope("--help").expect(DONE).out
    for command in COMMANDS:
        assert re.search(rf"^\s+{command}\s", text, re.M), text
        own = case.npuscope(command, "--help").expect(DONE).out
        assert "Usage:" in own and len(own.splitlines()) > 5, own
        assert max(len(line) for line in own.splitlines()) <= 100, "help is wider than a terminal"


@test
def every_option_has_help(case: Case) -> None:
    text = case.npuscope("record", "--help").expect(DONE).out
    options = re.findall(r"^\s+(?:-\w(?:, )?|)(--[\w-]+)[^\n]*\n?", text, re.M)
    assert len(options) >= 10, options
    for option in ("--pid", "--duration", "--output", "--task-source", "--step-marker", "--export", "--level"):
        assert option in text, f"{option} is not in the help"
    assert "default:" in text


@test
def version(case: Case) -> None:
    text = case.npuscope("--version").expect(DONE).out
    assert re.fullmatch(r"npuscope \d+\.\d+\.\d+\n", text), text
    number = re.search(r"^VERSION := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert number and number.group(1) in text


@test
def doctor(case: Case) -> None:
    need_root()
    result = case.npuscope("doctor").expect(DONE)
    assert os.uname().release in result.out
    for row in ("privileges", "bpf(2)", "BTF", "ring buffer", "uprobes", "helper library"):
        assert re.search(rf"^\s+{re.escape(row)}\s+yes", result.out, re.M), f"{row}: {result.out}"


@test
def what_is_forbidden_is_missing(case: Case) -> None:
    """NPUSCOPE_FORBID disables rows of the table, and unknown names are reported."""
    need_root()
    names = {"task_storage": "task storage", "cookie": "attach cookies", "fentry": "fentry", "btf": "BTF",
             "ringbuf": "ring buffer"}
    for name, row in names.items():
        result = case.npuscope("doctor",
                               env={**os.environ, "NPUSCOPE_FORBID": f"nothing_of_the_sort,{name}"}).expect(DONE)
        assert re.search(rf"^\s+{row}\s+no\s.*instead", result.out, re.M), f"{name}: {result.out}"
        assert result.complaints == ["npuscope: NPUSCOPE_FORBID: nothing is called nothing_of_the_sort: it is ignored"]
    result = case.npuscope("doctor", env={**os.environ, "NPUSCOPE_FORBID": "uprobe_multi"}).expect(DONE)
    assert re.search(r"^\s+uprobes\s+yes\s+perf event", result.out, re.M), result.out


@test
def usage_errors(case: Case) -> None:
    for argv in ([], ["frobnicate"], ["record"], ["record", "--frobnicate"], ["analyze"], ["doctor", "surplus"]):
        result = case.npuscope(*argv).expect(USAGE)
        assert result.err.strip() and not result.out, f"{argv}: {result}"


@test
def what_was_meant(case: Case) -> None:
    """A typing error costs one line that has what was meant."""
    for argv, hint in ((["recrod"], "no command 'recrod': did you mean record?"),
                       (["help", "analyse"], "no command 'analyse': did you mean analyze?"),
                       (["record", "4242"], "record: '4242' is no option: did you mean -p 4242?"),
                       (["record", "--lvel", "1"], "record: no option --lvel: did you mean --level?"),
                       (["record", "--level", "foo"], "record: --level: 'foo' is not one of none, 0, 1, 2"),
                       (["record", "--host-sys-freq", "1001"],
                        "record: --host-sys-freq: '1001' is not a number from 1 to 1000"),
                       (["record", "--sys", "x"],
                        "record: --sys is ambiguous: it is one of --sys-devices, --sys-hardware-mem, "),
                       (["analyze", "--exprot=db", "x"], "analyze: no option --exprot: did you mean --export?"),
                       (["analyze", "--compat", "c", "x"], "analyze: --compat: 'c' is not one of auto, a, b"),
                       (["show", "--only", "step", "x"],
                        "show: --only: 'step' is not one of overview, findings, steps, "),
                       (["show", "--top"], "show: --top: it needs a value: a number from 1 to 1000"),
                       (["doctor", "4242"], "doctor: '4242' is not expected: did you mean --probes 4242?"),
                       (["-p", "4242"],
                        "no command before '-p': use npuscope COMMAND [OPTION]...: see npuscope --help")):
        result = case.npuscope(*argv).expect(USAGE)
        assert len(result.err.splitlines()) == 1 and result.err.startswith(f"npuscope: {hint}"), f"{argv}: {result}"


@test
def help_of_a_command(case: Case) -> None:
    """By its name, by -h and by -?: in groups, in the order of use."""
    text = case.npuscope("record", "--help").expect(DONE).out
    assert text == case.npuscope("help", "record").expect(DONE).out
    assert text == case.npuscope("record", "-h").out == case.npuscope("record", "-?").out
    groups = re.findall(r"^(\S.*):$", text, re.M)
    assert groups[:2] == ["Targets", "How long, and where"] and groups[-1] == "Messages" and len(groups) > 8, groups
    assert "--host-sys-freq=HZ     Samples a second (1 to 1000, default: 50)" in text, text
    assert "[--level=none|0|1|2]" in case.npuscope("record", "--usage").expect(DONE).out


@test
def install(case: Case) -> None:
    """make install into DESTDIR; the installed program finds its helper and captures with it."""
    need_root()
    dest = case.path("dest")
    built = subprocess.run(["make", "-C", ROOT, "install", f"DESTDIR={dest}", "prefix=/opt/npuscope",
                            f"BUILD={os.path.relpath(BUILD, ROOT)}"], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    files = sorted(str(p.relative_to(dest)) for p in dest.rglob("*") if p.is_file())
    for name in ("bin/npuscope", "lib/npuscope/libnpuscope_agent.so", "lib/npuscope/npuscope-device-worker"):
        assert f"opt/npuscope/{name}" in files, files
    program = dest / "opt/npuscope/bin/npuscope"
    assert os.access(program, os.X_OK)
    text = case.npuscope("doctor", program=program).expect(DONE).out
    assert re.search(r"^\s+helper library\s+yes", text, re.M) and re.search(r"^\s+device worker\s+yes", text, re.M), \
        text
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    run = case.record("-o", case.path("out"), "--export", "none", "--", need_job("loader_job"), program=program,
                      env=environment(libs=[library.parent]), stdin=subprocess.PIPE, wait=False)
    run.send("load libacl_rt.so")
    run.send("call aclInit 7")
    run.wait_for("^called aclInit 7")
    time.sleep(1.5)  # until npuscope has looked at its mappings
    run.send("quit 0")
    session = run.result().session
    assert len(session.of(API)) == 7
    maps = session.json["processes"][0]["maps"]
    helper = dest / "opt/npuscope/lib/npuscope/libnpuscope_agent.so"
    assert any(m["path"] == str(helper) for m in maps), "the job was not started with the installed helper"


@test
def install_and_uninstall(case: Case) -> None:
    """Man pages and completions are where man, bash and zsh find them; uninstall leaves no file."""
    dest = case.path("dest")

    def make(target: str) -> None:
        case.run(["make", "-C", ROOT, target, f"DESTDIR={dest}", "prefix=/usr",
                  f"BUILD={os.path.relpath(BUILD, ROOT)}"]).expect(0)

    make("install")
    files = {str(path.relative_to(dest / "usr")) for path in dest.rglob("*") if path.is_file()}
    for name in ("bin/npuscope", "share/man/man1/npuscope.1",
                 *(f"share/man/man1/npuscope-{command}.1" for command in COMMANDS),
                 "share/bash-completion/completions/npuscope", "share/zsh/site-functions/_npuscope"):
        assert name in files, f"{name} is not in {files}"
    other = dest / "usr/share/man/man1/other.1"
    other.write_text("")
    make("uninstall")
    assert [path for path in dest.rglob("*") if path.is_file()] == [other]


@test
def program_without_helper(case: Case) -> None:
    """Alone in a directory it reports that device times will be bounds."""
    need_root()
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("lib"))
    program = case.path("npuscope")
    program.write_bytes(NPUSCOPE.read_bytes())
    program.chmod(0o755)
    case.path("commands").write_text("load libacl_rt.so\ncall aclInit 7\nquit 0\n")
    with open(case.path("commands"), "rb") as commands:
        run = case.record("-o", case.path("out"), "--export", "none", "--", need_job("loader_job"), program=program,
                          env=environment(libs=[library.parent]), stdin=commands, wait=False)
    result = run.result().expect(3)
    assert any("libnpuscope_agent.so" in line for line in result.complaints), result.err
    assert len(result.session.of(API)) == 7


@test
def few_open_files(case: Case) -> None:
    """Where BPF objects have no room among the open files, the message names the remedy."""
    need_root()
    program = case.path("few")
    program.write_text(f'#!/bin/sh\nulimit -n 24\nexec {NPUSCOPE} "$@"\n')
    program.chmod(0o755)
    result = case.record("-o", case.path("out"), "--export", "none", "--", "true", program=program,
                         wait=False).result().expect(FAILED)
    assert any("cannot load BPF programs" in line and "ulimit -n" in line for line in result.complaints), result.err
    assert not list(case.path("out").iterdir())


@test
def helper_needs_libc_only(_case: Case) -> None:
    """It is loaded into other people's jobs."""
    text = subprocess.run(["readelf", "-dW", AGENT], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"NEEDED.*\[(.*?)\]", text)) <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}, text
    text = subprocess.run(["readelf", "-sW", "--dyn-syms", AGENT], capture_output=True, text=True, check=True).stdout
    table = text[text.index("'.dynsym'"):].split("\n\n")[0]
    exported = [line.split()[7] for line in table.splitlines() if len(line.split()) > 7 and line.split()[6].isdigit()]
    # Behind which it looks whether CANN was loaded.
    assert exported == ["pthread_create"], f"the helper could interpose {exported}"


if __name__ == "__main__":
    sys.exit(main())
