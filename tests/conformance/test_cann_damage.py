#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Damages raw captures of known content (tests/cannraw): what can be read is, and the rest is counted.

    test_cann_damage.py [WORD...]     only the kinds of damage whose name holds a WORD

NPS_CANN_DUMP names another build of tests/cann_dump.c, one with sanitizers for example.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import struct
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Callable

sys.dont_write_bytecode = True

from cann_capture import (MANY, NONE, SCRATCH, Comparison, Tables, agree, clean, dump, generate,  # noqa: E402
                          losses)
from harness import SOAK, Tests  # noqa: E402

SMALL = f"--tasks 1500 {MANY}"
TINY = f"--tasks 80 {MANY}"            # for what is done hundreds of times


@functools.cache
def original(options: str) -> tuple[Path, Tables, Tables]:
    """A capture that is copied before it is damaged, its truth, and what is read of it."""
    where = Path(tempfile.mkdtemp(dir=SCRATCH))
    prof, truth = generate(options, where)
    return prof, truth, dump(prof)


def copy_of(options: str) -> Path:
    prof = Path(tempfile.mkdtemp(dir=SCRATCH)) / "PROF_000001_20251125000001123_00004242AAAAAAAA"
    shutil.copytree(original(options)[0], prof, symlinks=True)
    return prof


def same_but(one: Tables, two: Tables, *tables: str) -> None:
    """Both captures read the same, but for their losses and TABLES."""
    for name in one.keys() | two.keys():
        if name != "model" and name not in tables:
            assert one[name] == two[name], f"{name}: {len(one[name])} rows and {len(two[name])}"


def lost(tables: Tables, what: str) -> int:
    found = [count for text, count in losses(tables).items() if what in text]
    assert found, f"nothing about {what!r} in {losses(tables)}"
    return sum(found)


# of several slices each
LARGE = "--tasks 40000 --comm-every 0" if SOAK else "--tasks 6000 --comm-every 0 --slice-kib 256"


def slice_missing() -> None:
    prof = copy_of(LARGE)
    (prof / "host/data/aging.compact.task_track.slice_0").unlink()
    read, whole = dump(prof), original(LARGE)[2]
    assert lost(read, "slices of aging.compact.task_track that are missing") == 1
    assert len(read["task"]) == len(whole["task"])
    assert read["api"] == whole["api"]
    known = [row for row in read["task"] if row["connection"] != NONE]
    assert 0 < len(known) < len(read["task"])
    everything = {Comparison.key(row): row for row in whole["task"]}
    for row in known:
        assert row == {**everything[Comparison.key(row)]}, row
    for row in read["task"]:
        if row["connection"] == NONE:
            agree("task", row, model=NONE, **{"class": 0}, type=row["hw_type"])


def slices_swapped() -> None:
    prof = copy_of(LARGE)
    for name in "aging.compact.task_track", "aging.api_event.data", "aging.additional.tensor_info":
        first, second = (prof / "host/data" / f"{name}.slice_{i}" for i in (0, 1))
        first.rename(prof / "swap")
        second.rename(first)
        (prof / "swap").rename(second)
    read = dump(prof)
    same_but(read, original(LARGE)[2])
    assert not losses(read)


def slices_doubled() -> None:
    prof = copy_of(LARGE)
    data = prof / "host/data"
    for name in "aging.compact.task_track", "aging.api_event.data", "aging.additional.tensor_info":
        shutil.copy(data / f"{name}.slice_1", data / f"{name}.slice_01")
    read = dump(prof)
    same_but(read, original(LARGE)[2])
    assert lost(read, "that repeat another one") == 3


def records_doubled() -> None:
    prof = copy_of(SMALL)
    for name, size in ("host/data/aging.compact.task_track.slice_0", 64), \
                      ("host/data/aging.api_event.data.slice_0", 40), ("device_0/data/stars_soc.data.0.slice_0", 64):
        data = (prof / name).read_bytes()
        records = [data[i:i + size] for i in range(0, len(data), size)]
        # Halves of pairs that are recorded twice are two pairs.
        whole = [r for r in records if size != 40 or r[24:32] != b"\xff" * 8]
        (prof / name).write_bytes(b"".join(records[:1000]) + b"".join(whole[:1000]) + b"".join(records[1000:]))
    read = dump(prof)
    same_but(read, original(SMALL)[2])
    assert lost(read, "records of the host that repeat another one") >= 1900
    assert lost(read, "starts of tasks that repeat another one") > 400
    assert lost(read, "ends of tasks without a start") > 400


