#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Python frames of samples and sleeps. Witness: what the job's source can call from where."""

import ast
import re
import struct
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Optional

from harness import JOB_SOURCES, PARTIAL, Case, Running, Session, add_test, environment, main, need_root, test
from python_sessions import Stacks
from records import chunks

JOB = JOB_SOURCES / "python_samples_job.py"
HEAD = struct.Struct("<IBBHIIIHHHHIQQ")  # struct nps_stack
PYTHON = struct.Struct("<QQ")  # struct nps_stack_python
STACKS, ONCPU, OFFCPU, WITH_PYTHON = 32, 1, 2, 4
UNREAD, ENTRY = (1 << 64) - 1, 1 << 63
BOOTSTRAP = ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"]
SECONDS = 3  # of CPU time, or asleep
LOOP = "_PyEval_EvalFrameDefault"
# Python to Python without C in between, in 3.11 and later; and what C calls.
DIRECT = {("root_hot", "hot_outer"), ("hot_outer", "hot_loop"), ("recurse", "recurse"), ("many_locals", "many_locals"),
          ("many_locals", "by_key"), ("in_c", "compress"), ("in_c", "digest")}
BY_C = {("by_key", "key_small"), ("by_key", "key_wide"), ("by_reduce", "add"), ("recurse", "key_wide"),
        ("make_things", "Thing.__del__")}

Frame = tuple[str, Optional[int], bool]  # function, line, called by C


