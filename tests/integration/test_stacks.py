#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Stacks on and off the CPU. Witnesses: the job's own clocks and backtraces, getrusage, nm, perf script."""

import re
import shutil
import signal
import sqlite3
import struct
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Optional

from harness import (JOB_SOURCES, Arg, Case, Result, Running, Session, build_library, environment, main, need,
                     need_job, need_mounts, need_program, need_root, test)
from records import chunk, chunks

HEAD = struct.Struct("<IBBHIIIHHHHIQQ")  # struct nps_stack
STACKS, ONCPU, OFFCPU, OPEN = 32, 1, 2, 1
SVG = "{http://www.w3.org/2000/svg}"
Folded = Counter[tuple[str, ...]]


class Stack:
    """struct nps_stack, as the session has it."""

    def __init__(self, fields: tuple[int, ...]) -> None:
        self.kind, self.flags, self.state, self.pid, self.tid = fields[1:6]
        self.copied, self.time, self.weight = fields[11:14]


def stacks_of(session: Session, pid: int) -> list[Stack]:
    found = []
    for kind, payload in chunks(session.path / "stacks.nps"):
        at = 0
        while kind == STACKS and at < len(payload):
            fields = HEAD.unpack_from(payload, at)
            if fields[4] == pid:
                found.append(Stack(fields))
            at += fields[0]
    return found


def build(case: Case, source: str, *flags: str) -> Path:
    compiler = need_program("gcc", "gcc")
    out = case.path("job")
    case.run([compiler, "-O2", "-g", "-Wall", "-D_GNU_SOURCE", *flags, JOB_SOURCES / source, "-o", out, "-ldl",
              "-lpthread"]).expect(0)
    return out


class Run:
    """A job that ran under npuscope, and what became of it."""

    def __init__(self, case: Case, argv: list[Arg], *options: str, stacks: str = "cpu,offcpu", hz: int = 499,
                 linger: bool = False) -> None:
        need_root()
        self.case = case
        self.job: Running = case.start(argv)
        self.job.wait_for("^ready")
        self.pid = self.job.pid
        self.hz = hz
        run = case.record("-p", self.pid, "-o", case.dir, "--export", "none", "--stacks", stacks, "--stack-freq", hz,
                          *options)
        self.job.send("go")
        self.job.wait_for("^done")
        if linger:
            run.signal(2)
        else:
            assert self.job.wait() == 0, f"the job ended with {self.job.process.returncode}"
        self.result: Result = run.result()
        self.result.expect(0)
        self.session = self.result.session
        self.facts = {k: int(v) for k, v in re.findall(r"^(\w+) (\d+)$", self.job.out, re.M)}
        assert self.session.dropped() == 0, self.result.err
        self.directory: Optional[Path] = None

    def analyze(self, name: str = "out") -> Result:
        result = self.case.analyze(self.session.path, "-o", self.case.path(name))
        assert result.status in (0, 3), result
        self.directory = Path(result.out.split()[0]) / "ASCEND_PROFILER_OUTPUT"
        return result

    def folded(self, which: str) -> Folded:
        if not self.directory:
            self.analyze()
        found: Folded = Counter()
        path = self.directory / f"npuscope_{which}.folded"  # type: ignore[operator]
        for line in path.read_text().splitlines():
            frames, weight = line.rsplit(" ", 1)
            assert (key := tuple(frames.split(";"))) not in found, f"twice: {frames}"
            found[key] = int(weight)
        return found

    def samples(self, kind: int) -> list[Stack]:
        return [s for s in stacks_of(self.session, self.pid) if s.kind == kind]


def below(folded: Folded, *chain: str) -> int:
    """Weight of the stacks that have these frames one on the other."""
    n = len(chain)
    return sum(w for frames, w in folded.items() if any(frames[i:i + n] == chain for i in range(len(frames))))


def near(value: float, truth: float, percent: float, what: str) -> None:
    assert abs(value - truth) <= truth * percent / 100, f"{what}: {value:.6g}, not {truth:.6g} +- {percent} %"


