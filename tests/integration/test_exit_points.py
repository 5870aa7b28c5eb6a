#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions that exceptions may cross are probed where they leave: each call that ends passes one exit, once.

Witnesses: objdump, in whose listing a conditional jump in front of the return calls __stack_chk_fail; and
the kernel's own count of hits at the starts and at the exits, while PyTorch runs and fails."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

from harness import ROOT, Case, Skip, main, need_program, need_root, test

SURVEY = ROOT / "build/tests/exit_survey"
LIBRARY = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
CALL = re.compile(r"_ZN2at4_ops\w+4callE")
WINDOWS, WINDOW = 6, 25  # of neighbours: objdump takes a second to begin
GROUP = "nps_exits"
FAILING_CALLS = 7
# What WORK calls, among others; the kernel needs 30 ms for each probe.
CALLED = re.compile(r"(add|add_|addmm|as_strided|cat|clone|convolution|convolution_backward|copy_|cross_entropy_loss|"
                    r"detach|div|einsum|empty|expand|flatten|index_select|item|linalg_svd|linear|mm|mul|mul_|"
                    r"native_\w+|nll_loss\w*|nonzero|relu|reshape|select|slice|sort|std|t|tensor|to|topk|"
                    r"transpose|view|zero_)"
                    r"(_Tensor|_Scalar|_int|_dim|_out|_dimname|_correction|_memory_format|_device|_dtype)*")

# Some forward and backward work, and calls that throw through functions that are probed.
WORK = f"""
import torch
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
                          torch.nn.Linear(4 * 6 * 6, 5))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(5):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(torch.randn(2, 3, 8, 8)), torch.tensor([1, 2])).backward()
    optimizer.step()
a = torch.randn(5, 5)
torch.linalg.svd(a); torch.sort(a); torch.topk(a, 2); torch.cat([a, a]); torch.einsum("ij,jk->ik", a, a)
torch.nonzero(a > 0); torch.unique(a); a.cumsum(0); a[1:3, None].expand(2, 4, 5).contiguous(); a.tolist(); a.std()
for _ in range({FAILING_CALLS}):
    for failing in (lambda: torch.mm(a, torch.ones(3, 3)), lambda: torch.ones(2).index_select(0, torch.tensor([5]))):
        try:
            failing()
        except (RuntimeError, IndexError):
            pass
        else:
            raise SystemExit("the call did not fail")
print("worked")
"""


# arm64 functions: name, body, and what follows from it: numbers of the instructions that are exits, or the
# reason.
FRAME = "stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n"
LEAVE = "ldp x29, x30, [sp], #16\n.cfi_def_cfa_offset 0\n"
ARM64 = [
    ("returns", f"paciasp\n{FRAME}bl other\n{LEAVE}autiasp\nret", [5]),
    ("protected", f"{FRAME}cmp x0, x1\nb.ne 1f\n{LEAVE}ret\n.cfi_def_cfa_offset 16\n1: bl other", [4]),
    ("twice", "cbz x0, 1f\nret\n1: mov x0, #1\nret", [1, 3]),
    ("data", "b 1f\n.word 0\n1: ret", [2]),
    ("recursive", f"{FRAME}bl recursive\n{LEAVE}ret", [3]),
    ("cold", f"{FRAME}cbz x0, cold_part\n.globl cold_back\ncold_back: {LEAVE}ret", [3]),
    ("veneer", "nop\nb moved\n.globl veneer_back\nveneer_back: ret", [2]),
    ("signed", "paciasp\nretaa", "an instruction of it is not known"),
    ("by_register", "mov x1, x30\nret x1", "an instruction of it is not known"),
    ("reserved", "nop\n.word 0\nret", "an instruction of it is not known"),
    ("switch", "br x0\nret", "it has an indirect jump"),
    ("tail", "b other", "it ends by a tail call"),
    ("tail_if", "tbz w0, #3, other\nret", "it ends by a tail call"),
    ("tail_out", "b outer", "it ends by a tail call"),
    ("own_call", f"{FRAME}bl 1f\n1: {LEAVE}ret", "it calls a part of itself"),
    ("never", "nop\n1: b 1b", "it does not return"),
    ("again", "subs x0, x0, #1\nb.ne again\nret", "it jumps back to its start"),
    ("shared", "b returns + 8", "it shares code with another function"),
    ("not_veneer", "nop\nb moved\nret", "it jumps to code without unwind tables"),
    ("other", "mov x0, #1\nret", "it ends where its entry is probed"),
]
PARTS = f""".section .text.unlikely, "ax"
.cfi_startproc
.cfi_def_cfa_offset 16
.globl cold_part
cold_part: bl other
b cold_back
.cfi_endproc
.globl moved
moved: ldr x1, [x1, #8]
b veneer_back
"""


