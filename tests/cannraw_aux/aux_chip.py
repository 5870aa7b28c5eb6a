# SPDX-License-Identifier: BSD-2-Clause
"""The chip itself: memory in use, frequency, SoC counters, sampled PMU,
per-task cache counters, video, TS CPU."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Iterator

from aux_clock import whole
from aux_io import DEVICE, Context, Fields, Line, Product, Record, line
from aux_links import stamp

LPM_SLOTS = 55
ACC, SIO, CHIP, SOC, POWER, QOS = 0b011010, 0b011001, 0b011011, 0b011100, 0b011101, 0b011000
PA_LINK, PCIE = 0b111111, 0b100010
STARS_MAGIC = 0x6BD3
SIO_FIELDS = ["rxReq", "rxRsp", "rxSnp", "rxDat", "txReq", "txRsp", "txSnp", "txDat"]


def _memory(ctx: Context, name: str, events: tuple[int, ...]) -> list[Record]:
    rng, out = ctx.rng(name), []
    ddr, hbm = {0: 0, 1: 0}, {0: 2 << 30, 1: 3 << 30}
    for when in ctx.times:
        for event in events:
            hbm[event] = max(0, hbm[event] + rng.randrange(-40, 60) * 4096)
            ddr[event] = max(0, ddr[event] + rng.randrange(-4, 6) * 4096)
            micros = ctx.clocks.to_sampled(when) + (0 if ctx.version2 else ctx.us_base)
            item = {"t": micros, "event": event, "ddr": ddr[event], "hbm": hbm[event]}
            data = struct.pack("<IIQQQ", 0, event, micros, ddr[event], hbm[event]) if ctx.version2 else \
                struct.pack("<IIQQQ", micros % 2**32, event, 0, ddr[event], hbm[event])
            out.append((data, item))
    return out


def make_npu_mem(ctx: Context) -> list[Record]:
    return _memory(ctx, "npu_mem", (1,))


def make_npu_app(ctx: Context) -> list[Record]:
    return _memory(ctx, "npu_app", (0,))


def truth_npu_mem(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        row = {"type": "device" if item["event"] else "app", "ddr": item["ddr"], "hbm": item["hbm"],
               "deviceId": ctx.device}
        yield line("NPU_MEM", ctx.wall_dev(ctx.clocks.sampled(item["t"])), row, raw={"t": item["t"] % 2**32})


def make_module_mem(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("module"), []
    modules = (0, 3, 7, 11, 33, 45, 48, 74)
    for number, when in enumerate(ctx.times):
        for module in modules:
            item = {"t": ctx.clocks.to_host(when), "module": module, "bytes": rng.randrange(1 << 31)}
            if module == 11 and number % 5 == 2:
                item["bytes"] = 2**64 - 1 - rng.randrange(4)
            out.append((struct.pack("<IIQQ", module, 0, item["t"], item["bytes"]), item))
    return out


def truth_module_mem(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        size = item["bytes"] if item["bytes"] < 2**63 else -1
        row = {"moduleId": item["module"], "totalReserved": size, "deviceId": ctx.device}
        yield line("NPU_MODULE_MEM", ctx.wall_dev(ctx.clocks.host(item["t"])), row, raw={"ticks": item["t"]})


def _lpm(ctx: Context, name: str, kinds: tuple[tuple[int, list[int]], ...]) -> list[Record]:
    rng, out, start = ctx.rng(name), [], ctx.clocks.dev_mark["cntvct"]
    for kind, values in kinds:
        points = [(start - 90_000, values[0]), (start - 5_000, values[1])]
        points += [(ctx.clocks.to_ticks(when), rng.choice(values)) for when in ctx.times]
        for first in range(0, len(points), LPM_SLOTS):
            part = points[first:first + LPM_SLOTS]
            body = b"".join(struct.pack("<QII", ticks, value, 0) for ticks, value in part)
            data = struct.pack("<II", len(part), kind) + body
            out.append((data + bytes(8 + LPM_SLOTS * 16 - len(data)), {"kind": kind, "points": part}))
    return out


def make_freq(ctx: Context) -> list[Record]:
    # with version 2.0 the frequency stands in lpmInfoConv; in both files it would be recorded twice
    return [] if ctx.version2 else _lpm(ctx, "freq", ((0, [1800, 1650, 1200, 800]),))


def make_power_info(ctx: Context) -> list[Record]:
    volts = ((1, [850, 820, 790]), (2, [900, 880]))
    return _lpm(ctx, "lpm", ((0, [1800, 1500, 1000]), *volts) if ctx.version2 else volts)


def truth_lpm(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    start = ctx.clocks.dev_mark["cntvct"]
    names = {0: ("AICORE_FREQ", "freq"), 1: ("counter:Aicore Voltage", "mv"), 2: ("counter:Bus Voltage", "mv")}
    for kind, (table, column) in names.items():
        points = [point for item in items if item["kind"] == kind for point in item["points"]]
        before = [value for ticks, value in points if ticks < start]
        if before:
            yield line(table, None, {"deviceId": ctx.device, column: before[-1]}, "initial")
        for ticks, value in points:
            if ticks >= start:
                yield line(table, ctx.wall_dev(ctx.clocks.ticks(ticks)), {"deviceId": ctx.device, column: value},
                           raw={"ticks": ticks})


def _known_tasks(ctx: Context) -> list[tuple[int, int]]:
    """(stream, task) of tasks that the directory's task log holds, where their ids need no unmangling."""
    found: dict[tuple[int, int], None] = {}
    data = ctx.prof / f"device_{ctx.device}" / "data"
    for path in sorted(data.glob("stars_soc.data.*.slice_0")):
        log = path.read_bytes()[:64 * 4096]
        for at in range(0, len(log) - 63, 64):
            head, magic, stream, task = struct.unpack_from("<HHHH", log, at)
            if head & 0x3F == 0 and magic == STARS_MAGIC and not stream & 0x3000:
                found[stream % 2048, task] = None
    return list(found) or [(2 + i % 3, 100 + i) for i in range(ctx.samples)]


