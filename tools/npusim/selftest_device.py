#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs selftest_job.py on every chip and compares the channels' data with the truth file.

selftest_device.py [.../Ascend]
"""
import glob
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HZ = {"910B": 50_000_000, "910A": 100_000_000, "310P": 38_400_000, "950": 1_000_000_000}
MHZ = {"910B": 1800, "910A": 1000, "310P": 1080, "950": 1650}
KERNELS = {"910B": {0}, "910A": {0}, "310P": {0}, "950": {0, 1, 2}}


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def near(got, wanted, message, part=0.02, slack=0):
    expect(abs(got - wanted) <= max(wanted * part, slack), f"{message}: {got}, not {wanted}")


class Run:
    """One run of the job: its files, its truth."""

    def __init__(self, root, directory, scenario, chip, **env):
        self.chip, self.directory, self.scenario = chip, directory, scenario
        self.ids, self.ffts = env.get("NPUSIM_IDS", "plain"), "NPUSIM_FFTS" in env
        self.leads, _, others = env.get("NPUSIM_MIX", "aic:1").partition(":")
        self.others = int(others or 1)
        contexts, _, threads = env.get("NPUSIM_FFTS", "1").partition("x")
        self.contexts, self.threads = int(contexts), int(threads or 1)
        os.mkdir(directory)
        more = {"NPUSIM_CHIP": chip, "NPUSIM_TRUTH": os.path.join(directory, "truth"), "NPUSIM_SERVER_DEVICES": "4",
                "NPUSIM_CONTROL": os.path.join(directory, "control"), "NPUSIM_DRIFT_STEP": "0.3:300", **env}
        if "orders" in more:
            with open(more["NPUSIM_CONTROL"], "w", encoding="ascii") as f:
                f.write(more.pop("orders"))
        subprocess.run(["bash", "-c", '. "$0/cann/set_env.sh" && exec python3 "$1" "$2" "$3"', root,
                        os.path.join(HERE, "selftest_job.py"), directory, scenario],
                       env={**os.environ, **more}, check=True)
        self.truth = {}
        for path in glob.glob(os.path.join(directory, "truth", "truth.*.tsv")):
            with open(path, encoding="ascii") as f:
                for line in f:
                    kind, *fields = line.rstrip("\n").split("\t")
                    self.truth.setdefault(kind, []).append(fields)
        self.segments = [(0, int(self.truth["device"][0][2]), float(self.truth["device"][0][3]))]
        self.segments += [(int(f[1]), int(f[2]), float(f[3])) for f in self.truth.get("clock_step", [])]

    def ticks(self, raw):
        at, base, ppm = [p for p in self.segments if p[0] <= raw][-1]
        return base + (raw - at) * HZ[self.chip] * (10 ** 9 + round(ppm * 1000)) // 10 ** 18

    def device_ns(self, raw):
        return self.ticks(raw) * 10 ** 9 // HZ[self.chip]

    def data(self, channel):
        with open(os.path.join(self.directory, f"channel.{channel}"), "rb") as f:
            return f.read()

    def records(self, channel, fmt):
        data, size = self.data(channel), struct.calcsize("<" + fmt)
        expect(len(data) % size == 0 and data, f"channel {channel}: {len(data)} bytes are no records of {size}")
        return list(struct.iter_unpack("<" + fmt, data))

    def started(self, channel):
        return min(int(f[3]) for f in self.truth["channel"] if int(f[1]) == channel and f[2] == "start")

    def tasks(self, channel, want=lambda f: True):
        """(stream, task, flip) -> start, end, type of the tasks that began after the channel was started."""
        since = self.started(channel)
        return {(int(f[1]), int(f[2]), int(f[3])): (int(f[7]), int(f[8]), int(f[5])) for f in self.truth["task"]
                if int(f[7]) >= since and want(f)}

    def sampled(self, channel, link, direction):
        """What the channel's samples cover: begin, end, amount."""
        rows = [f for f in self.truth.get("sampled", []) if f[1] == str(channel) and f[2:4] == [link, direction]]
        return (int(rows[0][4]), int(rows[0][5]), int(rows[0][6])) if rows else (0, 0, 0)

    def lost(self, channel):
        return sum(int(f[2]) for f in self.truth.get("lost", []) if f[1] == str(channel))

    def unmangle(self, kind, stream, task):
        """As the analyser of the vendor does it."""
        if self.ids in ("expanded", "software"):
            if kind not in (3, 4) and stream & 0x8000:
                return task & 0x7FFF, task & 0x8000 | stream & 0x7FFF
            return stream & 0x7FFF, task
        if stream & 0x1000:
            return stream % 2048, task & 0x1FFF | stream & 0xE000
        if stream & 0x2000:
            return (task & 0xFFF) % 2048, stream & 0xFFF | task & 0xF000
        return stream % 2048, task


