#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs gen-cann with many sets of options and compares its files with its truth file.

The reader (reader.py) was written from the description of the format, not from the
generator. Arguments: the program (default build/tests/gen-cann) and words; with words only the
sets of options that contain one of them are run.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True

from reader import (  # noqa: E402
    FFTS_PLUS,
    FLIP,
    NO_CONTEXT,
    Api,
    Clock,
    Device,
    Host,
    Spans,
    Track,
    Wrong,
    batches,
    check,
)

ROOT = Path(__file__).resolve().parents[2]
ALL = (
    "--memcpy-every 7 --event-every 5 --ffts-every 6 --mstx-every 9 --model 11 --aicpu-every 10 --bare-every 13 "
    "--pmu --step-trace --shapes"
)
SETS = [
    "--tasks 40000",
    "--tasks 1 --comm-every 0",
    "--tasks 3000 --level 0 --ffts-every 4 --model 3",
    "--tasks 3000 --level 1 --host-counter none",
    f"--tasks 9000 {ALL}",
    f"--tasks 9000 {ALL} --level 1 --straddle --no-done --host-counter 2593.905 --device-mhz 38.4",
    f"--tasks 6000 {ALL} --nasty-names --devices 3 --threads 6 --mangle --ffts-parent --seed 12345",
    f"--tasks 6000 {ALL} --devices 4 --threads 2 --streams 3 --comm-ffts --comm-tasks 9 --cann-version 8.5.0",
    f"--tasks 3000 {ALL} --unique-names --threads 1 --streams 1",
    "--tasks 30000 --flip --threads 8 --streams 2 --event-every 9 --mangle",
    "--tasks 100000 --flip --level 0 --threads 3 --comm-every 0",
    "--tasks 20000 --flip --threads 1 --devices 2 --model 5 --step-trace",
    "--tasks 20000 --chip 15 --memcpy-every 9 --event-every 4 --aicpu-every 8 --pmu --model 4 --mstx-every 7 "
    "--devices 2",
]

Key = tuple[int, int, int, int, int]
Lines = dict[str, list[dict[str, Any]]]


