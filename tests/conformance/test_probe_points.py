#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where uprobes are put, over all functions of real libraries, held against a
disassembler that shares nothing with it.

Witness: llvm-objdump's text. Of each function that is probed behind its start: an instruction begins there
that the kernel emulates; nothing before it leaves the block or writes an argument, and of a call nothing
moves the stack pointer or the return address; and no branch of the whole file, .cold parts included, leads
behind the function's start and up to there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

from harness import ROOT, Skip, Tests

SURVEY = ROOT / "build/tests/probe_survey"
# None with tables among its code, which an independent disassembler
# takes for branches, as those of libcrypto.
LIBRARIES = ("libc.so.6", "libstdc++.so.6", "libsqlite3.so.0", "libpython3.11.so.1.0")
FOLDERS = {"x86": ("/usr/lib/x86_64-linux-gnu",),
           "arm64": ("/usr/aarch64-linux-gnu/lib", "/usr/lib/aarch64-linux-gnu",
                     str(ROOT / "build/arm64/sysroot/usr/lib/aarch64-linux-gnu"))}
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)(?:\s+(.*))?$")
TARGET = re.compile(r"(0x[0-9a-f]+)(?: <.*>)?$")


class Function(NamedTuple):
    """A line of the survey; points and classes: of a call, of an entry."""

    name: str
    start: int
    size: int
    points: tuple[int, int]
    classes: tuple[str, str]


class Code:
    """The instructions of a file."""

    def __init__(self, path: Path) -> None:
        text = subprocess.run(["llvm-objdump", "-d", "--no-show-raw-insn", str(path)],
                              capture_output=True, check=True, text=True).stdout
        self.at: list[int] = []
        self.what: list[tuple[str, str]] = []
        targets = []
        for line in text.splitlines():
            m = LINE.match(line)
            if not m:
                continue
            mnemonic, operands = m[2], (m[3] or "").split("//")[0].split(" # ")[0].strip()
            self.at.append(int(m[1], 16))
            self.what.append((mnemonic, operands))
            target = TARGET.search(operands) if is_jump(mnemonic) else None
            if target:
                targets.append(int(target[1], 16))
        self.targets = sorted(targets)

    def between(self, start: int, end: int) -> list[tuple[str, str]]:
        """The instructions from `start` on before `end`."""
        return self.what[bisect_left(self.at, start):bisect_left(self.at, end)]

    def led_to(self, start: int, end: int) -> bool:
        """Does a branch lead behind `start`, up to `end`?"""
        return bisect_right(self.targets, start) < bisect_right(self.targets, end)


def is_jump(mnemonic: str) -> bool:
    """Of either processor, calls left out."""
    return mnemonic[0] == "j" or mnemonic.startswith(("loop", "b.", "cb", "tb")) or mnemonic == "b"