def shares_are_right(run: Run, root: tuple[str, ...]) -> None:
    on = run.folded("oncpu")
    mostly = below(on, *root, "mostly", "burn")
    seldom = below(on, *root, "seldom", "burn")
    truth = run.facts["mostly_ns"] / (run.facts["mostly_ns"] + run.facts["seldom_ns"])
    share = mostly / max(mostly + seldom, 1)
    assert abs(share - truth) < 0.04, f"mostly has {share:.3f} of the samples, not {truth:.3f}: {on}"
    # all of the time, but for what the kernel did meanwhile
    near((mostly + seldom) / run.hz * 1e9, run.facts["mostly_ns"] + run.facts["seldom_ns"], 8, "time in burn")


def count_is_right(run: Run) -> None:
    near(len(run.samples(ONCPU)) / run.hz * 1e9, run.facts["cpu_ns"], 8, "samples by frequency, as CPU time")


ROOT = ("main", "work")


@test
def with_frame_pointers(case: Case) -> None:
    run = Run(case, [build(case, "stacks_job.c", "-fno-omit-frame-pointer"), 3000], "--unwind", "fp")
    assert not any(s.copied for s in stacks_of(run.session, run.pid)), "stacks were copied though fp was asked for"
    shares_are_right(run, ROOT)
    count_is_right(run)


@test
def without_frame_pointers(case: Case) -> None:
    run = Run(case, [build(case, "stacks_job.c", "-fomit-frame-pointer"), 3000])
    shares_are_right(run, ("_start", "__libc_start_main", "__libc_start_call_main", *ROOT))
    count_is_right(run)


@test
def frame_pointers_alone_do_not_find_them(case: Case) -> None:
    """That the test above means something: its job cannot be unwound so."""
    run = Run(case, [build(case, "stacks_job.c", "-fomit-frame-pointer"), 1000], "--unwind", "fp")
    assert below(run.folded("oncpu"), *ROOT, "mostly", "burn") == 0, run.folded("oncpu")


@test
def dwarf_alone(case: Case) -> None:
    run = Run(case, [build(case, "stacks_job.c", "-fomit-frame-pointer"), 2000], "--unwind", "dwarf")
    shares_are_right(run, ROOT)


@test
def off_the_cpu(case: Case) -> None:
    for way in ("fp", "auto"):
        folder = case.path(way)
        folder.mkdir()
        job = build(case, "stacks_job.c", "-fno-omit-frame-pointer" if way == "fp" else "-fomit-frame-pointer")
        run = Run(case, [job, 1000], "--unwind", way)
        off = run.folded("offcpu")
        asleep = sum(w for frames, w in off.items() if "nap" in frames or any("nanosleep" in f for f in frames))
        near(asleep * 1000, run.facts["nap_ns"], 4, f"{way}: time asleep in nap")
        if way == "auto":
            near(below(off, *ROOT, "nap") * 1000, run.facts["nap_ns"], 4, "below nap")
        naps = [s for s in run.samples(OFFCPU) if s.weight > 7_900_000]
        assert abs(len(naps) - run.facts["naps"]) <= 1, f"{len(naps)} sleeps, not {run.facts['naps']}"
        assert all(frames[-1] in ("__schedule_[k]", "[kernel]_[k]") for frames in off), "frames of the tracing itself"
        shutil.rmtree(case.path("out"))
        job.unlink()


@test
def short_sleeps_are_left_out(case: Case) -> None:
    run = Run(case, [need_job("stacks_job"), 500], "--offcpu-min", "20ms", stacks="offcpu")
    assert not run.samples(ONCPU), "samples though none were asked for"
    naps = [s for s in run.samples(OFFCPU) if s.weight < 20_000_000]
    assert not naps, f"{len(naps)} sleeps shorter than the least"
    assert run.facts["naps"] > 10