def generate(program: str, options: str, folder: Path) -> tuple[Path, Lines]:
    """Run the generator; its PROF directory, and its truth by kind."""
    truth = folder / "truth"
    command = [program, *options.split(), "--truth", str(truth), str(folder / "out")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines: Lines = defaultdict(list)
    with truth.open(encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            lines[entry["k"]].append(entry)
    check(entry["k"] == "end", "the truth has no end")
    for kind, count in entry.items():
        if kind not in ("k", "kernels", "flips"):
            check(len(lines.get(kind, [])) == count, "count of", kind)
    return Path(done.stdout.strip()), lines


def key_of(entry: dict[str, Any]) -> Key:
    """The key that joins host and device."""
    return entry["device"], entry["stream"], entry["batch"], entry["task"], entry["context"]


def shown(text: bytes) -> str:
    """A name as the truth writes it: one U+FFFD for each byte that is not UTF-8."""
    out = text.decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if 0xDC80 <= ord(letter) <= 0xDCFF else letter for letter in out)


class Case:
    """One generated directory with everything read from it."""

    def __init__(self, prof: Path, lines: Lines, options: list[str]) -> None:
        self.lines, self.options = lines, options
        done = "--no-done" not in options
        self.level = int(options[options.index("--level") + 1]) if "--level" in options else 2
        self.host = Host(prof / "host", done)
        folders = sorted(prof.glob("device_*"))
        self.devices = [Device(folder, int(folder.name[7:]), done) for folder in folders]
        self.nodes = Spans(self.host.apis, lambda api: api.level == 10000 and api.type == 5)
        self.steps = Spans(self.host.apis, lambda api: api.level == 5500)
        self.api_ids = {
            (a["level"], a["type"], a["tid"], a["begin_ticks"], a["end_ticks"]): a["id"] for a in lines["api"]
        }
        self.launches = self.host_batches()
        self.runs: dict[Key, list[tuple[int, int]]] = {}
        self.kinds: dict[Key, int] = {}
        for device in self.devices:
            self.device_batches(device)

    def host_batches(self) -> dict[tuple[int, int, int, int], Track]:
        """The launches by device, stream, batch and task."""
        by_stream: dict[tuple[int, int], list[Track]] = defaultdict(list)
        flips: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        v6 = self.host.chip == 15
        for track in sorted(self.host.tracks, key=lambda track: track.time):
            where = (track.device, track.stream)
            if track.type == FLIP:
                flips[where].append((track.time, track.word & 0xFFFF))
                check(track.word >> 16 == len(flips[where]), "flip number")
            else:
                by_stream[where].append(track)
        out: dict[tuple[int, int, int, int], Track] = {}
        for where, tracks in by_stream.items():
            ids = [track.word if v6 else track.word & 0xFFFF for track in tracks]
            stamps = [(track.time, task) for track, task in zip(tracks, ids)]
            for track, task, batch in zip(tracks, ids, batches(stamps, flips[where], False)):
                check((*where, batch, task) not in out, "two launches of", where, batch, task)
                out[(*where, batch, task)] = track
        check(sum(map(len, flips.values())) == self.lines["end"][0]["flips"], "host flips")
        return out

    def device_batches(self, device: Device) -> None:
        """The runs by full key."""
        flips: dict[int, list[tuple[int, int]]] = defaultdict(list)
        streams = {task: where[1] for *where, task in self.launches if where[0] == device.number}
        for time, record in device.track(0x0E):
            stream, number, _, task = struct.unpack_from("<4H", record, 16)
            flips[stream].append((time, task))
            check(number == len(flips[stream]), "device flip number")
        by_stream: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        for (stream, task, context), runs in device.log().items():
            real = streams[task] if device.chip == 15 else stream
            for start, end, kind in runs:
                by_stream[real].append((start, task, end, context, kind))
        for stream, found in by_stream.items():
            found.sort()
            reported = batches([run[:2] for run in found], flips[stream], True)
            busy = -1
            for (start, task, end, context, kind), batch in zip(found, reported):
                check(start < end, "empty run")
                check(context != NO_CONTEXT or start > busy or "--ffts-parent" in self.options, "streams overlap")
                busy = max(busy, end)
                key = (device.number, stream, batch, task, context)
                self.runs.setdefault(key, []).append((start, end))
                self.kinds[key] = kind

    def node_id(self, span: Api | None) -> int:
        """The truth's id of a span."""
        check(span is not None, "outside every span")
        return self.api_ids[span[:5]]  # type: ignore[index]

    def clock(self, device: int) -> Clock:
        """The clock of a device."""
        return self.devices[device].clock


def test_apis(case: Case) -> None:
    """Every span, its name and wall times."""
    wall = case.host.clock.wall
    found = Counter(case.host.apis)
    reported = Counter()
    for a in case.lines["api"]:
        reported[Api(a["level"], a["type"], a["tid"], a["begin_ticks"], a["end_ticks"], a["reserve"], a["item"])] += 1
        check(a["name"] == case.host.types[f"{a['level']}_{a['type']}"], "api name", a)
        check(wall(a["begin_ticks"]) == a["begin_ns"] and wall(a["end_ticks"]) == a["end_ns"], "api time", a)
        if "item_name" in a:
            check(shown(case.host.name(a["item"])) == a["item_name"], "item", a)
        if "item_name_hex" in a:
            check(case.host.name(a["item"]).hex() == a["item_name_hex"], "item bytes", a)
    check(found == reported, "spans differ:", (found - reported), (reported - found))
    check(len(case.api_ids) == len(case.lines["api"]), "spans are not distinct")
    runtime = any(api.level == 5000 for api in case.host.apis)
    check(runtime == (case.level >= 2), "runtime spans")


def test_order(case: Case) -> None:
    """Threads are flushed in bursts, so that files are not sorted by time."""
    if len(case.lines["api"]) > 1000 and len({api.tid for api in case.host.apis}) > 1:
        check(case.host.disorder > 5, "the api file is sorted")


def test_runs(case: Case) -> None:
    """Every run of every task, by the key and with wall times."""
    reported: dict[Key, list[tuple[int, int]]] = defaultdict(list)
    wall = {device.number: device.clock.wall for device in case.devices}
    for t in case.lines["task"]:
        key = key_of(t)
        reported[key].append((t["start_ticks"], t["end_ticks"]))
        check(wall[key[0]](t["start_ticks"]) == t["start_ns"], "start", t)
        check(wall[key[0]](t["end_ticks"]) == t["end_ns"], "end", t)
        check(case.kinds[key] == t["sqe" if key[4] == NO_CONTEXT else "sub"], "kind", t)
        if t["class"] == "device_only":
            check(t["conn"] == -1 and t["host_type"] is None, "device only", t)
            continue
        launch = case.launches[key[:4]]
        check(case.host.types[f"5000_{launch.type}"] == t["host_type"], "host type", t)
        check(case.host.clock.wall(launch.time) == t["track_ns"] < t["start_ns"], "submission", t)
        check(launch.tid == t["tid"], "thread", t)
    for runs in reported.values():
        runs.sort()
    check(reported == case.runs, "runs differ")
    only = {key_of(entry)[:4] for entry in case.lines["host_only"]}
    check({key[:4] for key in reported} | only == set(case.launches), "launches without a run")


def test_launches(case: Case) -> None:
    """A launch is stamped right behind the begin of its runtime call, with a flip between them at most."""
    calls = Spans(case.host.apis, lambda api: api.level == 5000)
    for launch in case.launches.values() if case.level >= 2 else ():
        call = calls.holding(launch.tid, launch.time)
        check(call is not None and launch.time - call.begin in (1, 2), "launch outside its call", launch)


def tensors_of(case: Case) -> dict[tuple[int, int, int], list[Any]]:
    """Tensors by (thread, time, operator), records in the order in which they stand."""
    out: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
    for head, record, _ in case.host.heads("tensor_info", 256):
        name, count = struct.unpack_from("<QI", record, 24)
        check(0 < count <= 5, "tensors in a record")
        for i in range(count):
            kind, form, dtype, *dims = struct.unpack_from("<11I", record, 36 + 44 * i)
            shape = dims[: dims.index(0)] if 0 in dims else dims
            out[(head.tid, head.time, name)].append([kind, form, dtype, shape])
    return out


class Op(dict):  # type: ignore[type-arg]
    """Node records about one operator inside one span."""


GE_TYPES = {0: "AI_CORE", 1: "AI_CPU", 2: "AI_VECTOR_CORE", 4: "MIX_AIC", 5: "MIX_AIV", 9: "HCCL"}


def operators(case: Case) -> dict[int, dict[int, Op]]:
    """The operators recorded inside each NODE span, by the span's id and context."""
    tensors, out = tensors_of(case), defaultdict(dict)
    contexts: dict[tuple[int, int, int], tuple[int, ...]] = {}
    for head, record, _ in case.host.heads("context_id_info", 256):
        if head.level == 10000:
            name, count = struct.unpack_from("<QI", record, 24)
            contexts[(head.tid, head.time, name)] = struct.unpack_from(f"<{count}I", record, 36)
    for head, record, age in case.host.heads("node_basic_info", 64):
        name, ge, kind, blocks, flag = struct.unpack_from("<QIQII", record, 24)
        if ge == 6:
            continue
        where = (head.tid, head.time, name)
        op = Op(
            name=shown(case.host.name(name)),
            type=case.host.name(kind).decode(),
            core=GE_TYPES[ge],
            blocks=blocks & 0xFFFF,
            mix_blocks=(blocks & 0xFFFF) * (blocks >> 16),
            hf32=flag != 0,
            op_state=int(age == "aging"),
            tensors=tensors.get(where, []),
        )
        for context in contexts.get(where, (NO_CONTEXT,)):
            out[case.node_id(case.nodes.holding(head.tid, head.time))][context] = op
    return out


def test_names(case: Case) -> None:
    """Node records inside the enclosing span, for each compute task."""
    ops = operators(case)
    check(bool(ops) == (case.level > 0), "node records")
    for t in case.lines["task"]:
        if t["class"] != "compute":
            continue
        launch = case.launches[key_of(t)[:4]]
        span = case.nodes.holding(launch.tid, launch.time)
        if span is None:
            check(t["name"] == case.host.name(launch.kernel).decode() and t["blocks"] == launch.blocks, "bare", t)
            continue
        check(case.node_id(span) == t["conn"], "span of", t)
        if case.level == 0:
            check(t["name"] == shown(case.host.name(span.item)) and t["type"] is None, "level 0", t)
            continue
        for field, value in ops[t["conn"]][t["context"]].items():
            check(t[field] == value, field, t, value)
        if launch.type != FFTS_PLUS:
            check((launch.blocks, launch.blocks * launch.ratio) == (t["blocks"], t["mix_blocks"]), "blocks", t)


def test_models(case: Case) -> None:
    """The model of a task is the item of the MODEL span around its launch."""
    models = Spans(case.host.apis, lambda api: api.level == 15000)
    runs = Counter()
    for t in case.lines["task"] + case.lines["host_only"]:
        if t.get("conn", -1) >= 0:
            launch = case.launches[key_of(t)[:4]]
            span = models.holding(launch.tid, launch.time)
            check(t["model"] == (span.item if span else 0xFFFFFFFF), "model", t)
            check(not span or t["request"] == span.reserve, "request", t)
            if span and t["k"] == "task":
                runs[key_of(t)] += 1
            if t["k"] == "host_only":
                check(launch.model == span.item, "model id", t)  # type: ignore[union-attr]
    if "--model" in case.options:
        executions = int(case.options[case.options.index("--model") + 1])
        check(len(runs) == 8 and set(runs.values()) == {executions}, "graph runs", runs)


def test_communication(case: Case) -> None:
    """hccl_info joins the task launched in its span, hccl_op_info the span around."""
    infos: dict[tuple[int, int], tuple[Any, ...]] = {}
    host = case.host
    for head, record, _ in host.heads("hccl_info", 256):
        span = case.steps.holding(head.tid, head.time)
        check(span is not None, "hccl_info outside")
        context = struct.unpack_from("<I", record, 68)[0]
        infos[(case.node_id(span), context)] = struct.unpack_from("<QQQIIIIIIQIIdQQQIIII", record, 24)
    check(len(infos) == len(case.lines["comm_task"]), "hccl_info records")
    per_op: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for t in case.lines["comm_task"]:
        key = key_of(t)
        launch = case.launches[key[:4]]
        step = case.steps.holding(launch.tid, launch.time)
        info = infos[(case.node_id(step), key[4])]
        names = [host.name(info[0]).decode(), host.name(info[2]).decode()]
        check(names == [t["name"], t["group"]], "names", t)
        fields = ("local", "remote", "ranks", "", "plane", "context", "notify")
        check(all(not field or info[3 + i] == t[field] for i, field in enumerate(fields)), "hccl_info", t)
        check(info[13:16] == (t["src"], t["dst"], t["bytes"]) and info[17] == t["dtype"], "transfer", t)
        check(info[18:20] == (t["link"], t["transport"]) and info[1] == t["tag"], "link", t)
        check(case.node_id(case.nodes.holding(launch.tid, launch.time)) == t["conn"], "op of", t)
        per_op[t["op"]].extend(case.runs[key])
    ops = {}
    for head, record, _ in host.heads("hccl_op_info", 64):
        ops[case.node_id(case.nodes.holding(head.tid, head.time))] = struct.unpack_from("<BBQQQ", record, 24)
    check(len(ops) == len(case.lines["comm_op"]), "hccl_op_info records")
    for o in case.lines["comm_op"]:
        bits, dtype, alg, count, group = ops[o["conn"]]
        check(bits == o["relay"] + 2 * o["retry"] and dtype == o["dtype"] and count == o["count"], "op", o)
        check([host.name(alg).decode(), host.name(group).decode()] == [o["alg"], o["group"]], "op names", o)
        times = per_op[o["op"]]
        check(len(times) == o["tasks"], "tasks of op", o)
        check(min(times)[0] == o["start_ticks"] and max(end for _, end in times) == o["end_ticks"], "op time", o)


def test_copies(case: Case) -> None:
    """memcpy_info carries the thread and time of its launch."""
    found = {}
    for head, record, _ in case.host.heads("memcpy_info", 64):
        found[(head.tid, head.time)] = struct.unpack_from("<QQH", record, 24)
    check(len(found) == len(case.lines["memcpy"]), "memcpy_info records")
    for m in case.lines["memcpy"]:
        launch = case.launches[key_of(m)[:4]]
        check(found[(launch.tid, launch.time)] == (m["bytes"], m["max"], m["direction"]), "copy", m)


def test_pmu(case: Case) -> None:
    """Counters of tasks, and those of blocks added up."""
    tasks: dict[tuple[int, ...], tuple[int, ...]] = {}
    blocks: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0] * 10)
    for device in case.devices:
        for func, _, record in device.counted("ffts_profile.data", 128):
            stream, task = device.ids(record)
            context = struct.unpack_from("<H", record, 18)[0]
            cycles, start, end = *struct.unpack_from("<Q", record, 32), *struct.unpack_from("<QQ", record, 112)
            counters = struct.unpack_from("<8Q", record, 48)
            if func == 0x28:
                tasks[(device.number, stream, task, context, end)] = (cycles, start, *counters)
                continue
            check(func == 0x29, "function of a counter record")
            sums = blocks[(device.number, stream, task, context, end)]
            for i, value in enumerate((1, cycles, *counters)):
                sums[i] += value
    check(len(tasks) == len(case.lines["pmu"]), "counter records")
    for p in case.lines["pmu"]:
        device, stream, _, task, context = key_of(p)
        shown_stream = 0 if case.host.chip == 15 else stream
        key = (device, shown_stream, task, context & 0xFFFF, p["end_ticks"])
        check(tasks[key] == (p["cycles"], p["start_ticks"], *p["values"]), "counters", p)
        check(blocks[key] == [p["block_records"], p["block_cycles"], *p["block_values"]], "blocks", p)
        check(any(s <= p["end_ticks"] <= e for s, e in case.runs[key_of(p)]), "outside the run", p)
    if tasks:
        check(case.devices[0].sample["ai_core_profiling_events"].count(",") == 7, "events in sample.json")