def cut_anywhere() -> None:
    for cut in 1, 13, 39, 63:
        prof = copy_of(SMALL)
        for name in sorted((prof / "host/data").glob("*.slice_0")) + sorted((prof / "device_0/data").glob("*.slice_0")):
            name.write_bytes(name.read_bytes()[:-cut])
        read = dump(prof)
        assert len(original(SMALL)[2]["task"]) - 3 <= len(read["task"]) <= len(original(SMALL)[2]["task"])
        lost(read, "that are no records")


def cut_in_the_middle() -> None:
    prof = copy_of(LARGE)
    name = prof / "host/data/aging.compact.task_track.slice_0"
    name.write_bytes(name.read_bytes()[:-37])
    read, whole = dump(prof), original(LARGE)[2]
    assert lost(read, "records of aging.compact.task_track that are no records") == 1, losses(read)
    changed = [(a, b) for a, b in zip(read["task"], whole["task"]) if a != b]
    assert len(changed) == 1 and changed[0][0]["connection"] == NONE, changed[:3]


def aged() -> None:
    """The first slice is missing, and the next one begins within a record."""
    prof = copy_of(LARGE)
    data = prof / "device_0/data"
    both = b"".join((data / f"stars_soc.data.0.slice_{i}").read_bytes() for i in (0, 1))
    (data / "stars_soc.data.0.slice_0").unlink()
    (data / "stars_soc.data.0.slice_1").write_bytes(both[len(both) // 128 * 64 + 17:])
    read = dump(prof)
    assert 0 < len(read["task"]) < len(original(LARGE)[2]["task"])
    assert lost(read, "records of stars_soc.data.0 that are no records") == 1
    lost(read, "slices of stars_soc.data.0 that are missing")
    assert all(row["connection"] != NONE for row in read["task"])


def foreign_files() -> None:
    prof = copy_of(SMALL)
    data = prof / "host/data"
    random.seed(3)
    (data / "aging.compact.task_track.slice_1").write_bytes(random.randbytes(100001))
    (data / "aging.api_event.data.slice_1").write_bytes(b"\x5a" * 4001)
    (data / "aging.additional.tensor_info.slice_1").mkdir()
    (data / "aging.compact.node_basic_info.slice_1").symlink_to("/etc/passwd")
    os.mkfifo(data / "aging.compact.memcpy_info.slice_1")
    (data / "unaging.additional.hash_dic.slice_1").write_bytes(b"\0\xff:\n17\n18446744073709551616:x\n:\n1:"
                                                               + b"y" * 3000000)
    for name in ("aging.api_event.data.slice_", "aging.api_event.data.slice_x", ".slice_3",
                 "x.slice_99999999999999999999"):
        (data / name).write_bytes(b"")
    read = dump(prof)
    same_but(read, original(SMALL)[2], "api")
    for what in ("task_track that are no records", "tensor_info that cannot be read",
                 "node_basic_info that are no records", "memcpy_info that cannot be read",
                 "lines of unaging.additional.hash_dic"):
        lost(read, what)


def control_files() -> None:
    """Each control file missing, empty, and of another kind: something is imported, or an error reported."""
    names = [p.relative_to(original(TINY)[0]) for p in original(TINY)[0].glob("*/*") if p.is_file()]
    for name in names:
        for content in None, b"", b"[]", b"{\"CPU\":7,\"DeviceInfo\":[[]],\"pid\":-3}", b"\0" * 5000, b"[" * 100000:
            prof = copy_of(TINY)
            (prof / name).unlink()
            if content is not None:
                (prof / name).write_bytes(content)
            read = dump(prof)
            if name.name.endswith(".done") or name.name.startswith("end_info"):
                same_but(read, original(TINY)[2])
            shutil.rmtree(prof.parent)


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def frequencies() -> None:
    for value in "0", "", "0.0", "-5", "1e9", "nan", "99999999999999999999", 0, -1, 1e300, None, "50.0000001":
        prof = copy_of(TINY)
        edit_json(prof / "device_0/info.json.0", lambda j: j["DeviceInfo"][0].update(
            hwts_frequency=value, aic_frequency=value))  # noqa: B023
        read = dump(prof)
        if value == "50.0000001":
            same_but(read, original(TINY)[2], "pmu", "device")
        else:
            assert not read["task"]
            lost(read, "device clocks that cannot be read")
        assert read["api"] == original(TINY)[2]["api"]
        shutil.rmtree(prof.parent)


def no_host() -> None:
    prof = copy_of(SMALL)
    shutil.rmtree(prof / "host")
    read = dump(prof)
    assert len(read["task"]) == len(original(SMALL)[2]["task"])
    assert not read["api"] and all(row["connection"] == NONE for row in read["task"])
    lost(read, "host directories that are missing")


def no_device() -> None:
    prof = copy_of(SMALL)
    shutil.rmtree(prof / "device_0")
    read = dump(prof)
    assert not read["task"] and read["api"] == original(SMALL)[2]["api"]
    lost(read, "launches that never ran")


def nothing() -> None:
    prof = Path(tempfile.mkdtemp(dir=SCRATCH))
    dump(prof, status=1)
    dump(prof / "no", status=1)
    (prof / "host").write_text("")
    (prof / "device_x").mkdir()
    (prof / "device_0").symlink_to("/etc/passwd")
    dump(prof, status=1)


def patch(path: Path, size: int, change: Callable[[int, bytearray], None]) -> int:
    """Changes records of a file in place; returns how many there are."""
    data = bytearray(path.read_bytes())
    for i in range(len(data) // size):
        record = data[i * size:(i + 1) * size]
        change(i, record)
        data[i * size:(i + 1) * size] = record
    path.write_bytes(data)
    return len(data) // size


def put(offset: int, layout: str, value: int) -> Callable[[int, bytearray], None]:
    def change(number: int, record: bytearray) -> None:
        if number % 7 == 3:
            struct.pack_into("<" + layout, record, offset, value)
    return change


def giant_numbers() -> None:
    host, device = "host/data/aging.", "device_0/data/"
    fields = [("compact.task_track", 64, ((16, "Q"), (24, "H"), (26, "H"), (28, "I"), (32, "Q"), (40, "Q"), (48, "H"))),
              ("compact.node_basic_info", 64, ((16, "Q"), (24, "Q"), (32, "I"), (36, "Q"), (44, "I"))),
              ("compact.hccl_op_info", 64, ((16, "Q"), (25, "B"), (34, "Q"), (42, "Q"))),
              ("compact.memcpy_info", 64, ((24, "Q"), (40, "H"))),
              ("additional.tensor_info", 256, ((16, "Q"), (32, "I"), (40, "I"), (48, "I"))),
              ("additional.context_id_info", 256, ((32, "I"), (36, "I"), (40, "I"))),
              ("additional.hccl_info", 256,
               ((24, "Q"), (56, "I"), (64, "I"), (68, "I"), (72, "Q"), (88, "Q"), (112, "Q"))),
              ("additional.msproftx", 256, ((64, "Q"), (72, "Q"), (80, "Q"), (26, "H"))),
              ("api_event.data", 40, ((2, "H"), (4, "I"), (8, "I"), (16, "Q"), (24, "Q"), (32, "Q"))),
              ("stars_soc.data.0", 64, ((0, "H"), (4, "H"), (6, "H"), (8, "Q"), (16, "H"), (18, "H"))),
              ("ffts_profile.data.0", 128,
               ((0, "H"), (16, "H"), (20, "H"), (32, "Q"), (48, "Q"), (112, "Q"), (120, "Q"))),
              ("ts_track.data.0", 40, ((0, "H"), (8, "Q"), (16, "Q"), (18, "H"), (24, "Q"), (36, "H")))]
    for name, size, positions in fields:
        for offset, layout in positions:
            bits = 8 * struct.calcsize(layout)
            for value in 2 ** bits - 1, 2 ** (bits - 1), 0:
                prof = copy_of(TINY)
                folder = device if name.endswith(".0") else host
                patch(prof / f"{folder}{name}.slice_0", size, put(offset, layout, value))
                read = dump(prof)
                model, = read["model"]
                for row in read["task"] + read["api"]:
                    assert model["start"] <= row["start"] <= row["end"] <= model["end"], row
                    assert row["end"] < 2 ** 63
                shutil.rmtree(prof.parent)


def impossible_times() -> None:
    prof = copy_of(SMALL)
    count = patch(prof / "device_0/data/stars_soc.data.0.slice_0", 64, put(8, "Q", 2 ** 63))
    read = dump(prof)
    assert lost(read, "records of stars_soc.data.0 at impossible times") == len(range(3, count, 7))
    prof = copy_of(SMALL)
    # 2^64 - 1 is the mark of a half; one less is a time.
    patch(prof / "host/data/aging.api_event.data.slice_0", 40, put(24, "Q", 2 ** 64 - 2))
    lost(dump(prof), "calls at impossible times")
    prof = copy_of(SMALL)
    patch(prof / "host/data/aging.api_event.data.slice_0", 40, put(24, "Q", 1))
    lost(dump(prof), "calls that end before they begin")


def by_task(tables: Tables, name: str) -> Counter:
    """Rows with their task's key in place of its row; numbers that follow the order are left out."""
    out: Counter = Counter()
    for row in tables[name]:
        task = tables["task"][row["task"]] if name != "task" else row
        rest = {k: v for k, v in row.items() if k not in ("id", "op") and (name == "task" or k != "task")}
        out[json.dumps([Comparison.key(task), task["start"], rest])] += 1
    return out


def counters_backwards() -> None:
    """A file whose records come in any order reads as the one in order, but for
    the order of tasks of the same start."""
    prof = copy_of(SMALL)
    random.seed(5)
    for name, size in ("stars_soc.data.0", 64), ("ts_track.data.0", 40), ("ffts_profile.data.0", 128):
        path = prof / f"device_0/data/{name}.slice_0"
        data = path.read_bytes()
        records = [data[i:i + size] for i in range(0, len(data), size)]
        if name.startswith("stars"):
            records.reverse()
        else:
            random.shuffle(records)
        path.write_bytes(b"".join(records))
    read, whole = dump(prof), original(SMALL)[2]
    same_but(read, whole, "task", "compute", "memcpy", "comm_task", "comm_op", "pmu")
    for table in "compute", "memcpy", "comm_task", "pmu":
        assert by_task(read, table) == by_task(whole, table), table
    assert by_task(read, "task") == by_task(whole, "task")


def impossible_counts() -> None:
    for name, value in ("tensor_info", 2 ** 32 - 1), ("tensor_info", 6), ("context_id_info", 2 ** 31), \
                       ("context_id_info", 56):
        prof = copy_of(SMALL)
        count = patch(prof / f"host/data/aging.additional.{name}.slice_0", 256, put(32, "I", value))
        assert lost(dump(prof), f"records of {name} with impossible counts") == len(range(3, count, 7))


def crowded_call() -> None:
    """One call of a thread of its own with as many launches as operators,
    then with as many parts of a collective."""
    many = 20000
    for level, name in (10000, "aging.compact.node_basic_info"), (5500, "aging.additional.hccl_info"):
        prof = copy_of(SMALL)
        data, records = prof / "host/data", defaultdict(list)
        calls = records_of(data / "aging.api_event.data.slice_0", 40)
        begin = max(struct.unpack_from("<Q", call, 16)[0] for call in calls) + 10 ** 6
        for kind in {10000, level}:
            call = struct.pack("<HHIIIQQQ", 0x5A5A, kind, 5, 7, 0, begin, begin + 2 * many, 1)
            records["aging.api_event.data"].append(call)
        for number in range(many):
            def record(kind: int, of: int, content: bytes, size: int) -> bytes:
                head = struct.pack("<HHIIIQ", 0x5A5A, kind, of, 7, size - 24, begin + 1 + number)
                return (head + content).ljust(size, b"\0")
            track = record(5000, 802, struct.pack("<HHIQ", 0, 9, number, 0), 64)
            payload = record(level, 0, struct.pack("<QIQI", number, 0, 1, 1), 64) if level == 10000 else \
                record(level, 10, struct.pack("<44xI", 5), 256)
            for base, one in ("aging.compact.task_track", track), (name, payload):
                records[base].append(one)
        for base, content in records.items():
            with (data / f"{base}.slice_0").open("ab") as file:
                file.write(b"".join(content))
        read = dump(prof)
        same_but(read, original(SMALL)[2], "api")
        if level == 10000:
            assert lost(read, "operators of calls with impossibly many launches") == many
        else:
            assert lost(read, "collectives with impossibly many tasks") == 1


def lost_records() -> None:
    prof = copy_of(SMALL)
    path = prof / "device_0/data/stars_soc.data.0.slice_0"
    data = path.read_bytes()
    missing = [100, 101, 500, 777]
    records = [data[i:i + 64] for i in range(0, len(data), 64)]
    path.write_bytes(b"".join(r for i, r in enumerate(records) if i not in missing))
    read = dump(prof)
    assert lost(read, "records of stars_soc.data.0 that the device lost") == len(missing)
    whole = original(SMALL)[2]
    assert len(whole["task"]) - len(missing) <= len(read["task"]) < len(whole["task"])


def names() -> None:
    prof = copy_of(SMALL)
    path = prof / "host/data/unaging.additional.hash_dic.slice_0"
    lines = path.read_bytes().split(b"\n")
    wanted = {}
    for number, (line, name) in enumerate(zip(lines, (b"nul\0inside", b"\xff\xfe", b"\xc3", b"", b"a\x1b[31mred",
                                                      "\u202eright".encode()))):
        number = 60 + number * 3
        key, old = lines[number].split(b":", 1)
        lines[number] = key + b":" + name
        wanted[old.decode()] = clean(name)
    path.write_bytes(b"\n".join(lines))
    read, whole = dump(prof), original(SMALL)[2]
    for one, two in zip(read["compute"], whole["compute"]):
        assert one["name"] == wanted.get(two["name"], two["name"])


def random_damage() -> None:
    """Bytes are changed anywhere: only an orderly end is expected."""
    rounds = int(os.environ.get("NPS_ROUNDS", "12"))
    files = [p.relative_to(original(TINY)[0]) for p in original(TINY)[0].rglob("*") if p.is_file()]
    for seed in range(rounds):
        random.seed(seed)
        prof = copy_of(TINY)
        for name in files:
            data = bytearray((prof / name).read_bytes())
            for _ in range(random.choice((0, 1, 5, 100))):
                if data:
                    data[random.randrange(len(data))] = random.randrange(256)
            if random.random() < .1:
                at = random.randrange(len(data) + 1)
                data[at:at] = random.randbytes(random.randrange(200))
            (prof / name).write_bytes(data)
        dump(prof, status=None)
        shutil.rmtree(prof.parent)


def before_stars() -> None:
    """The same tasks as a chip of 2019 logs them."""
    options = "--tasks 4000 --comm-every 0 --pmu --threads 2 --streams 2 --event-every 5 --model 9"
    prof, whole = copy_of(options), original(options)[2]
    data = prof / "device_0/data"
    logs = bytearray()
    for record in records_of(data / "stars_soc.data.0.slice_0", 64):
        head, _, stream, task, count = struct.unpack_from("<HHHHQ", record)
        new = bytearray(64)
        struct.pack_into("<BB4xHQI", new, 0, head & 1, head >> 10, task, count, stream)
        logs += new
    counters = bytearray()
    for record in records_of(data / "ffts_profile.data.0.slice_0", 128):
        new = bytearray(128)
        new[6:8], new[16:24], new[32:96] = record[6:8], record[32:40], record[48:112]
        struct.pack_into("<I", new, 96, *struct.unpack_from("<H", record, 4))
        counters += new
    for path in data.iterdir():
        path.unlink()
    (data / "hwts.data.0.slice_0").write_bytes(logs)
    (data / "aicore.data.0.slice_0").write_bytes(counters)
    for path in prof / "device_0/info.json.0", prof / "host/info.json":
        edit_json(path, lambda j: j.update(platform_version="1"))
    read = dump(prof)
    same_but(read, whole, "pmu", "device")
    cycles = [{row["task"]: row["value"] for row in tables["pmu"] if row["name"].endswith("total_cycles")
               and row["value"]}
              for tables in (read, whole)]
    assert cycles[0] == cycles[1] and cycles[0]
    assert {row["name"] for row in read["pmu"]} >= {"total_cycles", "mac_ratio", "scalar_time"}


def records_of(path: Path, size: int) -> list[bytes]:
    data = path.read_bytes()
    return [data[i:i + size] for i in range(0, len(data), size)]


DAMAGE = [before_stars, slice_missing, slices_swapped, slices_doubled, records_doubled, cut_anywhere, cut_in_the_middle,
          aged,
          foreign_files, control_files, frequencies, no_host, no_device, nothing, giant_numbers, impossible_times,
          counters_backwards, impossible_counts, crowded_call,
          lost_records, names, random_damage]


def main() -> int:
    words = sys.argv[1:]
    tests = Tests()
    try:
        for damage in DAMAGE:
            if not words or any(word in damage.__name__ for word in words):
                tests.run(damage.__name__.replace("_", " "), damage)
    finally:
        shutil.rmtree(SCRATCH)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