def check_numbers(records, counts, run, channel):
    gaps = sum((b - a - 1) % 16 for a, b in zip(counts, counts[1:]))
    expect(gaps == run.lost(channel), f"channel {channel}: {gaps} missing numbers, {run.lost(channel)} lost")
    expect(len(records) > 100, f"channel {channel}: {len(records)} records")


def check_pairs(run, channel, found, tasks):
    """`found`: (func, key, tick, type); every task once with its start and its end, unless some were lost."""
    seen = {}
    for func, key, tick, kind in found:
        if key not in tasks:
            continue
        expect(seen.setdefault((func, key), tick) == tick, f"channel {channel}: {key} twice")
        truth = tasks[key]
        expect(abs(run.ticks(truth[func]) - tick) <= 1 and kind == truth[2],
               f"channel {channel}: {key}: tick {tick}, type {kind}, not {run.ticks(truth[func])}, {truth[2]}")
    missing = 2 * len(tasks) - len(seen)
    expect(missing == 0 if not run.lost(channel) else 0 <= missing <= run.lost(channel),
           f"channel {channel}: {missing} of {2 * len(tasks)} records are missing")


def stars(run):
    found, counts = [], []
    wide = run.chip != "950"
    subs = {}
    for r in run.records(50, "HHHHQHHHH40s" if wide else "HHHHQHH12s"):
        func, kind = r[0] & 0x3F, r[0] >> 10
        counts.append(r[0] >> 6 & 15)
        expect(r[1] == 0x6BD3, "STARS magic")
        stream, task = run.unmangle(kind, r[2], r[3]) if wide else (None, r[3] << 16 | r[2])
        if func in (0x22, 0x23):
            expect(r[5] & 0xFF == {"aic": 6, "aiv": 7}[run.leads] and r[7] >> 13 == 4, "an FFTS+ sub-task that is none")
            subs.setdefault((stream, task), {}).setdefault((r[6], r[8]), {})[func & 1] = r[4]
        else:
            expect(func in (0, 1), f"STARS func {func}")
            found.append((func, (stream, task), r[4], kind))
    check_numbers(found, counts, run, 50)
    tasks = {((k[0] if wide else None), k[1]): v for k, v in run.tasks(50).items()}
    check_pairs(run, 50, found, tasks)
    mixed = {int(f[0]) for f in run.truth["launch"] if "_mix_" in f[9]}
    wanted = {(int(f[1]), int(f[2])): f for f in run.truth["task"] if int(f[4]) in mixed
              and int(f[7]) >= run.started(50)}
    if not run.ffts:
        expect(not subs, "sub-tasks without FFTS+")
    elif not run.lost(50):
        expect(set(subs) == set(wanted), f"{len(subs)} sub-tasks, not {len(wanted)}")
        for key, parts in subs.items():
            expect(set(parts) == {(c, t) for c in range(run.contexts) for t in range(run.threads)},
                   f"sub-tasks {sorted(parts)}")
            for ticks in parts.values():
                expect(run.ticks(int(wanted[key][7])) <= ticks[0] < ticks[1] <= run.ticks(int(wanted[key][8])),
                       f"sub-task of {key} is not inside it")


def blocks(run):
    dims = {}
    for r in run.records(51, "HHHHQBBHBB4sH4s"):
        expect(r[0] & 0x3F in (0x24, 0x25) and r[1] == 0x6BD3, "block record")
        key = run.unmangle(r[0] >> 10, r[2], r[3]) if run.chip != "950" else (None, r[3] << 16 | r[2])
        dims.setdefault(key, {}).setdefault(r[11], []).append((r[0] & 1, r[4]))
    tasks = {(k[0] if run.chip != "950" else None, k[1]): v
             for k, v in run.tasks(51, lambda f: int(f[5]) in KERNELS[run.chip]).items()}
    for key, (begin, end, _) in tasks.items():
        for events in dims[key].values():
            expect(len(events) == 2 and run.ticks(begin) <= min(events)[1] < max(events)[1] <= run.ticks(end) + 1,
                   f"block of {key} is not inside it")
        expect(sorted(dims[key]) == list(range(len(dims[key]))), f"blocks of {key} have gaps")


