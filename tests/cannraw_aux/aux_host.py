# SPDX-License-Identifier: BSD-2-Clause
"""Text files of the host: the job's CPU, memory, disk, network and OS calls."""

from __future__ import annotations

from fractions import Fraction
from typing import Iterator, Optional

from aux_io import HOST, Context, Fields, Line, Product, Record, decimals, line

PAGE_KB = 4
SYSCALLS = ("futex", "read", "epoll_wait", "ioctl", "nanosleep", "write")
PTHREADS = ("pthread_mutex_lock", "pthread_cond_wait", "pthread_once", "pthread_create")


def _hz(ctx: Context) -> int:
    return int(ctx.clocks.host_info.get("sysClockFreq") or 100)


def _recommend(values: list[Fraction]) -> Optional[Fraction]:
    """The 98th percentile of what is positive, and a quarter more."""
    positive = sorted(value for value in values if value > 0)
    if not positive:
        return None
    index = -(-(len(positive) - 1) * 98 // 100)
    return positive[index] / Fraction(8, 10)


def _peak(values: list[Fraction], digits: int = 3) -> dict[str, object]:
    top, advice = max(values, default=Fraction(0)), _recommend(values)
    return {"peak": decimals(top, digits), "recommend": None if advice is None else decimals(advice, digits)}


def stat_line(tid: int, comm: str, user: int, system: int, cpu: int) -> str:
    """A line of /proc/<pid>/task/<tid>/stat: 52 fields, of which 2, 14, 15 and 39 matter."""
    cells = ["0"] * 52
    cells[0], cells[1], cells[2], cells[3] = str(tid), f"({comm})", "R", "1"
    cells[13], cells[14], cells[16] = str(user), str(system), "20"
    cells[17], cells[18], cells[38] = "20", "0", str(cpu)
    return " ".join(cells)


def make_cpu(ctx: Context) -> list[Record]:
    rng, out, hz = ctx.rng("host_cpu"), [], _hz(ctx)
    comms = {ctx.pid: "python3", ctx.pid + 1: "acl_thread", ctx.pid + 2: "odd) (comm 1", ctx.pid + 3: "idle"}
    used = {tid: [rng.randrange(500), rng.randrange(100)] for tid in comms}
    cpus = {tid: index for index, tid in enumerate(comms)}
    # two threads of one CPU, whose shares are to be summed
    cpus[ctx.pid + 1] = cpus[ctx.pid]
    hundredths = 171_000_12
    for number, when in enumerate(ctx.times):
        ticks = max(1, ctx.period * 100 // 10**9)
        hundredths += ticks
        alive = [tid for tid in comms if not (tid == ctx.pid + 2 and number % 8 == 5)]
        for tid in alive:
            if number and tid != ctx.pid + 3:
                used[tid][rng.randrange(2)] += rng.randrange(max(1, ticks * hz // 100) + 1)
        if number % 11 == 10:
            cpus[ctx.pid + 2] = (cpus[ctx.pid + 2] + 3) % 8
        item = {"t": when, "uptime": Fraction(hundredths, 100),
                "threads": {tid: (sum(used[tid]), cpus[tid]) for tid in alive}}
        text = f"time {when}\n{hundredths // 100}.{hundredths % 100:02} 4000000.00\n"
        text += "".join(stat_line(tid, comms[tid], *used[tid], cpus[tid]) + "\n" for tid in alive)
        out.append((text.encode(), item))
    return out


def truth_cpu(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    hz, count = _hz(ctx), int(ctx.clocks.host_info.get("cpuNums") or 1)
    top: dict[int, Fraction] = {}
    for before, now in zip(items, items[1:]):
        jiffies = (now["uptime"] - before["uptime"]) * hz
        wall = ctx.wall_host(Fraction(before["t"]))
        shares: dict[int, Fraction] = {}
        moved: set[int] = set()
        for tid, (used, cpu) in now["threads"].items():
            if tid not in before["threads"]:
                continue
            was, old = before["threads"][tid]
            shares[cpu] = shares.get(cpu, Fraction(0)) + min(Fraction(used - was), jiffies)
            if old != cpu:
                moved |= {old, cpu}
        total = sum(shares.values(), Fraction(0))
        for cpu, share in sorted(shares.items()):
            usage = share / jiffies * 100
            top[cpu] = max(top.get(cpu, Fraction(0)), usage if usage <= 100 else Fraction(0))
            yield line("CPU_USAGE", wall, {"cpuId": cpu, "usage": decimals(usage, 6)},
                       "over 100: left out" if usage > 100 else "moved" if cpu in moved else "exact",
                       raw={"end_raw": now["t"]})
        yield line("counter:CPU Avg", wall, {"usage": decimals(total / (jiffies * count) * 100, 6)})
    seen = {cpu for item in items for _, cpu in item["threads"].values()}
    yield line("csv:host_cpu_usage", None, {
        "Total Cpu Numbers": count, "Occupied Cpu Numbers": len(seen),
        "Recommend Cpu Numbers": sum(1 for usage in top.values() if usage > 0)})


def make_mem(ctx: Context) -> list[Record]:
    rng, out, resident = ctx.rng("host_mem"), [], 200_000
    for when in ctx.times:
        resident = max(0, resident + rng.randrange(-500, 900))
        text = f"{when} {resident * 4} {resident} 5000 900 0 {resident * 2} 0\n"
        out.append((text.encode(), {"t": when, "resident": resident}))
    return out


def truth_mem(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    total = int(ctx.clocks.host_info["memoryTotal"])
    before = None
    for item in items:
        wall = ctx.wall_host(Fraction(item["t"]))
        usage = Fraction(item["resident"] * PAGE_KB * 100, total)
        yield line("HOST_MEM_USAGE", wall, {"usage": decimals(usage, 6)}, "time: own or previous sample",
                   raw={"resident": item["resident"], "previous_raw": before, "own_raw": item["t"]})
        before = item["t"]
    peak = _peak([Fraction(item["resident"] * PAGE_KB) for item in items])
    yield line("csv:host_mem_usage", None, {"Total Memory(KB)": total, "Peak Used Memory(KB)": peak["peak"],
                                            "Recommend Memory(KB)": peak["recommend"]})


def _cards(ctx: Context) -> dict[str, int]:
    return {card["netCardName"]: int(card["speed"]) for card in ctx.clocks.host_info.get("netCard") or []
            if int(card.get("speed") or 0) > 0}


def make_network(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("host_network"), []
    names = [*list(_cards(ctx))[:1], "lo", "eth9"]
    total = {name: [rng.randrange(1 << 30), 100, rng.randrange(1 << 30), 100] for name in names}
    for when in ctx.times:
        text = f"time {when}\n"
        for name in names:
            for at, most in ((0, 1 << 20), (2, 1 << 18)):
                packets = rng.randrange(100)
                total[name][at] += rng.randrange(most) if packets else 0
                total[name][at + 1] += packets
            cells = total[name]
            text += (f"{name:>10}: {cells[0]} {cells[1]} 0 0 0 0 0 0 "
                     f"{cells[2]} {cells[3]} 0 0 0 0 0 0\n")
        out.append((text.encode(), {"t": when, "bytes": {name: total[name][0] + total[name][2] for name in names}}))
    return out


def truth_network(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    cards = _cards(ctx)
    if not cards:
        return
    name, speed = next(iter(cards.items()))
    rates = []
    for before, now in zip(items, items[1:]):
        rate = Fraction((now["bytes"][name] - before["bytes"][name]) * 10**9, now["t"] - before["t"])
        rates.append(rate)
        usage = rate / (speed * 125_000) * 100
        yield line("HOST_NETWORK_USAGE", ctx.wall_host(Fraction(before["t"])),
                   {"usage": decimals(usage, 6), "speed": decimals(rate, 6)}, "exact, one card",
                   raw={"end_raw": now["t"], "card": name})
    peak = _peak([rate / 1024 for rate in rates])
    yield line("csv:host_network_usage", None, {
        "Netcard Speed(KB/s)": decimals(Fraction(sum(cards.values()) * 125_000, 1024), 6),
        "Peak Used Speed(KB/s)": peak["peak"], "Recommend Speed(KB/s)": peak["recommend"]})


def make_disk(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("host_disk"), []
    start = ctx.times[0] + 1_234_567
    out.append((f"start_time {start}\n".encode(), {"start": start}))
    scale = {"B/s": Fraction(1), "K/s": Fraction(1 << 10), "M/s": Fraction(1 << 20), "G/s": Fraction(1 << 30)}
    for number in range(ctx.samples):
        cells, rates = [], []
        for _ in range(2):
            unit = rng.choices(list(scale), weights=(5, 4, 2, 0.2))[0]
            hundredths = 0 if rng.random() < 0.2 else rng.randrange(102_300)
            cells.append(f"{hundredths // 100}.{hundredths % 100:02} {unit}")
            rates.append(Fraction(hundredths, 100) * scale[unit])
        io = rng.randrange(10_000)
        second = number // 50
        text = (f"{second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02} {ctx.pid} be/4 root {cells[0]:>14} "
                f"{cells[1]:>14}  0.00 % {io // 100:2}.{io % 100:02} % "
                f"python3 train.py -x 3 K/s\n")
        out.append((text.encode(), {"rates": rates, "io": Fraction(io, 100)}))
    return out


def truth_disk(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    start, rows = items[0]["start"], items[1:]
    hertz = Fraction(str(ctx.sample.get("host_disk_freq") or 50))
    for number, item in enumerate(rows):
        wall = ctx.wall_host(start + Fraction(number * 10**9) / hertz)
        yield line("HOST_DISK_USAGE", wall, {"readRate": decimals(item["rates"][0], 6),
                                             "writeRate": decimals(item["rates"][1], 6),
                                             "usage": decimals(item["io"], 2)})
    read, write = (_peak([item["rates"][i] / 1024 for item in rows]) for i in (0, 1))
    yield line("csv:host_disk_usage", None, {
        "Peak Disk Read(KB/s)": read["peak"], "Recommend Disk Read(KB/s)": read["recommend"],
        "Peak Disk Write(KB/s)": write["peak"], "Recommend Disk Write(KB/s)": write["recommend"]})


def _calls(ctx: Context, name: str, names: tuple[str, ...]) -> Iterator[tuple[int, int, str, int]]:
    """(begin us after the first, duration us, call, tid), by begin."""
    rng, begin = ctx.rng(name), 0
    for number in range(ctx.samples):
        yield begin, rng.randrange(1, 4000), names[0] if not number else rng.choice(names), ctx.pid + rng.randrange(3)
        begin += rng.randrange(0, max(2, 2 * ctx.period // 1000))


def make_syscall(ctx: Context) -> list[Record]:
    base, out = ctx.times[0] // 1000, []
    for begin, lasts, name, tid in _calls(ctx, "syscall", SYSCALLS):
        at = base + begin
        text = (f" {at // 1000}.{at % 1000:03} ({lasts // 1000:3}.{lasts % 1000:03} ms): "
                f"python3/{tid} {name}(fd: 3</dev/null (x)>, count: {lasts}) = {lasts % 7}\n")
        out.append((text.encode(), {"t": at, "begin": begin, "lasts": lasts, "name": name, "tid": tid}))
    return out


def make_pthread(ctx: Context) -> list[Record]:
    base, out = ctx.clocks.host_wall.begin_us + 2_500_000, []
    for begin, lasts, name, tid in _calls(ctx, "pthread", PTHREADS):
        at = base + begin
        text = (f"[pid {tid}] {at // 10**6}.{at % 10**6:06} libtorch.so->{name}(0x7f00{lasts:04x}, 0) = 0 "
                f"<{lasts // 10**6}.{lasts % 10**6:06}>\n")
        out.append((text.encode(), {"t": at, "begin": begin, "lasts": lasts, "name": name, "tid": tid}))
    return out


def truth_calls(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    start = ctx.clocks.host_wall.begin_us * 1000
    for item in items:
        if item["name"] == "pthread_once":
            continue
        begin = Fraction(start + (item["begin"] - items[0]["begin"]) * 1000)
        ctx.osrt.append((item["name"], item["tid"], Fraction(item["lasts"])))
        yield line("OSRT_API", begin, {"name": item["name"], "globalTid": ctx.pid << 32 | item["tid"],
                                       "endNs": int(begin) + item["lasts"] * 1000},
                   "first call at the start of the collection", raw={"us": item["t"]})


def truth_osrt(ctx: Context) -> Iterator[Line]:
    """The summary over both files of calls."""
    groups: dict[tuple[str, int], list[Fraction]] = {}
    for name, tid, lasts in ctx.osrt:
        groups.setdefault((name, tid), []).append(lasts)
    total = sum((lasts for _, _, lasts in ctx.osrt), Fraction(0))
    for (name, tid), values in sorted(groups.items(), key=lambda item: -sum(item[1])):
        yield line("csv:os_runtime_statistic", None, {
            "Process ID": ctx.pid, "Thread ID": tid, "Name": name, "Time(%)": decimals(sum(values) / total, 9),
            "Time(us)": int(sum(values)), "Count": len(values), "Avg(us)": decimals(sum(values) / len(values), 6),
            "Max(us)": int(max(values)), "Min(us)": int(min(values))})


PRODUCTS = [
    Product("host_cpu.data", HOST, make_cpu, truth_cpu, text=True),
    Product("host_mem.data", HOST, make_mem, truth_mem, text=True),
    Product("host_network.data", HOST, make_network, truth_network, text=True),
    Product("host_disk.data", HOST, make_disk, truth_disk, text=True),
    Product("host_syscall.data", HOST, make_syscall, truth_calls, text=True),
    Product("host_pthreadcall.data", HOST, make_pthread, truth_calls, text=True),
]
