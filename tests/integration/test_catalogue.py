#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every function of the probe catalogue, called from C with known arguments, arrives with these arguments.

Witness: tests/abi/cann.txt, the functions' signatures written down without the catalogue. From it come
libraries with CANN's names, in the old and in the new layout, and a job that calls everything once; what
arrives is held against what the job passed, and what the catalogue calls an argument against what the
signature calls it."""

from __future__ import annotations

import os
import platform
import re
import struct
import sys
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

from harness import (PARTIAL, DONE, ROOT, Case, Session, add_test, build_library, catalogue, environment, main, need,
                     need_program, need_root, test, torch_symbols)
from records import API, CQE, MARK, Event

ABI = ROOT / "tests" / "abi" / "cann.txt"
SUBMISSION = "halSqTaskSend"  # becomes records of another kind, which test_truth looks at
COMPLETION = "halCqReportRecv"  # the same, which completion_records looks at
# the others test_shapes
OTHER_RECORDS = {SUBMISSION, COMPLETION, "aclCreateTensor", "aclCreateTensorList", "UnInitHugeMemThreadLocal"}
LEAVING_SECONDS = 240  # that hundreds of probes without links may take to leave
BUFFER = 512  # bytes of a struct that is passed


class Member(NamedTuple):
    """Of a struct behind a pointer."""

    offset: int
    kind: str
    meaning: str
    written: bool


class Parameter(NamedTuple):
    """kind: as in cann.txt, "in" for a struct."""

    kind: str
    meaning: str
    members: tuple[Member, ...]


class Function(NamedTuple):
    """A line of cann.txt."""

    number: int
    symbol: str
    libraries: tuple[str, str]  # old layout, new layout
    result: Parameter
    parameters: tuple[Parameter, ...]


def parameter(text: str) -> Parameter:
    """type[:meaning] or {members}."""
    text = text.strip()
    if not text.endswith("}"):
        kind, _, meaning = text.partition(":")
        return Parameter(kind, meaning, ())
    members = []
    for part in filter(None, text.lstrip(">")[1:-1].split(";")):
        offset, _, rest = part.strip().partition("=")
        kind, _, meaning = rest.partition(":")
        members.append(Member(int(offset), kind, meaning, text.startswith(">")))
    return Parameter("in", "", tuple(members))


def functions() -> list[Function]:
    """All of cann.txt."""
    found = []
    for line in ABI.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        symbol, old, new, result, rest = (field.strip() for field in line.split("|"))
        parameters = tuple(parameter(text) for text in rest.split(",")) if rest else ()
        found.append(Function(len(found), symbol, (old, new), parameter(result), parameters))
    return found


# ---- what is passed, and what comes back -------------------------------------------------------------------

def passed(f: Function, at: int, offset: int = 0) -> int:
    """A number that no other argument has."""
    p = f.parameters[at]
    if p.kind in ("i32", "u32"):
        return 3 if p.meaning == "device" else 0x100000 + f.number * 64 + at
    return 0x7A0000000000 + f.number * 0x100000 + at * 0x1000 + offset


def text_of(f: Function, at: int, offset: int = 0) -> str:
    return f"text {f.number} {at} {offset}"


def returned(f: Function, at: int, offset: int = 0) -> int:
    """What the function writes through a pointer, or gives back (at -1)."""
    return passed(f, at, offset) + 0x5000000 if at >= 0 else 0x6B0000000000 + f.number * 0x1000


TYPES = {"i32": "int", "u32": "unsigned", "u64": "unsigned long", "str": "const char *", "*u64": "unsigned long *",
         "*u32": "unsigned *", "*str": "char *", "dim3": "struct dim3", "in": "void *", "void": "void"}


def prototype(f: Function) -> str:
    arguments = ", ".join(f"{TYPES[p.kind]} a{i}" for i, p in enumerate(f.parameters)) or "void"
    return f"{TYPES[f.result.kind]} f{f.number}({arguments})"


def definition(f: Function) -> str:
    """The function of a library: writes what it has to, and keeps out of the optimiser's way."""
    lines = [f"{prototype(f)} __asm__(\"{f.symbol}\");", f"{prototype(f)}", "{", "\tsink++;"]
    for i, p in enumerate(f.parameters):
        if p.kind in ("*u64", "*u32"):
            lines.append(f"\tif (a{i}) *a{i} = ({TYPES[p.kind][:-2]}){returned(f, i)}UL;")
        elif p.kind == "*str":
            lines.append(f"\tif (a{i}) strcpy(a{i}, \"{text_of(f, i)}\");")
        for m in p.members:
            if m.written:
                lines.append(f"\t*({TYPES[m.kind]} *)((char *)a{i} + {m.offset}) = "
                             f"({TYPES[m.kind]}){returned(f, i, m.offset)}UL;")
    if f.result.kind != "void":
        lines.append(f"\treturn {returned(f, -1) if f.result.kind == 'u64' else 0};")
    return "\n".join([*lines, "}", ""])