def test_marks(case: Case) -> None:
    """mstx: messages put together from segments, and the device's rows with the same number."""
    parts: dict[int, dict[int, tuple[Any, ...]]] = defaultdict(dict)
    for head, record, _ in case.host.heads("msproftx", 256):
        info, segment = struct.unpack_from("<HH", record, 24)
        magic, tag, _, tid, _, event, _, _, start, end, mark, domain, _ = struct.unpack_from(
            "<HHIIIIiQQQQQi", record, 32
        )
        check((info, magic, tag, tid) == (1, 0x5A5A, 120, head.tid), "msproftx")
        parts[mark][segment] = (event, start, end, domain, record[100:256].split(b"\0")[0])
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for device in case.devices:
        for time, record in device.track(0x0A):
            index, _, _, _, tag = struct.unpack_from("<QQHHH", record, 16)
            if tag in (11, 12):
                rows[index].append((tag, device.clock.wall(time)))
    new = not case.host.info["cannVersion"].startswith("8.")
    check(len(parts) == len(case.lines["mstx"]), "msproftx records")
    for m in case.lines["mstx"]:
        segments = parts[m["mark_id"]]
        check(sorted(segments) == list(range(len(segments))), "segments", m)
        event, start, end, domain, _ = segments[0]
        message = b"".join(segments[i][4] for i in range(len(segments)))
        check(shown(message) == m["message"] and event == (3 if m["event"] == "mark" else 2), "message", m)
        check(case.host.name(domain).decode() == m["domain"], "domain", m)
        check([case.host.clock.wall(t) for t in (start, end)] == [m["start_ns"], m["end_ns"]], "mstx time", m)
        times = [m[key] for key in ("dev_start_ns", "dev_end_ns") if key in m]
        if m["event"] == "mark":
            times = times[:1]
        tag = 12 if new and m["event"] == "range" else 11
        check(rows.get(m["mark_id"], []) == [(tag, time) for time in times], "device rows", m)