def hwts(run):
    found, counts = [], []
    for r in run.records(45, "BB4sHQI44s"):
        counts.append(r[0] >> 4)
        found.append((r[0] & 7, (r[5], r[3]), r[4], r[1]))
    check_numbers(found, counts, run, 45)
    check_pairs(run, 45, found, {k[:2]: v for k, v in run.tasks(45, lambda f: f[5] != "17").items()})


def track(run):
    copies, types, dims, marks = [], set(), 0, []
    data = run.data(44)
    expect(len(data) % 40 == 0 and data, "TS track")
    for at in range(0, len(data), 40):
        _, tag, size, _, tick = struct.unpack_from("<BBHIQ", data, at)
        expect(size == 40, "size in the TS track")
        stream, task = struct.unpack_from("<HH", data, at + 16)
        if tag == 0x0B:
            copies.append((stream, task, data[at + 20], tick))
        elif tag == 0x0C:
            types.add((struct.unpack_from("<H", data, at + 20)[0], data[at + 22]))
        elif tag == 0x0F:
            dims += struct.unpack_from("<I", data, at + 20)[0] > 0
        elif tag == 0x0A:
            marks.append(struct.unpack_from("<QQ", data, at + 16) + struct.unpack_from("<H", data, at + 36))
        else:
            expect(tag == 0x0E, f"tag {tag} in the TS track")
    expect(marks == [(200, 7, 11)] * 6, f"marks {marks}")
    kernels = run.tasks(44, lambda f: int(f[5]) in KERNELS[run.chip])
    expect(dims == len(kernels), f"{dims} numbers of blocks, {len(kernels)} kernels")
    if run.chip in ("910A", "310P"):
        tasks = run.tasks(44, lambda f: f[5] == "17")
        wanted = sorted((s, t, state, run.ticks(v[state - 1])) for (s, t, _), v in tasks.items() for state in (1, 2))
        expect(sorted(c for c in copies if c[2]) == wanted, "copies in the TS track")
        expect({(0, 1), (0, 2), (5, 1), (5, 2)} <= types, f"task types {sorted(types)}")
    else:
        expect(not copies and not types, "the task scheduler does nothing of the sort")


def truth_pmu(run):
    rows = {}
    for f in run.truth["pmu"]:
        counts = [int(e.split(":")[1]) for e in f[7].split(",")]
        rows[f[4], int(f[1]), int(f[2])] = int(f[6]), counts, int(f[5])
    return rows


def pmu_950(run):
    """Records of another kind, with ten counters; of a mixed kernel one for each kind of cores."""
    truth, tasks, n = truth_pmu(run), {k[1]: (k[0], v) for k, v in run.tasks(53).items()}, 0
    for r in run.records(53, "HHHHQBBHBBHHHI10QQQ"):
        task = r[3] << 16 | r[2]
        if task not in tasks:
            continue
        stream, (begin, end, _) = tasks[task]
        core = "aiv" if r[8] & 1 else "aic"
        mixed = ("aic", stream, task) in truth and ("aiv", stream, task) in truth
        expect(r[0] & 0x3F == 0x2A, f"PMU func {r[0] & 0x3F}")
        expect(bool(r[6] & 2) == mixed and bool(r[6] & 1) == (core == "aic" or not mixed), f"PMU role {r[6]}")
        cycles, counts, _dim = truth[core, stream, task]
        expect(r[4] == cycles and list(r[14:14 + len(counts)]) == counts, f"PMU of {stream}, {task}")
        expect(abs(r[24] - run.ticks(begin)) <= 1 and abs(r[25] - run.ticks(end)) <= 1, "PMU times")
        n += 1
    expect(n == len(truth), f"{n} PMU records, {len(truth)} in the truth")