@test
def asleep_when_it_ends(case: Case) -> None:
    run = Run(case, [need_job("stacks_job"), 1000, "linger"], linger=True)
    still = [s for s in run.samples(OFFCPU) if s.flags & OPEN]
    end = run.session.json["capture"]["end_monotonic"]
    waiter = [s for s in still if s.tid != run.pid]
    assert len(waiter) == 1, f"{len(waiter)} threads still asleep"
    near(waiter[0].weight, end - run.facts["began"], 5, "the lock's wait until the end")
    assert abs(waiter[0].time + waiter[0].weight - end) < 100_000_000, "it does not end with the capture"
    off = run.folded("offcpu")
    own = [f for f in off if f[0] == 'wait<&:"er']
    assert any("waits_for_a_lock" in f for f in own), f"{own or list(off)}"
    ET.parse(run.directory / "flamegraph_offcpu.svg")  # type: ignore[operator]
    run.job.send("end")
    assert run.job.wait() == 0


def check_svg(path: Path, folded: Folded, unit: int) -> int:
    """The picture against the lines: every frame, position and width. The total."""
    weight: Counter[tuple[str, ...]] = Counter()
    for frames, w in folded.items():
        for n in range(1, len(frames) + 1):
            weight[frames[:n]] += w
    total = 0
    drawn: list[tuple[int, int, int, str]] = []
    for g in ET.parse(path).getroot().iter(f"{SVG}g"):
        x, w, depth = (int(g.attrib[f"data-{k}"]) for k in "xwd")
        rect = g.find(f"{SVG}rect")
        assert rect is not None
        if not depth:
            total = w
        assert abs(float(rect.attrib["x"]) - x / total * 1200) < 0.001
        assert abs(float(rect.attrib["width"]) - w / total * 1200) < 0.001
        drawn.append((depth, x, w, g.attrib["data-n"]))
    assert len(drawn) == len(weight) + 1, f"{len(drawn)} frames, not {len(weight) + 1}"
    ends: dict[int, int] = defaultdict(int)
    for depth, x, w, _name in sorted(drawn, key=lambda f: (f[0], f[1])):
        assert x >= ends[depth], "frames of one row overlap"
        ends[depth] = x + w
    names: Counter[tuple[int, str]] = Counter()
    for frames, w in weight.items():
        names[len(frames), frames[-1]] += w
    shown: Counter[tuple[int, str]] = Counter()
    for depth, _x, w, name in drawn:
        if depth:
            shown[depth, name] += w
    for key in names:
        slack = 0 if unit == 1 else unit * len(folded)
        assert abs(names[key] * unit - shown[key]) <= slack, f"{key}: {shown[key]}, not {names[key] * unit}"
    return total


@test
def totals_are_those_of_the_session(case: Case) -> None:
    run = Run(case, [need_job("stacks_job"), 1500])
    on, off = run.folded("oncpu"), run.folded("offcpu")
    assert run.directory
    samples = run.samples(ONCPU)
    assert len(samples) > 500
    assert sum(on.values()) == len(samples), f"{sum(on.values())} in the lines, {len(samples)} in the session"
    assert check_svg(run.directory / "flamegraph_oncpu.svg", on, 1) == len(samples)
    asleep = sum(s.weight for s in run.samples(OFFCPU))
    assert check_svg(run.directory / "flamegraph_offcpu.svg", off, 1000) == asleep
    assert abs(sum(off.values()) * 1000 - asleep) <= 1000 * len(off)
    database = sqlite3.connect(next(run.directory.glob("ascend_pytorch_profiler_*.db")))
    rows: dict[int, Any] = {kind: (n, w) for kind, n, w in database.execute(
        "SELECT kind, count(*), sum(weightNs) FROM NPUSCOPE_STACK GROUP BY kind")}
    assert rows[ONCPU] == (len(samples), sum(s.weight for s in samples)), rows
    assert rows[OFFCPU][1] == asleep, rows
    text = {row[0] for row in database.execute(
        "SELECT DISTINCT t.value || ';' || s.value FROM NPUSCOPE_STACK n JOIN STRING_IDS s ON s.id = n.stack "
        "JOIN STRING_IDS t ON t.id = n.thread WHERE n.kind = 1")}
    assert text == {";".join(frames) for frames in on}
    assert run.session.json["events"]["stack"] >= len(samples)