class Function(NamedTuple):
    """Of a library."""

    start: int
    size: int


def libtorch() -> Path:
    """The library with the operators."""
    found = sorted(LIBRARY.glob("libtorch_cpu.so.*.*"))
    if not found:
        raise Skip("no libtorch_cpu.so (Debian: libtorch-dev)")
    if not SURVEY.exists():
        raise Skip("build/tests/exit_survey is not built: make witnesses")
    return found[-1]


def functions(library: Path) -> dict[str, Function]:
    """The operators' functions, by nm."""
    lines = subprocess.run(["nm", "-D", "-S", "--defined-only", library], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {f[3]: Function(int(f[0], 16), int(f[1], 16)) for f in fields if len(f) == 4 and CALL.match(f[3])}


def survey(library: Path, prefix: str = "_ZN2at4_ops", *options: str) -> dict[str, tuple[list[int], str]]:
    """Exits as offsets from the start, and their class or the reason."""
    done = subprocess.run([SURVEY, library, prefix, *options], capture_output=True, text=True, check=True)
    print("  " + done.stderr.strip())
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: ([int(at, 16) for at in exits.split(",") if at], why) for name, exits, why in rows}


def listing(library: Path, start: int, end: int) -> list[tuple[int, str, str]]:
    """objdump's instructions of a range: address, mnemonic, operands."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={start}",
                           f"--stop-address={end}", library], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +([0-9a-f]+):\t(?:(?:bnd|rep|repz|data16|rex\.W) )*(\S+) *(.*)$", text, re.MULTILINE)
    return [(int(address, 16), name, operands) for address, name, operands in found]


def target(operands: str) -> int:
    """Of a jump."""
    found = re.match(r"([0-9a-f]+) <", operands)
    return int(found[1], 16) if found else -1


def stack_checks(code: list[tuple[int, str, str]]) -> Iterator[Optional[int]]:
    """For each return of a function: the last jump in front of it, if nothing else leads in between and it
    goes to the stack protector's failure."""
    at = {address: i for i, (address, _, _) in enumerate(code)}
    jumps = {target(operands) for _, name, operands in code if name.startswith("j")}
    for i, (address, name, _) in enumerate(code):
        if name != "ret":
            continue
        while address not in jumps and not name.startswith(("j", "call")) and i:
            i -= 1
            address, name, operands = code[i]
        failure = code[at[target(operands)]] if name == "jne" and target(operands) in at else None
        yield address if failure and failure[1] == "call" and "__stack_chk_fail@plt" in failure[2] else None


@test
def all_operators_have_one_exit(_case: Case) -> None:
    """Those without a return have none."""
    library = libtorch()
    known = functions(library)
    found = {name: exits for name, exits in survey(library).items() if CALL.match(name)}
    assert found.keys() == known.keys() and len(known) > 2500, (len(found), len(known))
    without = [name for name, (_, why) in found.items() if why != "emulated"]
    print(f"  {library.name}: {len(found)} operators, without exit: {[(name, found[name][1]) for name in without]}")
    for name in without:
        start, size = known[name]
        rets = [row for row in listing(library, start, start + size) if row[1] in ("ret", "retq")]
        assert not rets, f"{name} returns at {rets}: {found[name]}"
    assert len(without) <= 1, without
    several = {name: exits for name, (exits, _) in found.items() if len(exits) > 1}
    assert not several, several


