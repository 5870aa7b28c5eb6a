#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Import generated data of the PyTorch profiler and hold every row against the generator's truth file.

The importer is run through tests/torch_dump.c, which is built here. NPS_TORCH_DUMP names a program to use
instead, NPS_BUILD another build directory.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Callable, Iterable, Optional

from harness import ROOT, SOAK, Tests, dump_program as compiled_dump, raw_data_program

Row = dict
Tables = dict[str, list[Row]]

AUX = ROOT / "tests" / "cannraw_aux"
BUILD = Path(os.environ.get("NPS_BUILD", ROOT / "build"))
OP, QUEUE, PYTHON, MSTX = 50001, 50002, 50003, 50004
FULL = "--task-queue --memory --python-stacks --gc --mstx"

CASES = ["", "--task-queue", FULL, "--threads 1 --memory", "--threads 1 --task-queue --memory --mstx",
         "--syscnt off --python-stacks --memory", "--mhz 24 --memory --gc", "--mhz 38.4 --gc --python-stacks --memory",
         "--mhz 999.5 --task-queue --steps 7 --ops 3000 --memory --python-stacks --mstx",
         f"--nasty {FULL}", "--nasty --threads 1 --syscnt off", "--ops 1 --steps 1",
         "--ops 5 --steps 5 --task-queue --mstx --memory", f"--ops {120000 if SOAK else 15000} --steps 20 {FULL}"]
TASKS = ["--tasks 2000", "--tasks 500 --host-counter none", "--tasks 2000 --host-counter 38.4"]
OVER = [f"{FULL} --steps 3", "--memory --gc", "--syscnt off --nasty"]

FILES = {"torch.op_range", "torch.op_mark", "torch.memory_usage", "torch.python_tracer_hash",
         "torch.python_tracer_func", "torch.gc_record"}
TYPED = FILES - {"torch.python_tracer_func", "torch.gc_record"}


# --- programs -----------------------------------------------------------------------------------------------

@functools.cache
def dump_program() -> Path:
    if "NPS_TORCH_DUMP" in os.environ:
        return Path(os.environ["NPS_TORCH_DUMP"])
    return compiled_dump("torch_dump", BUILD, SCRATCH)


@functools.cache
def task_program() -> Path:
    return raw_data_program(ROOT / "build", SCRATCH)


def generate(where: Path, options: str, *more: object) -> tuple[Path, Tables]:
    command = [sys.executable, str(AUX / "framework.py"), str(where / "pt"), *options.split(), *map(str, more),
               "--truth", str(where / "truth")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1]), tables_of((where / "truth").read_text().splitlines(), "k")


def tables_of(lines: Iterable[str], key: str) -> Tables:
    out: Tables = defaultdict(list)
    for text in lines:
        row = json.loads(text)
        out[row[key]].append(row)
    return out


def dump(result: Path, *options: str) -> Tables:
    done = subprocess.run([str(dump_program()), *options, str(result)], capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr.decode(errors='replace')[:3000]}"
    return tables_of(done.stdout.decode("utf-8").split("\n")[:-1], "table")


# --- comparison ---------------------------------------------------------------------------------------------

def same(what: str, got: object, stated: object) -> None:
    if isinstance(got, list) and isinstance(stated, list):
        assert len(got) == len(stated), f"{what}: {len(got)} rows, the truth has {len(stated)}"
        for number, (one, two) in enumerate(zip(got, stated)):
            assert one == two, f"{what}: row {number}: {one!r:.600}, the truth has {two!r:.600}"
    assert got == stated, f"{what}: {got!r:.600}, the truth has {stated!r:.600}"


def multiset(what: str, got: Iterable[tuple], stated: Iterable[tuple]) -> None:
    one, two = Counter(got), Counter(stated)
    assert one == two, f"{what}: only read {list((one - two).items())[:2]!r:.900}, " \
                       f"only in the truth {list((two - one).items())[:2]!r:.900}"