@test
def names_of_cxx(case: Case) -> None:
    run = Run(case, [need_job("stacks_cc_job")])
    on = run.folded("oncpu")
    name = "shapes::Polygon<unsigned long>::area(std::vector<int, std::allocator<int> > const&) const"
    assert below(on, "main", name) > 0.9 * sum(on.values()), on
    assert not any(f.startswith("_Z") for frames in on for f in frames), on


@test
def stripped_files_have_offsets(case: Case) -> None:
    job = build(case, "stacks_job.c", "-fomit-frame-pointer")
    whole = case.path("whole")
    shutil.copy(job, whole)
    case.run([need_program("strip", "binutils"), job]).expect(0)
    run = Run(case, [job, 1000])
    on = run.folded("oncpu")
    symbols = case.run([need_program("nm", "binutils"), "-S", whole]).out
    start, size = (int(v, 16) for v in re.findall(r"^(\w+) (\w+) \w burn$", symbols, re.M)[0])
    headers = case.run([need_program("readelf", "binutils"), "-lW", whole]).out
    offset, vaddr = (int(v, 16) for v in re.findall(r"LOAD +(\w+) (\w+) .* R E ", headers)[0])
    own = [f for frames in on for f in frames if f.startswith("[job+")]
    assert own, on
    inside = 0
    for frames, weight in on.items():
        assert not {"burn", "mostly", "work", "main"} & set(frames), frames
        leaf = [f for f in frames if f.startswith("[job+")][-1:]
        if leaf and start <= int(leaf[0][5:-1], 16) - offset + vaddr < start + size:
            inside += weight
    assert inside > 0.85 * sum(on.values()), f"{inside} of {sum(on.values())} samples lie in burn: {on}"


@test
def libraries_that_come_later(case: Case) -> None:
    library = build_library(case, "stacks_lib.c", "libstacks.so", case.path("lib"))
    run = Run(case, [need_job("stacks_job"), 1500, library], "--host-sys", "none")
    on = run.folded("oncpu")
    near(below(on, "work", "lib_burn") / run.hz * 1e9, run.facts["library_ns"], 8, "time in the library")
    # Another build replaces the one that ran: no name is better than a wrong one.
    library.unlink()
    build_library(case, "stacks_job.c", "libstacks.so", case.path("lib"))
    printed = run.analyze("again").err
    assert "libstacks.so is not here or another build" in printed, printed
    again = run.folded("oncpu")
    assert below(again, "work", "lib_burn") == 0
    assert any(f.startswith("[libstacks.so+0x") for frames in again for f in frames), again


@test
def a_command_and_its_child(case: Case) -> None:
    """From exec on, and in a child that is born and executes something else."""
    need_root()
    job = need_job("stacks_job")
    go = case.path("go")
    go.write_text("go\n" * 2)
    with open(go, "rb") as lines:
        result = case.record("-o", case.dir, "--export", "text", "--stacks", "cpu", "--stack-freq", "499", "--",
                             "/bin/sh",
                             "-c", f"{job} 700; exit 0", stdin=lines, wait=False).result()
    result.expect(0)
    files = [Path(p) / "ASCEND_PROFILER_OUTPUT" / "npuscope_oncpu.folded" for p in result.out.split()
             if p.endswith("_ascend_pt")]
    text = "".join(p.read_text() for p in files if p.exists())
    on = Counter({tuple(line.rsplit(" ", 1)[0].split(";")): int(line.rsplit(" ", 1)[1]) for line in text.splitlines()})
    near(below(on, *ROOT, "mostly", "burn") + below(on, *ROOT, "seldom", "burn"), 0.7 * 499, 15, "samples of the child")


