#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is sampled of the host. Witnesses: the job's own account (getrusage of each thread, bytes it wrote,
sent and touched), /proc read by the test, and the chunks of host.nps decoded here."""

import csv
import json
import os
import re
import sqlite3
import struct
import time
from collections import defaultdict
from pathlib import Path
from statistics import mode
from typing import Any, Iterator, NamedTuple, Optional

from harness import (DONE, PARTIAL, ROOT, USAGE, Case, Result, Running, Session, main, need_job, need_program,
                     need_root, pid_list, ranks_of, test)
from records import chunks

UNKNOWN = 2**64 - 1
NAME = struct.Struct("<BBHIIIQQ32s")
CPU = struct.Struct("<QII7Q")
SYSTEM = struct.Struct("<QQQII")
THREAD = struct.Struct("<QIIQQQII")
PROCESS = struct.Struct("<QIIQQQQQQQ")
MEMORY = struct.Struct("<14Q")
DISK = struct.Struct("<QII6Q")
CARD = struct.Struct("<QII8Q")
PROCESSES, THREADS, DISKS, CARDS = 1, 2, 3, 4  # enum nps_host_what
TARGET, JOB_NET = 1, 2


class Thread(NamedTuple):
    time: int
    pid: int
    tid: int
    run: int
    wait: int
    switches: int
    cpu: int
    pad: int


class Process(NamedTuple):
    time: int
    pid: int
    threads: int
    run: int
    resident: int
    read: int
    written: int
    cancelled: int
    received: int
    sent: int


class Card(NamedTuple):
    time: int
    ident: int
    pad: int
    received: int
    received_packets: int
    receive_errors: int
    receive_drops: int
    sent: int
    sent_packets: int
    send_errors: int
    send_drops: int


class Host:
    """host.nps of a session."""

    def __init__(self, session: Session) -> None:
        self.rows: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        formats = {16: NAME, 17: CPU, 18: SYSTEM, 19: THREAD, 20: PROCESS, 21: MEMORY, 22: DISK, 23: CARD}
        for kind, payload in chunks(session.path / "host.nps"):
            self.rows[kind] += formats[kind].iter_unpack(payload)

    def names(self, what: int) -> dict[int, tuple[str, int]]:
        """id -> (name, flags)"""
        return {row[3]: (row[8].split(b"\0")[0].decode(), row[1]) for row in self.rows[16] if row[0] == what}

    def threads(self, tid: int) -> list[Thread]:
        return [Thread(*row) for row in self.rows[19] if row[2] == tid]

    def process(self, pid: int) -> list[Process]:
        return [Process(*row) for row in self.rows[20] if row[1] == pid]

    def cards(self, ident: int) -> list[Card]:
        return [Card(*row) for row in self.rows[23] if row[1] == ident]

    def times(self) -> Iterator[int]:
        for kind, rows in self.rows.items():
            if kind != 16:
                yield from (row[0] for row in rows)


Facts = dict[str, dict[int, int]]


def used(case: Case, *options: str, netns: bool = False, directory: Optional[Path] = None) -> tuple[Facts, int, Result]:
    """Runs the job under npuscope; its use by its own report, its pid, the result."""
    need_root()
    where: list[Any] = [(directory or case.dir) / "data"]
    job = case.start([need_job("host_job"), *where, *(["netns"] if netns else [])])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, *options)
    time.sleep(0.2)
    job.send("go")
    job.wait_for("^used")
    time.sleep(0.5)
    job.send("end")
    assert job.wait() == 0, job.err
    facts: Facts = defaultdict(dict)
    for name, who, value in re.findall(r"^(\w+) (\d+) (\d+)$", job.out, re.M):
        facts[name][int(who)] = int(value)
    return facts, job.pid, run.result()


def within(found: float, own: float, share: float, what: str) -> None:
    assert abs(found - own) <= share * own, f"{what}: {found}, the job says {own}"


def fact(facts: Facts, name: str) -> int:
    return next(iter(facts[name].values()))


def results(result: Result, pattern: str = "*_ascend_pt") -> list[Path]:
    # In directories of their own if there is a result of both a process and the host:
    # somebody may use an NPU beside the test.
    path = result.session.path
    return sorted(found for base in (path, path / "ranks", path / "whole_host") for found in base.glob(pattern))


def table(folder: Path, stem: str) -> list[dict[str, str]]:
    found = [f for f in folder.rglob(f"{stem}*.csv")]
    assert len(found) == 1, f"{stem}: {found}"
    with open(found[0], newline="") as f:
        return list(csv.DictReader(f))


def conforms(case: Case, folder: Path) -> None:
    """The vendor's formats, and no row outside of the capture."""
    case.run([ROOT / "tools" / "conformance" / "check", folder]).expect(0)