def call(f: Function) -> str:
    """A block that calls it."""
    before, arguments = [], []
    for i, p in enumerate(f.parameters):
        if p.kind == "str":
            arguments.append(f"\"{text_of(f, i)}\"")
        elif p.kind == "dim3":
            before.append(f"struct dim3 v{i} = {{ {passed(f, i) & 0xffffffff}u, 2, 3 }};")
            arguments.append(f"v{i}")
        elif p.kind in ("*u64", "*u32", "*str", "in"):
            before.append(f"static unsigned long v{i}[{BUFFER // 8}];")
            arguments.append(f"(void *)v{i}")
            for m in p.members:
                at = f"((char *)v{i} + {m.offset})"
                if m.written:
                    continue
                if m.kind == "text":
                    before.append(f"strcpy({at}, \"{text_of(f, i, m.offset)}\");")
                elif m.kind == "str":
                    before.append(f"*(const char **){at} = \"{text_of(f, i, m.offset)}\";")
                else:
                    before.append(f"*({TYPES[m.kind]} *){at} = ({TYPES[m.kind]}){passed(f, i, m.offset)}UL;")
        else:
            arguments.append(f"({TYPES[p.kind]}){passed(f, i)}UL")
    return "\t{ " + " ".join(before) + f" f{f.number}({', '.join(arguments)}); }}\n"


HEAD = "#include <stdio.h>\n#include <string.h>\nstruct dim3 { unsigned x, y, z; };\n"


def build(case: Case, layout: int) -> tuple[Path, Path]:
    """(job, directory of the libraries)."""
    compiler = need_program("gcc", "gcc")
    everything, where = functions(), case.path("lib")
    where.mkdir()
    sonames = sorted({f.libraries[layout] for f in everything})
    for soname in sonames:
        source = case.path(soname + ".c")
        source.write_text(HEAD + "static volatile int sink;\n" +
                          "".join(definition(f) for f in everything if f.libraries[layout] == soname))
        case.run([compiler, "-O1", "-w", "-fPIC", "-shared", f"-Wl,-soname,{soname}", source, "-o",
                  where / soname]).expect(0)
    source = case.path("job.c")
    source.write_text(HEAD + "".join(f"{prototype(f)} __asm__(\"{f.symbol}\");\n" for f in everything) +
                      "int main(void)\n{\n\tputs(\"ready\");\n\tfflush(stdout);\n\tgetchar();\n" +
                      "".join(call(f) for f in everything if f.symbol not in (SUBMISSION, COMPLETION))
                      + "\treturn 0;\n}\n")
    job = case.path("job")
    case.run([compiler, "-O1", "-w", source, "-o", job, *(where / s for s in sonames)]).expect(0)
    return job, where


# ---- what arrives ------------------------------------------------------------------------------------------

class Slot(NamedTuple):
    """The catalogue's row of an argument."""

    meaning: str
    argument: int  # 0: the result
    offset: Optional[int]


def rows(case: Case) -> dict[str, tuple[str, tuple[Slot, ...]]]:
    """symbol -> (how, slots), from `npuscope doctor --probes`."""
    table = case.npuscope("doctor", "--probes").expect(0).out.splitlines()
    found = {}
    for line in table[1:]:
        symbol, _libraries, _layer, _level, how, arguments = line.split("\t")
        if "*" in symbol or symbol in torch_symbols():
            continue  # many functions, see operators_one_by_one; PyTorch's, see test_torch_counts.py
        slots = []
        for text in filter(None, arguments.split(", ")):
            match = re.fullmatch(r"(.+)@(?:result|(\d+)(?:\.(\d+))?)", text)
            assert match, text
            slots.append(Slot(match[1], int(match[2] or 0), int(match[3]) if match[3] else None))
        found[symbol] = how, tuple(slots)
    return found


def at_register(f: Function, argument: int) -> int:
    """Index of the parameter that is argument number ARGUMENT: a dim3 takes two."""
    number = 1
    for i, p in enumerate(f.parameters):
        if number == argument:
            return i
        number += 2 if p.kind == "dim3" else 1
    raise AssertionError(f"{f.symbol} has no argument {argument}")