@test
def exits_are_the_stack_protectors_jumps(_case: Case) -> None:
    """A sample, against objdump."""
    library = libtorch()
    if platform.machine() != "x86_64":
        raise Skip("returns themselves are probed")
    need_program("objdump", "binutils")
    known = functions(library)
    found = survey(library)
    seed = random.randrange(1 << 32)
    print(f"  seed {seed}")
    chosen = random.Random(seed)
    names = sorted((name for name in known if found[name][1] == "emulated"), key=lambda name: known[name].start)
    for _ in range(WINDOWS):
        first = chosen.randrange(len(names) - WINDOW)
        window = [(name, known[name]) for name in names[first:first + WINDOW]]
        code = listing(library, window[0][1].start, window[-1][1].start + window[-1][1].size)
        for name, (start, size) in window:
            expected = list(stack_checks([row for row in code if start <= row[0] < start + size]))
            assert [start + at for at in found[name][0]] == expected, (name, found[name], expected)


@test
def arm64_functions(case: Case) -> None:
    """What the other processor's exits are, and why others have none."""
    compiler = need_program("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    source, library = case.path("exits.s"), case.path("exits.so")
    source.write_text(".arch armv8.5-a\n.text\n" + "".join(
        f".globl {name}\n.type {name}, %function\n{name}:\n.cfi_startproc\n{body}\n.cfi_endproc\n"
        f".size {name}, . - {name}\n" for name, body, _ in ARM64) + PARTS, encoding="ascii")
    subprocess.run([compiler, "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-o", library, source], check=True)
    found = survey(library, "")
    for name, _, expected in ARM64:
        exits, why = found[name]
        if isinstance(expected, str):
            assert (exits, why) == ([], expected), (name, exits, why)
        else:
            classes = ",".join(["emulated"] * len(expected))
            assert (exits, why) == ([4 * i for i in expected], classes), (name, exits, why)


@contextlib.contextmanager
def tracing(case: Case) -> Iterator[Path]:
    """The kernel's tracefs."""
    path = Path("/sys/kernel/tracing")
    if (path / "uprobe_events").exists():
        yield path
        return
    path = case.path("tracing")
    path.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tracefs", "none", path], check=False).returncode:
        raise Skip("tracefs cannot be mounted")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=False)


def write_lines(control: Path, lines: list[str]) -> None:
    """The kernel accepts one at a time."""
    fd = os.open(control, os.O_WRONLY | os.O_APPEND)
    try:
        for line in lines:
            os.write(fd, line.encode() + b"\n")
    finally:
        os.close(fd)


def hits(path: Path, events: dict[str, str], command: list[str]) -> tuple[dict[str, int], str]:
    """How often a command passes each of the events (name, file and offset), and what it prints."""
    enable = path / "events" / GROUP / "enable"
    write_lines(path / "uprobe_events", [f"p:{GROUP}/{name} {where}" for name, where in events.items()])
    try:
        enable.write_text("1", encoding="ascii")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        rows = [line.split() for line in (path / "uprobe_profile").read_text(encoding="utf-8").splitlines()]
    finally:
        enable.write_text("0", encoding="ascii")
        write_lines(path / "uprobe_events", [f"-:{GROUP}/{name}" for name in events])
    assert not done.returncode, (done.returncode, done.stdout, done.stderr)
    return {row[1]: int(row[2]) for row in rows if row[1] in events}, done.stdout


def load_offset(library: Path) -> int:
    """Address of the code minus its offset in the file."""
    lines = subprocess.run(["readelf", "-lW", library], capture_output=True, text=True, check=True).stdout
    offset, address = re.findall(r"LOAD +(\S+) (\S+) .* R E ", lines)[0]
    return int(address, 16) - int(offset, 16)


