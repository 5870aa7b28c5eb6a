# SPDX-License-Identifier: BSD-2-Clause
"""A raw capture of known content (tests/cannraw), what is read of it, and what both have to have in common.

NPS_CANN_DUMP names another build of tests/cann_dump.c, one with sanitizers for example.
"""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Callable, Iterable

from harness import ROOT, dump_program as compiled_dump, raw_data_program

BUILD = ROOT / "build"
SCRATCH = Path(tempfile.mkdtemp(prefix="npuscope-cann-"))
NONE = 4294967295

MANY = "--comm-every 7 --memcpy-every 5 --event-every 6 --aicpu-every 11 --bare-every 13 --ffts-every 9 " \
       "--mstx-every 8 --model 6 --step-trace --pmu --shapes"

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