def expected(f: Function, slot: Slot) -> tuple[str, object]:
    """(meaning by the signature, the value: a number or a text)."""
    if not slot.argument:
        return f.result.meaning, returned(f, -1)
    i = at_register(f, slot.argument)
    p = f.parameters[i]
    members = {m.offset: m for m in p.members}
    if p.kind == "in":
        m = members.get(slot.offset or 0)
        assert m, f"{f.symbol}: nothing is known at byte {slot.offset} of argument {slot.argument}"
        if m.written:
            value = returned(f, i, m.offset)
        else:
            value = text_of(f, i, m.offset) if m.kind in ("text", "str") else passed(f, i, m.offset)
        return m.meaning, value & 0xFFFFFFFF if m.kind in ("u32", "i32") else value
    if p.kind in ("str", "*str"):
        return p.meaning, text_of(f, i)
    if p.kind in ("*u64", "*u32"):
        return p.meaning, returned(f, i) & (0xFFFFFFFF if p.kind == "*u32" else -1)
    return p.meaning, passed(f, i) & (0xFFFFFFFF if p.kind in ("dim3", "u32", "i32") else -1)


def differences(f: Function, slots: tuple[Slot, ...], event: Event, strings: dict[int, str]) -> Iterator[str]:
    """What is wrong with the record of a call."""
    wanted = returned(f, -1) if f.result.kind == "u64" else 0
    if event.kind == API and f.result.kind != "void" and \
            event.ret != struct.unpack("<i", struct.pack("<I", wanted & 0xFFFFFFFF))[0]:
        yield f"result {event.ret}"
    if event.flags:
        yield f"flags {event.flags:#x}"
    for slot, arrived in zip(slots, event.body.slot):
        meaning, value = expected(f, slot)
        found: object = strings.get(arrived) if isinstance(value, str) else arrived
        if isinstance(value, int) and value <= 0xFFFFFFFF:
            found = arrived & 0xFFFFFFFF
        if found != value:
            yield f"{slot.meaning}@{slot.argument}: {found!r} arrived, {value!r} was passed"
        if meaning != slot.meaning and "argument" not in (meaning or "argument", slot.meaning):
            yield f"argument {slot.argument} is a {meaning}, the catalogue says {slot.meaning}"
    if any(event.body.slot[len(slots):]):
        yield f"more than the row has: {event.body}"


def every_call(case: Case, layout: int, forbid: str = "") -> None:
    """All functions of a layout, at the level where every row is attached; FORBID:
    what the collector takes for missing."""
    need_root()
    job_path, libraries = build(case, layout)
    table, everything, ids = rows(case), functions(), catalogue()
    assert set(table) == {f.symbol for f in everything}, set(table) ^ {f.symbol for f in everything}
    job = case.start([job_path], env=environment(libs=[libraries]))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--level", 2, "--record-shapes",
                      env={**os.environ, "NPUSCOPE_FORBID": forbid})
    job.send("")
    assert job.wait() == 0
    session: Session = run.result(LEAVING_SECONDS).expect(DONE, PARTIAL).session
    assert not session.dropped()
    # The programs of old kernels know nothing of tensors and completions.
    untold = OTHER_RECORDS - {SUBMISSION} if forbid == "ringbuf" else set()
    assert {p["symbol"] for p in session.json["probes"]} == set(table) - untold
    strings, events = session.strings, {}
    for event in session.of(API, job.pid) + session.of(MARK, job.pid):
        events.setdefault(event.probe, []).append(event)
    wrong = []
    for f in everything:
        how, slots = table[f.symbol]
        if f.symbol in OTHER_RECORDS:
            continue
        records = events.get(ids[f.symbol][0], [])
        if len(records) != 1 or records[0].kind != (MARK if how == "entry" else API):
            wrong.append(f"{f.symbol}: {len(records)} records")
            continue
        wrong += [f"{f.symbol}: {what}" for what in differences(f, slots, records[0], strings)]
    print("\n".join(wrong))
    assert not wrong, f"{len(wrong)} differences, the first: {wrong[0]}"


