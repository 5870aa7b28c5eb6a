# SPDX-License-Identifier: BSD-2-Clause
"""Memory and link bandwidth of a device: hbm, llc, ddr, qos, pcie, ub, hccs, nic, roce, netdev_stats."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Iterator

from aux_clock import whole
from aux_io import DEVICE, Context, Fields, Line, Product, Record, line

PCIE = [f"{way}{kind}{stat}" for way, kinds in (("tx", ("Post", "Nonpost", "Cpl", "NonpostLatency")),
                                                ("rx", ("Post", "Nonpost", "Cpl")))
        for kind in kinds for stat in ("Min", "Max", "Avg")]
NO_MINIMUM = 0xFFFFF
NETDEV = ["macTxPfcPkt", "macRxPfcPkt", "macTxByte", "macRxByte", "macTxBadByte", "macRxBadByte", "roceTxPkt",
          "roceRxPkt", "roceTxErrPkt", "roceRxErrPkt", "roceTxCnpPkt", "roceRxCnpPkt", "roceNewPktRty", "nicTxByte",
          "nicRxByte"]
PORT = ["PacketRate", "ByteRate", "Packets", "Bytes", "Errors", "Dropped"]


def _counts(ctx: Context, name: str, units: int) -> Iterator[tuple[int, int, int, int]]:
    """(time, unit, event, count) of a memory whose units are sampled together, read and write."""
    rng = ctx.rng(name)
    for when in ctx.times:
        for unit in range(units):
            for event in (0, 1):
                yield when, unit, event, 0 if rng.random() < 0.1 else rng.randrange(1 << 22)


def _memory(ctx: Context, name: str, units: int, v1: str, v2: str) -> list[Record]:
    out: list[Record] = []
    for when, unit, event, count in _counts(ctx, name, units):
        fields = {"unit": unit, "event": event, "count": count}
        if ctx.version2:
            fields["t"] = when + ctx.clocks.dev_wall.offset
            order = (0, 0, event, unit, count, fields["t"]) if name == "hbm" else (0, count, event, unit, fields["t"])
            out.append((struct.pack(v2, *order), fields))
        else:
            fields["t"] = ctx.clocks.to_sampled(when)
            out.append((struct.pack(v1, fields["t"], count, event, unit), fields))
    return out


def _memory_wall(ctx: Context, fields: Fields) -> Fraction:
    if ctx.version2:
        return Fraction(fields["t"])
    return ctx.wall_dev(ctx.clocks.sampled(fields["t"]))


def _memory_truth(ctx: Context, items: list[Fields], table: str, unit: str) -> Iterator[Line]:
    last: dict[tuple[int, int], int] = {}
    for item in items:
        wall = _memory_wall(ctx, item)
        key = (item["unit"], item["event"])
        gap = whole(wall) - last[key] if key in last else None
        last[key] = whole(wall)
        row = {"deviceId": ctx.device, unit: item["unit"]}
        if table == "HBM":
            row["type"] = "write" if item["event"] else "read"
        yield line(table, wall, row, "raw", raw={"count": item["count"], "event": item["event"], "gap_ns": gap})


def make_hbm(ctx: Context) -> list[Record]:
    return _memory(ctx, "hbm", 4, "<QQII", "<IIIIQQ")


def truth_hbm(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    return _memory_truth(ctx, items, "HBM", "hbmId")


def make_llc(ctx: Context) -> list[Record]:
    return _memory(ctx, "llc", 3, "<QQII", "<IIIIQ")


def truth_llc(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in _memory_truth(ctx, items, "LLC", "llcId"):
        item["row"]["mode"] = ctx.sample.get("llc_profiling")
        yield item


def make_ddr(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("ddr"), []
    for when in ctx.times:
        micros = ctx.clocks.to_sampled(when) + ctx.us_base
        for event in (0, 1):
            item = {"t": micros, "count": rng.randrange(1 << 20), "event": event, "unit": 0}
            out.append((struct.pack("<IIIII", micros % 2**32, item["count"], event, 0, 0xFFFFFFFF), item))
    return out


def truth_ddr(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        yield line("DDR", ctx.wall_dev(ctx.clocks.sampled(item["t"])), {"deviceId": ctx.device}, "raw",
                   raw={"count": item["count"], "event": item["event"], "controller": 0, "t": item["t"] % 2**32})


def make_qos(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("qos"), []
    for when in ctx.times:
        item = {"t": ctx.clocks.to_ticks(when), "bw": [rng.randrange(1 << 16) for _ in range(10)]}
        out.append((struct.pack("<IIQQ10I", 0, 0, 0, item["t"], *item["bw"]), item))
    return out


def truth_qos(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    names = [name for name in str(ctx.sample.get("qosEvents") or "").split(",") if name]
    for item in items:
        wall = ctx.wall_dev(ctx.clocks.ticks(item["t"]))
        for name, value in zip(names, item["bw"]):
            yield line("QOS", wall, {"deviceId": ctx.device, "eventName": name}, "raw",
                       raw={"bandwidth": value, "ticks": item["t"]})


def make_pcie(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("pcie"), []
    for number, when in enumerate(ctx.times):
        values: list[int] = []
        for _ in range(7):
            low, avg, high = sorted(rng.randrange(1, 1 << 15) for _ in range(3))
            values += [NO_MINIMUM if number % 7 == 3 else low, high, avg]
        item = {"t": ctx.clocks.to_dev_raw(when), "values": values}
        out.append((struct.pack("<QI21I", item["t"], ctx.device, *values), item))
    return out


def truth_pcie(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    for item in items:
        yield line("PCIE", ctx.wall_dev(ctx.clocks.dev_raw(item["t"])), {"deviceId": ctx.device}, "raw",
                   raw=dict(zip(PCIE, item["values"])))


def make_ub(ctx: Context) -> list[Record]:
    rng, out = ctx.rng("ub"), []
    totals = {port: [0] * 8 for port in (0, 1)}
    for when in ctx.times:
        for port in (0, 1):
            for i in range(8):
                totals[port][i] += rng.randrange(1 << 24) if i % 4 < 2 else int(rng.random() < 0.05)
            rx, tx = totals[port][:4], totals[port][4:]
            item = {"t": ctx.clocks.to_dev_raw(when), "port": port,
                    "bind": [rng.randrange(1 << 30), rng.randrange(1 << 30)],
                    "rx": [rng.randrange(1 << 16), rng.randrange(1 << 20), *rx],
                    "tx": [rng.randrange(1 << 16), rng.randrange(1 << 20), *tx]}
            out.append((struct.pack("<HHHHQ14Q", 0, 0, port, 0, item["t"], *item["bind"], *item["rx"], *item["tx"]),
                        item))
    return out


def truth_ub(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    names = ["bandwidth", "packetRate", "bytes", "packets", "errors", "dropped"]
    for item in items:
        row = {"deviceId": ctx.device, "portId": item["port"]}
        raw = {"rxUdmaBind": item["bind"][0], "txUdmaBind": item["bind"][1],
               "rx": dict(zip(names, item["rx"])), "tx": dict(zip(names, item["tx"]))}
        yield line("UB", ctx.wall_dev(ctx.clocks.dev_raw(item["t"])), row, "raw", raw=raw)


def stamp(raw_ns: int) -> str:
    """The device's text files write a time as `sec:nsec`."""
    return f"{raw_ns // 10**9}:{raw_ns % 10**9:09}"


