#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Import generated small files of CANN captures and hold every sample against the generator's truth file.

Samples are compared through the database, the tables of counters and the counters of the trace; what they
must be is computed here from the truth. NPS_BUILD names another build directory, NPS_CANN_SIDE the program of
tests/unit/test_cann_aux.c, which imports these files only; one with sanitizers for example.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Callable, Iterable, Iterator, Optional

from harness import ROOT, Skip, Tests

Row = dict
Cells = tuple

BUILD = Path(os.environ.get("NPS_BUILD", ROOT / "build"))
AUX = ROOT / "tests" / "cannraw_aux" / "sidecars.py"
MB = 1 << 20
MHZ = 1800
INCOMPLETE = 3
CASES = ["", "--samples 1", "--samples 700 --seed 9", "--version2", "--aged --slice-bytes 777", "--slice-bytes 1000",
         "--host-mhz none --no-done", "--host-mhz 2399.87 --device-mhz 48.5", "--wrap --samples 200", "--device 3",
         "--version2 --aged --slice-bytes 4096 --seed 4"]
PCIE = [name + stat for name in ("txPost", "txNonpost", "txCpl", "txNonpostLatency", "rxPost", "rxNonpost", "rxCpl")
        for stat in ("Min", "Max", "Avg")]
NETDEV = ["macTxPfcPkt", "macRxPfcPkt", "macTxByte", "macTxBandwidth", "macRxByte", "macRxBandwidth", "macTxBadByte",
          "macRxBadByte", "roceTxPkt", "roceRxPkt", "roceTxErrPkt", "roceRxErrPkt", "roceTxCnpPkt", "roceRxCnpPkt",
          "roceNewPktRty", "nicTxByte", "nicTxBandwidth", "nicRxByte", "nicRxBandwidth"]
PORT = ["bandwidth", *(way + what for way in ("rx", "tx") for what in (
    "PacketRate", "ByteRate", "Packets", "Bytes", "Errors", "Dropped")), "funcId"]
DVPP_ENGINES = dict(enumerate(("VDEC", "JPEGD", "PNGD", "JPEGE", "VPC", "VENC", "SCD")))
SIO = ["rxReq", "rxRsp", "rxSnp", "rxDat", "txReq", "txRsp", "txSnp", "txDat"]
SIO_COUNTERS = ["req_rx", "rsp_rx", "snp_rx", "dat_rx", "req_tx", "rsp_tx", "snp_tx", "dat_tx"]


class Capture:
    """What was generated, what is true of it, and where its results are."""

    def __init__(self, where: Path, options: str) -> None:
        words = options.split()
        self.device = int(words[words.index("--device") + 1]) if "--device" in words else 0
        self.tick_ns = 1000 / float(words[words.index("--device-mhz") + 1] if "--device-mhz" in words else 50)
        truth = where / "truth"
        done = run([sys.executable, AUX, where, "--make", *words, "--truth", truth])
        self.prof = Path(done.splitlines()[-1])
        self.truth: dict[str, list[Row]] = defaultdict(list)
        for text in truth.read_text().splitlines():
            item = json.loads(text)
            if item["file"] is not None:
                self.truth[item["file"].removesuffix(f".{self.device}")].append(item)
        self.out = where / "out"
        self.out.mkdir()
        self.losses = convert(self.prof, self.out)
        self.db = sqlite3.connect(next(self.out.rglob("msprof_*.db")))
        self.db.row_factory = sqlite3.Row
        self.counters = read_counters(next(self.out.rglob("msprof_*.json")))
        self.sync, self.offset = self.clocks()

    def clocks(self) -> tuple[int, int]:
        """Unix ns of the moment the device was synchronised, and what makes its raw ns Unix ns."""
        folder = self.prof / f"device_{self.device}"
        start = json.loads((folder / f"start_info.{self.device}").read_text())
        wall = int(start["collectionTimeBegin"]) * 1000 - int(start["clockMonotonicRaw"])
        raw = [int((folder / f"{name}.log.{self.device}").read_text().split("clock_monotonic_raw:")[1].split()[0])
               for name in ("host_start", "dev_start")]
        return raw[0] + wall, raw[0] + wall - raw[1]

    def of(self, file: str, table: Optional[str] = None, *rules: str) -> list[Row]:
        """Lines of a file's truth; with TABLE None those that have one."""
        return [item for item in self.truth.get(file, []) if (item["table"] == table if table else item["table"])
                and (not rules or item["rule"] in rules)]

    def table(self, name: str, columns: Iterable[str], strings: Iterable[str] = ()) -> list[Cells]:
        """Rows of the database; columns in STRINGS are texts."""
        cells = [f"(SELECT value FROM STRING_IDS WHERE id = {column})" if column in set(strings) else column
                 for column in columns]
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone():
            return []
        return [tuple(row) for row in self.db.execute(f"SELECT {', '.join(cells)} FROM {name}")]

    def csv(self, stem: str) -> list[Row]:
        """Rows of a table; there may be none."""
        for path in self.out.rglob(f"{stem}_2*.csv"):
            with open(path, encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))
        return []

    def counter(self, process: str, name: str) -> list[Cells]:
        """(time text, values of the series) of a counter in the trace."""
        return self.counters.get((process, name), [])