def survey(path: Path) -> list[Function]:
    """What the program under test does."""
    text = subprocess.run([str(SURVEY), str(path)], capture_output=True, check=True, text=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    return [Function(r[0], int(r[1]), int(r[2]), (int(r[3]), int(r[5])), (r[4], r[6])) for r in rows]


class X86:
    """AT&T syntax: the last operand is written."""

    ARGUMENTS = re.compile(r"%(?:[re]?(?:di|si|dx|cx)|[dc][lh]|dil|sil|r[89][dwb]?)$")
    READS_ALONE = ("cmp", "test", "push", "ucomi", "comi", "bt", "nop", "endbr", "vucomi", "vcomi", "ptest", "vptest",
                   "prefetch")

    @staticmethod
    def emulated(mnemonic: str, operands: str) -> bool:
        """As the list of arch/x86/kernel/uprobes.c."""
        if mnemonic.startswith("push"):
            return bool(re.match(r"%r", operands))
        if operands.startswith("*"):
            return False
        return mnemonic in ("nop", "nopl", "callq", "call", "jmp", "jmpq") or \
            (mnemonic[0] == "j" and not mnemonic.startswith(("jrcxz", "jecxz", "jcxz")))

    @staticmethod
    def leaves(mnemonic: str) -> bool:
        """Is it not followed by the next instruction?"""
        return mnemonic.startswith(("j", "call", "ret", "loop", "syscall", "int", "ud2", "hlt", "leave", "iret"))

    @classmethod
    def writes(cls, mnemonic: str, operands: str) -> str:
        """The register that it writes, "" if it names none."""
        if mnemonic.startswith(cls.READS_ALONE):
            return ""
        return re.split(r",\s*(?![^(]*\))", operands)[-1] if operands else ""

    @classmethod
    def is_argument(cls, register: str) -> bool:
        """Of the first six."""
        return bool(cls.ARGUMENTS.match(register))

    @classmethod
    def breaks_return(cls, mnemonic: str, operands: str) -> bool:
        """Does the stack pointer lead elsewhere afterwards?"""
        return mnemonic.startswith(("push", "pop", "enter")) or cls.writes(mnemonic, operands) in ("%rsp", "%esp")


class Arm64:
    """The first operand is written, of pairs the first two."""

    STORES = ("st", "cmp", "cmn", "tst", "ccmp", "fcmp", "nop", "bti", "prfm")

    @staticmethod
    def emulated(mnemonic: str, _operands: str) -> bool:
        """As arch/arm64/kernel/probes/decode-insn.c simulates it; the nop since 6.12."""
        return mnemonic in ("adr", "adrp", "b", "bl", "br", "blr", "ret", "cbz", "cbnz", "tbz", "tbnz", "nop") or \
            mnemonic.startswith("b.")

    @staticmethod
    def leaves(mnemonic: str) -> bool:
        """Is it not followed by the next instruction?"""
        return mnemonic in ("b", "bl", "br", "blr", "ret", "svc", "brk", "hlt", "udf", "cbz", "cbnz", "tbz",
                            "tbnz") or \
            mnemonic.startswith(("b.", "bra", "blra", "reta", "eret"))

    @classmethod
    def written(cls, mnemonic: str, operands: str) -> list[str]:
        """Registers."""
        if mnemonic.startswith(cls.STORES):
            return []
        return [r.strip() for r in operands.split(",")[:2 if mnemonic.startswith("ldp") else 1]]

    @classmethod
    def writes(cls, mnemonic: str, operands: str) -> str:
        """An argument that it writes, else another register."""
        registers = cls.written(mnemonic, operands)
        base = re.search(r"\[(\w+)(?:, #-?\w+\]!|\],)", operands)
        registers += [base[1]] if base else []
        return next((r for r in registers if cls.is_argument(r)), registers[0] if registers else "")

    @staticmethod
    def is_argument(register: str) -> bool:
        """Of the first eight."""
        return bool(re.match(r"[xw][0-7]$", register))

    @classmethod
    def breaks_return(cls, mnemonic: str, operands: str) -> bool:
        """Does the stack pointer or the link register lead elsewhere, or is it saved?"""
        return "sp" in operands.split(",")[0] or "x30" in cls.written(mnemonic, operands) or "]!" in operands or \
            mnemonic.startswith(("pac", "aut")) or ("x30" in operands and mnemonic.startswith("st"))


def fault(code: Code, machine: type, f: Function, which: int) -> str:
    """What is wrong with the point of function F, "" if nothing."""
    point = f.points[which]
    before, at = code.between(f.start, f.start + point), code.between(f.start + point, f.start + point + 1)
    if not at or f.start + point not in code.at[bisect_left(code.at, f.start + point):][:1]:
        return "no instruction begins there"
    if not machine.emulated(*at[0]):
        return f"{' '.join(at[0])} is not emulated"
    for mnemonic, operands in before:
        if machine.leaves(mnemonic):
            return f"{mnemonic} {operands} leaves the block"
        if machine.is_argument(machine.writes(mnemonic, operands)):
            return f"{mnemonic} {operands} writes an argument"
        if not which and machine.breaks_return(mnemonic, operands):
            return f"{mnemonic} {operands} moves the stack or the return address"
    if code.led_to(f.start, f.start + point):
        return "a branch leads there"
    return ""


def library(path: Path, machine: type) -> None:
    """All functions of one library."""
    code, functions = Code(path), survey(path)
    moved, wrong = [0, 0], []
    for f in functions:
        for which in range(2):
            if f.points[which]:
                moved[which] += 1
                why = fault(code, machine, f, which)
                if why:
                    wrong.append(f"{f.name}+{f.points[which]} ({('call', 'entry')[which]}): {why}")
    assert not wrong, f"{len(wrong)} of {sum(moved)} points: " + "; ".join(wrong[:8])
    assert moved[1] >= moved[0] > 0, f"moved: {moved}"
    share = [100 * sum(f.classes[which] == "stepped" for f in functions) / len(functions) for which in range(2)]
    print(f"  {path}: {len(functions)} functions, moved {moved[0]} as calls, {moved[1]} as entries; "
          f"single-stepped {share[0]:.1f} and {share[1]:.1f} %")


SUBMITS = """
#include <stdexcept>
extern "C" int submits(void);
extern "C" int halSqTaskSend(unsigned, void *)
{
#ifdef TRIES
	for (;;) {
		try {
			return submits() + 1;
		} catch (const std::runtime_error &) {
		}
	}
#else
	return submits() + 1;
#endif
}
"""


def doctor(where: Path, *options: str) -> tuple[int, str]:
    """Where the C++ function is probed, and why there."""
    library_path = where / "libascend_hal.so"
    (where / "submits.cc").write_text(SUBMITS)
    subprocess.run(["g++", "-O2", "-fPIC", "-shared", *options, str(where / "submits.cc"), "-o", str(library_path)],
                   check=True)
    rows = subprocess.run([str(ROOT / "build/npuscope"), "doctor", "--probes", str(library_path)], capture_output=True,
                          check=True, text=True).stdout.splitlines()
    assert len(rows) == 2 and rows[1].startswith("halSqTaskSend\t"), rows
    columns = rows[1].split("\t")
    return int(columns[4]), columns[6]


def exceptions() -> None:
    """A function that tries again after an exception is not probed where it goes on."""
    if not shutil.which("g++"):
        raise Skip("g++ is not installed: sh tools/setup.sh")
    with tempfile.TemporaryDirectory() as where:
        once, _ = doctor(Path(where))
        again, why = doctor(Path(where), "-DTRIES")
    assert once > 0, "the function that tries once is probed at its start: this test tests nothing"
    assert not again and "lead" in why, (again, why)


def main() -> int:
    """Arguments choose libraries, and the exceptions."""
    tests = Tests()
    if len(sys.argv) == 1 or any(word in "exceptions_of_g++" for word in sys.argv[1:]):
        tests.run("exceptions_of_g++", exceptions)
    for processor, machine in (("x86", X86), ("arm64", Arm64)):
        for name in LIBRARIES:
            title = f"points_of_{name}_{processor}"
            if len(sys.argv) > 1 and not any(word in title for word in sys.argv[1:]):
                continue
            found = [Path(folder) / name for folder in FOLDERS[processor] if (Path(folder) / name).exists()]

            def run(found: list[Path] = found, machine: type = machine) -> None:
                if not SURVEY.exists():
                    raise Skip("build/tests/probe_survey is not built: make witnesses")
                if not shutil.which("llvm-objdump"):
                    raise Skip("llvm-objdump is not installed: sh tools/setup.sh")
                if not found:
                    raise Skip("no such library is installed")
                library(found[0], machine)

            tests.run(title, run, quiet_skip=not found)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
