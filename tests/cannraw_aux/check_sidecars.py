# SPDX-License-Identifier: BSD-2-Clause
"""Read generated sidecar files anew, from the bytes, and hold them against their truth file.

Nothing of the generator is used here: structures, clocks and sums are written a second time.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Callable, Iterator, Optional

Row = dict
PCIE = [name + stat for name in "txPost txNonpost txCpl txNonpostLatency rxPost rxNonpost rxCpl".split()
        for stat in ("Min", "Max", "Avg")]
UB = ["bandwidth", "packetRate", "bytes", "packets", "errors", "dropped"]
RATES = ["PacketRate", "ByteRate", "Packets", "Bytes", "Errors", "Dropped"]


def load(path: Path) -> dict:
    return json.loads(path.read_text().split("\n")[0])


def numbers(path: Path) -> dict[str, int]:
    pairs = [text.split(":") for text in path.read_text().splitlines() if ":" in text]
    return {key.strip(): int(value) for key, value in pairs}


class Prof:
    """One directory and its clocks, in fractions: no integer unit holds every frequency."""

    def __init__(self, root: Path, device: int) -> None:
        self.root, self.device = root, device
        dev = root / f"device_{device}"
        self.host_info, self.dev_info = load(root / "host/info.json"), load(dev / f"info.json.{device}")
        self.sample = load(root / "host/sample.json")
        self.v2 = self.dev_info["version"] == "2.0"
        host, near = numbers(root / "host/host_start.log"), numbers(dev / f"host_start.log.{device}")
        far = numbers(dev / f"dev_start.log.{device}")
        hs, ds = load(root / "host/start_info"), load(dev / f"start_info.{device}")
        self.begin = int(hs["collectionTimeBegin"]) * 1000
        self.host_shift = self.begin - int(hs["clockMonotonicRaw"])
        self.dev_shift = int(ds["collectionTimeBegin"]) * 1000 - int(ds["clockMonotonicRaw"])
        mhz = self.host_info["CPU"][0]["Frequency"]
        self.host_per = 1000 / Fraction(mhz) if mhz else None
        self.dev_per = 1000 / Fraction(self.dev_info["DeviceInfo"][0]["hwts_frequency"])
        self.host, self.near, self.far = host, near, far
        self.pid = int(self.host_info["pid"])

    def h(self, value: int) -> Fraction:
        if self.host_per is None:
            return Fraction(value)
        return self.host["clock_monotonic_raw"] + (value - self.host["cntvct"]) * self.host_per

    def d(self, ticks: int) -> int:
        after = (ticks - self.far["cntvct"]) * self.dev_per
        return int((self.near["clock_monotonic_raw"] + after + self.dev_shift) // 1)

    def dr(self, value: int) -> int:
        return value + self.near["clock_monotonic_raw"] - self.far["clock_monotonic_raw"] + self.dev_shift

    def us(self, value: int) -> int:
        return self.near["clock_monotonic_raw"] + value * 1000 + self.dev_shift

    def stream(self, part: str, name: str, size: int) -> list[bytes]:
        """A stream's records; `size` 0: its lines."""
        folder = self.root / part / "data"
        parts = {int(m.group(1)): p for p in folder.iterdir()
                 if (m := re.fullmatch(re.escape(name) + r"\.slice_(\d+)", p.name))}
        assert sorted(parts) == list(range(len(parts))), f"{name}: slices {sorted(parts)}"
        data = b"".join(parts[number].read_bytes() for number in sorted(parts))
        if not size:
            return data.splitlines()
        data = data[len(data) % size:]
        return [data[at:at + size] for at in range(0, len(data), size)]


Reader = Callable[[Prof, list[bytes]], Iterator[Row]]
READERS: dict[str, tuple[Callable[[Prof], int], Reader]] = {}


def reads(name: str, size: int | tuple[int, int]) -> Callable[[Reader], Reader]:
    def keep(function: Reader) -> Reader:
        READERS[name] = ((lambda prof: size[prof.v2]) if isinstance(size, tuple) else (lambda prof: size), function)
        return function
    return keep