def test_steps(case: Case) -> None:
    """Step trace rows."""
    found = Counter()
    for device in case.devices:
        for time, record in device.track(0x0A):
            found[(device.number, time, device.clock.wall(time), *struct.unpack_from("<QQHHH", record, 16))] += 1
    fields = ("device", "time_ticks", "time_ns", "index", "model", "stream", "task", "tag")
    check(found == Counter(tuple(s[field] for field in fields) for s in case.lines["step"]), "step rows")


def test_aicpu(case: Case) -> None:
    """AI CPU records lie inside their tasks."""
    found = {}
    for device in case.devices:
        for record in device.records(f"aicpu.data.{device.number}", 256):
            check(struct.unpack_from("<HHI", record) == (0x5A5A, 6000, 0), "aicpu record")
            stream, task, _, *times = struct.unpack_from("<HHI7Q", record, 24)
            found[(device.number, stream, task & 0xFFFF, times[1])] = (times, struct.unpack_from("<4Q", record, 96))
    check(len(found) == len(case.lines["aicpu"]), "aicpu records")
    for a in case.lines["aicpu"]:
        device, stream, _, task, _ = key_of(a)
        times, ticks = found[(device, stream, task & 0xFFFF, a["start_ticks"])]
        us = [a[k] for k in ("run_start_us", "compute_start_us", "memcpy_start_us", "memcpy_end_us", "run_end_us")]
        check(times == [us[0], a["start_ticks"], *us[1:], a["end_ticks"]], "times", a)
        check(ticks == tuple(a[f"{k}_ticks"] for k in ("submit", "schedule", "before", "after")), "ticks", a)
        check(any(s <= a["start_ticks"] < a["end_ticks"] <= e for s, e in case.runs[key_of(a)]), "outside", a)


TESTS = [
    test_apis,
    test_order,
    test_runs,
    test_launches,
    test_names,
    test_models,
    test_communication,
    test_copies,
    test_pmu,
    test_marks,
    test_steps,
    test_aicpu,
]


def run(program: str, options: str) -> int:
    """Run all tests on one set of options; how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        try:
            case = Case(*generate(program, options, Path(scratch)), options.split())
        except (Wrong, subprocess.CalledProcessError) as reason:
            print(f"FAIL {options}: {reason}")
            return 1
        for test in TESTS:
            try:
                test(case)
            except (Wrong, KeyError) as reason:
                print(f"FAIL {options}: {test.__name__}: {reason!r}"[:2000])
                failed += 1
    if not failed:
        end = case.lines["end"][0]
        print(f"ok   {options}: {end['task']} runs, {end['api']} spans, {end['flips']} flips")
    return failed


def main() -> int:
    """Run the sets that the arguments choose."""
    program, *words = sys.argv[1:] or [str(ROOT / "build" / "tests" / "gen-cann")]
    sets = [options for options in SETS if not words or any(word in options for word in words)]
    failed = sum(run(program, options) for options in sets)
    print(f"{len(sets)} sets of options, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
