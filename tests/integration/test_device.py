#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Devices sampled from outside the job. Witnesses: what npusim's work really moved and
counted (its truth file), the raw records decoded in device_witness.py, and the metrics'
formulas written down a second time here."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Callable

from device_witness import (HBM, Truth, channel, complaints, control, cores, database, sample, sampler, stored)
from harness import (DONE, PARTIAL, ROOT, SIM, USAGE, Case, Result, Session, environment, host_environment, main,
                     need_npusim, ranks_of,
                     test)

LINKS = ("--sys-hardware-mem", "--sys-io", "--sys-interconnection")
NS = 1e9


def rates(rows: list[tuple[int, float]]) -> tuple[int, int, float]:
    """First and last time, and the integral of a rate that holds for the time before each sample."""
    total = sum(value * (t - before) / NS for (before, _), (t, value) in zip(rows, rows[1:]))
    return rows[0][0], rows[-1][0], total


def expect_moved(truth: Truth, session: Session, rows: list[tuple[int, float]], device: int, link: str, way: str,
                 scale: float = 1.0) -> None:
    """The integral of the samples is what was moved, but for 1 % and what was
    moved around the first and last sample."""
    begin, end, total = rates(rows)
    moved, edges = truth.moved(device, link, way, truth.raw(session, begin), truth.raw(session, end))
    what = f"device {device} {link} {way}: sampled {total:.0f}, moved {moved * scale:.0f}"
    assert moved > 0, what
    assert edges < moved / 4, \
        f"{what}: only {moved:.0f} bytes, {edges:.0f} of them at the edges: the capture was too short"
    assert abs(total - moved * scale) <= 0.01 * moved * scale + edges * scale, what


def column(db: sqlite3.Connection, table: str, name: str, device: int, more: str = "") -> list[tuple[int, float]]:
    return db.execute(f"SELECT timestampNs, {name} FROM {table} WHERE deviceId = ? {more} ORDER BY timestampNs",
                      (device,)).fetchall()


