#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Imports raw captures of known content (tests/cannraw) and compares
every row with the truth; then damages them.

    test_cann_import.py [WORD...]     only the sets of options and kinds of damage whose name holds a WORD

NPS_CANN_DUMP names another build of tests/cann_dump.c, one with sanitizers for example.
"""

from __future__ import annotations

import functools
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Callable, Iterable

sys.dont_write_bytecode = True

from harness import ROOT, SOAK, Tests, dump_program as compiled_dump, raw_data_program  # noqa: E402

BUILD = ROOT / "build"
SCRATCH = Path(tempfile.mkdtemp(prefix="npuscope-cann-"))
NONE = 4294967295

MANY = "--comm-every 7 --memcpy-every 5 --event-every 6 --aicpu-every 11 --bare-every 13 --ffts-every 9 " \
       "--mstx-every 8 --model 6 --step-trace --pmu --shapes"
SETS = [
    "--tasks 1 --comm-every 0",
    "--tasks 4000",
    "--tasks 2000 --level 0 --ffts-every 4 --model 3",
    "--tasks 2000 --level 1 --host-counter none",
    f"--tasks 4000 {MANY}",
    f"--tasks 4000 {MANY} --level 1 --straddle --no-done --host-counter 2593.905 --device-mhz 38.4",
    f"--tasks 3000 {MANY} --nasty-names --devices 3 --threads 6 --mangle --ffts-parent --seed 12345",
    f"--tasks 3000 {MANY} --devices 4 --threads 2 --streams 3 --comm-ffts --comm-tasks 9 --cann-version 8.5.0",
    f"--tasks 2000 {MANY} --unique-names --threads 1 --streams 1",
    "--tasks 9000 --flip --threads 8 --streams 2 --event-every 9 --mangle",
    f"--tasks {60000 if SOAK else 12000} --flip --level 0 --threads 3 --comm-every 0",
    "--tasks 6000 --flip --threads 1 --devices 2 --model 5 --step-trace",
    "--tasks 6000 --chip 15 --memcpy-every 9 --event-every 4 --aicpu-every 8 --pmu --model 4 --mstx-every 7 "
    "--devices 2",
    f"--tasks {60000 if SOAK else 12000} --comm-every 10 --pmu",
]

Row = dict[str, Any]
Tables = dict[str, list[Row]]

TYPES = {0: "FLOAT", 1: "FLOAT16", 3: "INT32", 27: "DT_BF16"}
FORMATS = {0: "NCHW", 2: "ND", 3: "NC1HWC0", 29: "FRACTAL_NZ"}
CLASSES = {"compute": 1, "memcpy": 2, "event": 3, "comm": 4, "device_only": 5}
SQE = {"AI_CORE": "AI_CORE", "AI_CPU": "AI_CPU", "AIV": "AIV_SQE", "EVENT_RECORD": "EVENT_RECORD_SQE",
       "EVENT_WAIT": "EVENT_WAIT_SQE", "NOTIFY_RECORD": "NOTIFY_RECORD_SQE", "NOTIFY_WAIT": "NOTIFY_WAIT_SQE",
       "SDMA": "SDMA_SQE", "PCIE_DMA": "PCIE_DMA_SQE"}
SQE_V6 = {0: "AIC", 1: "AIV", 5: "AICPU_D", 6: "NOTIFY_RECORD_SQE", 7: "NOTIFY_WAIT_SQE", 10: "ASYNCDMA",
          11: "SDMA_SQE"}
SUBS = {0: "AIC", 1: "AIV", 3: "Notify Wait", 4: "Notify Record", 6: "MIX_AIC", 7: "MIX_AIV", 8: "SDMA"}
BARE_CORES = {"KERNEL_AICORE": "AI_CORE", "KERNEL_AIVEC": "AI_VECTOR_CORE", "KERNEL_AICPU": "AI_CPU",
              "KERNEL_MIX_AIC": "MIX_AIC", "KERNEL_MIX_AIV": "MIX_AIV"}
MODES = {1: "ACL_OP", 2: "ACL_MODEL", 3: "ACL_RTS", 4: "ACL_OTHERS", 5: "ACL_NN", 7: "HOST_HCCL"}
AIC_EVENTS = [0x416, 0x417, 0x9, 0x302, 0xc, 0x303, 0x54, 0x55]
AIV_EVENTS = [0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55]
PARTS = [("mac", [0x416, 0x417]), ("scalar", [0x9]), ("mte1", [0x302]), ("mte2", [0xc]), ("fixpipe", [0x303])], \
        [("vec", [0x8]), ("mac", [0xa]), ("scalar", [0x9]), ("mte1", [0xb]), ("mte2", [0xc]), ("mte3", [0xd])]
MHZ, CORES = 1850, (24, 48)


# --- programs -----------------------------------------------------------------------------------------------

@functools.cache
def dump_program() -> Path:
    if "NPS_CANN_DUMP" in os.environ:
        return Path(os.environ["NPS_CANN_DUMP"])
    return compiled_dump("cann_dump", BUILD, SCRATCH)


@functools.cache
def witness() -> Path:
    return raw_data_program(BUILD, SCRATCH)


def tables_of(lines: Iterable[str], key: str) -> Tables:
    out: Tables = defaultdict(list)
    # at once: one after another, millions of rows take minutes
    for row in json.loads(f"[{','.join(lines)}]"):
        out[row[key]].append(row)
    return out


def generate(options: str, where: Path) -> tuple[Path, Tables]:
    truth = where / "truth"
    done = subprocess.run([witness(), *options.split(), "--truth", truth, where / "out"], capture_output=True,
                          text=True, check=True)
    with truth.open(encoding="utf-8") as file:
        return Path(done.stdout.strip()), tables_of(file, "k")


def dump(prof: Path, status: int | None = 0) -> Tables:
    done = subprocess.run([dump_program(), prof], capture_output=True, check=False, timeout=300,
                          env={**os.environ, "TMPDIR": str(SCRATCH)})
    error = done.stderr.decode(errors="replace")
    assert "Sanitizer" not in error and "runtime error" not in error, error[:3000]
    assert done.returncode == status if status is not None else done.returncode in (0, 1), \
        f"status {done.returncode}: {error[:2000]}"
    return tables_of(done.stdout.decode().split("\n")[:-1], "t")


def losses(tables: Tables) -> dict[str, int]:
    return tables["model"][0]["losses"]


# --- comparison ---------------------------------------------------------------------------------------------

def clean(data: bytes) -> str:
    """Text as the model keeps it: each wrong byte as U+FFFD."""
    try:
        if b"\0" not in data:
            return data.decode()
    except UnicodeDecodeError:
        pass
    out = ""
    while data:
        for size in (1, 2, 3, 4):
            try:
                char = data[:size].decode()
            except UnicodeDecodeError:
                continue
            if char and char != "\0":
                out, data = out + char, data[size:]
                break
        else:
            out, data = out + "\ufffd", data[1:]
    return out


def text_of(row: Row, key: str) -> str | None:
    if row.get(key) is None:
        return None
    return clean(bytes.fromhex(row[key + "_hex"]) if key + "_hex" in row else row[key].encode())


def agree(what: str, got: Row, **fact: object) -> None:
    wrong = {key: (got[key], value) for key, value in fact.items() if got[key] != value}
    assert not wrong, f"{what}: (read, truth) {wrong!r:.800} in {got!r:.600}"


def one_each(what: str, rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, Row]:
    out: dict[Any, Row] = {}
    for row in rows:
        assert key(row) not in out, f"{what}: {key(row)} twice"
        out[key(row)] = row
    return out


def ascending(what: str, values: Iterable[int]) -> None:
    values = list(values)
    assert values == sorted(values), f"{what}: not in order"


TaskKey = tuple[int, ...]


class Comparison:
    """What was read of one capture beside what is true."""

    def __init__(self, options: str, read: Tables, truth: Tables) -> None:
        self.words = options.split()
        self.read, self.truth = read, truth
        self.v6 = "--chip 15" in options
        self.level = int(self.words[self.words.index("--level") + 1]) if "--level" in self.words else 2
        self.pid = 4242
        self.calls: dict[int, int] = {}          # of the truth -> connection
        self.tasks: dict[TaskKey, Row] = {}      # by key and start

    @staticmethod
    def key(row: Row) -> TaskKey:
        return tuple(row[k] for k in ("device", "stream", "task", "batch", "context"))

    def all(self) -> None:
        self.check_api()
        self.check_tasks()
        self.check_kernels()
        self.check_copies()
        self.check_collectives()
        self.check_parts()
        self.check_pmu()
        self.check_mstx()
        self.check_steps()
        self.check_model()

    def check_api(self) -> None:
        rows = one_each("api", self.read["api"], lambda r: (r["gtid"], r["type"], r["start"], r["end"]))
        assert len(rows) == len(self.truth["api"])
        ascending("api", (row["start"] for row in self.read["api"]))
        for fact in self.truth["api"]:
            gtid = self.pid << 32 | fact["tid"]
            row = rows[gtid, fact["level"], fact["begin_ns"], fact["end_ns"]]
            item = text_of(fact, "item_name")
            mode = {20000: MODES.get(fact["type"] >> 16), 5500: fact["name"]}.get(fact["level"])
            agree("api", row, name=item if fact["level"] == 5500 else fact["name"], mode=mode,
                  item=item if fact["level"] in (10000, 5500) else None)
            self.calls[fact["id"]] = row["connection"]
        assert len(set(self.calls.values())) == len(self.calls)

    def connection(self, fact: Row) -> int:
        return NONE if fact["conn"] < 0 else self.calls[fact["conn"]]

    def hardware(self, fact: Row) -> str:
        if fact["context"] != NONE:
            return SUBS[fact["sub"]]
        return SQE_V6[fact["sqe"]] if self.v6 else SQE[fact["sqe_name"]]

    def check_tasks(self) -> None:
        self.tasks = one_each("task", self.read["task"], lambda r: self.key(r) + (r["start"], r["end"]))
        assert len(self.tasks) == len(self.truth["task"])
        ascending("task", (row["start"] for row in self.read["task"]))
        for number, row in enumerate(self.read["task"]):
            row["row"] = number
        for fact in self.truth["task"]:
            row = self.tasks[self.key(fact) + (fact["start_ns"], fact["end_ns"])]
            fact["row"] = row["row"]
            hardware = self.hardware(fact)
            other = fact["host_type"] or hardware
            agree("task", row, **{"class": CLASSES[fact["class"]]}, type=other, hw_type=hardware,
                  name=text_of(fact, "name") if fact["class"] == "compute" else other, kernel=text_of(fact, "kernel"),
                  connection=self.connection(fact), model=fact["model"], pid=self.pid, source=1,
                  submit=fact.get("track_ns", 0) if fact["model"] == NONE else 0)

    def check_kernels(self) -> None:
        rows = one_each("compute", self.read["compute"], lambda r: r["task"])
        ascending("compute", rows)
        kernels = [fact for fact in self.truth["task"] if fact["class"] == "compute"]
        assert len(rows) == len(kernels)
        for fact in kernels:
            row = rows[fact["row"]]
            bare = self.level and fact["type"] is None
            agree("compute", row, name=text_of(fact, "name"), type=fact["type"],
                  core=BARE_CORES[fact["host_type"]] if bare else fact["core"],
                  state={None: None, 0: "static", 1: "dynamic"}[fact.get("op_state")],
                  hf32={None: None, False: "NO", True: "YES"}[fact.get("hf32")])
            # At level 0 only the whole graph's blocks are recorded.
            if self.level or fact["host_type"] != "FFTS_PLUS":
                agree("compute", row, blocks=fact["blocks"], mix_blocks=fact["mix_blocks"])
            for kind, name in enumerate(("input", "output")):
                tensors = [tensor for tensor in fact.get("tensors") or [] if tensor[0] == kind]
                agree("compute", row, **{
                    f"{name}_formats": ";".join(FORMATS[t[1]] for t in tensors) if tensors else None,
                    f"{name}_types": ";".join(TYPES[t[2]] for t in tensors) if tensors else None,
                    f"{name}_shapes": ";".join(",".join(map(str, t[3])) for t in tensors) if tensors else None})

    def by_key(self) -> dict[TaskKey, list[Row]]:
        out = defaultdict(list)
        for row in self.read["task"]:
            out[self.key(row)].append(row)
        return out

    def check_copies(self) -> None:
        rows = one_each("memcpy", self.read["memcpy"], lambda r: r["task"])
        tasks = self.by_key()
        assert len(rows) == len(self.truth["memcpy"])
        ascending("memcpy", rows)
        for fact in self.truth["memcpy"]:
            task, = tasks[self.key(fact)]
            agree("memcpy", rows[task["row"]], size=fact["bytes"], operation=fact["direction"])

    def op_names(self) -> dict[int, str]:
        """Names of collectives by number: counted in each device's groups in the order of their calls."""
        counts: Counter = Counter()
        names = {}
        for fact in sorted(self.truth["comm_op"], key=lambda r: r["host_begin_ns"]):
            h29 = h131 = 0
            for byte in fact["group"].encode():
                h29, h131 = (h29 * 29 + byte) % 2 ** 32, (h131 * 131 + byte) % 2 ** 32
            digits = str(h29 << 32 | h131)[-3:]
            names[fact["op"]] = f"{fact['name']}_{digits}_{counts[fact['device'], fact['group']]}_1"
            counts[fact["device"], fact["group"]] += 1
        return names

    def check_collectives(self) -> None:
        rows = one_each("comm_op", self.read["comm_op"], lambda r: r["connection"])
        names = self.op_names()
        assert len(rows) == len(self.truth["comm_op"])
        ascending("comm_op", (row["start"] for row in self.read["comm_op"]))
        one_each("comm_op", self.read["comm_op"], lambda r: r["id"])
        ranks = {fact["op"]: fact["ranks"] for fact in self.truth["comm_task"]}
        spans, tasks = defaultdict(list), {self.key(row): row for row in self.truth["task"]}
        for fact in self.truth["comm_task"]:  # the master plane's: all of a graph, else the main stream's
            if "--comm-ffts" in self.words or fact["plane"] == 0:
                spans[fact["op"]].append(tasks[self.key(fact)])
        for fact in self.truth["comm_op"]:
            agree("comm_op", rows[self.connection(fact)], name=names[fact["op"]],
                  start=min(task["start_ns"] for task in spans[fact["op"]]),
                  end=max(task["end_ns"] for task in spans[fact["op"]]), group=fact["group"], relay=int(fact["relay"]),
                  retry=int(fact["retry"]),
                  dtype=fact["dtype"], algorithm=fact["alg"], count=fact["count"], type=fact["name"],
                  device=fact["device"], tasks=fact["tasks"], measured=fact["tasks"], model=NONE,
                  ranks=ranks[fact["op"]])

    def check_parts(self) -> None:
        rows = one_each("comm_task", self.read["comm_task"], lambda r: r["task"])
        ops = {row["id"]: row for row in self.read["comm_op"]}
        names, tasks = self.op_names(), self.by_key()
        graph = "--comm-ffts" in self.words
        assert len(rows) == len(self.truth["comm_task"])
        ascending("comm_task", rows)
        for fact in self.truth["comm_task"]:
            task, = tasks[self.key(fact)]
            row = rows[task["row"]]
            agree("comm_task", row, name=names[fact["op"]], type=fact["name"], plane=fact["plane"],
                  group=fact["group"], notify=fact["notify"], src=fact["local"], dst=fact["remote"],
                  transport=fact["transport"], size=fact["bytes"], dtype=fact["dtype"], link=fact["link"],
                  rdma_type=65535, master=int(graph or fact["plane"] == 0), estimate=fact["bytes"] / 20000)
            assert ops[row["op"]]["connection"] == self.connection(fact)
            assert math.isclose(row["bandwidth"], fact["bytes"] * 1e9 / (task["end"] - task["start"]))

    def numbers(self, fact: Row, task: Row) -> dict[str, float]:
        """What the counters of one kernel come to (outputs 3.2)."""
        core = {"AIC": 0, "MIX_AIC": 0}.get(fact["core"], 1)
        cycles, values = [0, 0], [[0] * 8, [0] * 8]
        cycles[core], values[core] = fact["cycles"], fact["values"]
        if fact["block_records"]:
            cycles[1 - core], values[1 - core] = fact["block_cycles"], fact["block_values"]
        out: dict[str, float] = {}
        for core_kind, prefix in enumerate(("aic", "aiv")):
            blocks = max(1, task["blocks"] if core_kind == core else task["mix_blocks"])
            total = cycles[core_kind] * 1000 / blocks * math.ceil(blocks / CORES[core_kind]) / MHZ
            event = dict(zip((AIC_EVENTS, AIV_EVENTS)[core_kind], values[core_kind]))
            out[f"{prefix}_total_time"], out[f"{prefix}_total_cycles"] = total, cycles[core_kind]
            for name, events in PARTS[core_kind]:
                ratio = sum(event[e] for e in events) / cycles[core_kind] if cycles[core_kind] else 0
                out[f"{prefix}_{name}_ratio"], out[f"{prefix}_{name}_time"] = ratio, total * ratio
            out[f"{prefix}_icache_miss_rate"] = event[0x55] / event[0x54] if event[0x54] else 0
        return out

    def check_pmu(self) -> None:
        rows: dict[int, dict[str, float]] = defaultdict(dict)
        ascending("pmu", (row["task"] for row in self.read["pmu"]))
        for row in self.read["pmu"]:
            assert row["name"] not in rows[row["task"]], f"{row} twice"
            rows[row["task"]][row["name"]] = row["value"]
        assert len(rows) == len(self.truth["pmu"])
        truth = {fact["row"]: fact for fact in self.truth["task"]}
        for fact in self.truth["pmu"]:
            task = self.tasks[self.key(fact) + (fact["start_ns"], fact["end_ns"])]
            got, want = rows[task["row"]], self.numbers(fact, truth[task["row"]])
            assert got.keys() == want.keys(), (sorted(got), sorted(want))
            for name, value in want.items():
                assert math.isclose(got[name], value, rel_tol=1e-12), f"{name}: {got[name]}, truth {value}: {fact}"

    def check_mstx(self) -> None:
        rows = one_each("mstx", self.read["mstx"], lambda r: r["range"])
        assert len(rows) == len(self.truth["mstx"])
        ascending("mstx", (row["start"] for row in self.read["mstx"]))
        for fact in self.truth["mstx"]:
            gtid = self.pid << 32 | fact["tid"]
            agree("mstx", rows[fact["mark_id"]], start=fact["start_ns"], end=fact["end_ns"],
                  type={"range": 2, "mark": 3}[fact["event"]], message=text_of(fact, "message"), gtid=gtid,
                  end_gtid=gtid, domain=fact["domain"], connection=fact["mark_id"] + 4000000001,
                  device_start=fact.get("dev_start_ns", 0), device_end=fact.get("dev_end_ns", 0))

    def check_steps(self) -> None:
        times: dict[tuple, dict[int, int]] = defaultdict(dict)
        for fact in self.truth["step"]:
            if fact["tag"] not in (11, 12):
                times[fact["device"], fact["model"], fact["index"]][fact["tag"]] = fact["time_ns"]
        rows = one_each("iteration", self.read["iteration"], lambda r: (r["device"], r["model"], r["id"]))
        assert rows.keys() == times.keys(), (len(rows), len(times))
        parts = []
        for key, tags in times.items():
            if 60000 in tags:
                agree("iteration", rows[key], start=tags[60000], end=tags[60001], fp_start=0, bp_end=0)
                continue
            agree("iteration", rows[key], start=tags[0], end=tags[4], fp_start=tags[2], bp_end=tags[3])
            parts += [key + (0, tags[10000], tags[10001]), key + (1, tags[20000], tags[20001])]
        got = [tuple(row[k] for k in ("device", "model", "id", "kind", "start", "end"))
               for row in self.read["iteration_part"]]
        assert Counter(got) == Counter(parts)

    def check_model(self) -> None:
        model, = self.read["model"]
        expected = {"launches that never ran": len(self.truth["host_only"]),
                    # A name with a newline goes on in a line that names nothing.
                    "lines of unaging.additional.hash_dic without an entry": "--nasty-names" in self.words}
        assert model["losses"] == {what: count for what, count in expected.items() if count}, model["losses"]
        agree("model", model, pid=self.pid, level=self.level)
        for table, first, last in ("task", "start", "end"), ("api", "start", "end"), ("mstx", "start", "end"):
            for row in self.read[table]:
                assert model["start"] <= row[first] <= row[last] <= model["end"]


def check_set(options: str) -> None:
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        prof, truth = generate(options, Path(folder))
        Comparison(options, dump(prof), truth).all()


# --- damage -------------------------------------------------------------------------------------------------

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
        for options in SETS:
            if not words or any(word in options for word in words):
                tests.run(options, functools.partial(check_set, options))
        for damage in DAMAGE:
            if not words or any(word in damage.__name__ for word in words):
                tests.run(damage.__name__.replace("_", " "), damage)
    finally:
        shutil.rmtree(SCRATCH)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
