# SPDX-License-Identifier: BSD-2-Clause
"""Read a generated FRAMEWORK/ anew, from the bytes, and hold it against its truth file.

Nothing of the generator is used here: framing, clocks, nesting and pairing are written a second time.
"""

from __future__ import annotations

import json
import struct
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Iterator, Optional

Row = dict
Stated = dict[str, list[Row]]


def _line(path: Path) -> dict:
    return json.loads(path.read_text().splitlines()[0])


def _pairs(path: Path) -> dict[str, int]:
    return {key.strip(): int(value) for key, value in
            (text.split(":") for text in path.read_text().splitlines() if ":" in text)}


class Time:
    """Recorded values to Unix ns, PROF's own clock first, profiler_info's where there is none."""

    def __init__(self, root: Path) -> None:
        info = json.loads(next(root.glob("profiler_info*.json")).read_text())
        start, end = info["start_info"], info["end_info"]
        self.counter, self.base = start["syscnt_enable"], start["start_cnt"]
        self.raw, self.per = start["start_monotonic"], 1000 / Fraction(str(start["freq"]))
        self.shift = end["collectionTimeEnd"] - end["MonotonicTimeEnd"]
        for host in root.glob("PROF_*/host"):
            mark, wall = _pairs(host / "host_start.log"), _line(host / "start_info")
            mhz = _line(host / "info.json")["CPU"][0]["Frequency"]
            self.shift = int(wall["collectionTimeBegin"]) * 1000 - int(wall["clockMonotonicRaw"])
            if mhz:
                self.raw, self.base, self.per = mark["clock_monotonic_raw"], mark["cntvct"], 1000 / Fraction(mhz)

    def __call__(self, value: int) -> int:
        if not self.counter:
            return value + self.shift
        return int((self.raw + (value - self.base) * self.per + self.shift) // 1)


def framed(path: Path, kind: int, fixed: int) -> Iterator[tuple[bytes, dict[int, bytes]]]:
    """Whole records of one kind; others are passed over, a cut one at the end is left out."""
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while at + 6 <= len(data):
        found, length = struct.unpack_from("<HI", data, at)
        body = data[at + 6:at + 6 + length]
        at += 6 + length
        if at > len(data) or found != kind:
            continue
        fields, offset = {}, fixed
        while offset + 6 <= length:
            number, size = struct.unpack_from("<HI", body, offset)
            fields[number] = body[offset + 6:offset + 6 + size]
            offset += 6 + size
        assert offset == length, f"{path.name}: fields do not fill the record"
        yield body[:fixed], fields


def named(row: Row) -> bytes:
    return bytes.fromhex(row["name_hex"]) if "name_hex" in row else row["name"].encode()


def same(what: str, got: object, stated: object) -> None:
    assert got == stated, f"{what}: read {got!r:.300}, the truth has {stated!r:.300}"


class Checker:
    """One result and its truth."""

    def __init__(self, root: Path, stated: Stated) -> None:
        self.folder, self.stated, self.time = root / "FRAMEWORK", stated, Time(root)
        self.tree: list[Row] = []

    def ops(self) -> None:
        plain, user = [], []
        for fixed, fields in framed(self.folder / "torch.op_range", 1, 58):
            start, end, sequence, pid, tid, end_tid, forward, scope, other = struct.unpack("<3q4Q2B", fixed)
            assert tid == end_tid and not other and start <= end
            row = {"start": start, "end": end, "start_ns": self.time(start), "end_ns": self.time(end), "tid": tid,
                   "name": fields[2], "pid": pid, "sequence": sequence, "forward": forward, "scope": scope}
            for number, key in ((3, "dtypes"), (4, "shapes"), (5, "tensors"), (10, "extra")):
                row[key] = fields.get(number, b"").decode()
            for number, key in ((8, "stack"), (9, "modules")):
                row[key] = fields[number].decode().split(";") if number in fields else []
            (user if fields[2].startswith(b"mstx_") else plain).append(row)
        plain.sort(key=lambda row: (row["start"], -row["end"]))
        stated = self.stated["op"]
        same("number of operators", len(plain), len(stated))
        self._nest(plain, stated)
        self.tree = plain
        same("user ranges", Counter((row["name"], row["start_ns"], row["end_ns"], row["tid"]) for row in user),
             Counter((named(row), row["start_ns"], row["end_ns"], row["tid"]) for row in self.stated["mstx"]))
        steps = [(int(row["name"].split(b"#")[1]), row["start_ns"], row["end_ns"]) for row in plain
                 if row["name"].startswith(b"ProfilerStep#")]
        same("steps", steps, [(row["id"], row["start_ns"], row["end_ns"]) for row in self.stated["step"]])
        self._pairs(plain)

    @staticmethod
    def _nest(plain: list[Row], stated: list[Row]) -> None:
        open_ops: dict[int, list[Row]] = defaultdict(list)
        for number, (row, truth) in enumerate(zip(plain, stated)):
            stack = open_ops[row["tid"]]
            while stack and stack[-1]["end"] <= row["start"] and stack[-1]["end"] < row["end"]:
                stack.pop()
            assert not stack or stack[-1]["end"] >= row["end"], f"operator {number} crosses its parent's end"
            row["i"], row["own"] = number, row["end_ns"] - row["start_ns"]
            row["parent"] = stack[-1]["i"] if stack else None
            if stack:
                stack[-1]["own"] -= row["own"]
            stack.append(row)
        for row, truth in zip(plain, stated):
            same(f"operator {row['i']}", {**row, "name": None, "own": 0},
                 {**{key: truth.get(key) for key in row}, "name": None, "own": 0})
            same(f"operator {row['i']}: name", row["name"], named(truth))
            same(f"operator {row['i']}: self time", row["own"], truth["self_ns"])

    def _pairs(self, plain: list[Row]) -> None:
        forward: dict[int, Row] = {}
        for row in plain:
            if row["sequence"] >= 0 and not row["forward"]:
                forward[row["sequence"]] = row          # the one that starts last
        found = sorted((row["sequence"], forward[row["sequence"]]["i"], row["i"],
                        forward[row["sequence"]]["tid"] != row["tid"]) for row in plain if row["forward"])
        same("forward and backward", found, sorted((row["sequence"], row["forward"], row["backward"], row["flow"])
                                                   for row in self.stated["fwdbwd"]))

    def holder(self, tid: int, when: int) -> Optional[int]:
        best = None
        for row in self.tree:
            if row["tid"] == tid and row["start_ns"] <= when <= row["end_ns"]:
                best = row["i"]
        return best

    def queue(self) -> None:
        open_marks: dict[tuple[int, bytes, bool], list[tuple[int, int]]] = defaultdict(list)
        found: Counter = Counter()
        times: dict[int, dict[bool, tuple[int, int, int]]] = defaultdict(dict)
        for fixed, fields in framed(self.folder / "torch.op_mark", 2, 40):
            when, category, correlation, tid, _ = struct.unpack("<q4Q", fixed)
            dequeued, last = category >= 2, category % 2
            stack = open_marks[tid, fields[1], dequeued]
            if not last:
                stack.append((when, correlation))
                continue
            start, same_id = stack.pop()
            same("correlation id of both ends", correlation, same_id)
            direction = "dequeue" if dequeued else "enqueue"
            found[direction, correlation, tid, self.time(start), self.time(when), fields[1].decode()] += 1
            times[correlation][dequeued] = (tid, self.time(start), self.time(when))
        assert not any(open_marks.values()), "marks without their end"
        keys = ("k", "correlation", "tid", "start_ns", "end_ns", "name")
        same("queue marks", found, Counter(tuple(row[key] for key in keys)
                                           for kind in ("enqueue", "dequeue") for row in self.stated[kind]))
        for correlation, ends in times.items():
            assert ends[False][2] <= ends[True][1], f"{correlation} is taken out before it is put in"
        by_tid: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for tid, start, end in (ends[True] for ends in times.values()):
            by_tid[tid].append((start, end))
        for spans in by_tid.values():
            spans.sort()
            assert all(one[1] <= two[0] for one, two in zip(spans, spans[1:])), "two tasks taken out at a time"
        self._launches(times)

    def _launches(self, times: dict[int, dict[bool, tuple[int, int, int]]]) -> None:
        few = len(self.tree) < 4000
        for row in self.stated["enqueue"] if few else []:
            same("operator of an enqueue", self.holder(row["tid"], row["start_ns"]), row["op"])
        for row in self.stated["launch"] + self.stated["call"]:
            if times:
                tid, start, end = times[row["correlation"]][True]
                assert tid == row["tid"] and start <= row["begin_ns"] and row["end_ns"] <= end, f"launch outside: {row}"
            else:
                assert row["op"] is not None, f"launch outside of operators: {row}"
                op = self.tree[row["op"]]
                assert op["tid"] == row["tid"] and op["start_ns"] <= row["begin_ns"], f"launch outside: {row}"
                assert row["end_ns"] <= op["end_ns"], f"launch outside: {row}"
                if few:
                    same("operator of a launch", self.holder(row["tid"], row["begin_ns"]), row["op"])

    def memory(self) -> None:
        records, live, rows = [], {}, []
        for fixed, _ in framed(self.folder / "torch.memory_usage", 3, 77):
            ptr, when, size, used, held, active, stream = struct.unpack_from("<7q", fixed)
            kind, device, component, what, inner, tid, _ = struct.unpack_from("<2b3B2Q", fixed, 56)
            assert kind == 20 and not inner and (size > 0) == (what == 0)
            ns = self.time(when)
            totals = (used, held, active)
            event = ("malloc", "free", "block_free")[what]
            records.append((("PTA", "WORKSPACE")[component], ns, event, *totals, stream, device))
            if what == 0:
                live[ptr] = {"size": size, "at": ns, "totals": totals, "tid": tid}
                rows.append(live[ptr])
            elif ptr in live:
                live[ptr][what] = (ns, totals)
        keys = ("component", "ns", "event", "totalAllocated", "totalReserved", "totalActive", "streamPtr", "deviceId")
        same("memory events", records, [tuple(row[key] for key in keys) for row in self.stated["memory_record"]])
        same("allocations", len(rows), len(self.stated["operator_memory"]))
        few = len(self.tree) < 4000
        for row, stated in zip(rows, self.stated["operator_memory"]):
            free, block = row.get(1), row.get(2)
            same("allocation", (row["size"], row["at"], free and free[0], block and block[0]),
                 tuple(stated[key] for key in ("size", "allocationTime", "releaseTime", "activeReleaseTime")))
            names = ("TotalAllocated", "TotalReserved", "TotalActive")
            same("totals at an allocation", row["totals"], tuple(stated["allocation" + name] for name in names))
            same("totals at a release", free[1] if free else (None,) * 3,
                 tuple(stated["release" + name] for name in names))
            if few:
                row_index = self.holder(row["tid"], row["at"])
                if row_index is not None and self.tree[row_index]["name"] == b"empty_tensor":
                    row_index = self.tree[row_index]["parent"]
                same("operator of an allocation", row_index, stated["op"])
                same("its name", self.tree[row_index]["name"] if row_index is not None else None, named(stated))

    def python(self) -> None:
        names = {struct.unpack("<Q", fixed)[0]: fields[1]
                 for fixed, fields in framed(self.folder / "torch.python_tracer_hash", 4, 8)}
        path = self.folder / "torch.python_tracer_func"
        data = path.read_bytes() if path.exists() else b""
        stack: list[Row] = []
        rows: list[Row] = []
        for at in range(0, len(data) // 33 * 33, 33):
            when, tid, _, key, tag = struct.unpack_from("<4QB", data, at)
            if tag % 2:
                top = stack.pop()
                while top["name"] != names[key]:
                    top = stack.pop()
                top["end_ns"] = self.time(when)
                assert top["c"] == (tag == 3)
            else:
                rows.append({"i": len(rows), "name": names[key], "start_ns": self.time(when), "end_ns": None,
                             "tid": tid, "parent": stack[-1]["i"] if stack else None, "c": tag == 2})
                stack.append(rows[-1])
        keys = ("start_ns", "end_ns", "tid", "parent")
        same("frames", [(row["name"], row["c"], *(row[key] for key in keys)) for row in rows],
             [(named(row), row["c_call"], *(row[key] for key in keys)) for row in self.stated["frame"]])

    def rest(self) -> None:
        path = self.folder / "torch.gc_record"
        data = path.read_bytes() if path.exists() else b""
        spans = [struct.unpack_from("<3Q", data, at) for at in range(0, len(data) // 24 * 24, 24)]
        same("garbage collections", [(pid, self.time(start), self.time(end)) for pid, start, end in spans],
             [(row["pid"], row["start_ns"], row["end_ns"]) for row in self.stated["gc"]])
        params = [(struct.unpack("<Q", fixed)[0], fields.get(1, b"").decode(), fields.get(2, b"").decode())
                  for fixed, fields in framed(self.folder / "torch.param_tensor_info", 5, 8)]
        same("parameters", params, [(row["key"], row["module"], row["optimizer"]) for row in self.stated["param"]])


def check(root: Path, truth: Path, tasks: Optional[Path] = None) -> str:
    """Compare everything; what was compared, in words."""
    stated: Stated = defaultdict(list)
    for text in truth.read_text().splitlines():
        row = json.loads(text)
        stated[row["k"]].append(row)
    for kind, count in stated["end"][0]["counts"].items():
        assert len(stated[kind]) == count, f"{kind}: the count of the last line"
    checker = Checker(root, stated)
    checker.ops()
    checker.queue()
    checker.memory()
    checker.python()
    checker.rest()
    if tasks:
        spans: dict[int, Counter] = {10000: Counter(), 20000: Counter()}
        for text in tasks.read_text().splitlines():
            row = json.loads(text)
            if row["k"] == "api" and row["level"] in spans:
                spans[row["level"]][row["tid"], row["begin_ns"], row["end_ns"]] += 1
        for level, kind in ((10000, "launch"), (20000, "call")):
            same(kind, Counter((row["tid"], row["begin_ns"], row["end_ns"]) for row in stated[kind]), spans[level])
    return ", ".join(f"{len(rows)} {kind}" for kind, rows in stated.items() if rows and kind != "end")