RECEIVER = """
struct info { unsigned type, ts, cq; int timeout; unsigned char *cqes; unsigned room, n, stream, task, res[8]; };
int halCqReportRecv(unsigned device, struct info *info);
#ifdef DRIVER
static volatile int sink;
int halCqReportRecv(unsigned device, struct info *info)
{
	sink++;
	if (info->timeout < 0)
		return 16;
	info->n = info->timeout;
	for (unsigned i = 0; i < info->n && i < info->room && (long)info->cqes > 4096; i++)
		for (unsigned at = 0; at < 32; at++)
			info->cqes[i * 32 + at] = device + i * 5 + at;
	return 0;
}
#else
#include <stdio.h>
static unsigned char room[64 * 32];
static void call(unsigned device, unsigned type, int n, unsigned char *cqes)
{
	struct info info = { .type = type, .cq = 3, .timeout = n, .cqes = cqes,
			     .room = 64, .n = 7, .stream = 5, .task = 6 };

	halCqReportRecv(device, &info);
}
int main(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
	call(1, 2, 3, room);
	call(2, 2, 0, room);
	call(3, 5, 3, room); /* of debuggers */
	call(4, 2, -1, room); /* fails, and leaves a number */
	call(5, 2, 32, room);
	call(6, 2, 2, (unsigned char *)16);
	call(7, 2, 40, room);
	return 0;
}
#endif
"""


def completion_records(case: Case, forbid: str) -> None:
    """Each record of a call that succeeded arrives whole, with its index
    in the call; of other calls none does."""
    need_root()
    compiler = need_program("gcc", "gcc")
    source, library, program = case.path("receiver.c"), case.path("libascend_hal.so"), case.path("job")
    source.write_text(RECEIVER)
    case.run([compiler, "-O1", "-w", "-DDRIVER", "-fPIC", "-shared", "-Wl,-soname,libascend_hal.so", source, "-o",
              library]).expect(0)
    case.run([compiler, "-O1", "-w", source, "-o", program, library]).expect(0)
    job = case.start([program], env=environment(libs=[library.parent]))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", env={**os.environ, "NPUSCOPE_FORBID": forbid})
    job.send("")
    assert job.wait() == 0
    session = run.result(LEAVING_SECONDS).expect(DONE, PARTIAL).session
    records = sorted(session.of(CQE), key=lambda e: (e.start, e.body.index))
    found = [((e.body.device, e.body.index, e.body.count), e.body.head, e.ret, e.flags) for e in records]
    wanted = []
    for device, n in ((1, 3), (5, 32), (6, 2), (7, 40)):
        for i in range(min(n, 32)):
            record = bytes(24) if device == 6 else bytes((device + i * 5 + at) & 0xff for at in range(24))
            wanted.append(((device, i, n), record, 0, 2 if device == 6 else 16 if n > 32 else 0))
    assert found == wanted, [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]
    number = catalogue()[COMPLETION][0]
    assert all(e.probe == number and e.pid == job.pid and e.dur < 10**9 for e in records)
    assert session.json["drops"]["ring"]["cqe"] == 8, session.json["drops"]
    probes = {p["symbol"]: p["hits"] for p in session.json["probes"]}
    assert probes == {COMPLETION: len(wanted)}, probes
    assert not session.of(API)


for missing in ("", "task_storage", "uprobe_multi"):
    add_test(f"completion_records_without_{missing or 'nothing'}", lambda case,
             missing=missing: completion_records(case, missing))

OPERATORS = 3000
LIBRARY = """
#include <stddef.h>
static volatile int sink;
#define OPERATOR(n) \
	int aclnnOp##n##GetWorkspaceSize(size_t *size, void **executor) { sink++; *size = n; return 0; } \
	int aclnnOp##n(void *space, size_t size, void *executor, void *stream) { sink += 2; return 0; }
int aclnnInit(const char *config) { sink += 3; return 0; }
"""
JOB = """
#include <dlfcn.h>
#include <stdio.h>
typedef int (*phase2)(void *, unsigned long, void *, void *);
int main(int argc, char **argv)
{
	char name[64];

	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL))
			return 1;
	puts("ready");
	fflush(stdout);
	getchar();
	for (unsigned long i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "aclnnOp%lu", i);
		((phase2)dlsym(RTLD_DEFAULT, name))((void *)1, i + 7, (void *)(0x1000 + i), (void *)0x99);
	}
	return 0;
}
"""


def operator_job(case: Case) -> tuple[Path, Path]:
    """(job that calls thousands of operators, their library)."""
    compiler = need_program("gcc", "gcc")
    case.path("lib.c").write_text(LIBRARY + "".join(f"OPERATOR({i})\n" for i in range(OPERATORS)))
    case.path("job.c").write_text(JOB)
    library, job = case.path("libopapi_math.so"), case.path("job")
    case.run([compiler, "-O1", "-w", "-fPIC", "-shared", case.path("lib.c"), "-o", library]).expect(0)
    case.run([compiler, "-O1", "-w", case.path("job.c"), "-o", job, "-ldl"]).expect(0)
    return job, library