def counters(folder: Path) -> dict[str, list[dict[str, Any]]]:
    traces = list(folder.rglob("trace_view.json")) + list(folder.rglob("msprof_*.json"))
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in json.loads(traces[0].read_text()):
        if event["ph"] == "C":
            found[event["name"]].append(event)
    return found


def rows_of(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    files = list(folder.rglob("ascend_pytorch_profiler_*.db")) + list(folder.rglob("msprof_*.db"))
    with sqlite3.connect(files[0]) as db:
        return db.execute(sql).fetchall()


@test
def what_a_job_uses(case: Case) -> None:
    """CPU of each thread, memory, storage and sockets of a process: within 1 % of the job's own account."""
    facts, pid, result = used(case, "--host-sys", "cpu,mem,disk,network", netns=True)
    result.expect(DONE)  # there is no CANN library in this job, and the host was requested
    host = Host(result.session)
    assert result.session.dropped() == 0, result.err
    assert result.session.json["drops"]["host"] == 0, result.err

    total = 0
    for tid, own in facts["thread_cpu_ns"].items():
        samples = host.threads(tid)
        # It was born during the capture: its first sample is of when it had used nothing.
        assert samples[0].run == 0 and samples[0].wait == 0, samples[0]
        within(samples[-1].run, own, 0.01, f"CPU time of thread {tid}")
        assert all(a.run <= b.run and a.time <= b.time for a, b in zip(samples, samples[1:])), tid
        total += own
    names = {name for name, _flags in host.names(THREADS).values()}
    assert {"whole", "half"} <= names, names

    samples = host.process(pid)
    assert samples[-1].run - samples[0].run >= 0.99 * total, "its threads are part of the process"
    grown = max(s.resident for s in samples) - samples[0].resident
    within(grown, fact(facts, "memory"), 0.02, "growth of resident memory")  # and the job's other pages
    within(samples[-1].written - samples[0].written, fact(facts, "written"), 0.01, "bytes written")
    within(samples[-1].read - samples[0].read, fact(facts, "read"), 0.01, "bytes read")
    sent = fact(facts, "stream_sent") + fact(facts, "datagram_bytes")
    assert samples[-1].sent - samples[0].sent == sent, f"sent {samples[-1].sent}, the job says {sent}"
    received = fact(facts, "stream_received") + fact(facts, "datagram_bytes")
    assert samples[-1].received - samples[0].received == received, "what was only looked at counts once"

    own_lo = [i for i, (name, flags) in host.names(CARDS).items() if name == "lo" and flags & JOB_NET]
    assert len(own_lo) == 1, host.names(CARDS)
    cards = host.cards(own_lo[0])
    went = cards[-1].sent - cards[0].sent
    # datagrams have 28 bytes of headers; the stream's segments are large and have little more each
    least = sent + 28 * fact(facts, "datagrams")
    assert least <= went <= 1.02 * least, f"lo carried {went}, the job sent {sent}"
    assert went == cards[-1].received - cards[0].received


@test
def what_the_result_reports(case: Case) -> None:
    """The same numbers in the vendor's tables, the database and the trace."""
    facts, pid, result = used(case, "--host-sys", "cpu,mem,disk,network", netns=True)
    [folder] = results(result)
    conforms(case, folder)
    older = case.analyze(result.session.path, "-o", case.path("older"), "--compat", "a", "--export", "text")
    conforms(case, Path(older.expect(0, PARTIAL).out.split()[0]))  # whose events are in order of time
    drawn = counters(folder)
    cpus = os.cpu_count() or 1

    memory = table(folder, "host_mem_usage")[0]
    found = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert found
    total = int(found[1])
    assert int(memory["Total Memory(KB)"]) == total, memory
    peak = float(memory["Peak Used Memory(KB)"]) * 1024
    assert fact(facts, "memory") <= peak <= 1.1 * fact(facts, "memory"), memory

    cpu = table(folder, "host_cpu_usage")[0]
    assert int(cpu["Total Cpu Numbers"]) == cpus, cpu
    assert 1 <= int(cpu["Recommend Cpu Numbers"]) <= cpus, cpu
    # What the CPUs add up to over the slices of 20 ms is what the threads used.
    average = [value for _ns, value in rows_of(folder, "select timestampNs, usage from CPU_USAGE where cpuId = 'Avg'")]
    found = sum(average) / 100 * 0.02 * cpus * 1e9
    samples = Host(result.session).process(pid)
    within(found, samples[-1].run - samples[0].run, 0.05, "CPU time in CPU_USAGE")

    for name, key, own in (("Disk", "Write(MB/s)", fact(facts, "written")), ("Disk", "Read(MB/s)", fact(facts, "read")),
                           ("Network", "Tx(MB/s)", fact(facts, "stream_sent") + fact(facts, "datagram_bytes"))):
        events = drawn[f"Process host_job {pid} {name}"]
        area = sum(a["args"][key] * (float(b["ts"]) - float(a["ts"])) for a, b in zip(events, events[1:]))
        within(area * 1048576 / 1e6, own, 0.02, f"{name} {key} of the trace")
    for name in ("CPU Avg", "Memory Usage", "Host CPU", "Host Switches", "Network lo (job)"):
        assert drawn[name], sorted(drawn)
    assert any(re.match(r"Thread whole \d+ CPU", name) for name in drawn), sorted(drawn)
    assert rows_of(folder, "select count(*) from HOST_DISK_USAGE")[0][0] > 10
    assert max(speed for speed, in rows_of(folder, "select speed from HOST_NETWORK_USAGE")) > 1e6
    assert float(table(folder, "host_disk_usage")[0]["Peak Disk Write(KB/s)"]) > 1000


@test
def only_what_was_requested(case: Case) -> None:
    need_root()
    job = case.start(["sleep", "60"])
    for parts, kinds in (("mem", {16, 20, 21}), ("disk", {16, 20, 22}), ("network", {16, 20, 23}), ("none", set())):
        result = case.npuscope("record", "-p", job.pid, "-d", "300ms", "--host-sys", parts, "-o", case.path(parts),
                               "--export", "none").expect(DONE if parts != "none" else PARTIAL)
        found = set(Host(result.session).rows) if parts != "none" else set()
        assert found == kinds, f"{parts}: {found}"
        assert (result.session.path / "host.nps").exists() == (parts != "none")
        assert result.session.json["request"]["host_sys"] == ([parts] if parts != "none" else [])
        unknown = [Process(*row) for row in Host(result.session).rows[20]] if parts != "none" else []
        assert all((p.resident == UNKNOWN) == (parts != "mem") for p in unknown), parts
        assert all((p.sent == UNKNOWN) == (parts != "network") for p in unknown), parts


@test
def the_rate(case: Case) -> None:
    """As many samples as were requested; what was left out is counted."""
    need_root()
    job = case.start(["sleep", "60"])
    for hz in (10, 200):
        result = case.npuscope("record", "-p", job.pid, "-d", "2s", "--host-sys", "cpu", "--host-sys-freq", hz, "-o",
                               case.path(str(hz)), "--export", "none").expect(DONE)
        cost = result.session.json["cost"]
        assert cost["host_samples"] == len(Host(result.session).rows[18])
        sampled = cost["host_samples"] + cost["host_samples_left_out"]
        seconds = (result.session.json["capture"]["end_monotonic"]
                   - result.session.json["capture"]["begin_monotonic"]) / 1e9
        # from before the first probe was armed until the last was detached
        assert hz * seconds - 2 <= sampled <= hz * (seconds + 2), f"{hz} Hz: {sampled} samples in {seconds} s"
        assert cost["host_sampling_ns"] <= 0.3 * seconds * 1e9, cost


@test
def children_and_commands(case: Case) -> None:
    """A command that npuscope starts, and what it starts, are the job."""
    need_root()
    script = ("import os, time\n"
              "pid = os.fork()\n"
              "end = time.process_time() + 0.5\n"
              "while time.process_time() < end: pass\n"
              # whole: print() need not be
              "os.write(1, b'cpu %d %d\\n' % (os.getpid(), int(time.process_time() * 1e9)))\n"
              "time.sleep(0.5)\n"
              "pid and os.wait()\n")
    result = case.npuscope("record", "--host-sys", "cpu", "--task-source", "host", "-o", case.dir, "--export", "none",
                           "--", "/usr/bin/python3", "-c", script).expect(DONE)
    host = Host(result.session)
    found = re.findall(r"^cpu (\d+) (\d+)$", result.out, re.M)
    assert len(found) == 2, result.out
    for pid, own in ((int(a), int(b)) for a, b in found):
        samples = host.process(pid)
        assert host.names(PROCESSES)[pid][1] & TARGET
        # What most samples have is that of its sleep: an interpreter that ends takes some time, too.
        asleep = mode(sample.run for sample in samples)
        # exec began a new program, and fork a new account; 15 ms before we looked first
        assert abs(asleep - samples[0].run - own) <= 0.05 * own + 15e6, f"{pid}: {asleep} {samples[0]} {own}"


@test
def bad_values(case: Case) -> None:
    for options in (["--host-sys", "cpu,,mem"], ["--host-sys", ""], ["--host-sys", "gpu"], ["--host-sys", "none,cpu"],
                    ["--host-sys-freq", "0"], ["--host-sys-freq", "1001"], ["--host-sys-freq", "-5"],
                    ["--host-sys-freq", "50x"], ["--host-sys-freq", "5.5"], ["--host-sys-freq", ""]):
        result = case.npuscope("record", "-p", os.getpid(), "-d", "100ms", "-o", case.dir, *options).expect(USAGE)
        assert options[0] in result.err and len(result.err.splitlines()) <= 4, result.err
    for options in (["-a", "-p", "1"], ["-a", "--", "true"], []):
        case.npuscope("record", "-d", "100ms", "-o", case.dir, *options).expect(USAGE)
    assert not list(case.dir.glob("npuscope_*"))


# ---- the whole host. --task-source host: other jobs of this machine keep their helpers to themselves -------

def whole_host(case: Case, *options: str, wait: bool = True) -> Running:
    return case.record("-a", "--task-source", "host", "-o", case.dir, *options, wait=wait)


@test
def the_host_without_a_job(case: Case) -> None:
    """No NPU job is needed, and processes that use CPU are there with their names."""
    spin = case.start(["/usr/bin/python3", "-c", "import time\nend = time.time() + 60\nwhile time.time() < end: pass"])
    before = time.monotonic_ns()
    result = whole_host(case, "-d", "2s", wait=False).result()
    assert result.status in (DONE, PARTIAL), result.err
    host = Host(result.session)
    [folder] = results(result, "PROF_*")
    assert str(folder) in result.out.splitlines(), result.out
    conforms(case, folder)

    ran = host.process(spin.pid)
    own = int(Path(f"/proc/{spin.pid}/schedstat").read_text().split()[0])
    assert 0 < ran[-1].run - ran[0].run <= own, ran[-1]
    assert host.names(PROCESSES)[spin.pid] == ("python3", 0), host.names(PROCESSES)[spin.pid]
    assert min(host.times()) >= before, "a sample from before the capture"
    shares = table(folder, "process_cpu_usage")
    [share] = [float(row["CPU(%)"]) for row in shares if int(row["PID"]) == spin.pid]
    window = result.session.json["capture"]
    seconds = (window["end_monotonic"] - window["begin_monotonic"]) / 1e9
    within(share / 100 * seconds, (ran[-1].run - ran[0].run) / 1e9, 0.01, "its share of the capture")
    for stem in ("host_cpu_usage", "host_mem_usage", "host_disk_usage", "host_network_usage", "cpu_usage", "sys_mem"):
        assert table(folder, stem), stem
    drawn = counters(folder)
    assert f"Process python3 {spin.pid} CPU" in drawn, sorted(drawn)
    assert {"CPU 0", "CPU Avg", "Host CPU", "Memory Usage", "Network Usage"} - set(drawn) <= {"Network Usage"}
    assert rows_of(folder, "select count(*) from CPU_USAGE where cpuId = '0'")[0][0] > 5
    # nothing requested system calls
    assert not result.session.of(4) and not result.session.of(5)


@test
def a_job_among_others(case: Case) -> None:
    """-a finds a job that runs and one that starts later, and names the process that takes its CPU."""
    taskset = need_program("taskset", "util-linux")
    job = case.sim_job("--steps", "100000", "--rate", 2000, agent=False)
    ranks = ranks_of(job)
    for pid in ranks:
        for task in Path(f"/proc/{pid}/task").iterdir():
            case.run([taskset, "-p", "-c", "0", task.name]).expect(0)
    hog = case.start([taskset, "-c", "0", "/usr/bin/python3", "-c",
                      "import ctypes\nctypes.CDLL(None).prctl(15, b'cpu-hog', 0, 0, 0)\nwhile True: pass"])
    run = whole_host(case, "-d", "6s")
    late = case.sim_job("--steps", "100000", "--rate", 2000, agent=False)
    result = run.result()
    session = result.session
    known = {p["pid"] for p in session.json["processes"]}
    assert set(ranks) <= known, f"{ranks} are not in {known}"
    assert set(ranks_of(late)) <= known, f"later ones: {ranks_of(late)} are not in {known}"
    assert session.of(1, ranks[0]), "no CANN call was recorded"
    assert hog.pid not in known

    folder = next(f for f in results(result) if f"_{ranks[0]}_" in f.name)
    findings = json.loads(next(folder.rglob("npuscope_findings.json")).read_text())
    [entry] = [n for n in findings["host"]["neighbours"] if n["process"] == hog.pid]
    assert entry["name"] == "cpu-hog", entry
    found = [f for f in findings["findings"] if f["id"] == "cpu_taken" and f["numbers"]["process"] == hog.pid]
    assert found, [f["id"] for f in findings["findings"]]
    # It took what it ran at most, and what the job waited at most.
    waited = 0
    host = Host(session)
    for tid in host.names(THREADS):
        samples = host.threads(tid)
        if samples and samples[0].pid in known:
            waited += samples[-1].wait - samples[0].wait
    assert 0 < entry["taken_us"] <= entry["ran_us"], entry
    assert entry["taken_us"] * 1000 <= 1.01 * waited, f"{entry}, waited {waited}"
    assert re.search(rf"process {hog.pid} \(cpu-hog\): [\d.]+ s while they waited", result.err), result.err


@test
def system_calls_of_everybody(case: Case) -> None:
    """Only if osrt was requested, with its cost; npuscope's own calls are not among them."""
    caller = case.start(["/usr/bin/python3", "-c", "import os, time\nwhile True: os.getppid(); time.sleep(0.01)"])
    run = whole_host(case, "-d", "1s", "--host-sys", "osrt")
    result = run.result()
    price = re.search(r"system calls and switches of every process are recorded: each call takes (\d+) ns", result.err)
    assert price, result.err
    session = result.session
    naps = [e for e in session.of(4, caller.pid) if e.dur >= 10_000_000]
    assert 20 <= len(naps) <= 110, len(naps)
    assert not session.of(4, run.pid), "our own system calls"
    [folder] = results(result, "PROF_*")
    calls = rows_of(folder, f"select count(*) from OSRT_API where globalTid >> 32 = {caller.pid}")
    assert calls[0][0] == len(session.of(4, caller.pid)), calls


@test
def a_session_cut_short(case: Case) -> None:
    """After kill -9 what was sampled up to the last second is there."""
    run = whole_host(case, "--host-sys", "cpu,mem")
    time.sleep(2.5)
    run.kill()
    [path] = case.dir.glob("npuscope_*")
    samples = Host(Session(path)).rows[18]
    assert len(samples) >= 20, len(samples)
    result = case.analyze(path, "-o", case.path("out")).expect(PARTIAL) if case.path("out").mkdir() is None else None
    assert result and list(case.path("out").rglob("PROF_*")), result
    data = (path / "host.nps").read_bytes()
    (path / "host.nps").write_bytes(data[:len(data) // 2 + 7])
    result = case.analyze(path, "-o", case.path("out")).expect(PARTIAL)
    assert "host.nps is cut off" in result.err or "host.nps is damaged" in result.err, result.err


if __name__ == "__main__":
    raise SystemExit(main())
