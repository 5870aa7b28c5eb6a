# SPDX-License-Identifier: BSD-2-Clause
"""Records of 256 bytes: AI CPU work, memory of graph operators, static memory."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Iterator

from aux_io import DEVICE, HOST, Context, Fields, Line, Product, Record, line

MAGIC = 0x5A5A
AICPU, NODE = 6000, 10000
NODE_MEMORY, NODE_STATIC = 6, 11
OPS = ["trans_TransData_0", "MatMulV2_12", "Add_3", 'odd,"name"', "ReduceSum_7"]


def _additional(level: int, kind: int, tid: int, when: int, payload: bytes) -> bytes:
    data = struct.pack("<HHIIIQ", MAGIC, level, kind, tid, len(payload), when) + payload
    return data + bytes(256 - len(data))


def make_aicpu(ctx: Context) -> list[Record]:
    rng, out, clocks = ctx.rng("aicpu"), [], ctx.clocks
    for number, when in enumerate(ctx.times):
        ticks = clocks.to_ticks(when)
        micros = clocks.to_dev_raw(when) // 1000
        spans = [rng.randrange(2, 300) for _ in range(4)]
        times = [micros, micros + spans[0], micros + sum(spans[:2]), micros + sum(spans[:3]), micros + sum(spans)]
        last = clocks.to_ticks(when + sum(spans) * 1000)
        node = {"kind": 0, "t": ticks, "end": last, "stream": 2 + number % 3, "task": 1000 + number, "times": times,
                "dispatch": rng.randrange(50), "total": sum(spans) + rng.randrange(50), "tid": 7000 + number % 4}
        payload = struct.pack("<HHI7QII4QIIIHB", node["stream"], node["task"], 0, times[0], ticks, times[1], times[2],
                              times[3], times[4], last, node["tid"], ctx.device, ticks - 50, ticks - 20, ticks - 1,
                              last + 1, 2, node["dispatch"], node["total"], 0, 0)
        out.append((_additional(AICPU, 0, node["tid"], ticks, payload), node))
        item = {"kind": 1, "t": ticks + 10, "action": rng.choice(["wait", "enqueue", "dequeue"]),
                "source": f"iterator_{number % 3}", "index": number, "size": rng.randrange(64)}
        payload = struct.pack("<16s64sQQ", item["action"].encode(), item["source"].encode(), number, item["size"])
        out.append((_additional(AICPU, 1, 0, item["t"], payload), item))
        item = {"kind": 2, "t": ticks + 20, "index": number, "model": 1, "tag": number % 5, "event": rng.randrange(99)}
        payload = struct.pack("<QIHHQ", number, 1, item["tag"], 0, item["event"])
        out.append((_additional(AICPU, 2, 0, item["t"], payload), item))
        item = {"kind": 3, "t": ticks + 30, "tag": 1, "queue": rng.randrange(64), "start": times[0], "end": times[-1]}
        payload = struct.pack("<IIQQQ", 1, 0, item["queue"], item["start"], item["end"])
        out.append((_additional(AICPU, 3, 0, item["t"], payload), item))
    return out


def truth_aicpu(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    keys = ["runStart", "computeStart", "memcpyStart", "memcpyEnd", "runEnd"]
    for item in items:
        wall = ctx.wall_dev(ctx.clocks.ticks(item["t"]))
        if item["kind"] == 0:
            row = {"Stream ID": item["stream"], "Task ID": item["task"]}
            end = ctx.wall_dev(ctx.clocks.ticks(item["end"]))
            yield line("csv:aicpu", wall, row, "raw", raw={
                "us": dict(zip(keys, item["times"])), "dispatchTime": item["dispatch"], "totalTime": item["total"],
                "ticks": item["t"], "end_ns": end.numerator // end.denominator})
        elif item["kind"] == 1:
            yield line("csv:dp", wall, {"Action": item["action"], "Source": item["source"],
                                        "Cached Buffer Size": item["size"]}, "time of the header",
                       raw={"ticks": item["t"], "index": item["index"]})
        elif item["kind"] == 2:
            yield line(None, wall, {}, "raw", raw={key: item[key] for key in ("index", "model", "tag", "event")})
        else:
            yield line("csv:aicpu_mi", None, {"Queue Size": item["queue"]}, "raw",
                       raw={"tag": item["tag"], "start_us": item["start"], "end_us": item["end"]})


def make_task_memory(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("task_memory"), []
    live: list[tuple[int, int, str]] = []
    allocated, reserved = 0, 512 << 20
    for number, when in enumerate(ctx.times):
        for step in range(2):
            if live and (step or rng.random() < 0.2):
                address, size, name = live.pop(rng.randrange(len(live)))
                change = -size
            else:
                address, size = 0x1240_0000_0000 + (number * 2 + step) * 4 * 2**20, rng.randrange(1, 4000) * 512
                name, change = rng.choice(OPS), size
                live.append((address, size, name))
            allocated += change
            reserved = max(reserved, allocated)
            item = {"t": ctx.clocks.to_host(when + step * 5000), "address": address, "change": change, "name": name,
                    "allocated": allocated, "reserved": reserved, "tid": ctx.pid + step}
            payload = struct.pack("<QqQQQII", address, change, ctx.hash(name), allocated, reserved, ctx.device, 20)
            out.append((_additional(NODE, NODE_MEMORY, item["tid"], item["t"], payload), item))
    return out


def truth_task_memory(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    live: dict[int, tuple[Fields, Fraction]] = {}
    done: list[Line] = []
    for item in items:
        wall = ctx.wall_host(ctx.clocks.host(item["t"]))
        size = abs(item["change"])
        row = {"operatorName": item["name"], "addr": item["address"], "type": "release" if item["change"] < 0 else
               "allocate", "size": size, "globalTid": ctx.pid << 32 | item["tid"], "totalAllocate": item["allocated"],
               "totalReserve": item["reserved"], "component": "GE", "deviceId": ctx.device}
        yield line("NPU_OP_MEM", wall, row, "exact but for the words of type", raw={"ticks": item["t"]})
        if item["change"] > 0:
            live[item["address"]] = (item, wall)
        elif item["address"] in live:
            start, begin = live.pop(item["address"])
            done.append(_operator_memory(start, begin, item, wall))
    yield from done
    for start, begin in live.values():
        yield _operator_memory(start, begin, None, None)


def _operator_memory(start: Fields, begin: Fraction, end: Fields | None, until: Fraction | None) -> Line:
    row = {"Name": start["name"], "size": start["change"], "allocation_total_allocated": start["allocated"],
           "allocation_total_reserved": start["reserved"], "release_ns": None, "release_total_allocated": None,
           "release_total_reserved": None}
    if end is not None and until is not None:
        row.update(release_ns=until.numerator // until.denominator, release_total_allocated=end["allocated"],
                   release_total_reserved=end["reserved"])
    return line("csv:operator_memory", begin, row, "bytes and ns")


def make_static(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("static"), []
    for number in range(ctx.samples):
        name = rng.choice(OPS)
        life = sorted(rng.randrange(2000) for _ in range(2))
        item = {"name": name, "size": rng.randrange(1, 1 << 22), "life": life, "graph": 1 + number % 2,
                "total": rng.randrange(1 << 30), "dynamic": f"dyn_{name}"}
        payload = struct.pack("<qQQQQQI", item["size"], ctx.hash(name), *life, item["total"], ctx.hash(item["dynamic"]),
                              item["graph"])
        out.append((_additional(NODE, NODE_STATIC, ctx.pid, ctx.clocks.to_host(ctx.times[number]), payload), item))
    return out


def truth_static(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        row = {"Op Name": item["name"], "Graph ID": item["graph"], "Node Index Start": item["life"][0],
               "Node Index End": item["life"][1], "size": item["size"]}
        yield line("csv:static_op_mem", None, row, "exact but for Model Name, size in bytes",
                   raw={"dynOpName": item["dynamic"], "totalAlloc": item["total"]})


PRODUCTS = [
    Product("aicpu.data", DEVICE, make_aicpu, truth_aicpu),
    Product("aging.additional.task_memory_info", HOST, make_task_memory, truth_task_memory),
    Product("unaging.additional.static_op_mem", HOST, make_static, truth_static),
]