@test
def what_is_lost_is_counted(case: Case) -> None:
    """npuscope gets no CPU for a while: the rings overflow, and the missing samples are reported."""
    need_root()
    job = case.start([need_job("stacks_job"), 5000])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--stacks", "cpu", "--stack-freq", "999")
    job.send("go")
    time.sleep(0.3)
    run.signal(signal.SIGSTOP)
    time.sleep(4)
    run.signal(signal.SIGCONT)
    assert job.wait() == 0
    result = run.result().expect(3)
    lost = result.session.json["drops"]["ring"]["stack"]
    kept = len(stacks_of(result.session, job.pid))
    truth = int(re.findall(r"^cpu_ns (\d+)$", job.out, re.M)[0]) * 999 / 1e9
    assert lost > 100, f"{lost} lost: the rings did not overflow, this test proves nothing"
    assert re.search(r"records were lost", result.err), result.err
    # Lost mappings count too, of all processes of the host, for any may
    # have been one of the job's: never too few.
    assert kept < 0.95 * truth, f"{kept} of {truth:.0f} kept: nothing was missing, this test proves nothing"
    assert kept + lost > 0.92 * truth, f"{kept} kept and {lost} lost are less than {truth:.0f}"


@test
def in_a_mount_namespace(case: Case) -> None:
    """A path that only the job sees: its file is found while it lives."""
    need_mounts()
    job, mount = need_job("stacks_job"), case.path("inside")
    mount.mkdir()
    running = case.start(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {mount} && cp {job} {mount}/job && "
                          f"exec {mount}/job 800 linger"])
    running.wait_for("^ready")
    run = case.record("-p", running.pid, "-o", case.dir, "--export", "text", "--stacks", "cpu", "--stack-freq", "499")
    running.send("go")
    running.wait_for("^done")
    run.signal(signal.SIGINT)
    result = run.result()
    running.send("end")
    assert not (mount / "job").exists(), "the namespace hides nothing: this test proves nothing"
    folder = next(Path(p) for p in result.out.split() if p.endswith("_ascend_pt"))
    text = (folder / "ASCEND_PROFILER_OUTPUT" / "npuscope_oncpu.folded").read_text()
    assert "main;work;mostly;burn" in text, text


@test
def as_perf_has_it(case: Case) -> None:
    """The same job at the same time under perf: the same chains and shares."""
    perf = need_program("perf", "linux-perf")
    job = build(case, "stacks_job.c", "-fomit-frame-pointer")
    running = case.start([job, 2000])
    running.wait_for("^ready")
    data = case.path("perf.data")
    witness = case.start([perf, "record", "-e", "cpu-clock", "-F", "299", "--call-graph", "dwarf,8192", "-o", data,
                          "-p",
                          running.pid])
    ours = case.record("-p", running.pid, "-o", case.dir, "--export", "text", "--stacks", "cpu", "--stack-freq", "299")
    running.send("go")
    running.wait_for("^done")
    assert running.wait() == 0
    witness.wait()
    need(data.exists() and data.stat().st_size > 0, "a perf that can record here")
    result = ours.result()
    script = case.run([perf, "script", "-F", "ip,sym", "-i", data], seconds=120).out
    theirs: Counter[str] = Counter()
    for block in script.strip().split("\n\n"):
        frames = [line.split(None, 1)[1] for line in block.splitlines() if len(line.split(None, 1)) == 2]
        chain = [f for f in reversed(frames) if f in ("main", "work", "mostly", "seldom", "burn")]
        theirs[";".join(chain)] += 1
    folded = next(Path(p) for p in result.out.split() if p.endswith("_ascend_pt"))
    mine: Counter[str] = Counter()
    for line in (folded / "ASCEND_PROFILER_OUTPUT" / "npuscope_oncpu.folded").read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        chain = [f for f in stack.split(";") if f in ("main", "work", "mostly", "seldom", "burn")]
        mine[";".join(chain)] += int(weight)
    n, m = sum(mine.values()), sum(theirs.values())
    need(m > 300, "perf samples")
    for chain in ("main;work;mostly;burn", "main;work;seldom;burn"):
        a, b = mine[chain] / n, theirs[chain] / m
        # two samples of one job differ by this once in 16,000 times
        chance = 4 * (b * (1 - b) * (1 / n + 1 / m)) ** 0.5
        assert abs(a - b) < max(0.05, chance), f"{chain}: {a:.3f} of {n}, perf has {b:.3f} of {m}"