def ffts_pmu(run):
    """A kernel has one record; a mixed one has one for each context, and each block of other cores."""
    if run.chip == "950":
        pmu_950(run)
        return
    truth, tasks, sums, mixed = truth_pmu(run), run.tasks(53), {}, {}
    for r in run.records(53, "HHHHQHHBB6sHHQQ8QQQ"):
        func, sub, ffts = r[0] & 0x3F, r[5] & 0xFF, r[8] >> 5
        stream, task = run.unmangle(r[0] >> 10, r[2], r[3])
        expect(func in (0x28, 0x29), f"PMU func {func}")
        if ffts == 4:
            expect(run.ffts and sub == {"aic": 6, "aiv": 7}[run.leads] and r[6] < run.contexts,
                   f"PMU of context {r[6]}, type {sub}")
        else:
            expect(func == 0x28 and (sub, ffts) in ((0, 0), (1, 1)), f"PMU type {sub}, {ffts}")
        if func == 0x29:
            core = "aiv" if r[7] & 1 else "aic"
            expect(core != run.leads and r[10] < run.others, f"a record of block {r[11]}, {r[10]} on {core}")
        else:
            core = run.leads if ffts == 4 else "aiv" if ffts == 1 else "aic"
        if ffts == 4:
            parts = mixed.setdefault((stream, task), {0x28: set(), 0x29: set()})[func]
            part = (r[11], r[10]) if func == 0x29 else r[6]
            expect(part not in parts, f"{part} of {stream}, {task} is there twice")
            parts.add(part)
        whole = sums.setdefault((core, stream, task), [0] * 9)
        for i, value in enumerate(r[12:13] + r[14:22]):
            whole[i] += value
        if (stream, task, 0) in tasks:
            begin, end, _ = tasks[stream, task, 0]
            expect(run.ticks(begin) <= r[22] + 1 and r[23] <= run.ticks(end) + 1, "PMU times")
            expect(ffts == 4 or (r[22] <= run.ticks(begin) + 1 and run.ticks(end) <= r[23] + 1), "PMU times of a whole")
            _, _, dim = truth[core, stream, task]
            if func == 0x28:
                # outputs: time = cycles / freq / blocks * ceil(blocks / cores)
                near(truth[core, stream, task][0] / MHZ[run.chip] / dim * -(-dim // 24), (end - begin) / 1000,
                     "time by the PMU", 0.02)
    expect(sums.keys() == truth.keys(), f"{len(sums)} kernels with counters, {len(truth)} in the truth")
    for key, (cycles, counts, _) in truth.items():
        expect(sums[key] == [cycles, *counts], f"PMU of {key}: {sums[key]}, not {cycles}, {counts}")
    expect(bool(mixed) == run.ffts, "records of contexts")
    for key, parts in mixed.items():
        dim = truth[(run.leads, *key)][2]
        expect(parts[0x28] == set(range(run.contexts)), f"contexts {parts[0x28]}")
        expect(parts[0x29] == {(b, o) for b in range(dim) for o in range(run.others)},
               f"blocks {len(parts[0x29])} of {key}")


def aicore_pmu(run):
    truth = truth_pmu(run)
    rows = run.records(43, "B5sHQQQ8QI28s")
    for r in rows:
        cycles, counts, _ = truth["aic", r[14], r[2]]
        expect(r[4] == cycles and list(r[6:14]) == counts, f"PMU of {r[14]}, {r[2]}")
    expect(len(rows) == len(truth), f"{len(rows)} PMU records, {len(truth)} in the truth")


def sampled_pmu(run, channel, cores):
    wide = run.chip == "950"
    rows = run.records(channel, "BBH2H10QQQBB6s" if wide else "BBH2H8QQQBB6s")
    n = 10 if wide else 8
    for core, ids in cores.items():
        mine = [r for r in rows if (r[5 + n + 3] >= 25) == (core == "AIV") or wide]
        if not wide:
            near(sum(r[5 + n] for r in mine), run.sampled(channel, core, "cycles")[2], f"{channel}: {core} cycles",
                 0, 1)
            expect(len({r[5 + n + 3] for r in mine}) == ids, f"{channel}: cores")
            for r in mine:
                expect(r[5 + 7] <= r[5 + 6], "more misses of the instruction cache than requests")
    if wide:
        near(sum(r[5 + n] for r in rows), sum(run.sampled(channel, c, "cycles")[2] for c in cores), "cycles", 0, 2)


def check_times(run, channel, stamps, clock, slack=2_000_000):
    """The samples lie between the first and the last look, and are PERIOD apart on average."""
    begin, end = max(run.sampled(channel, link, way) for link, way in
                     (("HBM", "read"), ("DDR", "read"), ("PCIE", "rx")))[:2]
    expect(stamps == sorted(stamps), f"channel {channel}: times go backwards")
    expect(clock(begin) - slack <= stamps[0] and stamps[-1] <= clock(end) + slack, f"channel {channel}: times")
    expect((stamps[-1] - stamps[0]) / max(len(set(stamps)) - 1, 1) < 60_000_000, f"channel {channel}: too few samples")


def memory(run, channel, link, fmt, order, unit):
    sums, stamps = [0, 0], []
    for r in run.records(channel, fmt):
        time, count, event = (r[i] for i in order)
        sums[event] += count * unit
        stamps.append(time)
    for event, way in enumerate(("read", "write")):
        near(sums[event], run.sampled(channel, link, way)[2], f"{link} {way}", 0, unit)
    if run.chip != "950":
        opened = run.started(channel)
        check_times(run, channel, [t * 1000 for t in stamps], lambda raw: run.device_ns(raw) - run.device_ns(opened))


def llc(run):
    hits, units = {}, set()
    for r in run.records(8, "IIIIQ" if run.chip == "950" else "QQII"):
        event, count = (r[2], r[1])
        hits[event] = hits.get(event, 0) + count
        units.add(r[3])
    expect(set(hits) == {0, 1, 2, 0x13, 0x20, 0x22, 0x34, 0x36}, f"events of the LLC: {sorted(hits)}")
    expect(run.chip != "910B" or units == {0, 1}, f"units of the LLC: {units}")
    link = "DDR" if run.chip == "310P" else "HBM"
    near((hits[0] + hits[1]) * 4096, run.sampled(8, link, "read")[2], "LLC", 0, 4096)
    expect((hits[2] + hits[0x13] + hits[0x22] + hits[0x36]) * 4 == (hits[0x20] + hits[0x34]) * 3, "hits of the LLC")


def pcie(run):
    rows = run.records(3, "QI21I")
    check_times(run, 3, [r[0] for r in rows], run.device_ns)
    span = (run.sampled(3, "PCIE", "tx"), run.sampled(3, "PCIE", "rx"))
    for at, (begin, end, amount) in ((4, span[0]), (22, span[1])):
        times = [run.device_ns(begin)] + [r[0] for r in rows]
        moved = sum(r[at] * (b - a) / 1000 for r, a, b in zip(rows, times, times[1:]))
        near(moved, amount, "PCIe", 0.02)


def text(run, channel):
    lines = run.data(channel).decode().splitlines()
    expect("tx" in lines[0], f"header of {channel}")
    rows = [line.split() for line in lines[1:]]
    check_times(run, channel, [int(r[0].replace(":", "")) for r in rows], run.device_ns)
    return [[int(v) for v in r[1:]] for r in rows]


def hccs(run):
    rows = text(run, 9)
    for i, way in enumerate(("tx", "rx")):
        expect(rows[-1][i] - rows[0][i] == run.sampled(9, "HCCS", way)[2], f"HCCS {way}")
    expect(rows[-1][0] > 0, "nothing went over HCCS")


def net(run, channel, head):
    rows = text(run, channel)
    for at, way in ((1, "rx"), (7, "tx")):
        amount = run.sampled(channel, "ROCE", way)[2]
        packets = -(-amount // 4096)
        expect(rows[-1][at + 2] == packets and rows[-1][at + 3] == amount + packets * head, f"channel {channel} {way}")
        expect(len(rows[-1]) == 14 and rows[-1][13] == 0, "columns")


def ub(run):
    sums = [0, 0]
    for r in run.records(146, "HHHH15Q"):
        sums[0] += r[5]
        sums[1] += r[6]
    for i, way in enumerate(("rx", "tx")):
        expect(sums[i] == run.sampled(146, "UB", way)[2], f"UB {way}: {sums[i]}")
    expect(sums[1] > 0, "nothing went over UB")


def soc_profile(run):
    data, sums, dies, seen = run.data(52), {}, [], set()
    expect(len(data) % 64 == 0, "channel 52")
    counts = []
    for at in range(0, len(data), 64):
        head, magic, _, _, tick = struct.unpack_from("<HHHHQ", data, at)
        func, top = head & 0x3F, head >> 10
        counts.append(head >> 6 & 15)
        expect(magic == 0x6BD3 and tick, "channel 52: head")
        seen.add(func)
        wide = struct.unpack_from("<QQ", data, at + 32)
        if func == 0x1A:
            sums["write"] = sums.get("write", 0) + wide[0]
            sums["read"] = sums.get("read", 0) + wide[1]
        elif func == 0x1B:
            for i, v in enumerate(wide):
                sums[top, i] = sums.get((top, i), 0) + v
        elif func == 0x19 and not data[at + 18]:
            dies.append(struct.unpack_from("<8I", data, at + 32))
    check_numbers([0] * 101, counts, run, 52)
    expect(seen == {0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D}, f"channel 52: {sorted(seen)}")
    if run.lost(52):
        return
    link = "UB" if run.chip == "950" else "HCCS"
    for key, (name, way) in {"write": ("HBM", "write"), "read": ("HBM", "read"), (0x3F, 0): (link, "rx"),
                             (0x3F, 1): (link, "tx"),
                             (0x22, 0): ("PCIE", "tx"), (0x22, 1): ("PCIE", "rx")}.items():
        expect(sums[key] == run.sampled(52, name, way)[2], f"channel 52: {name} {way}: {sums[key]}")
    near(sum(d[3] for d in dies) * 4, run.sampled(52, "HBM", "read")[2], "between the dies", 0, 4)


def power(run):
    kinds = set()
    for r in struct.iter_unpack("<II" + "QII" * 55, run.data(132)):
        expect(r[0] == 1 and r[2] > 0, "frequency")
        kinds.add(r[1])
        expect(r[1] or r[3] == MHZ[run.chip], f"{r[3]} MHz")
    expect(kinds == {0, 1, 2}, "frequency and voltages")


def npu_mem(run, channel, event):
    rows = run.records(channel, "IIQQQ")
    expect(all(r[1] == event for r in rows), "event of memory")
    expect(max(r[3] + r[4] for r in rows) >= (3 << 30 if event else 0), "memory")


def per_task(run, channel, fmt):
    kernels = run.tasks(channel, lambda f: int(f[5]) in KERNELS[run.chip])
    rows = run.records(channel, fmt)
    expect(len(rows) == len(kernels), f"channel {channel}: {len(rows)} records, {len(kernels)} kernels")


def aicpu(run):
    wanted = {k[:2]: v for k, v in run.tasks(143, lambda f: f[5] == ("5" if run.chip == "950" else "1")).items()}
    rows = run.records(143, "HHIIIQHHI7QII4Q3IHB113s")
    expect(len(rows) == len(wanted) == 6, f"{len(rows)} records of the AI CPU, {len(wanted)} kernels")
    for r in rows:
        expect(r[:3] == (0x5A5A, 6000, 0), "header of the AI CPU's record")
        begin, end = next(v[:2] for k, v in wanted.items() if k[0] == r[6] and k[1] % 65536 == r[7])
        expect(abs(r[10] - run.ticks(begin)) <= 1 and abs(r[15] - run.ticks(end)) <= 1, "times of the AI CPU")
        near(r[24], (end - begin) / 1000, "total time of the AI CPU", 0, 2)


CHECKS = {
    1: lambda run: memory(run, 1, "HBM", *(("IIIIQQ", (5, 4, 2)) if run.chip == "950" else ("QQII", (0, 1, 2))), 32),
    3: pcie,
    4: lambda run: net(run, 4, 82),
    7: lambda run: memory(run, 7, "DDR", "5I", (0, 1, 2), 32),
    8: llc,
    9: hccs,
    43: lambda run: sampled_pmu(run, 43, {"AIC": 24}) if run.chip == "910B" else aicore_pmu(run),
    44: track,
    45: hwts,
    47: lambda run: per_task(run, 47, "4H8Q"),
    50: stars,
    51: blocks,
    52: soc_profile,
    53: ffts_pmu,
    54: lambda run: sampled_pmu(run, 54, {"AIC": 24, "AIV": 48}),
    85: lambda run: sampled_pmu(run, 85, {"AIV": 48}) if run.chip == "910B" else None,
    129: lambda run: net(run, 129, 0),
    130: lambda run: npu_mem(run, 130, 0),
    131: lambda run: npu_mem(run, 131, 1),
    132: power,
    133: lambda run: expect(max(r[4] for r in run.records(133, "IIQQ10I")) > 0, "QoS"),
    134: lambda run: per_task(run, 134, "8s4H8Q"),
    142: lambda run: expect({r[0] for r in run.records(142, "IIQQ")} == {3, 7, 33}, "modules"),
    143: aicpu,
    146: ub,
}

LISTED = {
    "910B": {1, 3, 4, 8, 9, 43, 44, 47, 50, 51, 52, 53, 54, 85, 129, 130, 131, 132, 133, 134, 142, 143},
    "910A": {1, 3, 4, 7, 8, 9, 43, 44, 45, 47, 129, 130, 131, 142, 143},
    "310P": {3, 7, 8, 43, 44, 45, 47, 85, 130, 131, 132, 143},
    "950": {1, 3, 8, 44, 50, 51, 52, 53, 54, 130, 131, 132, 133, 134, 142, 143, 146},
}


def totals(run):
    """What the samples cover is what work moved in that time, by the lines that the work itself wrote."""
    late = 50_000_000  # no work is written later
    for channel, link, way in ((1, "HBM", "read"), (3, "PCIE", "rx")):
        begin, end, amount = run.sampled(channel, link, way)
        bins = [(int(f[3]), int(f[4]), int(f[5])) for f in run.truth["counter"] if f[:3] == ["0", link, way]]
        least = sum(b[2] for b in bins if begin <= b[0] and b[1] <= end - late)
        most = sum(b[2] for b in bins if begin - late <= b[0] and b[0] <= end)
        expect(least <= amount <= most and least > 0,
               f"{link} {way} in the truth file: {amount}, not {least} to {most}")


def channels(run):
    files = {int(name.split(".")[1]) for name in os.listdir(run.directory) if name.startswith("channel.")}
    expect(files == LISTED[run.chip], f"channels {sorted(files)}")
    for channel in sorted(files):
        CHECKS[channel](run)
    if run.chip != "310P":
        totals(run)


def clocks(run):
    widths, outside = [], 0
    with open(os.path.join(run.directory, "clocks"), encoding="ascii") as f:
        for line in f:
            begin, value, end = map(int, line.split())
            widths.append(end - begin)
            outside += not run.ticks(begin) <= value <= run.ticks(end) + 1
    expect(outside == 0, f"{outside} readings are outside of their brackets")
    expect(len(run.segments) == 2, "one step of the clock")
    late = sum(w > 300_000 for w in widths)
    expect(late >= 10, f"{late} outliers")  # 100 in 1000 are ordered


SCENARIOS = [
    *[(chip, "channels", chip, {}) for chip in LISTED],
    ("910B with FFTS+", "channels", "910B", {"NPUSIM_FFTS": "1"}),
    ("910B with FFTS+ of two vector blocks each", "channels", "910B", {"NPUSIM_FFTS": "3x2", "NPUSIM_MIX": "aic:2"}),
    ("910B with FFTS+ led by vectors", "channels", "910B", {"NPUSIM_FFTS": "2", "NPUSIM_MIX": "aiv:1"}),
    ("910B, mangled ids", "channels", "910B", {"NPUSIM_IDS": "mangled"}),
    ("910B, expanded ids", "channels", "910B", {"NPUSIM_IDS": "expanded"}),
    ("910B with losses", "channels", "910B", {"orders": "lose 0 50 41\nlose 0 52 9\n"}),
    ("910A with losses", "channels", "910A", {"orders": "lose 0 45 30\n"}),
    ("errors", "errors", "910B", {}),
    ("reset", "reset", "910B", {}),
    ("clocks", "clocks", "910B", {"NPUSIM_CLOCK_JITTER_NS": "30000", "NPUSIM_CLOCK_OUTLIERS": "100:400000"}),
]


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/npusim/Ascend")
    with tempfile.TemporaryDirectory() as top:
        for i, (name, scenario, chip, env) in enumerate(SCENARIOS):
            board = f"npusim-device-{os.getpid()}-{i}"
            try:
                run = Run(root, os.path.join(top, str(i)), scenario, chip, NPUSIM_BOARD=board, **env)
                if scenario in ("channels", "clocks"):
                    globals()[scenario](run)
                if "orders" in env:
                    wanted = {line.split()[2]: int(line.split()[3]) for line in env["orders"].splitlines()}
                    expect({c: run.lost(int(c)) for c in wanted} == wanted, "lost other than ordered")
            except (Failure, subprocess.CalledProcessError) as failure:
                raise Failure(f"{name}: {failure}") from failure
            finally:
                for path in glob.glob(f"/dev/shm/{board}.*"):
                    os.unlink(path)
            print(f"{name}: good", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"selftest_device.py: {failure}", file=sys.stderr)
        sys.exit(1)