def run(command: list) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stdout} {done.stderr}"
    return done.stdout


def convert(prof: Path, out: Path) -> str:
    """What was lost, one kind a line; INCOMPLETE is the status of a result that lacks something."""
    program = BUILD / "npuscope"
    command = [program, "analyze", prof, "--export", "db,text", "-o", out]
    if "NPS_CANN_SIDE" in os.environ:
        program = Path(os.environ["NPS_CANN_SIDE"])
        command = [program, prof, out]
    if not program.exists():
        raise Skip(f"{program} is missing: make")
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode in (0, INCOMPLETE), f"{program}: status {done.returncode}: {done.stdout} {done.stderr}"
    return (done.stdout + done.stderr).replace("npuscope: not in the result: ", "")


def read_counters(path: Path) -> dict[tuple[str, str], list[Cells]]:
    document = json.loads(path.read_text())
    events = document if isinstance(document, list) else document["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    found: dict[tuple[str, str], list[Cells]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            found[names[event["pid"]], event["name"]].append((event["ts"], *event["args"].values()))
    return found


# --- comparison ---------------------------------------------------------------------------------------------

def key_of(row: Cells) -> list:
    """What cannot differ a little comes first."""
    return [("" if isinstance(cell, float) else str(cell)) for cell in row] + \
        [cell if isinstance(cell, float) else 0.0 for cell in row]


def close(a: object, b: object, absolute: float) -> bool:
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return math.isclose(a, b, rel_tol=1e-8, abs_tol=absolute)
    return a == b


def match(name: str, found: list[Cells], expected: list[Cells], absolute: float = 1e-6) -> int:
    """Both have the same rows, in any order; how many."""
    assert len(found) == len(expected), f"{name}: {len(found)} rows, {len(expected)} expected"
    # a number that was computed may be whole in one of the two
    plain = [tuple(float(cell) if isinstance(other, float) and isinstance(cell, int) else cell
                   for cell, other in zip(row, expected[0])) for row in found] if expected else []
    for got, want in zip(sorted(plain, key=key_of), sorted(expected, key=key_of)):
        for at, (a, b) in enumerate(zip(got, want)):
            assert close(a, b, absolute), f"{name}: {got} found, {want} expected: cell {at}"
    return len(expected)


def in_order(name: str, rows: list[Cells], column: int) -> None:
    times = [row[column] for row in rows]
    assert times == sorted(times), f"{name}: not in order of time"


def stamp(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}"


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def number(text: str) -> object:
    text = text.strip()
    try:
        return float(text)
    except ValueError:
        return text


# --- what rows must be --------------------------------------------------------------------------------------

def hbm(c: Capture) -> list[Cells]:
    return [(c.device, item["ns"], float(item["raw"]["count"] * 32 * 10**9 // gap if gap else 0), item["row"]["hbmId"],
             item["row"]["type"]) for item in c.of("hbm.data") for gap in (item["raw"]["gap_ns"],)]


def llc(c: Capture) -> list[Cells]:
    samples: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    for item in c.of("llc.data"):
        samples[item["row"]["llcId"], item["ns"]][item["raw"]["event"]] = item["raw"]["count"]
        mode = item["row"]["mode"]
    last: dict[int, int] = {}
    rows = []
    for (unit, ns), events in sorted(samples.items()):
        gap = ns - last[unit] if unit in last else 0
        last[unit] = ns
        lines = events.get(0, 0) + events.get(1, 0)
        rows.append((c.device, unit, ns, 0.0, float(lines * 4096 * 10**9 // gap if gap else 0), mode))
    return rows


def ddr(c: Capture) -> list[Cells]:
    samples: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for item in c.of("ddr.data"):
        samples[item["ns"]][item["raw"]["event"]] += item["raw"]["count"]
    last, rows = c.sync, []
    for ns, counts in sorted(samples.items()):
        rows.append((c.device, ns, *(float(count * 16 * 10**9 // (ns - last)) for count in counts)))
        last = ns
    return rows


def npu_mem(c: Capture) -> list[Cells]:
    return [(item["row"]["type"], item["row"]["ddr"], item["row"]["hbm"], item["ns"], c.device)
            for file in ("npu_mem.data", "npu_mem.app") for item in c.of(file)]


def module_mem(c: Capture) -> list[Cells]:
    return [(item["row"]["moduleId"], item["ns"], item["row"]["totalReserved"], c.device)
            for item in c.of("npu_module_mem.data")]


def qos(c: Capture) -> list[Cells]:
    return [(c.device, item["row"]["eventName"], float(item["raw"]["bandwidth"] * MB), item["ns"])
            for file in ("qos.data", "stars_soc_profile.data") for item in c.of(file, "QOS")]


def pcie(c: Capture) -> list[Cells]:
    return [(c.device, item["ns"], *(float(item["raw"][name] * (1 if "Latency" in name else 10**6)) for name in PCIE))
            for item in c.of("pcie.data")]


def ub(c: Capture) -> list[Cells]:
    return [(c.device, item["row"]["portId"], item["ns"], float(item["raw"]["rxUdmaBind"]),
             float(item["raw"]["txUdmaBind"])) for item in c.of("ub.data")]


def hccs(c: Capture) -> list[Cells]:
    return [(c.device, item["ns"], *(float(raw[way] * 10**9 // raw["gap_ns"]) for way in ("tx_delta", "rx_delta")))
            for item in c.of("hccs.data") for raw in (item["raw"],) if raw["gap_ns"]]


def port(file: str) -> Callable[[Capture], list[Cells]]:
    return lambda c: [(c.device, item["ns"], *(float(item["row"][name]) if name.endswith("Rate") else item["row"][name]
                                               for name in PORT)) for item in c.of(file)]


def netdev(c: Capture) -> list[Cells]:
    """The truth has counters; rows hold what they grew by, as those of the vendor."""
    rows, lines = [], c.of("netdev_stats.data")
    for before, item in zip(lines, lines[1:]):
        grown = {name: item["row"][name] - before["row"][name] for name in NETDEV if name in item["row"]}
        for name in ("macTx", "macRx", "nicTx", "nicRx"):
            grown[name + "Bandwidth"] = grown[name + "Byte"] * 1e9 / item["raw"]["gap_ns"]
        rows.append((c.device, item["ns"], *(grown[name] for name in NETDEV)))
    return rows


def frequency(c: Capture) -> list[Cells]:
    return [(c.device, item.get("ns", c.sync), item["row"]["freq"], -1)
            for file in ("lpmFreqConv.data", "lpmInfoConv.data") for item in c.of(file, "AICORE_FREQ")]


def acc_pmu(c: Capture) -> list[Cells]:
    return [(*(item["row"][name] for name in ("accId", "readBwLevel", "writeBwLevel", "readOstLevel", "writeOstLevel")),
             item["ns"], c.device) for item in c.of("stars_soc_profile.data", "ACC_PMU")]


def soc_level(c: Capture) -> list[Cells]:
    return [(item["row"]["l2BufferBwLevel"], item["row"]["mataBwLevel"], item["ns"], c.device)
            for item in c.of("stars_soc_profile.data", "SOC_BANDWIDTH_LEVEL")]


def sio(c: Capture) -> list[Cells]:
    """The truth has amounts; rows hold bytes a second."""
    last: dict[int, int] = {}
    rows = []
    for item in c.of("stars_soc_profile.data", "SIO"):
        die, ns = item["raw"]["die"], item["ns"]
        if item["rule"] != "first":
            rows.append((c.device, f"die {die}", ns, *(item["row"][name] * 1e9 / (ns - last[die]) for name in SIO)))
        last[die] = ns
    return rows


def sampled_pmu(c: Capture) -> list[Cells]:
    last: dict[int, int] = {}
    rows = []
    for item in c.of("ffts_profile.data"):
        core, ns, cycles = item["row"]["coreId"], item["ns"], item["row"]["totalCycle"]
        usage = cycles * 1e5 / MHZ / (ns - last[core]) if core in last else None
        last[core] = ns
        rows.append((c.device, ns, cycles, usage, float(MHZ), core, item["raw"]["core"]))
    return rows


def op_mem(c: Capture) -> list[Cells]:
    names = ("operatorName", "addr", "type", "size")
    more = ("globalTid", "totalAllocate", "totalReserve", "component", "deviceId")
    return [(*(item["row"][name] for name in names), item["ns"], *(item["row"][name] for name in more))
            for item in c.of("host/aging.additional.task_memory_info", "NPU_OP_MEM")]


def cpu_usage(c: Capture) -> list[Cells]:
    return [(item["ns"], item["row"]["cpuId"], item["row"]["usage"])
            for item in c.of("host/host_cpu.data", "CPU_USAGE", "exact", "moved")]


def host_mem(c: Capture) -> list[Cells]:
    return [(item["ns"], item["row"]["usage"]) for item in c.of("host/host_mem.data", "HOST_MEM_USAGE")]


def host_network(c: Capture) -> list[Cells]:
    return [(item["ns"], item["row"]["usage"], item["row"]["speed"])
            for item in c.of("host/host_network.data", "HOST_NETWORK_USAGE")]


def host_disk(c: Capture) -> list[Cells]:
    return [(item["ns"], item["row"]["readRate"], item["row"]["writeRate"], item["row"]["usage"])
            for item in c.of("host/host_disk.data", "HOST_DISK_USAGE")]


def osrt(c: Capture) -> list[Cells]:
    return [(item["row"]["name"], item["row"]["globalTid"], item["ns"], item["row"]["endNs"])
            for file in ("host/host_syscall.data", "host/host_pthreadcall.data") for item in c.of(file)]


# name, columns, which of them are texts, what they must be, which of them is the time
TABLES: list[tuple[str, list[str], list[str], Callable[[Capture], list[Cells]]]] = [
    ("HBM", ["deviceId", "timestampNs", "bandwidth", "hbmId", "type"], ["type"], hbm),
    ("LLC", ["deviceId", "llcId", "timestampNs", "hitRate", "throughput", "mode"], ["mode"], llc),
    ("DDR", ["deviceId", "timestampNs", "read", "write"], [], ddr),
    ("NPU_MEM", ["type", "ddr", "hbm", "timestampNs", "deviceId"], ["type"], npu_mem),
    ("NPU_MODULE_MEM", ["moduleId", "timestampNs", "totalReserved", "deviceId"], [], module_mem),
    ("QOS", ["deviceId", "eventName", "bandwidth", "timestampNs"], ["eventName"], qos),
    ("PCIE", ["deviceId", "timestampNs", *PCIE], [], pcie),
    ("UB", ["deviceId", "portId", "timestampNs", "rxUdmaBind", "txUdmaBind"], [], ub),
    ("HCCS", ["deviceId", "timestampNs", "txThroughput", "rxThroughput"], [], hccs),
    ("NIC", ["deviceId", "timestampNs", *PORT], [], port("nic.data")),
    ("ROCE", ["deviceId", "timestampNs", *PORT], [], port("roce.data")),
    ("NETDEV_STATS", ["deviceId", "timestampNs", *NETDEV], [], netdev),
    ("AICORE_FREQ", ["deviceId", "timestampNs", "freq", "dieId"], [], frequency),
    ("ACC_PMU", ["accId", "readBwLevel", "writeBwLevel", "readOstLevel", "writeOstLevel", "timestampNs", "deviceId"],
     [], acc_pmu),
    ("SOC_BANDWIDTH_LEVEL", ["l2BufferBwLevel", "mataBwLevel", "timestampNs", "deviceId"], [], soc_level),
    ("SIO", ["deviceId", "name", "timestampNs", *SIO], ["name"], sio),
    ("SAMPLE_PMU_TIMELINE", ["deviceId", "timestampNs", "totalCycle", "usage", "freq", "coreId", "coreType"],
     ["coreType"], sampled_pmu),
    ("NPU_OP_MEM", ["operatorName", "addr", "type", "size", "timestampNs", "globalTid", "totalAllocate", "totalReserve",
                    "component", "deviceId"], ["operatorName", "type", "component"], op_mem),
    ("HOST_MEM_USAGE", ["timestampNs", "usage"], [], host_mem),
    ("HOST_NETWORK_USAGE", ["timestampNs", "usage", "speed"], [], host_network),
    ("HOST_DISK_USAGE", ["timestampNs", "readRate", "writeRate", "usage"], [], host_disk),
    ("OSRT_API", ["name", "globalTid", "startNs", "endNs"], ["name"], osrt),
]


def check_database(c: Capture) -> int:
    rows = 0
    for name, columns, strings, expected in TABLES:
        found = c.table(name, columns, strings)
        in_order(name, found, columns.index("startNs" if "startNs" in columns else "timestampNs"))
        rows += match(name, found, expected(c))
    usage = [row for row in c.table("CPU_USAGE", ["timestampNs", "CAST(cpuId AS TEXT)", "usage"]) if row[1] != "Avg"]
    return rows + match("CPU_USAGE", usage, [(ns, str(cpu), use) for ns, cpu, use in cpu_usage(c)])


# --- tables of text -----------------------------------------------------------------------------------------

def table_rows(c: Capture, stem: str) -> list[Cells]:
    return [tuple(number(cell) for cell in row.values()) for row in c.csv(stem)]


def floats(row: Iterable) -> Cells:
    return tuple(float(cell) if isinstance(cell, (int, float)) else cell for cell in row)


def means(rows: list[Cells], key: Callable[[Cells], object], value: Callable[[Cells], float]) -> dict[object, float]:
    groups: dict[object, list[float]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(value(row))
    return {name: mean(values) for name, values in groups.items()}


def memory_tables(c: Capture) -> Iterator[tuple[str, list[Cells]]]:
    rows = hbm(c)
    single = means(rows, lambda row: (row[3], row[4]), lambda row: row[2] / MB)
    average = means(rows, lambda row: row[4], lambda row: row[2] / MB)
    yield "hbm", [(c.device, "Average", average["read"], average["write"]),
                  *((c.device, unit, single[unit, "read"], single[unit, "write"]) for unit in range(4))]
    rows = llc(c)
    single = means(rows, lambda row: row[1], lambda row: row[4] / MB)
    yield "llc_read_write", [(c.device, "read", "Average", 0, mean([row[4] / MB for row in rows])),
                             *((c.device, "read", unit, 0, value) for unit, value in single.items())]
    rows = ddr(c)
    yield "ddr", [(c.device, "Average", *(mean([row[at] / MB for row in rows]) for at in (2, 3)))]
    yield "npu_mem", [(c.device, "APP" if row[0] == "app" else "Device", row[1] / 1024, row[2] / 1024,
                       (row[1] + row[2]) / 1024, float(stamp(row[3]))) for row in npu_mem(c)]
    # the vendor's tables of text have another name for this one than its database
    names = {**dict(c.table("ENUM_MODULE", ["id", "name"])), 74: "AML"}
    yield "npu_module_mem", [(c.device, names[row[0]], float(stamp(row[1])), row[2] / 1024, f"NPU:{c.device}")
                             for row in module_mem(c)]
    yield "static_op_mem", [("host", item["row"]["Op Name"], "N/A", *(item["row"][name] for name in (
        "Graph ID", "Node Index Start", "Node Index End")), item["row"]["size"] / 1024)
        for item in c.of("host/unaging.additional.static_op_mem")]


def link_tables(c: Capture) -> Iterator[tuple[str, list[Cells]]]:
    rows = hccs(c)
    yield "hccs", [(c.device, mode, *(f([row[at] / MB for row in rows]) for f in (max, min, mean)))
                   for at, mode in ((2, "Tx (MB/s)"), (3, "Rx (MB/s)")) if rows]
    rows = pcie(c)
    modes = ["Tx_p_avg(MB/s)", "Tx_np_avg(MB/s)", "Tx_cpl_avg(MB/s)", "Tx_latency_avg(us)", "Rx_p_avg(MB/s)",
             "Rx_np_avg(MB/s)", "Rx_cpl_avg(MB/s)"]
    units = [1000 if "us" in mode else MB for mode in modes]
    yield "pcie", [(c.device, mode, *(f([row[2 + 3 * at + position] / units[at] for row in rows])
                                      for position, f in enumerate((min, max, mean)))) for at, mode in enumerate(modes)]
    yield "ub", [(c.device, row[1], float(stamp(row[2])), row[3] / MB, row[4] / MB) for row in ub(c)]
    for file in ("nic", "roce"):
        yield file, list(port_tables(c, port(f"{file}.data")(c)))
    groups: dict[Cells, list[Row]] = defaultdict(list)
    for item in c.of("dvpp.data"):
        ident, kind, engine = item["row"].values()
        groups[ident, DVPP_ENGINES.get(int(kind), kind), engine].append(item["raw"])
    yield "dvpp", [(c.device, *key, *(max(raw[name] for raw in raws) - min(raw[name] for raw in raws)
                                      for name in ("allTime", "allFrame")), int(raws[-1]["allUtilization"].rstrip("%")))
                   for key, raws in groups.items()]


def port_tables(c: Capture, rows: list[Cells]) -> Iterator[Cells]:
    """One row a function: what its counters grew by, over the time."""
    for function in (0, 1):
        samples = [dict(zip(["device", "ns", *PORT], row)) for row in rows if row[-1] == function]
        first, last = samples[0], samples[-1]
        seconds = (last["ns"] - first["ns"]) / 1e9
        cells = []
        for way in ("rx", "tx"):
            grown = {name: last[way + name] - (first[way + name] if seconds else 0)
                     for name in ("Packets", "Bytes", "Errors", "Dropped")}
            packets = grown["Packets"] / seconds if seconds else last[way + "PacketRate"]
            size = grown["Bytes"] / seconds if seconds else last[way + "ByteRate"]
            cells += [size * 8 / last["bandwidth"], packets,
                      *(100 * grown[name] / grown["Packets"] for name in ("Errors", "Dropped"))]
        yield (c.device, float(stamp(last["ns"])), last["bandwidth"] / MB, *cells, function)


def task_tables(c: Capture) -> Iterator[tuple[str, list[Cells]]]:
    rates = []
    for file in ("l2_cache.data", "socpmu.data"):
        for item in c.of(file, "csv:l2_cache"):
            order = "0xf6,0xfb,0xfc,0xbf,0x90,0x91,0x9c,0x9d".split(",")
            event = dict(zip(order, item["raw"]["events"]))
            reqs = event["0xfb"] + event["0xfc"]
            rates.append((c.device, item["row"]["Stream Id"], item["row"]["Task Id"],
                          round((event["0x90"] + event["0x91"]) / reqs, 6), round(event["0x9c"] / reqs, 6), "N/A"))
    yield "l2_cache", rates
    ids = ("Stream Id", "Task Id")
    yield "soc_pmu", [(c.device, *(item["row"][name] for name in ids), "N/A", "N/A", "N/A")
                      for item in c.of("socpmu.data", "csv:soc_pmu")]
    yield "page_fault", [(c.device, *(item["row"][name] for name in ids), item["raw"]["events"][0], "N/A")
                         for item in c.of("socpmu.data", "csv:page_fault")]
    yield "dp", [(c.device, float(stamp(item["ns"])), *(item["row"][name] for name in (
        "Action", "Source", "Cached Buffer Size"))) for item in c.of("aicpu.data", "csv:dp")]
    yield "aicpu_mi", [(c.device, "GetNext_dequeue_wait", *(float(stamp(item["raw"][name] * 1000 + c.offset))
                                                            for name in ("start_us", "end_us")),
                        item["row"]["Queue Size"]) for item in c.of("aicpu.data", "csv:aicpu_mi")]
    yield "aicpu", [(c.device, float(stamp(item["ns"])), "N/A", us["memcpyStart"] - us["computeStart"],
                     us["memcpyEnd"] - us["memcpyStart"], task, item["raw"]["dispatchTime"],
                     task + 51 * c.tick_ns / 1000, item["row"]["Stream ID"], item["row"]["Task ID"])
                    for item in c.of("aicpu.data", "csv:aicpu") for us in (item["raw"]["us"],)
                    for task in ((item["raw"]["end_ns"] - item["ns"]) / 1000,)]


def used(values: list[float]) -> tuple[float, float]:
    """The most, and a quarter more than the 98th percentile of what is positive."""
    some = sorted(value for value in values if value > 0)
    return max(some, default=0), some[math.ceil((len(some) - 1) * 0.98)] / 0.8 if some else 0


def host_tables(c: Capture) -> Iterator[tuple[str, list[Cells]]]:
    for stem in ("host_cpu_usage", "host_network_usage", "host_disk_usage"):
        file = f"host/{stem.removesuffix('_usage')}.data"
        rows = [("host", *(0 if cell is None else cell for cell in item["row"].values()))
                for item in c.of(file, f"csv:{stem}")]
        # with a single sample there is no interval to report
        yield stem, rows if stem == "host_disk_usage" or len(c.of(file)) > 1 else []
    # the amounts follow from percentages of six decimals
    total = c.of("host/host_mem.data", "csv:host_mem_usage")[0]["row"]["Total Memory(KB)"]
    yield "host_mem_usage", [("host", total, *(share * total / 100 for share in used([row[1] for row in host_mem(c)])))]
    yield "os_runtime_statistic", [("host", *item["row"].values()) for item in c.of("host/os_runtime_statistic")]


def spent(samples: list[Row]) -> list[float]:
    """The vendor's shares: of the sums of the counters in all samples,
    which count from the start of the system."""
    values = {key: sum(sample[key] for sample in samples) for key in samples[0]}
    total = sum(values.values())
    return [100 * values[key] / total for key in ("user", "system", "iowait", "irq", "softirq", "idle")]


def cpus(raw: Row, wanted: Iterable[int]) -> Row:
    return {key: sum(raw[f"cpu{cpu}"][key] for cpu in wanted) for key in raw["cpu"]}


def system_tables(c: Capture) -> Iterator[tuple[str, list[Cells]]]:
    shares, usage, memory, pages = [], [], [], []
    pid = "3178231"
    for where, owner in (("host/", "host"), ("", c.device)):
        raws = [item["raw"] for item in c.of(where + ("host_sys_cpu.data" if where else "SystemCpuUsage.data"))]
        kinds = [("host", None)] if where else [("aicpu", (2, 3)), ("ctrlcpu", (0, 1))]
        for kind, wanted in kinds:
            shares.append((owner, kind, *spent([cpus(raw, wanted) if wanted else raw["cpu"] for raw in raws])))
        lines = c.of(f"{where}{pid}-CpuUsage.data")
        ticks = [item["raw"]["utime"] + item["raw"]["stime"] for item in (lines[0], lines[-1])]
        ns = lines[-1]["ns"] - lines[0]["ns"]
        usage.append((owner, int(pid), "python3", (ticks[1] - ticks[0]) * 1e9 / ns if ns else "N/A"))
        rows = [list(item["row"].values()) for item in c.of(where + ("host_sys_mem.data" if where else "Memory.data"))]
        memory.append((owner, *(sum(column) // len(rows) for column in zip(*rows))))
        rows = [list(item["row"].values())[2:] for item in c.of(f"{where}{pid}-Memory.data")]
        pages.append((owner, int(pid), "python3", *(sum(column) // len(rows) for column in zip(*rows))))
    yield "cpu_usage", shares
    yield "process_cpu_usage", usage
    yield "sys_mem", memory
    yield "process_mem", pages


def check_text(c: Capture) -> int:
    rows = 0
    for tables in (memory_tables, link_tables, task_tables, host_tables, system_tables):
        for stem, expected in tables(c):
            # three decimals; times are too long for a double to hold their last digits
            absolute = 0.0025 if stem == "aicpu" else 0.00051
            rows += match(f"{stem}.csv", table_rows(c, stem), [floats(row) for row in expected], absolute)
    return rows


# --- counters of the trace ----------------------------------------------------------------------------------

def counter_rows(c: Capture) -> Iterator[tuple[str, str, int, tuple]]:
    """Process, name, time and values of each event."""
    for _, ns, rate, unit, way in hbm(c):
        yield "HBM", f"HBM {unit}/{way.capitalize()}", ns, (rate / MB,)
    for _, unit, ns, _, rate, _ in llc(c):
        yield "LLC", f"LLC {unit} Read/Throughput", ns, (rate / MB,)
        yield "LLC", f"LLC {unit} Read/Hit Rate", ns, (0,)
    for _, ns, read, write in ddr(c):
        yield "DDR", "DDR/Read", ns, (read / MB,)
        yield "DDR", "DDR/Write", ns, (write / MB,)
    for kind, low, high, ns, _ in npu_mem(c):
        word = "APP" if kind == "app" else "Device"
        for name, size in (("DDR", low), ("HBM", high), ("Memory", low + high)):
            yield "NPU MEM", f"{word}/{name}", ns, (size / 1024,)
    for _, event, rate, ns in qos(c):
        yield "QoS", f"QoS {event}", ns, (rate / MB,)
    for _, ns, tx, rx in hccs(c):
        yield "HCCS", "Tx", ns, (tx / MB,)
        yield "HCCS", "Rx", ns, (rx / MB,)
    for row in pcie(c):
        value = dict(zip(PCIE, row[2:]))
        for name, key in (("post", "Post"), ("nonpost", "Nonpost"), ("cpl", "Cpl")):
            yield "PCIe", f"PCIe_{name}", row[1], (value[f"tx{key}Avg"] / MB, value[f"rx{key}Avg"] / MB)
        yield "PCIe", "PCIe_nonpost_latency", row[1], (value["txNonpostLatencyAvg"] / 1000, 0)
    for _, unit, ns, rx, tx in ub(c):
        yield "Ub", f"UB Port{unit:03}", ns, (rx / MB, tx / MB)
    yield from port_counters(c)
    for acc, read, write, read_ost, write_ost, ns, _ in acc_pmu(c):
        for name, value in (("read_bandwidth", read), ("write_bandwidth", write), ("read_ost", read_ost),
                            ("write_ost", write_ost)):
            yield "Acc PMU", name, ns, (value, acc)
    for buffer, mata, ns, _ in soc_level(c):
        yield "Stars Soc Info", "L2 Buffer Bw Level", ns, (buffer,)
        yield "Stars Soc Info", "Mata Bw Level", ns, (mata,)
    for row in sio(c):
        for name, rate in zip(SIO_COUNTERS, row[3:]):
            yield "SIO", name, row[2], (rate / MB,)
    for name in ("Aicore Voltage", "Bus Voltage"):
        for item in c.of("lpmInfoConv.data", f"counter:{name}"):
            yield "Voltage Info", name, item.get("ns", c.sync), (item["row"]["mv"],)
    for item in c.of("stars_soc_profile.data", "counter:PA Link"):
        for way in ("Rx", "Tx"):
            yield "Stars Chip Trans", f"PA Link {way}", item["ns"], (item["raw"][way.lower()], item["raw"]["id"])
    for item in c.of("stars_soc_profile.data", "counter:PCIE Bandwidth"):
        for way in ("Read", "Write"):
            yield "Stars Chip Trans", f"PCIE {way} Bandwidth", item["ns"], (item["raw"][way.lower()], item["raw"]["id"])
    yield from host_counters(c)


def port_counters(c: Capture) -> Iterator[tuple[str, str, int, tuple]]:
    for process, file in (("NIC", "nic.data"), ("RoCE", "roce.data")):
        for row in port(file)(c):
            value = dict(zip(["device", "ns", *PORT], row))
            for way in ("rx", "tx"):
                packets = value[way + "Packets"]
                yield process, f"Port {value['funcId']}/{way.capitalize()}", row[1], (
                    8 * value[way + "ByteRate"] / value["bandwidth"], value[way + "PacketRate"],
                    *(100 * value[way + name] / packets if packets else 0 for name in ("Errors", "Dropped")))


def host_counters(c: Capture) -> Iterator[tuple[str, str, int, tuple]]:
    for ns, cpu, usage in cpu_usage(c):
        yield "CPU Usage", f"CPU {cpu}", ns, (usage,)
    for item in c.of("host/host_cpu.data", "counter:CPU Avg"):
        yield "CPU Usage", "CPU Avg", item["ns"], (item["row"]["usage"],)
    for ns, usage in host_mem(c):
        yield "Memory Usage", "Memory Usage", ns, (usage,)
    for ns, usage, _ in host_network(c):
        yield "Network Usage", "Network Usage", ns, (usage,)
    for ns, _, _, usage in host_disk(c):
        yield "Disk Usage", "Disk Usage", ns, (usage,)


def check_trace(c: Capture) -> int:
    expected: dict[tuple[str, str], list[Cells]] = defaultdict(list)
    for process, name, ns, values in counter_rows(c):
        expected[process, name].append((stamp(ns), *map(float, values)))
    rows = 0
    for (process, name), wanted in expected.items():
        rows += match(f"{process}: {name}", [floats(row) for row in c.counter(process, name)], wanted, 1.1e-6)
    mhz = [(stamp(row[1]), float(row[2])) for row in frequency(c)]
    found = [floats(row) for row in c.counter("AI Core Freq", "AI Core Freq")]
    assert len(found) - len(mhz) in (0, 1), "AI Core Freq: the last value may be told again at the end"
    rows += match("AI Core Freq", found[:len(mhz)], mhz)
    unknown = set(c.counters) - set(expected) - {("AI Core Freq", "AI Core Freq")}
    assert not unknown, f"counters of which nothing is known: {unknown}"
    return rows


# --- cases --------------------------------------------------------------------------------------------------

def check(options: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        c = Capture(Path(folder), options)
        rows = check_database(c) + check_text(c) + check_trace(c)
        assert rows > 0
        lost = [line for line in c.losses.splitlines() if "records of" in line]
        # what an aged stream has lost of its first record is reported, once for each of them
        assert "--aged" in options or not lost, f"nothing is damaged: {lost}"
        assert all(line.startswith("1 ") for line in lost), lost


def main() -> int:
    tests = Tests()
    for options in CASES:
        tests.run(f"sidecars {options}".strip(), lambda options=options: check(options))
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