def make_hccs(ctx: Context) -> list[Record]:
    rng, tx, rx = ctx.rng("hccs"), 0, 0
    out: list[Record] = [(b"timestamp      txAmount      rxAmount\n", {})]
    for when in ctx.times:
        tx, rx = tx + rng.randrange(1 << 28), rx + rng.randrange(1 << 28)
        item = {"t": ctx.clocks.to_dev_raw(when), "tx": tx, "rx": rx}
        out.append((f"{stamp(item['t'])} {tx} {rx}\n".encode(), item))
    return out


def truth_hccs(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    last: Fields = {}
    for item in items[1:]:
        raw = {"tx": item["tx"], "rx": item["rx"], "tx_delta": None, "rx_delta": None, "gap_ns": None}
        if last:
            raw.update(tx_delta=item["tx"] - last["tx"], rx_delta=item["rx"] - last["rx"], gap_ns=item["t"] - last["t"])
        last = item
        yield line("HCCS", ctx.wall_dev(ctx.clocks.dev_raw(item["t"])), {"deviceId": ctx.device}, "raw", raw=raw)


def _port(ctx: Context, name: str, header: bool) -> list[Record]:
    rng, out = ctx.rng(name), []
    if header:
        out.append((b"Timestamp bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped txPacket/s "
                    b"txByte/s txPackets txBytes txErrors txDropped funcId\n", {}))
    total = {func: [0] * 8 for func in (0, 1)}
    for when in ctx.times:
        for func in (0, 1):
            rates: list[int] = []
            for way in (0, 4):
                packets = rng.randrange(1, 5000)
                size = packets * rng.randrange(64, 1500)
                step = (packets, size, int(rng.random() < 0.1), int(rng.random() < 0.1))
                for i, value in enumerate(step):
                    total[func][way + i] += value
                rates += [packets * 10**9 // ctx.period, size * 10**9 // ctx.period]
            rx = [*rates[:2], *total[func][:4]]
            tx = [*rates[2:], *total[func][4:]]
            item = {"t": ctx.clocks.to_dev_raw(when), "bandwidth": 100_000, "rx": rx, "tx": tx, "func": func}
            cells = [stamp(item["t"]), item["bandwidth"], *rx, *tx, func]
            out.append((" ".join(map(str, cells)).encode() + b"\n", item))
    return out


def _port_truth(ctx: Context, items: list[Fields], table: str) -> Iterator[Line]:
    for item in items:
        if not item:
            continue
        row = {"deviceId": ctx.device, "bandwidth": item["bandwidth"] << 20, "funcId": item["func"]}
        for way in ("rx", "tx"):
            row.update((way + key, value) for key, value in zip(PORT, item[way]))
        yield line(table, ctx.wall_dev(ctx.clocks.dev_raw(item["t"])), row)


def make_nic(ctx: Context) -> list[Record]:
    return _port(ctx, "nic", True)


def truth_nic(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    return _port_truth(ctx, items, "NIC")


def make_roce(ctx: Context) -> list[Record]:
    return _port(ctx, "roce", False)


def truth_roce(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    return _port_truth(ctx, items, "ROCE")


def make_netdev(ctx: Context) -> list[Record]:
    rng, out, total = ctx.rng("netdev"), [], [0] * len(NETDEV)
    for when in ctx.times:
        for i, name in enumerate(NETDEV):
            total[i] += rng.randrange(1 << 24) if name.endswith("Byte") else rng.randrange(4000)
        item = {"t": when, "values": list(total)}
        out.append((" ".join(map(str, [when, *total])).encode() + b"\n", item))
    return out


def truth_netdev(ctx: Context, items: list[Fields]) -> Iterator[Line]:
    last: Fields = {}
    for item in items:
        row = {"deviceId": ctx.device, **dict(zip(NETDEV, item["values"]))}
        raw = {"gap_ns": item["t"] - last["t"] if last else None, "delta": None}
        if last:
            raw["delta"] = {name: now - before for name, now, before in zip(NETDEV, item["values"], last["values"])
                            if name in ("macTxByte", "macRxByte", "nicTxByte", "nicRxByte")}
        last = item
        yield line("NETDEV_STATS", ctx.wall_dev(Fraction(item["t"])), row, "exact but for the bandwidths", raw=raw)


PRODUCTS = [
    Product("hbm.data", DEVICE, make_hbm, truth_hbm),
    Product("llc.data", DEVICE, make_llc, truth_llc),
    Product("ddr.data", DEVICE, make_ddr, truth_ddr),
    Product("qos.data", DEVICE, make_qos, truth_qos),
    Product("pcie.data", DEVICE, make_pcie, truth_pcie),
    Product("ub.data", DEVICE, make_ub, truth_ub),
    Product("hccs.data", DEVICE, make_hccs, truth_hccs, text=True),
    Product("nic.data", DEVICE, make_nic, truth_nic, text=True),
    Product("roce.data", DEVICE, make_roce, truth_roce, text=True),
    Product("netdev_stats.data", DEVICE, make_netdev, truth_netdev, text=True),
]