def unwrapped(values: list[int]) -> list[int]:
    out, add, last = [], 0, 0
    for value in values:
        if value < last - 2**31:
            add += 2**32
        last = value
        out.append(value + add)
    return out


@reads("hbm.data", (24, 32))
def _hbm(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        if prof.v2:
            _, _, event, unit, count, when = struct.unpack("<4I2Q", record)
            ns = when
        else:
            when, count, event, unit = struct.unpack("<2Q2I", record)
            ns = prof.us(when)
        yield {"ns": ns, "count": count, "hbmId": unit, "type": ("read", "write")[event]}


@reads("llc.data", 24)
def _llc(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        if prof.v2:
            _, count, event, unit, ns = struct.unpack("<4IQ", record)
        else:
            when, count, event, unit = struct.unpack("<2Q2I", record)
            ns = prof.us(when)
        yield {"ns": ns, "count": count, "llcId": unit, "event": event}


@reads("ddr.data", 20)
def _ddr(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    rows = [struct.unpack("<5I", record) for record in records]
    for when, row in zip(unwrapped([row[0] for row in rows]), rows):
        yield {"ns": prof.us(when), "count": row[1], "event": row[2]}


@reads("qos.data", 64)
def _qos(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    events = prof.sample["qosEvents"].split(",")
    for record in records:
        for name, value in zip(events, struct.unpack_from("<10I", record, 24)):
            yield {"ns": prof.d(struct.unpack_from("<Q", record, 16)[0]), "eventName": name, "bandwidth": value}


@reads("pcie.data", 96)
def _pcie(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        when, device, *values = struct.unpack("<QI21I", record)
        yield {"ns": prof.dr(when), "deviceId": device, **dict(zip(PCIE, values))}


@reads("ub.data", 128)
def _ub(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        (port,), words = struct.unpack_from("<H", record, 4), struct.unpack_from("<15Q", record, 8)
        yield {"ns": prof.dr(words[0]), "portId": port, "rxUdmaBind": words[1], "txUdmaBind": words[2],
               "rx": dict(zip(UB, words[3:9])), "tx": dict(zip(UB, words[9:15]))}


def _joined(cell: bytes) -> int:
    return int(cell.replace(b":", b""))


@reads("hccs.data", 0)
def _hccs(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    last: Optional[list[int]] = None
    for text in records[1:]:
        when, tx, rx = (_joined(cell) for cell in text.split())
        yield {"ns": prof.dr(when), "tx": tx, "rx": rx, "tx_delta": last and tx - last[0]}
        last = [tx, rx]


def _port(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for text in records:
        if b"rxPacket/s" in text:
            continue
        cells = [_joined(cell) for cell in text.split()]
        assert len(cells) == 15, text
        yield {"ns": prof.dr(cells[0]), "bandwidth": cells[1] * 1048576, "funcId": cells[14],
               **{f"rx{key}": value for key, value in zip(RATES, cells[2:8])},
               **{f"tx{key}": value for key, value in zip(RATES, cells[8:14])}}


reads("nic.data", 0)(_port)
reads("roce.data", 0)(_port)


@reads("netdev_stats.data", 0)
def _netdev(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for text in records:
        cells = [int(cell) for cell in text.split()]
        assert len(cells) == 16, text
        yield {"ns": cells[0] + prof.dev_shift, "macTxPfcPkt": cells[1], "macRxByte": cells[4],
               "roceNewPktRty": cells[13], "nicTxByte": cells[14], "nicRxByte": cells[15]}


def _npu_mem(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    rows = [struct.unpack("<2I3Q", record) for record in records]
    times = [row[2] for row in rows] if prof.v2 else unwrapped([row[0] for row in rows])
    for when, row in zip(times, rows):
        event = row[1]
        yield {"ns": prof.us(when), "type": ("app", "device")[event], "ddr": row[3], "hbm": row[4]}


reads("npu_mem.data", 32)(_npu_mem)
reads("npu_mem.app", 32)(_npu_mem)


@reads("npu_module_mem.data", 24)
def _module(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        module, _, when, size = struct.unpack("<2IQQ", record)
        yield {"ns": int((prof.h(when) + prof.dev_shift) // 1), "moduleId": module,
               "totalReserved": -1 if size >> 63 else size}


def _lpm(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    columns = ("freq", "aic_mv", "bus_mv")
    points: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for record in records:
        count, kind = struct.unpack_from("<2I", record)
        points[kind] += [struct.unpack_from("<QI", record, 8 + 16 * i) for i in range(count)]
    for kind, values in sorted(points.items()):
        early = [value for ticks, value in values if ticks < prof.far["cntvct"]]
        if early:
            yield {columns[kind]: early[-1]}
        for ticks, value in values[len(early):]:
            yield {"ns": prof.d(ticks), columns[kind]: value}


reads("lpmFreqConv.data", 888)(_lpm)
reads("lpmInfoConv.data", 888)(_lpm)


@reads("l2_cache.data", 72)
def _l2(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        _, stream, task, _, *events = struct.unpack("<4H8Q", record)
        yield {"Stream Id": stream, "Task Id": task, "events": events}


@reads("socpmu.data", 80)
def _socpmu(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        _, stream, task, kind, *events = struct.unpack_from("<4H8Q", record, 8)
        yield {"Stream Id": stream, "Task Id": task, "kind": kind, "events": events}


@reads("stars_soc_profile.data", 64)
def _soc(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    before: dict[int, tuple[int, ...]] = {}
    previous: Optional[int] = None
    for record in records:
        head, magic, _, ticks = struct.unpack_from("<HHIQ", record)
        assert magic == 0x6BD3
        counter = head >> 6 & 15
        assert previous is None or counter == (previous + 1) % 16, "a gap in the running counter"
        previous = counter
        (unit,), ns = struct.unpack_from("<H", record, 18), prof.d(ticks)
        match head & 63:
            case 26:
                w, r, wo, ro = struct.unpack_from("<4Q", record, 32)
                yield {"ns": ns, "accId": unit, "writeBwLevel": w, "readBwLevel": r, "writeOstLevel": wo,
                       "readOstLevel": ro}
            case 25:
                now = struct.unpack_from("<8I", record, 32)
                row: Row = {"ns": ns, "die": unit, "total": list(now)}
                if unit in before:
                    row.update(rxReq=(now[0] - before[unit][0]) % 2**32, txDat=(now[7] - before[unit][7]) % 2**32)
                before[unit] = now
                yield row
            case 27:
                one, two = struct.unpack_from("<2Q", record, 32)
                names = {63: ("rx", "tx"), 34: ("write", "read")}[head >> 10]
                yield {"ns": ns, "id": unit, names[0]: one, names[1]: two}
            case 28:
                (bits,) = struct.unpack_from("<H", record, 32)
                yield {"ns": ns, "mataBwLevel": bits & 7, "l2BufferBwLevel": bits >> 3 & 255}
            case 29:
                halves = struct.unpack_from("<20H", record, 24)
                yield {"ns": ns, "words": [a << 16 | b for a, b in zip(halves[::2], halves[1::2])]}
            case 24:
                for name, value in zip(prof.sample["qosEvents"].split(","), struct.unpack_from("<10I", record, 24)):
                    yield {"ns": ns, "eventName": name, "bandwidth": value}
            case other:
                raise AssertionError(f"unknown kind {other}")


@reads("ffts_profile.data", 96)
def _pmu(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        cycles, when, count, core = struct.unpack_from("<QQBB", record, 72)
        assert count == 8
        yield {"ns": prof.dr(when), "totalCycle": cycles, "coreId": core, "core": "AIV" if core > 24 else "AIC",
               "events": list(struct.unpack_from("<8Q", record, 8))}


@reads("tscpu.data", 304)
def _tscpu(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    sums: dict[int, int] = defaultdict(int)
    for record in records:
        assert record[:4] == b"\xab" * 4
        pc, ticks, *pairs = struct.unpack_from("<QQ14Q", record, 176)
        events = [list(pair) for pair in zip(pairs[::2], pairs[1::2])]
        for event, value in events:
            sums[event] += value
        yield {"ns": prof.d(ticks), "pc": pc, "events": events,
               "backtrace": list(struct.unpack_from("<20Q", record, 8))}
    for event, value in sums.items():
        yield {"Event": hex(event), "Count": value}


@reads("dvpp.data", 0)
def _dvpp(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for text in records:
        when, unit, kind, engine, time, count, share, *_ = text.decode().split()
        yield {"ns": prof.dr(int(when.replace(":", ""))), "Dvpp Id": int(unit), "Engine Type": int(kind),
               "Engine ID": int(engine), "allTime": int(time), "allFrame": int(count), "allUtilization": share}


def _head(record: bytes, level: int) -> tuple[int, int, int]:
    magic, at, kind, tid, size, when = struct.unpack_from("<HHIIIQ", record)
    assert (magic, at) == (0x5A5A, level) and size <= 232, record[:24]
    return kind, tid, when


@reads("aicpu.data", 256)
def _aicpu(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    for record in records:
        kind, _, when = _head(record, 6000)
        if kind == 0:
            stream, task = struct.unpack_from("<HH", record, 24)
            start, ticks, compute, copy, copied, end, last = struct.unpack_from("<7Q", record, 32)
            (dispatch, total) = struct.unpack_from("<II", record, 132)
            yield {"ns": prof.d(ticks), "Stream ID": stream, "Task ID": task, "dispatchTime": dispatch,
                   "totalTime": total, "us": {"runStart": start, "computeStart": compute, "memcpyStart": copy,
                                              "memcpyEnd": copied, "runEnd": end}, "end_ns": prof.d(last)}
        elif kind == 1:
            action, source, index, size = struct.unpack_from("<16s64sQQ", record, 24)
            yield {"ns": prof.d(when), "Action": action.rstrip(b"\0").decode(), "Source": source.rstrip(b"\0").decode(),
                   "index": index, "Cached Buffer Size": size}
        elif kind == 2:
            index, model, tag, _, event = struct.unpack_from("<QIHHQ", record, 24)
            yield {"ns": prof.d(when), "index": index, "model": model, "tag": tag, "event": event}
        else:
            tag, _, queue, start, end = struct.unpack_from("<IIQQQ", record, 24)
            yield {"tag": tag, "Queue Size": queue, "start_us": start, "end_us": end}


def _names(prof: Prof) -> dict[int, str]:
    lines = prof.stream("host", "unaging.additional.hash_dic", 0)
    # the names of others may hold line breaks
    return {int(m[1]): m[2].decode("utf-8", "replace") for line in lines if (m := re.fullmatch(rb"(\d+):(.*)", line))}


@reads("aging.additional.task_memory_info", 256)
def _task_memory(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    names, pairs, live = _names(prof), [], {}
    for record in records:
        kind, tid, when = _head(record, 10000)
        assert kind == 6
        address, change, node, used, held, device, _ = struct.unpack_from("<QqQQQII", record, 24)
        ns = int((prof.h(when) + prof.host_shift) // 1)
        yield {"ns": ns, "operatorName": names[node], "addr": address, "size": abs(change), "totalAllocate": used,
               "totalReserve": held, "globalTid": prof.pid * 2**32 + tid, "deviceId": device,
               "type": "allocate" if change > 0 else "release"}
        if change > 0:
            live[address] = {"ns": ns, "Name": names[node], "size": change, "allocation_total_allocated": used,
                             "release_ns": None}
        else:
            pairs.append({**live.pop(address), "release_ns": ns, "release_total_allocated": used})
    yield from pairs
    yield from live.values()


@reads("unaging.additional.static_op_mem", 256)
def _static(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    names = _names(prof)
    for record in records:
        assert _head(record, 10000)[0] == 11
        size, name, first, last, total, dynamic, graph = struct.unpack_from("<qQQQQQI", record, 24)
        yield {"Op Name": names[name], "Graph ID": graph, "Node Index Start": first, "Node Index End": last,
               "size": size, "totalAlloc": total, "dynOpName": names[dynamic]}


@reads("host_cpu.data", 0)
def _host_cpu(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    samples: list[tuple[int, float, dict[int, tuple[int, int]]]] = []
    it = iter(records)
    for text in it:
        if text.startswith(b"time "):
            samples.append((int(text[5:]), float(next(it).split()[0]), {}))
        else:
            rest = text[text.rindex(b")") + 2:].split()
            samples[-1][2][int(text.split()[0])] = (int(rest[11]) + int(rest[12]), int(rest[36]))
    hz, cpus = prof.host_info["sysClockFreq"], prof.host_info["cpuNums"]
    busy: dict[int, float] = defaultdict(float)
    for (when, up, old), (_, later, new) in zip(samples, samples[1:]):
        jiffies = (later - up) * hz
        load: dict[int, float] = defaultdict(float)
        for tid in new.keys() & old.keys():
            load[new[tid][1]] += min(new[tid][0] - old[tid][0], jiffies)
        for cpu in sorted(load):
            busy[cpu] = max(busy[cpu], load[cpu])
            yield {"ns": when + prof.host_shift, "cpuId": cpu, "usage": load[cpu] / jiffies * 100}
        yield {"ns": when + prof.host_shift, "usage": sum(load.values()) / jiffies / cpus * 100}
    yield {"Total Cpu Numbers": cpus, "Occupied Cpu Numbers": len({c for s in samples for _, c in s[2].values()})}


def _advice(values: list[float]) -> Optional[float]:
    some = sorted(value for value in values if value > 0)
    return some[int(-(-(len(some) - 1) * 0.98 // 1))] / 0.8 if some else None


@reads("host_mem.data", 0)
def _host_mem(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    total, sizes = prof.host_info["memoryTotal"], []
    for text in records:
        cells = [int(cell) for cell in text.split()]
        sizes.append(cells[2] * 4.0)
        yield {"ns": cells[0] + prof.host_shift, "usage": sizes[-1] / total * 100, "resident": cells[2]}
    yield {"Total Memory(KB)": total, "Peak Used Memory(KB)": max(sizes), "Recommend Memory(KB)": _advice(sizes)}


@reads("host_network.data", 0)
def _host_network(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    card = prof.host_info["netCard"][0]
    last, now, rates = None, 0, []
    for text in records:
        if text.startswith(b"time "):
            now = int(text[5:])
        elif text.split(b":")[0].strip().decode() == card["netCardName"]:
            cells = text.split(b":")[1].split()
            both = int(cells[0]) + int(cells[8])
            if last:
                rates.append((both - last[1]) / (now - last[0]) * 1e9)
                yield {"ns": last[0] + prof.host_shift, "speed": rates[-1], "usage": rates[-1] / card["speed"] / 1250}
            last = (now, both)
    kilo = [rate / 1024 for rate in rates]
    yield {"Netcard Speed(KB/s)": card["speed"] * 125000 / 1024, "Peak Used Speed(KB/s)": max(kilo, default=0),
           "Recommend Speed(KB/s)": _advice(kilo)}


@reads("host_disk.data", 0)
def _host_disk(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    start, scale = int(records[0].split()[1]), {"B/s": 1, "K/s": 2**10, "M/s": 2**20, "G/s": 2**30}
    reads_, writes = [], []
    for number, text in enumerate(records[1:]):
        cells = text.decode().split()
        rates = [float(cells[i]) * scale[cells[i + 1]] for i in (4, 6)]
        reads_.append(rates[0] / 1024)
        writes.append(rates[1] / 1024)
        yield {"ns": start + number * 10**9 // prof.sample["host_disk_freq"] + prof.host_shift, "readRate": rates[0],
               "writeRate": rates[1], "usage": float(cells[10])}
    yield {"Peak Disk Read(KB/s)": max(reads_), "Recommend Disk Read(KB/s)": _advice(reads_),
           "Peak Disk Write(KB/s)": max(writes), "Recommend Disk Write(KB/s)": _advice(writes)}


def _calls(prof: Prof, records: list[bytes], pattern: str, scale: int) -> Iterator[Row]:
    first = None
    for text in records:
        match = re.match(pattern, text.decode())
        assert match, text
        when, lasts = (round(float(match[key]) * scale) for key in ("when", "lasts"))
        first = when if first is None else first
        if match["name"] != "pthread_once":
            begin = prof.begin + (when - first) * 1000
            yield {"ns": begin, "endNs": begin + lasts * 1000, "name": match["name"],
                   "globalTid": prof.pid * 2**32 + int(match["tid"])}


@reads("host_syscall.data", 0)
def _syscall(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    pattern = r" *(?P<when>[\d.]+) \( *(?P<lasts>[\d.]+) ms\): [^/]+/(?P<tid>\d+) (?P<name>\w+)\("
    return _calls(prof, records, pattern, 1000)


@reads("host_pthreadcall.data", 0)
def _pthread(prof: Prof, records: list[bytes]) -> Iterator[Row]:
    pattern = r"\[pid (?P<tid>\d+)\] (?P<when>[\d.]+) \S+->(?P<name>\w+)\(.* = \d+ <(?P<lasts>[\d.]+)>$"
    return _calls(prof, records, pattern, 10**6)


def _blocks(records: list[bytes]) -> Iterator[tuple[int, list[str]]]:
    for block in b"\n".join(records).split(b"\n\n"):
        rows = block.decode().splitlines()
        heads = dict(row.split(":", 1) for row in rows[:3])
        assert int(heads["DataLen"]) == len("\n".join(rows[3:])) + 1, heads
        yield int(heads["TimeStamp"]), rows[3:]


def _system(device: bool) -> Reader:
    def read(prof: Prof, records: list[bytes]) -> Iterator[Row]:
        for when, rows in _blocks(records):
            ns = prof.dr(when) if device else when + prof.host_shift
            first = rows[0].split()
            if first[0] == "cpu":
                keys = "user nice system idle iowait irq softirq".split()
                yield {"ns": ns, "cpu": dict(zip(keys, map(int, first[1:])))}
            elif first[0] == "MemTotal:":
                yield {"ns": ns, "Memory Total(kB)": int(first[1]), "Memory Free(kB)": int(rows[1].split()[1]),
                       "Huge Pages Free(pages)": int(rows[-1].split()[1])}
            elif len(first) == 7:
                yield {"ns": ns, "Size(pages)": int(first[0]), "Resident(pages)": int(first[1]),
                       "Shared(pages)": int(first[2])}
            else:
                yield {"ns": ns, "utime": int(first[13]), "stime": int(first[14]), "PID": int(first[0])}
    return read


def _same(found: object, stated: object) -> bool:
    if isinstance(found, dict) and isinstance(stated, dict):
        return all(_same(value, stated.get(key)) for key, value in found.items())
    if isinstance(found, float) and isinstance(stated, (int, float)):
        return abs(found - stated) <= 1e-3 + 1e-9 * abs(stated)
    return found == stated


def check(root: Path, truth: Path, device: int = 0) -> int:
    """Compare every file that the truth speaks of; how many lines agreed."""
    prof = Prof(root, device)
    stated: dict[str, list[Row]] = defaultdict(list)
    counts: dict[str, int] = {}
    for text in truth.read_text().splitlines():
        item = json.loads(text)
        if item["file"] is None:
            counts = item["end"]
        else:
            stated[item["file"]].append(item)
    assert counts == {name: len(rows) for name, rows in stated.items()}, "the counts of the last line"
    agreed = 0
    for name, rows in stated.items():
        agreed += _check_file(prof, name, rows)
    return agreed


def _check_file(prof: Prof, name: str, rows: list[Row]) -> int:
    if name == "host/os_runtime_statistic":
        assert abs(sum(row["row"]["Time(%)"] for row in rows) - 1) < 1e-6, name
        return len(rows)
    host = name.startswith("host/")
    stem = name[5:] if host else name.removesuffix(f".{prof.device}")
    size, reader = READERS.get(stem, (lambda _: 0, _system(not host)))
    records = prof.stream("host" if host else f"device_{prof.device}", name[5:] if host else name, size(prof))
    found = list(reader(prof, records))
    assert len(found) == len(rows), f"{name}: {len(found)} rows read, {len(rows)} in the truth"
    for number, (got, item) in enumerate(zip(found, rows)):
        flat = {**item.get("raw", {}), **item["row"], **({"ns": item["ns"]} if "ns" in item else {})}
        for key, value in got.items():
            assert _same(value, flat.get(key)), f"{name} row {number}: {key} is {value}, the truth has {flat.get(key)}"
        assert ("ns" in got) == ("ns" in item), f"{name} row {number}: a time on one side only"
    return len(rows)