def clean(text: str) -> str:
    return text.replace("\0", "\ufffd")


def listed(text: str) -> Optional[str]:
    return text.replace(";", ";\r\n") or None


def tid(row: Row) -> int:
    return row["gtid"] & 0xFFFFFFFF


class Comparison:
    """What was read, and what a truth file has."""

    def __init__(self, got: Tables, stated: Tables) -> None:
        self.got, self.stated = got, stated
        self.torch = {kind: [row for row in got["torch"] if row["type"] == kind] for kind in (OP, QUEUE, PYTHON, MSTX)}
        order = [row["type"] for row in got["torch"]]
        sources = [QUEUE, PYTHON, OP, MSTX]
        assert order == sorted(order, key=sources.index), "kinds of rows are mixed"
        self.chains: dict[int, list[str]] = defaultdict(list)
        for row in got["frame"]:
            assert row["depth"] == len(self.chains[row["id"]]), "depths of a stack"
            self.chains[row["id"]].append(row["stack"])

    def all(self, nasty: bool) -> None:
        self.ops()
        self.queue()
        self.links()
        self.frames()
        self.memory()
        self.rest(nasty)

    def ops(self) -> None:
        rows = self.torch[OP]
        keys = [(row["start"], -row["end"]) for row in rows]
        assert keys == sorted(keys), "operators are not by start, outer first"
        multiset("operators",
                 ((row["name"], row["start"], row["end"], row["gtid"], row["sequence"], row["forward_tid"],
                   row["input_shapes"], row["input_types"], tuple(self.chains[row["callchain"]])
                   if row["callchain"] is not None else (), row["modules"], row["extra"]) for row in rows),
                 ((clean(row["name"]), row["start_ns"], row["end_ns"], row["pid"] << 32 | row["tid"], row["sequence"],
                   row["forward"], listed(row["shapes"]), listed(row["dtypes"]), tuple(row["stack"]),
                   ";".join(row["modules"]) or None, row["extra"] or None) for row in self.stated["op"]))
        stacks = [tuple(chain) for chain in self.chains.values()]
        assert len(stacks) == len(set(stacks)), "a stack has two ids"
        same("steps", [(row["id"], row["start"], row["end"]) for row in self.got["step"]],
             [(row["id"], row["start_ns"], row["end_ns"]) for row in self.stated["step"]])
        multiset("user ranges", ((row["name"], row["start"], row["end"], tid(row)) for row in self.torch[MSTX]),
                 ((clean(row["name"]), row["start_ns"], row["end_ns"], row["tid"]) for row in self.stated["mstx"]))

    def queue(self) -> None:
        rows = self.torch[QUEUE]
        keys = [(row["name"].startswith("Dequeue@"), row["start"]) for row in rows]
        assert keys == sorted(keys), "queue rows are not by side and start"
        multiset("queue", ((row["name"], row["correlation"], row["start"], row["end"], tid(row)) for row in rows),
                 ((f"{direction.title()}@{row['name']}", row["correlation"], row["start_ns"], row["end_ns"], row["tid"])
                  for direction in ("enqueue", "dequeue") for row in self.stated[direction]))

    def links(self) -> None:
        """Both ends of the queue, and forward and backward, share a connection."""
        by_id: dict[int, list[int]] = defaultdict(list)
        for row in self.got["link"]:
            by_id[row["id"]].append(row["connection"])
        ends: dict[int, list[Row]] = defaultdict(list)
        for row in self.got["torch"]:
            for connection in by_id[row["connection"]] if row["connection"] is not None else []:
                ends[connection].append(row)
        pairs = [sorted(rows, key=lambda row: row["start"]) for rows in ends.values()]
        assert all(len(rows) == 2 for rows in pairs), "a connection without two ends"
        multiset("pairs of the queue",
                 ((rows[0]["correlation"], rows[0]["name"][:8], rows[1]["name"][:8]) for rows in pairs
                  if rows[0]["type"] == QUEUE and rows[0]["correlation"] == rows[1]["correlation"]),
                 ((row["correlation"], "Enqueue@", "Dequeue@") for row in self.stated["dequeue"]))
        ops, flows = self.stated["op"], [row for row in self.stated["fwdbwd"] if row["flow"]]
        found = {rows[1]["sequence"]: rows for rows in pairs if rows[0]["type"] == OP}
        same("pairs of forward and backward", sorted(found), sorted(row["sequence"] for row in flows))
        for row in flows:       # databases name the outermost operator with the number, traces the innermost
            one, two = found[row["sequence"]]
            forward, backward = ops[row["forward"]], ops[row["backward"]]
            same("backward", (two["start"], two["end"]), (backward["start_ns"], backward["end_ns"]))
            assert one["start"] <= forward["start_ns"] and forward["end_ns"] <= one["end"], "forward is elsewhere"

    def frames(self) -> None:
        rows, stated = self.torch[PYTHON], self.stated["frame"]
        numbers = {row["python_id"]: number for number, row in enumerate(rows)}
        assert len(numbers) == len(rows), "a call's id is not its own"
        same("calls",
             [(row["name"], row["start"], tid(row), numbers[row["python_parent"]]) for row in rows],
             [(row.get("module") or clean(row["name"]), row["start_ns"], row["tid"], row["parent"] or 0)
              for row in stated])
        same("modules", [row["python_module"] for row in rows],
             [int(row["module"].rsplit("_", 1)[1]) if "module" in row else None for row in stated])
        last = max((row["end_ns"] or row["start_ns"] for row in stated), default=0)
        same("ends of calls", [row["end"] for row in rows],
             [last if row["end_ns"] is None else row["end_ns"] for row in stated])

    def memory(self) -> None:
        stated = []
        for row in self.stated["memory_record"]:
            cells = (row["ns"], row["totalAllocated"], row["totalReserved"], row["totalActive"], row["streamPtr"],
                     row["deviceId"])
            stated += [(row["component"], *cells)] + [("PTA+GE", *cells)] * (row["component"] == "PTA")
        keys = ("component", "timestamp", "allocated", "reserved", "active", "stream", "device")
        same("memory_record", [tuple(row[key] for key in keys) for row in self.got["memory_record"]], stated)
        pairs = {"size": "size", "allocation": "allocationTime", "release": "releaseTime",
                 "active_release": "activeReleaseTime", "duration": "duration", "active_duration": "activeDuration",
                 "allocation_allocated": "allocationTotalAllocated", "allocation_reserved": "allocationTotalReserved",
                 "allocation_active": "allocationTotalActive", "release_allocated": "releaseTotalAllocated",
                 "release_reserved": "releaseTotalReserved", "release_active": "releaseTotalActive",
                 "stream": "streamPtr", "device": "deviceId"}
        same("op_memory", [(row["name"], *(row[key] for key in pairs)) for row in self.got["op_memory"]],
             [(clean(row["name"]) if row["op"] is not None else None, *(row[key] for key in pairs.values()))
              for row in self.stated["operator_memory"]])

    def rest(self, nasty: bool) -> None:
        same("garbage collections", [(row["gtid"] >> 32, row["start"], row["end"]) for row in self.got["gc"]],
             [(row["pid"], row["start_ns"], row["end_ns"]) for row in self.stated["gc"]])
        model = self.got["model"][0]
        same("process", (model["pid"], model["rank"], model["level"], model["info"], model["metadata"]),
             (self.stated["op"][0]["pid"], 0, 1, 1, 1))
        times = [(row["start"], row["end"]) for row in self.got["torch"]]
        assert model["start"] <= min(time[0] for time in times), "rows before the capture"
        assert model["end"] >= max(time[1] for time in times), "rows behind the capture"
        there = {"torch.op_range"} | {name for name, kind in (
            ("torch.op_mark", "enqueue"), ("torch.memory_usage", "memory_record"), ("torch.gc_record", "gc"),
            ("torch.python_tracer_hash", "frame"), ("torch.python_tracer_func", "frame")) if self.stated[kind]}
        lost = {f"damaged records of FRAMEWORK/{name}": 1 for name in there}
        lost |= {f"records of unknown type in FRAMEWORK/{name}": 1 for name in there & TYPED}
        same("losses", {row["what"]: row["count"] for row in self.got["lost"]}, lost if nasty else {})