@test
def operators_one_by_one(case: Case) -> None:
    """Without common functions in libnnopbase.so each operator's
    second phase is probed, under its own name."""
    need_root()
    program, library = operator_job(case)
    case.path("base.c").write_text("int aclnnBase(void) { return 1; }\n")
    base = case.path("libnnopbase.so")
    case.run([need_program("gcc", "gcc"), "-fPIC", "-shared", case.path("base.c"), "-o", base]).expect(0)
    job = case.start([program, library, base])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("")
    assert job.wait() == 0
    session = run.result().expect(DONE, PARTIAL).session
    strings = session.strings
    found = [(strings.get(e.body.slot[0]), *e.body.slot[1:]) for e in session.of(MARK, job.pid)]
    assert found == [(f"aclnnOp{i}", 0x1000 + i, 0x99, i + 7) for i in range(OPERATORS)], found[:3]
    hits = {p["operator"]: p["hits"] for p in session.json["probes"] if "operator" in p}
    assert hits == {f"aclnnOp{i}": 1 for i in range(OPERATORS)}, "hits of each operator"
    assert not session.dropped()


@test
def operators_through_common_functions(case: Case) -> None:
    """With them there is no probe on any operator."""
    need_root()
    program, library = operator_job(case)
    common = build_library(case, "nnopbase_lib.cc", "libnnopbase.so", case.path("lib"))
    job = case.start([program, library, common])
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("")
    assert job.wait() == 0
    session = run.result().expect(DONE, PARTIAL).session
    assert {Path(p["library"]).name for p in session.json["probes"]} == {"libnnopbase.so"}


@test
def one_function_that_cannot_be_probed(case: Case) -> None:
    """The kernel refuses a probe on an instruction with a lock prefix: the others
    of the library are probed all the same."""
    need_root()
    need(platform.machine() == "x86_64", "x86-64: lock prefixes")
    compiler = need_program("gcc", "gcc")
    case.path("lib.c").write_text("int n; __asm__(\".globl aclInit\\n.type aclInit,@function\\naclInit: lock incl"
                                  " n@GOTPCREL(%rip)\\n ret\\n.size aclInit,.-aclInit\");\n"
                                  "int aclrtSynchronizeDevice(void) { return n++; }\n")
    case.path("job.c").write_text("#include <stdio.h>\nint aclrtSynchronizeDevice(void);\nint main(void) { "
                                  "puts(\"ready\"); fflush(stdout); getchar(); "
                                  "for (int i = 0; i < 9; i++) aclrtSynchronizeDevice(); }\n")
    library, job_path = case.path("libacl_rt.so"), case.path("job")
    case.run([compiler, "-O1", "-w", "-fPIC", "-shared", case.path("lib.c"), "-o", library]).expect(0)
    case.run([compiler, "-O1", "-w", case.path("job.c"), "-o", job_path, library]).expect(0)
    job = case.start([job_path], env=environment(libs=[library.parent]))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none")
    job.send("")
    job.wait()
    result = run.result().expect(PARTIAL)
    assert any("cannot probe aclInit of" in line for line in result.complaints), result.err
    assert len(result.session.of(API, job.pid)) == 9


for number, layout_name in enumerate(("old", "new")):
    add_test(f"every_call_of_the_{layout_name}_layout", lambda case, number=number: every_call(case, number))

# What older kernels lack: threads' storage; ring buffers, and then the programs are others, each probe is an
# event of its own, and has no cookie.
for missing in ("task_storage", "ringbuf"):
    add_test(f"every_call_without_{missing}", lambda case, missing=missing: every_call(case, 1, missing),
             seconds=LEAVING_SECONDS + 60)


def what_a_level_attaches(case: Case, level: str, below: tuple[str, ...]) -> None:
    """What is attached is what the table lists, and nothing of higher levels."""
    need_root()
    job_path, libraries = build(case, 1)
    table = case.npuscope("doctor", "--probes").expect(0).out.splitlines()[1:]
    wanted = {line.split("\t")[0] for line in table if line.split("\t")[3] in below and "*" not in line}
    job = case.start([job_path], env=environment(libs=[libraries]))
    job.wait_for("^ready")
    run = case.record("-p", job.pid, "-o", case.dir, "--export", "none", "--level", level)
    job.send("")
    assert job.wait() == 0
    session = run.result().expect(DONE, PARTIAL).session
    assert {p["symbol"] for p in session.json["probes"]} == wanted
    assert 5 < len(wanted) < len(table)


LEVELS = ("none", "0", "1", "2")
for at, level_name in enumerate(LEVELS[:3]):
    add_test(f"level_{level_name}", lambda case, at=at: what_a_level_attaches(case, LEVELS[at], LEVELS[:at + 1]))


if __name__ == "__main__":
    sys.exit(main())