def operator(name: str) -> str:
    """The name of a function's operator."""
    number, rest = re.findall(r"at4_ops(\d+)(\w+)4callE", name)[0]
    return rest[:int(number)]


@test(seconds=200)
def calls_pass_their_exit_once(case: Case) -> None:
    """Some operators, while PyTorch runs. Calls that throw pass none, and the job goes on."""
    need_root()
    library = libtorch()
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True, check=False).returncode:
        raise Skip("no PyTorch (Debian: python3-torch)")
    known = functions(library)
    delta = load_offset(library)
    found = [(name, exits[0]) for name, (exits, _) in survey(library).items()
             if CALL.match(name) and exits and CALLED.fullmatch(operator(name))]
    events = {}
    for i, (name, at) in enumerate(found):
        events[f"s{i}"] = f"{library}:{known[name].start - delta:#x}"
        events[f"e{i}"] = f"{library}:{known[name].start - delta + at:#x}"
    with tracing(case) as path:
        counts, printed = hits(path, events, ["/usr/bin/python3", "-c", WORK])
    assert printed == "worked\n", printed
    called = [(name, counts[f"s{i}"], counts[f"e{i}"]) for i, (name, _) in enumerate(found) if counts[f"s{i}"]]
    assert all(counts[f"s{i}"] or not counts[f"e{i}"] for i in range(len(found)))
    threw = {operator(name): start - end for name, start, end in called if start != end}
    calls = sum(start for _, start, _ in called)
    print(f"  {len(called)} operators of {len(found)}, {calls} calls, that threw: {threw}")
    assert threw == {"mm": FAILING_CALLS, "index_select": FAILING_CALLS}, threw
    assert len(called) > 30


# Compilers' options; a program built with them has exits that are emulated, or only others.
BUILDS = [
    ("g++", "-O0"), ("g++", "-O2"), ("g++", "-O2", "-fstack-protector-strong", "-fcf-protection=full"),
    ("g++", "-O3", "-fstack-protector-all", "-fno-omit-frame-pointer"), ("clang++", "-O2"),
    ("clang++", "-O2", "-fstack-protector-all"),
]


def symbols(program: Path) -> dict[str, Function]:
    """The functions of the job, by nm."""
    lines = subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {f[3]: Function(int(f[0], 16), int(f[1], 16)) for f in fields if len(f) == 4 and f[2] == "T"}


@test(seconds=200)
def ends_of_a_jobs_functions(case: Case) -> None:
    """The job itself counts how often each function begins and ends."""
    need_root()
    emulated = 0
    for compiler, *options in BUILDS:
        if not shutil.which(compiler):
            continue
        program = case.path("_".join([compiler, *options]))
        subprocess.run([compiler, *options, "-o", program, ROOT / "tests/integration/jobs/exits.cc"], check=True)
        known, delta, events = symbols(program), load_offset(program), {}
        found = {name: exits for name, exits in survey(program, "exits_", "stepped", "all").items()
                 if exits[0] and name in known}
        for name, (exits, why) in found.items():
            emulated += "single-stepped" not in why
            for i, at in enumerate([0, *exits]):
                events[f"{name}_{i}"] = f"{program}:{known[name].start - delta + at:#x}"
        with tracing(case) as path:
            counts, printed = hits(path, events, [str(program)])
        rows = {name: (int(starts), int(ends)) for name, starts, ends in map(str.split, printed.splitlines())}
        for name in found.keys() & rows.keys():
            ends = sum(n for event, n in counts.items() if re.fullmatch(name + r"_[1-9]\d*", event))
            expected = rows[name] if rows[name][0] else (counts[f"{name}_0"], counts[f"{name}_0"])
            assert (counts[f"{name}_0"], ends) == expected, (options, name, found[name], counts, expected)
        print(f"  {compiler} {' '.join(options)}: {len(found.keys() & rows.keys())} functions of {len(rows)}")
        assert len(found.keys() & rows.keys()) >= len(rows) - 2, found
    assert emulated, "no exit is emulated"


if __name__ == "__main__":
    sys.exit(main())