def summed(rows: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Rows of one time added up."""
    sums: dict[int, float] = defaultdict(float)
    for when, value in rows:
        sums[when] += value
    return sorted(sums.items())


def of_type(db: sqlite3.Connection, text: str) -> str:
    """The rows of a STRING_IDS text."""
    (ident,) = db.execute("SELECT id FROM STRING_IDS WHERE value = ?", (text,)).fetchone()
    return f"AND type = {ident}"


def conform(result: Result) -> None:
    for folder in result.out.splitlines()[1:]:
        run = subprocess.run([ROOT / "tools" / "conformance" / "check", folder], capture_output=True, text=True,
                             check=False)
        assert run.returncode == 0, [line for line in run.stdout.splitlines() if line.startswith("FAIL")]


def two_ranks(case: Case, truth: Path, **env: str) -> tuple[Result, Session, Truth]:
    """Both ranks of a job sampled while it trains."""
    truth.mkdir()
    with_env(env)
    try:
        job = case.sim_job("--ranks", "2", "--rate", "600", "--seconds", "60", truth=truth)
        result = sample(case, job, *LINKS, seconds="4s", truth=truth).result()
        job.signal(15)
        job.wait()
    finally:
        for name in env:
            os.environ.pop(name)
    return result, result.session, Truth(truth)


def with_env(env: dict[str, str]) -> None:
    """The job's environment comes from ours."""
    os.environ.update(env)


@test(seconds=180)
def integrals_of_memory_and_links(case: Case) -> None:
    """HBM, HCCS and PCIe of two ranks: what samples add up to is what was moved."""
    need_npusim()
    result, session, truth = two_ranks(case, case.path("truth"))
    result.expect(DONE)
    for rank in range(2):
        db = database(result, rank)
        for way in ("read", "write"):
            expect_moved(truth, session, summed(column(db, "HBM", "bandwidth", rank, of_type(db, way))), rank, "HBM",
                         way)
        expect_moved(truth, session, column(db, "HCCS", "txThroughput", rank), rank, "HCCS", "tx")
        expect_moved(truth, session, column(db, "HCCS", "rxThroughput", rank), rank, "HCCS", "rx")
        expect_moved(truth, session, column(db, "PCIE", "rxCplAvg", rank), rank, "PCIE", "rx")
        expect_moved(truth, session, summed(column(db, "LLC", "throughput", rank)), rank, "HBM", "read")
        die = "AND name = (SELECT id FROM STRING_IDS WHERE value = 'die 0')"
        expect_moved(truth, session, column(db, "SIO", "rxDat", rank, die), rank, "HBM", "read", 1 / 4)
        units = db.execute("SELECT DISTINCT llcId FROM LLC WHERE deviceId = ? ORDER BY 1", (rank,)).fetchall()
        assert units == [(0,), (1,)], f"{units}: a 910B has two"
        others = db.execute("SELECT count(*) FROM HCCS WHERE deviceId != ?", (rank,)).fetchone()[0]
        assert others == 0, "the other rank's device is in its own result"
        for table in ("LLC", "NPU_MEM", "QOS", "SIO", "ACC_PMU", "SOC_BANDWIDTH_LEVEL", "AICORE_FREQ",
                      "NPU_MODULE_MEM"):
            n = db.execute(f"SELECT count(*) FROM {table} WHERE deviceId = ?", (rank,)).fetchone()[0]
            assert n > 1, f"{table}: {n} rows"
    conform(result)


def expect_ports(result: Result, session: Session, truth: Truth) -> None:
    for rank in range(2):
        db = database(result, rank)
        for way in ("tx", "rx"):
            expect_moved(truth, session, column(db, "ROCE", f"{way}ByteRate", rank), rank, "ROCE", way)
            # NIC counts headers of 82 bytes for each packet of 4096
            expect_moved(truth, session, column(db, "NIC", f"{way}ByteRate", rank), rank, "ROCE", way, 1 + 82 / 4096)


@test(seconds=180)
def integrals_of_ports(case: Case) -> None:
    """RoCE and NIC of two ranks in two servers."""
    need_npusim()
    result, session, truth = two_ranks(case, case.path("truth"), NPUSIM_SERVER_DEVICES="1")
    expect_ports(result.expect(DONE), session, truth)


@test(seconds=180)
def integrals_of_ports_910A(case: Case) -> None:
    need_npusim()
    result, session, truth = two_ranks(case, case.path("truth"), NPUSIM_SERVER_DEVICES="1", NPUSIM_CHIP="910A")
    expect_ports(result.expect(DONE), session, truth)


def amounts(db: sqlite3.Connection, name: str, device: int) -> list[tuple[int, float]]:
    """Of the UB ports' samples, which count what was moved since the one before: as rates."""
    rows = summed(column(db, "UB", name, device))
    return rows[:1] + [(t, n * NS / (t - before)) for (before, _n), (t, n) in zip(rows, rows[1:])]


def units(db: sqlite3.Connection, device: int, way: str) -> list[tuple[int, float]]:
    """HBM's four units together, by the times of the first: some chips give each record a time of its own."""
    series = [column(db, "HBM", "bandwidth", device, f"{of_type(db, way)} AND hbmId = {unit}") for unit in range(4)]
    assert max(map(len, series)) - min(map(len, series)) <= 1, [len(s) for s in series]
    return [(rows[0][0], sum(value for _t, value in rows)) for rows in zip(*series)]


# What there is of each chip: table, column, link, direction
INTEGRALS: dict[str, list[tuple[str, str, str, str]]] = {
    "910A": [("HBM", "bandwidth", "HBM", "read"), ("HBM", "bandwidth", "HBM", "write"), ("DDR", "read", "DDR", "read"),
             ("DDR", "write", "DDR", "write"), ("HCCS", "txThroughput", "HCCS", "tx"),
             ("HCCS", "rxThroughput", "HCCS", "rx"),
             ("PCIE", "rxCplAvg", "PCIE", "rx")],
    "310P": [("DDR", "read", "DDR", "read"), ("DDR", "write", "DDR", "write"), ("PCIE", "txPostAvg", "PCIE", "tx"),
             ("PCIE", "rxCplAvg", "PCIE", "rx")],
    "950": [("HBM", "bandwidth", "HBM", "read"), ("HBM", "bandwidth", "HBM", "write"),
            ("PCIE", "rxCplAvg", "PCIE", "rx"),
            ("UB", "txUdmaBind", "UB", "tx"), ("UB", "rxUdmaBind", "UB", "rx")],
}


def integrals_of_chip(case: Case, chip: str) -> None:
    """Memories and links of another generation: what samples of two ranks add up to is what was moved."""
    need_npusim()
    result, session, truth = two_ranks(case, case.path("truth"), NPUSIM_CHIP=chip)
    result.expect(DONE)
    for rank in range(2):
        db = database(result, rank)
        for table, name, link, way in INTEGRALS[chip]:
            if table == "UB":
                rows = amounts(db, name, rank)
            elif table == "HBM":
                rows = units(db, rank, way)
            else:
                rows = column(db, table, name, rank)
            expect_moved(truth, session, rows, rank, link, way)


for _chip in INTEGRALS:
    def _integral(case: Case, chip: str = _chip) -> None:
        integrals_of_chip(case, chip)
    _integral.__name__ = f"integrals_{_chip}"
    test(seconds=180)(_integral)


@test(seconds=120)
def raw_records_add_up_exactly(case: Case) -> None:
    """Nothing is lost, doubled or changed on the way to the disk."""
    need_npusim()
    truth = case.path("truth")
    truth.mkdir()
    job = case.sim_job("--ranks", "1", "--rate", "1000", "--seconds", "60", truth=truth)
    result = sample(case, job, *LINKS, "--aic-metrics", "PipeUtilization", truth=truth).result()
    result.expect(DONE)
    session, facts = result.session, Truth(truth)
    for event, way in enumerate(("read", "write")):
        total = sum(n * 32 for _t, n, kind, _id in HBM.iter_unpack(stored(session, 0, "hbm.data")) if kind == event)
        (begin, end, amount), = facts.sampled[0, 1, "HBM", way]
        # the driver takes a last sample when it is stopped, which nobody can read any more
        moved, edges = facts.moved(0, "HBM", way, begin, end)
        assert amount - edges <= total <= amount + 8 * 32, (way, total, amount, edges, moved)
    times: dict[int, list[int]] = defaultdict(list)
    for time_us, _n, kind, ident in HBM.iter_unpack(stored(session, 0, "hbm.data")):
        times[kind << 8 | ident].append(time_us)
    assert len(times) == 8 and all(v == sorted(set(v)) for v in times.values()), "each unit once at each time"
    cycles = sum(c for core, _t, c, _e in cores(stored(session, 0, "ffts_profile.data")) if core <= 24)
    (_begin, _end, amount), = facts.sampled[0, 54, "AIC", "cycles"]
    assert 0.97 * amount <= cycles <= amount, (cycles, amount)


# ---- metrics: events and formulas, as the vendor documents them --------------------------------------------

GIB8 = 8589934592.0
Formula = Callable[[dict[int, int], int, float], float]  # of events, cycles, MHz


def ratio(*events: int) -> Formula:
    return lambda v, cycles, mhz: sum(v[e] for e in events) / cycles


def part_of_time(*events: int) -> Formula:
    return lambda v, cycles, mhz: sum(v[e] for e in events) / mhz  # us: cycles of one core


def bandwidth(event: int, size: float) -> Formula:
    return lambda v, cycles, mhz: v[event] * size * mhz * 1e6 / cycles / GIB8


def amount(event: int, scale: float = 1) -> Formula:
    return lambda v, cycles, mhz: v[event] * scale


SPLIT: dict[str, tuple[list[int], list[int], dict[str, Formula], dict[str, Formula]]] = {
    "PipeUtilization": (
        [0x416, 0x417, 0x9, 0x302, 0xc, 0x303, 0x54, 0x55], [0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55],
        {"mac_ratio": ratio(0x416, 0x417), "scalar_ratio": ratio(0x9), "mte1_ratio": ratio(0x302),
         "mte2_ratio": ratio(0xc),
         "fixpipe_ratio": ratio(0x303), "mac_time": part_of_time(0x416, 0x417), "mte2_time": part_of_time(0xc),
         "icache_miss_rate": lambda v, c, m: v[0x55] / v[0x54]},
        {"vec_ratio": ratio(0x8), "mte2_ratio": ratio(0xc), "mte3_ratio": ratio(0xd), "vec_time": part_of_time(0x8)}),
    "ArithmeticUtilization": (
        [0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f], [0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f],
        {"mac_fp16_ratio": ratio(0x49), "mac_int8_ratio": ratio(0x4a),
         "cube_fops": lambda v, c, m: (v[0x49] + 2 * v[0x4a]) * 8192},
        {"vec_fp32_ratio": ratio(0x4b), "vec_fp16_ratio": ratio(0x4c, 0x4d), "vec_int32_ratio": ratio(0x4e),
         "vec_misc_ratio": ratio(0x4f),
         "vector_fops": lambda v, c, m: 32 * (4 * v[0x4c] + 2 * (v[0x4d] + v[0x4b] + v[0x4e]) + v[0x4f])}),
    "Memory": (
        [0x15, 0x16, 0x31, 0x32, 0xf, 0x10, 0x12, 0x13], [0x15, 0x16, 0x31, 0x32, 0xf, 0x10, 0x12, 0x13],
        {"l1_read_bw": bandwidth(0x31, 4096), "l1_write_bw": bandwidth(0x32, 1024),
         "main_mem_read_bw": bandwidth(0x12, 64),
         "l2_read_bw": bandwidth(0xf, 2048)},
        {"ub_read_bw": bandwidth(0x15, 1024), "ub_write_bw": bandwidth(0x16, 1024),
         "main_mem_write_bw": bandwidth(0x13, 64), "l2_write_bw": bandwidth(0x10, 2048)}),
    "MemoryL0": (
        [0x1b, 0x1c, 0x21, 0x22, 0x27, 0x28, 0x29, 0x2a], [0x1b, 0x1c, 0x21, 0x22, 0x27, 0x28, 0x29, 0x2a],
        {"l0a_read_bw": bandwidth(0x1b, 4096), "l0b_write_bw": bandwidth(0x22, 2048),
         "l0c_read_bw_cube": bandwidth(0x28, 8192)},
        {"l0c_read_bw": bandwidth(0x27, 2048), "l0c_write_bw": bandwidth(0x29, 2048)}),
    "MemoryUB": (
        [0x37, 0x38, 0x43, 0x44], [0x37, 0x38, 0x43, 0x44],
        {"ub_read_bw_scalar": bandwidth(0x37, 128), "ub_write_bw_scalar": bandwidth(0x38, 128)},
        {"ub_read_bw_vector": bandwidth(0x43, 256), "ub_write_bw_vector": bandwidth(0x44, 256)}),
    "ResourceConflictRatio": (
        [0x64, 0x65, 0x66], [0x64, 0x65, 0x66], {},
        {"vec_bankgroup_cflt_ratio": ratio(0x64), "vec_bank_cflt_ratio": ratio(0x65),
         "vec_resc_cflt_ratio": ratio(0x66)}),
    "L2Cache": (
        [0x500, 0x502, 0x504, 0x506, 0x508, 0x50a], [0x500, 0x502, 0x504, 0x506, 0x508, 0x50a],
        {"write_cache_hit": amount(0x500), "r0_read_cache_miss_allocate": amount(0x506)},
        {"write_cache_miss_allocate": amount(0x502), "r1_read_cache_hit": amount(0x508)}),
    "MemoryAccess": (
        [0x32, 0x3d, 0x3e, 0x206, 0x20c, 0x50c, 0x50d, 0x50e], [0x32, 0x3d, 0x3e, 0x206, 0x20c, 0x50c, 0x50d, 0x50e],
        {"read_main_memory_datas": lambda v, c, m: (v[0x50d] + v[0x50e]) / 8, "L0C_to_L1_datas": amount(0x206, 0.125),
         "GM_to_L1_datas": lambda v, c, m: max(v[0x32] - v[0x206], 0) / 4},
        {"GM_to_UB_datas": amount(0x3e, 0.125), "UB_to_GM_datas": amount(0x3d, 0.125)}),
}


def check_metric(case: Case, session: Session, name: str) -> None:
    """SAMPLE_PMU_SUMMARY of the directory imported alone against the raw records."""
    aic, aiv, cube, vector = SPLIT[name]
    sums: dict[int, list[int]] = {}
    for core, _time, cycles, values in cores(stored(session, 0, "ffts_profile.data")):
        row = sums.setdefault(core, [0] * 9)
        for i, v in enumerate([cycles, *values]):
            row[i] += v
    assert len(sums) == 24 + 48, sorted(sums)
    folder = session.path / sampler(session)[0]["segments"][0]["prof_dir"]
    out = case.path(f"alone-{name}")
    out.mkdir()
    alone = case.analyze(folder, "-o", out).expect(DONE)
    db = sqlite3.connect(next(Path(alone.out.split()[0]).glob("msprof_*.db")))
    got = {(core, metric): value for core, metric, value in db.execute(
        "SELECT coreId, s.value, p.value FROM SAMPLE_PMU_SUMMARY p JOIN STRING_IDS s ON s.id = p.metric")}
    checked = 0
    for core, row in sums.items():
        events, formulas = (aiv, vector) if core > 24 else (aic, cube)
        v = dict(zip(events, row[1:]))
        assert got[core, "total_cycles"] == row[0], (name, core)
        for metric, formula in formulas.items():
            want = formula(v, row[0], 1800.0) * (1000 if metric.endswith("_time") else 1)  # ns
            assert abs(got[core, metric] - want) <= 1e-9 * abs(want) + 1e-9, \
                (name, core, metric, got[core, metric], want)
            checked += 1
    assert checked, name


@test(seconds=240)
def metrics_of_cores(case: Case) -> None:
    """Each group of events: what cores counted, by the documented formulas."""
    need_npusim()
    truth = case.path("truth")
    truth.mkdir()
    job = case.sim_job("--ranks", "1", "--rate", "1000", "--seconds", "200", truth=truth)
    for name in SPLIT:
        result = sample(case, job, "--aic-metrics", name, "--aic-freq", "50", "--export", "none", seconds="700ms",
                        truth=truth).result()
        result.expect(DONE)
        check_metric(case, result.session, name)


@test(seconds=120)
def metrics_reach_the_result(case: Case) -> None:
    """The tables of the job's result are of the capture's time alone, and conform."""
    need_npusim()
    job = case.sim_job("--ranks", "1", "--rate", "1000", "--seconds", "60")
    result = sample(case, job, "--aic-metrics", "PipeUtilization").result().expect(DONE)
    db = database(result)
    (begin, end), = db.execute("SELECT startTimeNs, endTimeNs FROM SESSION_TIME_INFO")
    cycles = dict(db.execute("SELECT coreId, sum(totalCycle) FROM SAMPLE_PMU_TIMELINE GROUP BY coreId"))
    reported = dict(db.execute("SELECT coreId, p.value FROM SAMPLE_PMU_SUMMARY p JOIN STRING_IDS s ON s.id = p.metric"
                           " WHERE s.value = 'total_cycles'"))
    assert len(cycles) == 72 and cycles == reported
    first, last = db.execute("SELECT min(timestampNs), max(timestampNs) FROM SAMPLE_PMU_TIMELINE").fetchone()
    assert begin <= first and last <= end
    (n,) = db.execute("SELECT count(DISTINCT timestampNs) FROM SAMPLE_PMU_TIMELINE").fetchone()
    expected = (end - begin) / 1e7
    assert 0.8 * expected <= n <= expected + 1, f"{n} samples at 100 Hz, in {expected / 100:.2f} s"
    folder = Path(result.out.splitlines()[1]) / "ASCEND_PROFILER_OUTPUT"
    header = (folder / "npuscope_ai_core_utilization.csv").read_text().splitlines()[0]
    assert header.startswith("Device_id,Core ID,total_time(us),total_cycles,mac_time(us),mac_ratio"), header
    conform(result)


@test(seconds=120)
def a_directory_alone_has_the_same_results(case: Case) -> None:
    """The sampler's PROF directory, imported without the session, has the same numbers at the same times."""
    need_npusim()
    job = case.sim_job("--ranks", "1", "--rate", "1000", "--seconds", "60")
    result = sample(case, job, *LINKS).result().expect(DONE)
    session, db = result.session, database(result)
    segment = sampler(session)[0]["segments"][0]
    folder = session.path / segment["prof_dir"]
    starts = {start["channel"]: start for start in segment["starts"]}
    out = case.path("alone")
    out.mkdir()
    alone = case.analyze(folder, "-o", out).expect(DONE)
    other = sqlite3.connect(next(Path(alone.out.split()[0]).glob("msprof_*.db")))
    for table, value in (("HBM", "bandwidth"), ("HCCS", "txThroughput"), ("PCIE", "rxCplAvg"), ("NIC", "rxBytes"),
                         ("ROCE", "txBytes"), ("LLC", "throughput"), ("NPU_MEM", "hbm"), ("QOS", "bandwidth"),
                         ("ACC_PMU", "accId"), ("SIO", "rxDat")):
        # NPU_MEM has lanes that are not the channel's, too: memory of the job.
        lanes = "WHERE type IN (SELECT id FROM STRING_IDS WHERE value IN ('app', 'device'))" if table == "NPU_MEM" \
            else ""
        ours, theirs = (d.execute(f"SELECT timestampNs, {value} FROM {table} {lanes} "
                                  "ORDER BY timestampNs, rowid").fetchall()
                        for d in (db, other))
        assert len(ours) > 50 and len(theirs) >= len(ours), (table, len(ours), len(theirs))
        # These times count from the start of their channel, which the session
        # knows; the directory knows its own alone.
        start = starts.get({"HBM": 1, "LLC": 8, "NPU_MEM": 131}.get(table, -1))
        late = (start["before_raw"] + start["after_raw"]) // 2 - segment["started_raw"] if start else 0
        theirs = [(u + late, w) for u, w in theirs]
        # The nearest: on a busy machine a sample comes late, just before the next one.
        skip = min(range(len(theirs)), key=lambda i: abs(theirs[i][0] - ours[0][0]))
        for (t, v), (u, w) in zip(ours, theirs[skip:]):
            assert abs(t - u) < 1_000_000, f"{table}: {t} {u} {late}"
            assert abs(v - w) <= 2e-3 * max(abs(v), abs(w)) + 1e-6, f"{table}: {v} {w}"


# channels that a chip has, of those that are requested; and its name and platform number
CHIPS = {
    "910A": ("910A", "1", {1, 3, 4, 7, 8, 9, 43, 129, 131, 142}),
    "310P": ("310P3", "4", {3, 7, 8, 43, 85, 131, 132}),
    "950": ("950PR", "15", {1, 3, 8, 52, 54, 131, 132, 133, 142, 146}),
}


@test(seconds=180)
def other_chips(case: Case) -> None:
    """Each generation has channels, records and cores of its own; what
    cores counted is as in the truth file."""
    need_npusim()
    truth = case.path("truth")
    for chip, (name, platform, channels) in CHIPS.items():
        folder = truth / chip
        folder.mkdir(parents=True)
        with_env({"NPUSIM_CHIP": chip})
        try:
            job = case.sim_job("--ranks", "1", "--rate", "500", "--seconds", "60", truth=folder, agent=False)
            result = sample(case, job, *LINKS, "--aic-metrics", "PipeUtilization", seconds="2s", truth=folder).result()
            job.signal(15)
            job.wait()
        finally:
            os.environ.pop("NPUSIM_CHIP")
        result.expect(DONE)
        session, facts = result.session, Truth(folder)
        device = sampler(session)[0]
        assert {c["id"] for c in device["channels"] if c["records"] or c["bytes"]} == channels, \
            (chip, device["channels"])
        assert device["chip"] == name
        prof = session.path / device["segments"][0]["prof_dir"] / "device_0"
        info = control(prof, "info.json.0")
        assert info["platform_version"] == platform
        assert info["version"] == ("2.0" if chip == "950" else "1.0"), info["version"]
        number, file = (54, "ffts_profile.data") if chip == "950" else (43, "aicore.data")
        cycles = sum(c for _core, _t, c, _e in cores(stored(session, 0, file), chip == "950"))
        counted = sum(amount for (d, n, core, _w), series in facts.sampled.items() for _b, _e, amount in series
                      if (d, n) == (0, number) and (core == "AIC" or (core == "AIV" and chip == "950")))
        assert 0.95 * counted <= cycles <= counted, (chip, cycles, counted)
        db = database(result)
        if chip == "310P":
            expect_moved(facts, session, column(db, "DDR", "read", 0), 0, "DDR", "read")
        else:  # the first of four units, which share evenly
            rows = column(db, "HBM", "bandwidth", 0, of_type(db, "read") + " AND hbmId = 0")
            expect_moved(facts, session, rows, 0, "HBM", "read", 0.25)
        (n,) = db.execute("SELECT count(DISTINCT coreId) FROM SAMPLE_PMU_TIMELINE").fetchone()
        assert n == {"910A": 32, "310P": 8 + 7, "950": 32 + 64}[chip], n
        misses = db.execute("SELECT coreId, p.value FROM SAMPLE_PMU_SUMMARY p JOIN STRING_IDS s ON s.id = p.metric"
                            " WHERE s.value = 'icache_miss_rate'").fetchall()
        vectors = chip != "310P"  # whose vector cores the job does not use
        assert len(misses) == n and all(0 < value < 1 for core, value in misses if vectors or core < 8), (chip, misses)
        conform(result)


REQUIRED = ("platform_version", "pid", "CPU", "DeviceInfo", "hostname", "memoryTotal", "netCard")


@test(seconds=120)
def control_files_are_complete(case: Case) -> None:
    """What the vendor's reader refuses a directory for is there, in the
    sampler's and in the job's directories."""
    need_npusim()
    job = case.sim_job("--ranks", "1", "--rate", "1000", "--seconds", "60")
    before = time.time() * 1e6
    result = sample(case, job, "--sys-hardware-mem", "--aic-metrics", "Memory").result().expect(DONE)
    after = time.time() * 1e6
    folders = sorted(result.session.path.glob("PROF_*"))
    assert len(folders) == 2, folders
    for folder in folders:
        host, device = folder / "host", folder / "device_0"
        infos = control(host, "info.json"), control(device, "info.json.0")
        for info in infos:
            assert not [k for k in REQUIRED if k not in info], (folder.name, info)
            assert info["platform_version"] == "5"
        assert infos[0]["DeviceInfo"] == [] and infos[0]["devices"] == "64" and "Frequency" in infos[0]["CPU"][0]
        (info,) = infos[1]["DeviceInfo"]
        assert (info["hwts_frequency"], info["aic_frequency"], info["aiv_frequency"]) == ("50", "1800", "1800")
        assert (info["ai_core_num"], info["aiv_num"]) == (24, 48)
        for directory, end in ((host, ""), (device, ".0")):
            sampled = control(directory, "sample.json")
            assert "llc_profiling" in sampled and "ai_core_profiling_mode" in sampled
            begin, done = control(directory, "start_info" + end), control(directory, "end_info" + end)
            assert before < int(begin["collectionTimeBegin"]) < int(done["collectionTimeEnd"]) < after
            length = int(done["clockMonotonicRaw"]) - int(begin["clockMonotonicRaw"])
            wall = (int(done["collectionTimeEnd"]) - int(begin["collectionTimeBegin"])) * 1000
            assert abs(length - wall) < 1_000_000, (length, wall)
            log = (directory / ("host_start.log" + end)).read_text()
            assert "clock_monotonic_raw: " in log and "cntvct: " in log and "cntvct_diff: 0" in log
        assert "cntvct: " in (device / "dev_start.log.0").read_text()
        for path in (device / "data").glob("*.slice_*[0-9]"):
            done_text = (path.parent / (path.name + ".done")).read_text()
            assert done_text.startswith(f"filesize:{path.stat().st_size}\n"), path.name


QUERY = """
import ctypes, json, sys
d = ctypes.CDLL("libdcmi.so")
assert d.dcmi_init() == 0
class Held(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_int), ("bytes", ctypes.c_ulong)]
held, n, degrees = (Held * 32)(), ctypes.c_int(32), ctypes.c_int()
hbm = (ctypes.c_ulonglong * 4)()
assert d.dcmi_get_device_resource_info(0, 0, held, ctypes.byref(n)) == 0
assert d.dcmi_get_device_temperature(0, 0, ctypes.byref(degrees)) == 0
assert d.dcmi_get_device_hbm_info(0, 0, hbm) == 0
print(json.dumps([{held[i].pid: held[i].bytes for i in range(n.value)}, degrees.value, hbm[0] << 20]))
"""


@test(seconds=120)
def what_npu_smi_reports(case: Case) -> None:
    """Utilisation, memory, temperature, power, health: queried a second
    time here, through libdcmi.so itself."""
    need_npusim()
    job = case.sim_job("--ranks", "1", "--rate", "1000", "--seconds", "60")
    (pid,) = ranks_of(job)
    capture = sample(case, job, "--npu-usage", "--npu-usage-freq", "5", seconds="4s", wait=True)
    queried = case.run(["/usr/bin/python3", "-c", QUERY], env=environment(sim=True)).expect(DONE)
    held, degrees, total = json.loads(queried.out)
    result = capture.result().expect(DONE)
    later = json.loads(case.run(["/usr/bin/python3", "-c", QUERY], env=environment(sim=True)).expect(DONE).out)[0]
    db = database(result)
    rows = db.execute("SELECT aiCore, memory, temperature, power, health, hbmTotal, hbmUsed "
                      "FROM NPUSCOPE_NPU_USAGE").fetchall()
    assert 15 <= len(rows) <= 21, f"{len(rows)} samples in 4 s at 5 Hz"
    assert {row[5] for row in rows} == {total} and {row[4] for row in rows} == {0}
    assert all(0 <= row[0] <= 100 and 0 <= row[1] <= 100 and 0 < row[6] < total and row[3] > 0 for row in rows), rows
    assert any(abs(row[2] - degrees) <= 10 for row in rows), (degrees, rows)
    assert max(row[0] for row in rows) > 0, "the cores worked, and no profiler had their counters"
    memory = db.execute("SELECT pid, bytes FROM NPUSCOPE_NPU_PROCESS").fetchall()
    assert memory and {p for p, _b in memory} == {pid}, "of the result's process alone"
    # At the first query the job may not have had all its memory.
    assert {held[str(pid)], later[str(pid)]} & {b for _p, b in memory}, (held, later, memory)
    path = Path(result.out.splitlines()[1]) / "ASCEND_PROFILER_OUTPUT" / "npuscope_npu_usage.csv"
    header = path.read_text().split("\n")[0]
    assert header.startswith("Device_id,Timestamp(us),AI Core(%),"), header
    trace = json.loads((Path(result.out.splitlines()[1]) / "ASCEND_PROFILER_OUTPUT" / "trace_view.json").read_text())
    assert {"AI Core", "Power", "Temperature",
            f"Memory of process {pid}"} <= {e["name"] for e in trace if e["ph"] == "C"}
    conform(result)


@test
def options_are_checked(case: Case) -> None:
    for wrong in (["--aic-metrics", "Nonsense"], ["--sys-io-sampling-freq", "0"], ["--sys-io-sampling-freq", "101"],
                  ["--sys-interconnection-freq", "51"], ["--llc-profiling", "both"], ["--sys-devices", "0,"],
                  ["--sys-devices", "64"], ["--aic-freq", "x"], ["--npu-usage-freq", "11"]):
        result = case.npuscope("record", "-p", "1", *wrong).expect(USAGE)
        assert wrong[0] in result.err, result.err


@test(seconds=120)
def devices_of_everything(case: Case) -> None:
    """-a samples all devices, unless others are requested."""
    need_npusim()
    job = case.sim_job("--ranks", "1", "--rate", "500", "--seconds", "60")
    for options, devices in (((), set(range(8))), (("--sys-devices", "job"), {0}), (("--sys-devices", "3,5"), {3, 5})):
        # Task logs of jobs that other tests record beside this one stay theirs.
        result = case.record("-a", "-d", "2s", "-o", case.path("out"), "--sys-hardware-mem", "--task-source", "host",
                             "--export",
                             "none", *options, wait=False, env=host_environment(case)).result().expect(DONE, PARTIAL)
        assert set(sampler(result.session)) == devices, (options, sorted(sampler(result.session)))
    job.signal(15)


@test(seconds=120)
def devices_of_a_container(case: Case) -> None:
    """Of a job with pids of its own devices are found by its processes in the
    driver's answers, and the result states that."""
    need_npusim()
    train = ROOT / "build" / "npusim" / "Ascend" / "bin" / "npusim-train"
    result = case.record("-o", case.path("out"), "--sys-hardware-mem", "--", "unshare", "--mount", "--pid", "--fork",
                         train, "--ranks", "1",
                         "--rate", "500", "--seconds", "5", wait=False,
                         env=host_environment(case)).result().expect(DONE, PARTIAL)
    session = result.session
    (rank,) = [p for p in session.json["processes"] if p["rank"] == 0]
    assert rank["ns_pid"] != rank["pid"] and rank["device_numbers"] == "container", rank
    assert rank["sampled_devices"] == [0] == sorted(sampler(session)), rank["sampled_devices"]
    assert database(result).execute("SELECT count(*) FROM HBM WHERE deviceId = 0").fetchone()[0] > 100


MAPPED = """
import ctypes, sys, time
ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
time.sleep(120)
"""


@test
def the_library_that_the_job_has_mapped(case: Case) -> None:
    """Sampled through it where the host has none, but only if nobody but root can write it."""
    need_npusim()
    library = case.path("lib") / "libascend_hal.so"
    library.parent.mkdir()
    shutil.copy(SIM / "driver" / "lib64" / "driver" / library.name, library)
    job = case.start([sys.executable, "-c", MAPPED, library], env=environment(sim=True))
    job.wait_for("^ready")
    for owner, sampled in ((0, True), (65534, False)):
        os.chown(library, owner, owner)
        result = case.record("-p", job.pid, "-d", "300ms", "-o", case.path(f"out{owner}"), "--export", "none",
                             "--sys-io",
                             "--sys-devices", "0", wait=False, env=environment()).result().expect(DONE, PARTIAL)
        reported = result.session.json.get("device_sampler")
        assert (reported or {}).get("driver") == (str(library) if sampled else None), result.err
        assert len(complaints(result, "devices are not sampled")) == (not sampled), result.err


@test
def without_a_driver_the_rest_is_captured(case: Case) -> None:
    """No libascend_hal.so: one line, and the capture goes on."""
    result = case.record("-o", case.path("out"), "--sys-io", "--", "sleep", "0.3", wait=False,
                         env=environment()).result().expect(PARTIAL)
    assert len(complaints(result, "devices are not sampled")) == 1, result.err
    assert "device_sampler" not in result.session.json


if __name__ == "__main__":
    raise SystemExit(main())