# --- under probes of returns --------------------------------------------------------------------------------

Chain = tuple[str, ...]
# The kernel writes the trampoline's address to the stack some instructions before it lists the return: a
# sample that is taken in between has nothing to go on from.
CAUGHT = 0.01


class Nested:
    """A job with several calls of CANN open at once, under npuscope,
    and where it was by its own backtraces."""

    def __init__(self, case: Case, unwind: str, *flags: str, forbid: str = "", **variables: Any) -> None:
        compiler, where = need_program("gcc", "gcc"), case.path(f"nested_{unwind}_{forbid}")
        where.mkdir()
        for source, name, more in (("nested_job.c", "job", ["-rdynamic"]),
                                   ("acl_rt_lib.c", "libacl_rt.so", ["-fPIC", "-shared", "-Wl,-soname,libacl_rt.so"])):
            case.run([compiler, "-O2", "-g", "-D_GNU_SOURCE", *flags, *more, JOB_SOURCES / source, "-o", where / name,
                      "-ldl", "-lpthread"]).expect(0)
        job = case.start([where / "job", 1500], env=environment(libs=[where]))
        job.wait_for("^ready")
        run = case.record("-p", job.pid, "-o", where, "--export", "text", "--stacks", "cpu,offcpu", "--stack-freq", 499,
                          "--unwind", unwind, env=environment(NPUSCOPE_FORBID=forbid, **variables))
        job.send("go")
        job.wait_for("^done")
        assert job.wait() == 0
        self.result = run.result().expect(0, 3)
        self.session = self.result.session
        assert self.session.dropped() == 0, self.result.err
        self.chains = [(offset, tuple(frames.split(";")))
                       for offset, frames in re.findall(r"^chain (\w+) (.*)$", job.out, re.M)]
        assert len(self.chains) == 10, job.out
        self.own = {name for _offset, chain in self.chains for name in chain} - {"?"}
        self.on, self.off = self.folded(self.result)

    @staticmethod
    def folded(result: Result) -> tuple[Counter[Chain], Counter[Chain]]:
        """User frames of the stacks of the result, outermost first."""
        directory = next(Path(p) for p in result.out.split() if p.endswith("_ascend_pt")) / "ASCEND_PROFILER_OUTPUT"
        found = []
        for which in ("oncpu", "offcpu"):
            stacks: Counter[Chain] = Counter()
            for line in (directory / f"npuscope_{which}.folded").read_text().splitlines():
                frames, weight = line.rsplit(" ", 1)
                stacks[tuple(f for f in frames.split(";")[1:] if not f.endswith("_[k]"))] += int(weight)
            found.append(stacks)
        return found[0], found[1]

    def at(self, stacks: Counter[Chain], function: str) -> Counter[Chain]:
        """Weight of stacks that are at or below POINT, by the job's chain there."""
        return Counter({chain: sum(w for frames, w in stacks.items() if common(frames, chain) == len(chain))
                        for what, chain in self.chains if what == function})

    def check(self, stacks: Counter[Chain]) -> None:
        """Each stack begins where its thread did, and goes where the job goes."""
        caught = 0
        for frames in filter(None, stacks):
            if len(frames) == 1 and frames[0].startswith("aclrt"):
                caught += stacks[frames]
                continue
            known = max(common(frames, chain) for _offset, chain in self.chains)
            assert known >= 2, f"does not begin where a thread does: {frames}"
            wrong = self.own & set(frames[known:])
            assert not wrong, f"{wrong} is not called there: {frames}"
        assert caught <= CAUGHT * sum(stacks.values()), stacks


def common(frames: Chain, chain: Chain) -> int:
    """How many outermost frames agree; what has no exported name is `?`."""
    n = 0
    while n < min(len(frames), len(chain)) and chain[n] in (frames[n], "?"):
        n += 1
    return n


