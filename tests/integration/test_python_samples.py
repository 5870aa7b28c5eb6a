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

from harness import JOB_SOURCES, PARTIAL, Case, Running, Session, add_test, main, need_root, test
from python_sessions import Stacks
from records import chunks

JOB = JOB_SOURCES / "python_samples_job.py"
HEAD = struct.Struct("<IBBHIIIHHHHIQQ")  # struct nps_stack
PYTHON = struct.Struct("<QQ")  # struct nps_stack_python
STACKS, ONCPU, OFFCPU, WITH_PYTHON = 32, 1, 2, 4
UNREAD, ENTRY = (1 << 64) - 1, 1 << 63
BOOTSTRAP = ["Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run"]
CPU_SECONDS = 3

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

    def __init__(self, case: Case, where: str, python: Path, *options: str, switch: str = "0.005") -> None:
        need_root()
        self.case = case
        self.job: Running = case.start([python, JOB, where, CPU_SECONDS if where == "cpu" else 0.3, switch])
        self.job.wait_for("^ready")
        self.roots = {int(tid): root for tid, root in re.findall(r"^thread (\d+) (\w+)$", self.job.out, re.M)}
        run = case.record("-p", self.job.pid, "-o", case.dir, "--export", "none", "--host-sys", "none", *options)
        self.job.send("go")
        self.job.wait_for("^done", seconds=240)
        run.signal(2)
        self.result = run.result()
        self.result.expect(0, PARTIAL)
        self.session: Session = self.result.session
        assert self.session.dropped() == 0, self.result.err
        self.python = Sessions(self.session.path)

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


for _python in sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3")):
    _version = tuple(map(int, _python.parents[1].name.split(".")[:2]))
    if _version >= (3, 8):
        add_test(f"samples_of_{_python.parents[1].name}",
                 lambda case, python=_python, version=_version: samples(case, python, version))


if __name__ == "__main__":
    sys.exit(main())