class Source:
    """The job's functions, their lines, and what each line can call."""

    def __init__(self) -> None:
        text = JOB.read_text()
        self.lines: dict[str, range] = {}
        self.calls: dict[int, set[str]] = {}
        self.line_of: dict[str, int] = {}
        tree = ast.parse(text)
        self.collect(tree, "")
        for number, line in enumerate(text.splitlines(), 1):
            if "  #> " in line:
                self.calls[number] = set(line.split("  #> ")[1].split())
            elif note := re.search(r"  # (\w+)$", line):
                self.line_of[note[1]] = number

    def collect(self, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                self.collect(child, f"{child.name}.")
            if isinstance(child, ast.FunctionDef):
                assert child.end_lineno
                self.lines[prefix + child.name] = range(child.lineno, child.end_lineno + 1)

    def fault(self, root: str, frames: list[Frame], qualified: bool, lines: bool) -> str:
        """Why the thread of that root cannot have these frames, outermost first; "": it can."""
        def name(function: str) -> str:
            return function if qualified else function.rsplit(".", 1)[-1]

        names = [f[0] for f in frames]
        if names[:4] != [name(f) for f in [*BOOTSTRAP, root]]:
            return "it does not begin as the thread does"
        full = {name(f): f for f in self.lines}
        for at in range(3, len(frames)):
            function, line, _entry = frames[at]
            known = self.lines[full[function]]
            inner = names[at + 1] if at + 1 < len(names) else None
            if lines and (line not in known if inner else line is not None and line not in known):
                return f"line {line} is not in {function}"
            callable_from = [line] if lines else list(known)
            if inner and not any(inner in {name(f) for f in self.calls.get(n or 0, ())} for n in callable_from):
                return f"{function} does not call {inner} in line {line}"
        return ""


class Sessions(Stacks):
    """python.nps, with the marks of frames that C called."""

    def frame(self, pid: int, code: int, mark: int, at: int):  # type: ignore[no-untyped-def,override]
        file, line, name = super().frame(pid, code & ~ENTRY, mark, at)
        return file, name, line, bool(code & ENTRY)


class Run:
    """A job whose threads were sampled."""

    def __init__(self, case: Case, where: str, python: Path, *options: str, switch: str = "0.005",
                 forbid: str = "") -> None:
        need_root()
        self.case = case
        self.job: Running = case.start([python, JOB, where, SECONDS, switch])
        self.job.wait_for("^ready")
        self.roots = {int(tid): root for tid, root in re.findall(r"^thread (\d+) (\w+)$", self.job.out, re.M)}
        run = case.record("-p", self.job.pid, "-o", case.dir, "--export", "none", "--host-sys", "none", *options,
                          env=environment(NPUSCOPE_FORBID=forbid))
        self.job.send("go")
        self.job.wait_for("^done", seconds=240)
        run.signal(2)
        self.result = run.result()
        self.result.expect(0, PARTIAL)
        self.session: Session = self.result.session
        assert self.session.dropped() == 0, self.result.err
        self.python = Sessions(self.session.path)

    def folded(self, which: str) -> dict[tuple[str, ...], int]:
        """The lines of the job's result."""
        result = self.case.analyze(self.session.path, "-o", self.case.path("out"))
        assert result.status in (0, PARTIAL), result
        lines: dict[tuple[str, ...], int] = {}
        for path in map(Path, result.out.split()):
            file = path / "ASCEND_PROFILER_OUTPUT" / f"npuscope_{which}.folded"
            for line in file.read_text().splitlines() if file.exists() else []:
                frames, weight = line.rsplit(" ", 1)
                lines[tuple(frames.split(";"))] = int(weight)
        return lines

    def stacks(self, kind: int) -> dict[int, list[tuple[int, int]]]:
        """Of each thread: the id of the Python stack, 0: none, and the weight."""
        found = defaultdict(list)
        for chunk, payload in chunks(self.session.path / "stacks.nps"):
            at = 0
            while chunk == STACKS and at < len(payload):
                size, what, flags, _state, _pid, tid, *_rest, weight = HEAD.unpack_from(payload, at)
                stack = PYTHON.unpack_from(payload, at + size - PYTHON.size)[0] if flags & WITH_PYTHON else 0
                if what == kind and tid in self.roots:
                    found[tid].append((stack, weight))
                at += size
        return found

    def frames(self, stack: int) -> list[Frame]:
        """Outermost first, without what the interpreter runs below `__init__`: file and name are the same."""
        return [frame[1:] for frame in reversed(self.python.stacks[stack]) if frame[0] != frame[1]]

    def check(self, kind: int, qualified: bool = True, lines: bool = True) -> dict[int, list[tuple[list[Frame], int]]]:
        """All stacks of the threads are some that they can have. Returns those that were read."""
        source, known = Source(), defaultdict(list)
        count: Counter[str] = Counter()
        for tid, stacks in self.stacks(kind).items():
            for stack, weight in stacks:
                count["unread" if stack == UNREAD else "read" if stack else "none"] += 1
                if not stack or stack == UNREAD:
                    continue
                frames = self.frames(stack)
                assert not self.python.flags[stack], f"{self.python.flags[stack]}: {frames}"
                fault = source.fault(self.roots[tid], frames, qualified, lines)
                assert not fault, f"{self.roots[tid]}: {fault}: {frames}"
                known[tid].append((frames, weight))
        print(f"    {dict(count)}", file=sys.stderr)
        assert count["read"] > 0.9 * sum(count.values()), count
        assert set(known) == set(self.roots), f"threads without a stack: {set(self.roots) - set(known)}"
        return known


def samples(case: Case, python: Path, version: tuple[int, int]) -> None:
    run = Run(case, "cpu", python, "--stacks", "cpu", "--stack-freq", "499", "--py-stacks", "sample",
              switch="0.0005")
    same = version == sys.version_info[:2] and version >= (3, 11)
    known = run.check(ONCPU, version >= (3, 11), same)
    assert sum(map(len, known.values())) > 300, {run.roots[t]: len(s) for t, s in known.items()}
    for tid, stacks in known.items():
        functions = Counter(name for frames, _w in stacks for name in {f[0] for f in frames})
        if run.roots[tid] == "root_hot":
            assert functions["hot_loop"] > 0.9 * len(stacks), functions
        if run.roots[tid] == "root_calls":
            assert {"by_key", "key_wide", "recurse", "many_locals"} <= set(functions), functions
        if run.roots[tid] == "root_mixed":
            assert {"compress", "digest", "in_c"} <= set(functions), functions


@test
def samples_are_stacks_that_the_job_has(case: Case) -> None:
    samples(case, Path(sys.executable), sys.version_info[:2])


def python_frame(text: str) -> Optional[tuple[str, int, str]]:
    found = re.fullmatch(r"(/.*|<.*>)\((\d+)\): (.*)", text)
    return (found[1], int(found[2]), found[3]) if found else None


def check_line(frames: tuple[str, ...], known: set[tuple[tuple[str, str], ...]]) -> Counter[str]:
    """Checks the line of a stack with Python frames. Counts what it has."""
    at = [i for i, text in enumerate(frames) if python_frame(text)]
    python = [python_frame(frames[i]) for i in at]
    assert tuple((f[0], f[2]) for f in python if f) in known, f"not recorded: {frames}"
    count = Counter(lines=1, left_out="[native frames left out]" in frames)
    for (i, f), (j, g) in zip(zip(at, python), zip(at[1:], python[1:])):
        assert f and g
        if (f[2], g[2]) in DIRECT:
            assert j == i + 1, f"C between {f} and {g}: {frames}"
        if (f[2], g[2]) in BY_C and not count["left_out"]:
            assert j > i + 1 or g[2] == "Thing.__del__", f"no C between {f} and {g}: {frames}"
            count["by_c"] += 1
        assert LOOP not in frames[i:j], f"a loop between {f} and {g}: {frames}"
    inside = frames[at[-1] + 1:]
    if "compress" == (python[-1] or ("", 0, ""))[2]:
        count["deflate"] += any("deflate" in text for text in inside)
    # a call that has no frame yet, or not any more
    count["unlinked"] += LOOP in inside
    assert inside.count(LOOP) <= 1, f"loops without Python frames: {frames}"
    return count


def lines_are_right(run: Run, kind: int, lines: dict[tuple[str, ...], int]) -> Counter[str]:
    """The lines have the stacks that were recorded, with C where C is."""
    known = {tuple((frame[0], frame[1]) for frame in reversed(stack) if frame[0] != frame[1])
             for stack in run.python.stacks.values()}
    count: Counter[str] = Counter()
    for frames, weight in lines.items():
        if any(map(python_frame, frames)):
            for what, n in check_line(frames, known).items():
                count[what] += n
            count["weight"] += weight
    read = [weight for stacks in run.stacks(kind).values() for stack, weight in stacks if stack not in (0, UNREAD)]
    if kind == ONCPU:
        assert count["weight"] >= len(read), f"{count['weight']} of {len(read)} samples are in lines"
    return count


@test
def python_is_between_native_frames(case: Case) -> None:
    run = Run(case, "cpu", Path(sys.executable), "--stacks", "cpu", "--stack-freq", "499", "--py-stacks", "sample")
    count = lines_are_right(run, ONCPU, run.folded("oncpu"))
    print(f"    {dict(count)}", file=sys.stderr)
    assert count["by_c"] and count["deflate"], count
    assert count["left_out"] < 0.05 * count["lines"] and count["unlinked"] < 0.2 * count["lines"], count


@test
def sleeps_are_in_known_lines(case: Case) -> None:
    run = Run(case, "offcpu", Path(sys.executable), "--stacks", "offcpu", "--offcpu-min", "5ms", "--py-stacks",
              "offcpu")
    known, line_of = run.check(OFFCPU), Source().line_of
    expected = {"root_naps": ("nap", "nap"), "root_waits": ("wait_for_mutex", "mutex"),
                "root_holds": ("holds", "holds")}
    for tid, stacks in known.items():
        function, mark = expected[run.roots[tid]]
        there = [weight for frames, weight in stacks if frames[-1][:2] == (function, line_of[mark])]
        assert len(there) >= 5, (function, Counter(frames[-1] for frames, _w in stacks))
    lines = run.folded("offcpu")
    lines_are_right(run, OFFCPU, lines)
    asleep = [frames for frames in lines if any(text.endswith(": nap") for text in frames)]
    assert asleep and all(frames[-1].endswith("_[k]") for frames in asleep), lines


@test
def usage(case: Case) -> None:
    for options, missing in (("sample", "--stacks cpu"), ("offcpu", "--stacks offcpu"),
                             ("launch,sample", "--stacks cpu")):
        result = case.npuscope("record", "--py-stacks", options, "--", "/bin/true").expect(2)
        assert f"needs {missing}" in result.err, result.err


@test
def without_the_walk(case: Case) -> None:
    """Where the kernel cannot walk Python frames, samples are taken all the same, and one line reports it."""
    run = Run(case, "cpu", Path(sys.executable), "--stacks", "cpu", "--py-stacks", "sample", forbid="python_samples")
    assert run.result.err.count("no Python frames in stacks") == 1, run.result.err
    stacks = [stack for stacks in run.stacks(ONCPU).values() for stack, _weight in stacks]
    assert stacks and not any(stacks), Counter(stacks)
    assert any(LOOP in frames for frames in run.folded("oncpu"))


for _python in sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3")):
    _version = tuple(map(int, _python.parents[1].name.split(".")[:2]))
    if _version >= (3, 8):
        add_test(f"samples_of_{_python.parents[1].name}",
                 lambda case, python=_python, version=_version: samples(case, python, version))


if __name__ == "__main__":
    sys.exit(main())