# --- tests --------------------------------------------------------------------------------------------------

def generated(where: Path, options: str) -> None:
    result, stated = generate(where, options)
    Comparison(dump(result, "--links"), stated).all("--nasty" in options)


def over_tasks(where: Path, tasks: str, options: str) -> None:
    """CANN's own clock files are preferred to the profiler's."""
    truth = where / "tasks.truth"
    done = subprocess.run([str(task_program()), *tasks.split(), "--truth", str(truth), str(where)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    prof = Path(done.stdout.splitlines()[-1])
    result, stated = generate(where, options, "--prof", prof, "--prof-truth", truth)
    Comparison(dump(result, "--links"), stated).all("--nasty" in options)


def framework(where: Path, options: str = FULL) -> tuple[Path, Path, Tables]:
    result, stated = generate(where, options)
    return result, result / "FRAMEWORK", stated


def lost(got: Tables) -> int:
    return sum(row["count"] for row in got["lost"])


def file_missing(where: Path) -> None:
    """Each file alone is missing, then is empty: the rest is there."""
    result, folder, _ = framework(where)
    whole = dump(result)
    tables = {"torch.op_range": "step", "torch.memory_usage": "op_memory", "torch.gc_record": "gc"}
    for name in sorted(FILES):
        data = (folder / name).read_bytes()
        for content in (None, b""):
            (folder / name).unlink()
            if content is not None:
                (folder / name).write_bytes(content)
            got = dump(result)
            if name in tables:
                same(f"without {name}", got[tables[name]], [])
            for table in {"step", "gc", "memory_record"} - {tables.get(name)}:
                if table == "memory_record" and name == "torch.memory_usage":
                    continue
                same(f"without {name}: {table}", got[table], whole[table])
            (folder / name).write_bytes(data)


def nothing_there(where: Path) -> None:
    """No FRAMEWORK/, or no profiler_info: no error."""
    result, folder, stated = framework(where)
    for path in result.glob("profiler_*.json"):
        path.unlink()
    got = dump(result)
    same("operators", len([row for row in got["torch"] if row["type"] == OP]), 0)
    assert lost(got), "values without a clock are lost without a word"
    shutil.rmtree(folder)
    got = dump(result)
    same("rows", len(got["torch"]), 0)
    assert stated["op"]


def cut_anywhere(where: Path) -> None:
    """What comes before the cut is there; the loss is reported."""
    result, folder, _ = framework(where, f"--ops 60 {FULL}")
    whole = dump(result)
    chance = random.Random(7)
    for name in sorted(FILES):
        data = (folder / name).read_bytes()
        for size in sorted({1, 5, 6, 7, *(chance.randrange(len(data)) for _ in range(6))}):
            (folder / name).write_bytes(data[:size])
            got = dump(result)
            assert len(got["torch"]) <= len(whole["torch"]), f"{name} cut at {size}: more rows"
        (folder / name).write_bytes(data)


def damaged_in_the_middle(where: Path) -> None:
    """Records behind damage are found again."""
    result, folder, stated = framework(where, "--ops 2000 --threads 1")
    path = folder / "torch.op_range"
    data = path.read_bytes()
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += 6 + struct.unpack_from("<I", data, at + 2)[0]
    offset = starts[len(starts) // 2]
    for what, part in (("zeros", bytes(64)), ("ones", b"\xff" * 64),
                        ("a length of 2^32 - 1", b"\x01\0\xff\xff\xff\xff"),
                        ("a length of 100 MB", b"\x01\0\0\xe1\xf5\x05"), ("a field that is too long", None)):
        if part is None:       # the first field of the record
            field = offset + 6 + 58 + 2
            bad = data[:field] + b"\xff\xff\xff\x7f" + data[field + 4:]
        else:
            bad = data[:offset] + part + data[offset + len(part):]
        path.write_bytes(bad)
        got = dump(result)
        rows = [row for row in got["torch"] if row["type"] == OP]
        count = len(stated["op"])
        assert count - 3 <= len(rows) < count, f"{what}: {len(rows)} of {count} operators"
        assert 1 <= lost(got) <= 3, f"{what}: {got['lost']}"


def op(start: int, end: int, name: bytes, thread: int = 7, fields: bytes = b"") -> bytes:
    body = struct.pack("<qqqQQQQBB", start, end, -1, 9, thread, thread, 0, 0, 0)
    body += struct.pack("<HI", 2, len(name)) + name + fields
    return struct.pack("<HI", 1, len(body)) + body


def mark(when: int, category: int, correlation: int, name: bytes = b"op", thread: int = 7) -> bytes:
    body = struct.pack("<qQQQQ", when, category, correlation, thread, 9) + struct.pack("<HI", 1, len(name)) + name
    return struct.pack("<HI", 2, len(body)) + body


def memory(when: int, kind: int, ptr: int, size: int = 512, device: int = 0, host: int = 20) -> bytes:
    change = size if kind == 0 else -size
    body = struct.pack("<7qbbBBBQQ", ptr, when, change, 1, 2, 3, 4, host, device, 0, kind, 0, 7, 9)
    return struct.pack("<HI", 3, len(body)) + body


def call(when: int, tag: int, key: int, thread: int = 7) -> bytes:
    return struct.pack("<QQQQB", when, thread, 9, key, tag)


BASE = 1_000_000_000_000
MILLION = 1_000_000 if SOAK else 200_000
UNIX = 1_736_408_883_000_000_000


def made(where: Path, **files: bytes) -> Path:
    """A result whose values are ns after BASE, which is UNIX."""
    result = where / "node_9_20250109074803699_ascend_pt"
    shutil.rmtree(result, ignore_errors=True)
    (result / "FRAMEWORK").mkdir(parents=True)
    info = {"start_info": {"syscnt_enable": False, "freq": 100, "start_cnt": 0, "start_monotonic": BASE},
            "end_info": {"collectionTimeEnd": UNIX + 10**9, "MonotonicTimeEnd": BASE + 10**9}}
    (result / "profiler_info_3.json").write_text(json.dumps(info))
    for name, data in files.items():
        (result / "FRAMEWORK" / f"torch.{name}").write_bytes(data)
    return result


def bad_times(where: Path) -> None:
    """Times that are none, or run backwards."""
    good = op(BASE + 10, BASE + 20, b"good")
    bad = [op(-1, BASE, b"x"), op(BASE, -(2**63), b"x"), op(2**63 - 1, 2**63 - 1, b"x"), op(0, 0, b"x"),
           op(BASE + 20, BASE + 10, b"x"), op(2**62, 2**62 + 1, b"x")]
    got = dump(made(where, op_range=good + b"".join(bad) + good))
    same("names", [row["name"] for row in got["torch"]], ["good", "good"])
    same("times", [(row["start"], row["end"]) for row in got["torch"]], [(UNIX + 10, UNIX + 20)] * 2)
    same("lost", lost(got), len(bad))
    same("capture", (got["model"][0]["start"], got["model"][0]["end"]), (UNIX + 10, UNIX + 20))
    same("rank", got["model"][0]["rank"], 3)


def unpaired_marks(where: Path) -> None:
    """Ends without a beginning, beginnings without an end, crossed ones, equal numbers."""
    marks = [mark(BASE + 1, 1, 5), mark(BASE + 2, 0, 6), mark(BASE + 3, 0, 7), mark(BASE + 4, 1, 6),
             mark(BASE + 5, 2, 8), mark(BASE + 6, 3, 8), mark(BASE + 7, 3, 8), mark(BASE + 8, 9, 8),
             mark(BASE + 9, 0, 2**63), mark(BASE + 10, 0, 9), mark(BASE + 11, 1, 9, b"other"),
             mark(BASE + 12, 1, 9, thread=8)]
    random.Random(3).shuffle(marks)
    got = dump(made(where, op_mark=b"".join(marks)), "--links")
    same("rows", [(row["name"], row["start"] - UNIX, row["end"] - UNIX, row["correlation"]) for row in got["torch"]],
         [("Enqueue@op", 2, 4, 6), ("Dequeue@op", 5, 6, 8)])
    same("lost", lost(got), 8)


def python_without_end(where: Path) -> None:
    """Calls that do not return, returns without a call, keys without a name, a recursion 200 000 deep."""
    events = [call(BASE + 1, 0, 1), call(BASE + 2, 2, 2), call(BASE + 3, 0, 3), call(BASE + 4, 3, 2),
              call(BASE + 5, 1, 1), call(BASE + 6, 9, 1), call(BASE + 7, 0, 1), call(BASE + 8, 1, 2),
              call(BASE + 9, 1, 1, 8)]
    names = b"".join(struct.pack("<HIQHI", 4, 15, key, 1, 1) + name for key, name in ((1, b"a"), (2, b"b")))
    got = dump(made(where, python_tracer_func=b"".join(events), python_tracer_hash=names))
    same("calls", [(row["name"], row["start"] - UNIX, row["end"] - UNIX, row["python_id"], row["python_parent"])
                   for row in got["torch"]],
         [("a", 1, 5, 0, 0), ("b", 2, 4, 1, 0), (None, 3, 4, 2, 1), ("a", 7, 9, 5, None)])
    same("lost", lost(got), 4)
    deep = b"".join(call(BASE + i, 0, 1) for i in range(200_000)) + b"".join(
        call(BASE + 200_000 + i, 1, 2 if i % 2 else 1) for i in range(20_000))
    got = dump(made(where, python_tracer_func=deep, python_tracer_hash=names))
    same("calls", len(got["torch"]), 200_000)
    same("calls that are open", sum(row["end"] == UNIX + 219_999 for row in got["torch"]), 180_001)


def returns_without_names(where: Path) -> None:
    """A return that names no function that was called is that of the innermost call of its language."""
    events = [call(BASE + 1, 0, 1), call(BASE + 2, 0, 2), call(BASE + 3, 2, 3), call(BASE + 4, 3, 0),
              call(BASE + 5, 2, 3), call(BASE + 6, 1, 0), call(BASE + 7, 1, 0), call(BASE + 8, 1, 0)]
    names = b"".join(struct.pack("<HIQHI", 4, 15, key, 1, 1) + b"f" for key in (1, 2, 3))
    got = dump(made(where, python_tracer_func=b"".join(events), python_tracer_hash=names))
    same("calls", [(row["start"] - UNIX, row["end"] - UNIX) for row in got["torch"]],
         [(1, 7), (2, 6), (3, 4), (5, 6)])
    same("lost", lost(got), 1)


def memory_of_all_kinds(where: Path) -> None:
    """Frees of what nobody allocated, double frees, the host's memory, wrong devices."""
    events = [memory(BASE + 1, 1, 100), memory(BASE + 2, 0, 200), memory(BASE + 3, 0, 200), memory(BASE + 4, 1, 200),
              memory(BASE + 5, 1, 200), memory(BASE + 6, 2, 200), memory(BASE + 7, 0, 300, host=0),
              memory(BASE + 8, 0, 300, device=-5), memory(BASE + 9, 3, 300), memory(BASE + 10, 0, 200, device=1),
              memory(BASE + 11, 0, 2**63 - 1, 2**63 - 1)]
    got = dump(made(where, memory_usage=b"".join(events), op_range=op(BASE, BASE + 5, b"owner")))
    same("rows", [(row["name"], row["allocation"] - UNIX, row["release"] and row["release"] - UNIX,
                   row["active_duration"], row["device"]) for row in got["op_memory"]],
         [("owner", 2, None, None, 0), ("owner", 3, 4, 3, 0), (None, 10, None, None, 1), (None, 11, None, None, 0)])
    same("lost", lost(got), 2)


def many_fields(where: Path) -> None:
    """A stack a million deep (a fifth of it unless soaked), as many empty fields, a name with all bytes."""
    stack = b";".join([b"f"] * MILLION)
    data = op(BASE, BASE + 9, bytes(range(256)), fields=struct.pack("<HI", 8, len(stack)) + stack)
    data += op(BASE + 1, BASE + 2, b"x", fields=struct.pack("<HI", 9, 0) * MILLION)
    data += op(BASE + 3, BASE + 4, b"y", fields=struct.pack("<HI", 4, 5) + b"1;2;3")
    got = dump(made(where, op_range=data))
    same("operators", len(got["torch"]), 3)
    same("frames", len(got["frame"]), MILLION)
    same("shapes", got["torch"][2]["input_shapes"], "1;\r\n2;\r\n3")
    same("lost", lost(got), 0)


def settings_of_all_kinds(where: Path) -> None:
    """profiler_info that is none: nothing is read wrong, and the reason is reported."""
    for text in (b"", b"{", b"[1]", b"null", b"[" * 100_000, b'{"start_info": 7, "end_info": []}', b"\xff\xfe\0\0",
                 b'{"start_info": {"syscnt_enable": true, "freq": 0, "start_cnt": -1e400, "start_monotonic": "x"}}',
                 b'{"start_info": {"syscnt_enable": true, "freq": 1e-300, "start_cnt": 99999999999999999999}}'):
        result = made(where, op_range=op(BASE, BASE + 1, b"x"))
        (result / "profiler_info_3.json").write_bytes(text)
        got = dump(result)
        assert lost(got), f"{text[:60]!r}: no loss"


def random_bytes(where: Path) -> None:
    """Bytes changed at random: it ends, and what it makes is whole."""
    result, folder, stated = framework(where, f"--ops 200 {FULL}")
    chance = random.Random(11)
    originals = {name: (folder / name).read_bytes() for name in FILES}
    for _ in range(60):
        for name, data in originals.items():
            bad = bytearray(data)
            for _ in range(chance.choice((0, 1, 8, 200))):
                bad[chance.randrange(len(bad))] = chance.choice((0, 1, 255, chance.randrange(256)))
            (folder / name).write_bytes(bad)
        got = dump(result, "--links")
        for row in got["torch"]:
            assert 0 < row["start"] <= row["end"], f"row {row}"
        assert len(got["torch"]) <= 2 * (len(stated["op"]) + len(stated["enqueue"]) + len(stated["dequeue"]) + len(
            stated["frame"]) + len(stated["mstx"])), "more rows than records"


def main() -> int:
    tests = Tests()

    def inside(name: str, test: Callable[..., None], *arguments: str) -> None:
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            tests.run(name, lambda: test(Path(folder), *arguments))

    for options in CASES:
        inside(f"generated {options}".strip(), generated, options)
    for tasks in TASKS:
        for options in OVER:
            inside(f"over {tasks} | {options}", over_tasks, tasks, options)
    for test in (file_missing, nothing_there, cut_anywhere, damaged_in_the_middle, bad_times, unpaired_marks,
                 python_without_end, returns_without_names, memory_of_all_kinds, many_fields, settings_of_all_kinds,
                 random_bytes):
        inside(test.__name__, test)
    return tests.finish()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        SCRATCH = Path(scratch)
        sys.exit(main())