def make_l2(ctx: Context) -> list[Record]:
    rng, out, tasks = ctx.rng("l2"), [], _known_tasks(ctx)
    for number in range(min(ctx.samples, len(tasks))):
        stream, task = tasks[number]
        item = {"type": 0, "stream": stream, "task": task, "events": [rng.randrange(1 << 24) for _ in range(8)]}
        out.append((struct.pack("<HHHH8Q", 0, stream, task, 0, *item["events"]), item))
    return out


def truth_l2(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    names = str(ctx.sample.get("l2CacheTaskProfilingEvents") or "").split(",")
    for item in items:
        yield line("csv:l2_cache", None, {"Stream Id": item["stream"], "Task Id": item["task"]}, "raw",
                   raw={"taskType": item["type"], "events": item["events"], "order": names})


def make_socpmu(ctx: Context) -> list[Record]:
    rng, out, tasks = ctx.rng("socpmu"), [], _known_tasks(ctx)
    for number in range(min(ctx.samples, len(tasks))):
        stream, task = tasks[number]
        for kind in (1, 2, 4):
            events = [rng.randrange(1 << 20) if kind != 4 else rng.randrange(4) for _ in range(8)]
            out.append((struct.pack("<8BHHHH8Q", *[0] * 8, 0, stream, task, kind, *events),
                        {"stream": stream, "task": task, "kind": kind, "events": events}))
    return out


def truth_socpmu(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    tables = {1: "csv:l2_cache", 2: "csv:soc_pmu", 4: "csv:page_fault"}
    for item in items:
        yield line(tables[item["kind"]], None, {"Stream Id": item["stream"], "Task Id": item["task"]}, "raw",
                   raw={"kind": item["kind"], "events": item["events"]})


def _soc_head(func: int, count: int, top: int, ticks: int) -> bytes:
    return struct.pack("<HHIQ", func | count % 16 << 6 | top << 10, STARS_MAGIC, 0, ticks)


def make_soc(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("soc"), []

    def put(func: int, ticks: int, body: bytes, item: Fields, top: int = 0) -> None:
        data = _soc_head(func, len(out), top, ticks) + body
        out.append((data + bytes(64 - len(data)), {"func": func, "t": ticks, **item}))

    for when in ctx.times:
        ticks = ctx.clocks.to_ticks(when)
        for acc in (0, 1):
            values = [rng.randrange(1 << 12) for _ in range(4)]
            put(ACC, ticks, struct.pack("<HH3I4Q", 0, acc, 0, 0, 0, *values), {"acc": acc, "values": values})
        for die in (0, 1):
            words = [rng.randrange(1 << 18) for _ in SIO_FIELDS]
            put(SIO, ticks, struct.pack("<HH3I8I", 0, die, 0, 0, 0, *words), {"die": die, "values": words})
        for top in (PA_LINK, PCIE):
            unit, values = rng.randrange(4), [rng.randrange(1 << 30), rng.randrange(1 << 30)]
            put(CHIP, ticks, struct.pack("<HH3I2Q", 0, unit, 0, 0, 0, *values), {"top": top, "unit": unit,
                                                                              "values": values}, top)
        mata, l2 = rng.randrange(8), rng.randrange(256)
        put(SOC, ticks, struct.pack("<QQH", 0, 0, mata | l2 << 3), {"mata": mata, "l2": l2})
        words = [rng.randrange(1 << 32) for _ in range(10)]
        put(POWER, ticks, struct.pack("<Q20H", 0, *(half for word in words for half in (word >> 16, word & 0xFFFF))),
            {"words": words})
        bands = [rng.randrange(1 << 16) for _ in range(10)]
        put(QOS, ticks, struct.pack("<Q10I", 0, *bands), {"bw": bands})
    return out


def truth_soc(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    dies: set[int] = set()
    names = [name for name in str(ctx.sample.get("qosEvents") or "").split(",") if name]
    device = {"deviceId": ctx.device}
    for item in items:
        wall, raw = ctx.wall_dev(ctx.clocks.ticks(item["t"])), {"ticks": item["t"]}
        if item["func"] == ACC:
            write, read, write_ost, read_ost = item["values"]
            yield line("ACC_PMU", wall, {**device, "accId": item["acc"], "readBwLevel": read, "writeBwLevel": write,
                                         "readOstLevel": read_ost, "writeOstLevel": write_ost}, raw=raw)
        elif item["func"] == SIO:
            amounts = dict(zip(SIO_FIELDS, item["values"])) if item["die"] in dies else {}
            dies.add(item["die"])
            yield line("SIO", wall, {**device, **amounts}, "exact but for the name" if amounts else "first",
                       raw={**raw, "die": item["die"], "amounts": item["values"]})
        elif item["func"] == CHIP:
            link = item["top"] == PA_LINK
            yield line("counter:PA Link" if link else "counter:PCIE Bandwidth", wall, device, "raw",
                       raw={**raw, "id": item["unit"], "rx" if link else "write": item["values"][0],
                            "tx" if link else "read": item["values"][1]})
        elif item["func"] == SOC:
            yield line("SOC_BANDWIDTH_LEVEL", wall, {**device, "l2BufferBwLevel": item["mata"],
                                                     "mataBwLevel": item["l2"]}, raw=raw)
        elif item["func"] == POWER:
            yield line(None, wall, device, "raw", raw={**raw, "words": item["words"]})
        else:
            for name, value in zip(names, item["bw"]):
                yield line("QOS", wall, {**device, "eventName": name}, "raw", raw={**raw, "bandwidth": value})


def make_sampled_pmu(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("pmu"), []
    for when in ctx.times:
        for core in (0, 1, 24, 25, 26):
            cycles = rng.randrange(1, 36_000_000)
            item = {"t": ctx.clocks.to_dev_raw(when), "core": core, "cycles": cycles,
                    "events": [rng.randrange(cycles) for _ in range(8)]}
            out.append((struct.pack("<BBHHH8QQQBB6x", 0, 0, 96, 0, 0, *item["events"], cycles, item["t"], 8, core),
                        item))
    return out


def truth_sampled_pmu(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        row = {"deviceId": ctx.device, "totalCycle": item["cycles"], "coreId": item["core"]}
        yield line("SAMPLE_PMU_TIMELINE", ctx.wall_dev(ctx.clocks.dev_raw(item["t"])), row,
                   "exact but for usage, freq and coreType",
                   raw={"events": item["events"], "core": "AIV" if item["core"] > 24 else "AIC"})


def make_tscpu(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("tscpu"), []
    for when in ctx.times:
        item = {"t": ctx.clocks.to_ticks(when), "pc": 0x8000_0000 + rng.randrange(1 << 16) * 4,
                "events": [(event, rng.randrange(1 << 20)) for event in (0x11, 0x8, 0x13, 0x3, 0x4, 0x17, 0x16)],
                "frames": [0x8000_0000 + rng.randrange(1 << 16) * 4 for _ in range(20)]}
        pairs = [number for pair in item["events"] for number in pair]
        out.append((struct.pack("<II20QIIQQ14Q", 0xABABABAB, 0, *item["frames"], 0, 0, item["pc"], item["t"], *pairs),
                    item))
    return out


def truth_tscpu(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    totals: dict[int, int] = {}
    for item in items:
        for event, count in item["events"]:
            totals[event] = totals.get(event, 0) + count
        yield line(None, ctx.wall_dev(ctx.clocks.ticks(item["t"])), {}, "raw",
                   raw={"ticks": item["t"], "pc": item["pc"], "events": item["events"], "backtrace": item["frames"]})
    for event, count in totals.items():
        yield line("csv:ts_cpu_pmu_events", None, {"Event": f"0x{event:x}", "Count": count}, "sum")


def make_dvpp(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("dvpp"), []
    total: dict[tuple[int, int], list[int]] = {}
    for when in ctx.times:
        for engine in ((0, 0), (1, 0), (3, 1)):
            state = total.setdefault(engine, [0, 0])
            step = [rng.randrange(20_000), rng.randrange(8)]
            state[0], state[1] = state[0] + step[0], state[1] + step[1]
            share = f"{whole(Fraction(step[0] * 100_000, ctx.period)) % 101}%"
            item = {"t": ctx.clocks.to_dev_raw(when), "dvpp": 0, "engine": engine,
                    "cells": [state[0], state[1], share, step[0], step[1], share, step[0], step[1]]}
            cells = [stamp(item["t"]), 0, *engine, *item["cells"]]
            out.append((" ".join(map(str, cells)).encode() + b"\n", item))
    return out


def truth_dvpp(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        all_time, all_frame, share = item["cells"][:3]
        row = {"Dvpp Id": item["dvpp"], "Engine Type": item["engine"][0], "Engine ID": item["engine"][1]}
        yield line("csv:dvpp", ctx.wall_dev(ctx.clocks.dev_raw(item["t"])), row, "raw",
                   raw={"allTime": all_time, "allFrame": all_frame, "allUtilization": share})


PRODUCTS = [
    Product("npu_mem.data", DEVICE, make_npu_mem, truth_npu_mem),
    Product("npu_mem.app", DEVICE, make_npu_app, truth_npu_mem),
    Product("npu_module_mem.data", DEVICE, make_module_mem, truth_module_mem),
    Product("lpmFreqConv.data", DEVICE, make_freq, truth_lpm),
    Product("lpmInfoConv.data", DEVICE, make_power_info, truth_lpm),
    Product("l2_cache.data", DEVICE, make_l2, truth_l2),
    Product("socpmu.data", DEVICE, make_socpmu, truth_socpmu),
    Product("stars_soc_profile.data", DEVICE, make_soc, truth_soc),
    Product("ffts_profile.data", DEVICE, make_sampled_pmu, truth_sampled_pmu),
    Product("tscpu.data", DEVICE, make_tscpu, truth_tscpu),
    Product("dvpp.data", DEVICE, make_dvpp, truth_dvpp, text=True),
]