def are_whole(run: Nested) -> None:
    run.check(run.on)
    run.check(run.off)
    for stacks, function in ((run.on, "burn"), (run.on, "after_jump"), (run.on, "outside"), (run.off, "nap")):
        for chain, weight in run.at(stacks, function).items():
            assert weight > 0, f"no stack of {function}: {chain}"
    found = run.session.json["stacks"]
    assert found["unwound"] > 100 and found["whole"] >= (1 - CAUGHT) * found["unwound"], found
    share = int(found["whole"] / found["unwound"] * 1000) / 10
    assert re.search(rf"^  stacks: {found['unwound']}, {share:.1f} % of them whole", run.result.err, re.M), \
        run.result.err


def without_returns(session: Session, to: Path) -> Path:
    """A copy of the session whose stacks do not list probed returns."""
    copy = to / session.path.name
    shutil.copytree(session.path, copy)
    with open(copy / "stacks.nps", "wb") as out:
        for seq, (what, payload) in enumerate(list(chunks(session.path / "stacks.nps"))):
            data, at = bytearray(payload), 0
            while what == STACKS and at < len(data):
                struct.pack_into("<H", data, at + 26, 0)
                at += HEAD.unpack_from(data, at)[0]
            out.write(chunk(what, seq, bytes(data)))
    return copy


@test
def whole_under_probes_of_returns(case: Case) -> None:
    run = Nested(case, "auto", "-fomit-frame-pointer")
    are_whole(run)
    shown = case.npuscope("show", run.session.path).out
    assert re.search(r"^stacks +\d+, (100\.0|99\.\d) % of them whole", shown, re.M), shown
    # That this means something: a session of a version that did not record the return addresses.
    directory = case.path("before")
    directory.mkdir()
    result = case.analyze(without_returns(run.session, directory))
    on, off = run.folded(result)
    assert not +run.at(on, "burn") and not +run.at(off, "nap"), on
    share = re.search(r"^  stacks: \d+, ([\d.]+) % of them whole", result.err, re.M)
    assert share and float(share[1]) < 70, result.err


@test
def whole_by_each_way_to_probe(case: Case) -> None:
    for forbid in ("uprobe_session", "uprobe_multi"):
        are_whole(Nested(case, "auto", "-fomit-frame-pointer", forbid=forbid))


@test
def whole_without_functions_of_the_kernel(case: Case) -> None:
    """No program calls one: where the JIT is off none that does is loaded."""
    shim = build_library(case, "no_links_lib.c", "libno_links.so", case.path("shim"))
    run = Nested(case, "auto", "-fomit-frame-pointer", LD_PRELOAD=shim, NO_KFUNCS="1")
    are_whole(run)
    assert "cannot" not in run.result.err, run.result.err


@test
def whole_by_tables_alone(case: Case) -> None:
    are_whole(Nested(case, "dwarf", "-fomit-frame-pointer"))


@test
def frame_pointers_under_probes_of_returns(case: Case) -> None:
    """The C library has no frame pointers: what ends in the job itself must be right."""
    run = Nested(case, "fp", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")
    for function in ("burn", "after_jump", "outside"):
        chains = [chain[chain.index(root):] for what, chain in run.chains if what == function
                  for root in ("main", "in_a_thread") if root in chain]
        for chain in chains:
            assert any(frames[-len(chain):] and common(frames[-len(chain):], chain) == len(chain)
                       for frames in run.on), \
                f"{chain}: {run.on}"
    for frames in run.on:
        if frames and frames[-1] == "burn":
            ends = [chain[2:] for _offset, chain in run.chains if chain[-1] == "burn"]
            assert any(common(frames[-len(end):], end) == len(end) for end in ends), frames


@test
def usage(case: Case) -> None:
    for bad in (["--stacks", "gpu"], ["--stacks", ""], ["--stack-freq", "0"], ["--stack-freq", "1000"],
                ["--stack-freq", "9x"], ["--offcpu-min", "-1"], ["--unwind", "orc"]):
        case.npuscope("record", *bad, "--", "/bin/true").expect(2)


if __name__ == "__main__":
    sys.exit(main())
