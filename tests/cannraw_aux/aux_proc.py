# SPDX-License-Identifier: BSD-2-Clause
"""Blocks of /proc samples: whole systems and single processes, on the host and on the device."""

from __future__ import annotations

from fractions import Fraction
from typing import Callable, Iterator

from aux_host import stat_line
from aux_io import DEVICE, HOST, Context, Fields, Line, Product, Record, line

CPU_KEYS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
MEMORY_KEYS = {"MemTotal": "Memory Total(kB)", "MemFree": "Memory Free(kB)", "Buffers": "Buffers(kB)",
               "Cached": "Cached(kB)", "Shmem": "Share Memory(kB)", "CommitLimit": "Commit Limit(kB)",
               "Committed_AS": "Committed AS(kB)", "HugePages_Total": "Huge Pages Total(pages)",
               "HugePages_Free": "Huge Pages Free(pages)"}
Body = Iterator[tuple[str, Fields]]


def _blocks(ctx: Context, name: str, part: str, body: Callable[[Context, str], Body]) -> list[Record]:
    out: list[Record] = []
    for number, (when, (text, fields)) in enumerate(zip(ctx.times, body(ctx, name))):
        stamp = when if part == HOST else ctx.clocks.to_dev_raw(when)
        head = f"TimeStamp:{stamp}\nIndex:{number}\nDataLen:{len(text)}\n"
        out.append(((head + text + "\n").encode(), {"t": stamp, "values": fields}))
    return out


def _stat(ctx: Context, name: str) -> Body:
    rng = ctx.rng(name)
    rows = {cpu: [rng.randrange(10**6) for _ in CPU_KEYS] for cpu in range(4)}
    while True:
        for row in rows.values():
            for i in range(7):
                row[i] += rng.randrange(1, 6)
        total = [sum(column) for column in zip(*rows.values())]
        text = "cpu  " + " ".join(map(str, total)) + "\n"
        text += "".join(f"cpu{cpu} " + " ".join(map(str, row)) + "\n" for cpu, row in rows.items())
        yield text, {"cpu": dict(zip(CPU_KEYS, total)),
                     **{f"cpu{cpu}": dict(zip(CPU_KEYS, row)) for cpu, row in rows.items()}}


def _meminfo(ctx: Context, name: str) -> Body:
    rng = ctx.rng(name)
    values = {key: rng.randrange(1 << 24) for key in MEMORY_KEYS}
    while True:
        values["MemFree"] = rng.randrange(1 << 24)
        text = "".join(f"{key}:{value:>16}{'' if key.startswith('Huge') else ' kB'}\n" for key, value in values.items())
        yield text, {MEMORY_KEYS[key]: value for key, value in values.items()}


def _pid_stat(ctx: Context, name: str) -> Body:
    rng, user, system = ctx.rng(name), 100, 10
    while True:
        user, system = user + rng.randrange(3), system + rng.randrange(2)
        text = stat_line(ctx.pid, "python3", user, system, 3) + "\nProcessName:python3\n"
        yield text, {"PID": ctx.pid, "Name": "python3", "utime": user, "stime": system}


def _statm(ctx: Context, name: str) -> Body:
    rng = ctx.rng(name)
    while True:
        size, resident, shared = (rng.randrange(1 << bits) for bits in (24, 20, 16))
        text = f"{size} {resident} {shared} 900 0 {size // 2} 0\nProcessName:python3\n"
        yield text, {"PID": ctx.pid, "Name": "python3", "Size(pages)": size, "Resident(pages)": resident,
                     "Shared(pages)": shared}


def _product(name: str, part: str, table: str, rule: str, body: Callable[[Context, str], Body]) -> Product:
    def make(ctx: Context) -> list[Record]:
        return _blocks(ctx, part + name, part, body)

    def truth(ctx: Context, items: list[Fields]) -> Iterator[Line]:
        for item in items:
            if part == HOST:
                wall = ctx.wall_host(Fraction(item["t"]))
            else:
                wall = ctx.wall_dev(ctx.clocks.dev_raw(item["t"]))
            if rule == "raw":
                yield line(table, wall, {"Device_id": "host" if part == HOST else ctx.device}, rule, raw=item["values"])
            else:
                yield line(table, wall, item["values"], rule)

    return Product(name, part, make, truth, text=True)


PRODUCTS = [
    _product("host_sys_cpu.data", HOST, "csv:cpu_usage", "raw", _stat),
    _product("host_sys_mem.data", HOST, "csv:sys_mem", "a sample", _meminfo),
    _product("{pid}-CpuUsage.data", HOST, "csv:process_cpu_usage", "raw", _pid_stat),
    _product("{pid}-Memory.data", HOST, "csv:process_mem", "a sample", _statm),
    _product("SystemCpuUsage.data", DEVICE, "csv:cpu_usage", "raw", _stat),
    _product("Memory.data", DEVICE, "csv:sys_mem", "a sample", _meminfo),
    _product("{pid}-CpuUsage.data", DEVICE, "csv:process_cpu_usage", "raw", _pid_stat),
    _product("{pid}-Memory.data", DEVICE, "csv:process_mem", "a sample", _statm),
]
