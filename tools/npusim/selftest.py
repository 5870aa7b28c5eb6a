#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the truth files of a run against themselves and against the STARS log that the job read.

selftest.py TRUTH_DIR [STARS_PREFIX]
"""
import glob
import os
import re
import struct
import sys

HZ = 50_000_000
STARS_MAGIC = 0x6BD3


class Failure(Exception):
    pass


def expect(condition, message):
    if not condition:
        raise Failure(message)


def read_truth(path):
    lines = {}
    with open(path, encoding="ascii") as f:
        text = f.read().splitlines()
    expect(text and text[-1].split("\t")[0] == "end", "the last line is not `end`")
    for line in text:
        kind, *fields = line.split("\t")
        lines.setdefault(kind, []).append(fields)
    return lines


def check_tasks(lines):
    """Every launch has its task and the other way round; streams run in order and one task at a time."""
    launches = {int(f[0]): f for f in lines["launch"]}
    tasks = lines["task"]
    expect(len(launches) == len(lines["launch"]), "a launch id twice")
    expect(len(tasks) == len(launches), f"{len(launches)} launches, {len(tasks)} tasks")
    streams = {}
    for f in tasks:
        device, stream, task, flip, launch, kind, submit, start, end = map(int, f)
        l = launches[launch]
        expect([int(x) for x in l[5:9]] == [device, stream, task, flip], f"launch {launch} names another task")
        expect(int(l[3]) <= submit <= int(l[4]), f"launch {launch}: submit outside of its call")
        expect(submit <= start < end, f"launch {launch}: submit {submit} start {start} end {end}")
        streams.setdefault((device, stream), []).append((flip, task, start, end))
    for key, runs in streams.items():
        runs.sort()
        expect([r[0] << 16 | r[1] for r in runs] == list(range(len(runs))), f"stream {key}: ids have gaps")
        for a, b in zip(runs, runs[1:]):
            expect(a[3] <= b[2], f"stream {key}: task {b[1]} starts before {a[1]} ends")
    return streams


def check_operators(lines):
    """Each phase 2 follows its phase 1, or a hit in the cache; each launch is in an operator's phase 2."""
    planned, runs = {}, []
    # An executor's address can be reused while another thread still is in phase 2, after it freed it.
    for tid, api, executor, phase, begin, end in sorted(lines["op"], key=lambda f: int(f[4 if f[3] == "2" else 5])):
        if phase != "2":
            planned[executor] = api
        else:
            expect(planned.get(executor) == api, f"{api} {executor}: phase 2 without phase 1")
            runs.append((int(begin), int(end), api))
    inside = 0
    launches = sorted((int(f[3]), int(f[4]), f[10]) for f in lines["launch"] if f[10] != "-")
    for begin, end, api in launches:
        while inside < len(runs) and runs[inside][1] < begin:
            inside += 1
        expect(inside < len(runs) and runs[inside][0] <= begin and end <= runs[inside][1] and
               runs[inside][2] == api, f"launch of {api} at {begin} is in no phase 2")


def check_collectives(truths):
    """The n-th collective of a group ends on no rank before it has begun on all, in device time."""
    ranks = {}
    for lines in truths.values():
        tasks = {(int(f[1]), int(f[2]), int(f[3])): (int(f[7]), int(f[8])) for f in lines["task"]}
        for n, f in enumerate(lines.get("collective", [])):
            ids = [tuple(map(int, t.split(":"))) for t in f[7].split(",")]
            start, end = tasks[ids[0]][0], tasks[ids[-1]][1]
            ranks.setdefault((f[6], n), []).append((start, end))
    for key, spans in ranks.items():
        expect(len(spans) == len(truths), f"collective {key} is missing on a rank")
        expect(max(s for s, _ in spans) <= min(e for _, e in spans), f"collective {key} did not meet")


def ticks(device, raw):
    _, hz, offset, ppm = int(device[0]), int(device[1]), int(device[2]), float(device[3])
    ppb = round(ppm * 1000)
    return offset + raw * hz * (10 ** 9 + ppb) // 10 ** 18


def check_stars(lines, path):
    """Each record is a task of the truth, at the tick of the truth."""
    device = lines["device"][0]
    expected = {}
    for f in lines["task"]:
        key = int(f[1]), int(f[2])
        expected.setdefault(key, []).append((int(f[5]), ticks(device, int(f[7])), ticks(device, int(f[8]))))
    with open(path, "rb") as f:
        data = f.read()
    expect(len(data) > 64 and len(data) % 64 == 0, f"{len(data)} bytes of STARS log")
    count = None
    ends = 0
    for offset in range(0, len(data), 64):
        header, magic, stream, task, syscnt = struct.unpack_from("<HHHHQ", data, offset)
        func, cnt, kind = header & 0x3F, header >> 6 & 0xF, header >> 10
        expect(magic == STARS_MAGIC and func in (0, 1), f"record at {offset} is broken")
        expect(count is None or cnt == (count + 1) % 16, f"record at {offset}: count {cnt} after {count}")
        count = cnt
        ends += func
        near = [abs(t[1 + func] - syscnt) for t in expected.get((stream, task), []) if t[0] == kind]
        expect(near and min(near) <= 1,
               f"record at {offset}: stream {stream} task {task}: tick {syscnt} is not the truth")
    return ends


def main():
    directory, stars = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    truths = {}
    for path in glob.glob(os.path.join(directory, "truth.*.tsv")):
        pid = re.fullmatch(r"truth\.(\d+)\.tsv", os.path.basename(path))
        if pid:
            truths[int(pid.group(1))] = read_truth(path)
    expect(truths, f"no truth files in {directory}")
    for pid, lines in truths.items():
        streams = check_tasks(lines)
        check_operators(lines)
        rank = lines["proc"][0][1]
        print(f"rank {rank}: {len(lines['task'])} tasks on {len(streams)} streams", end="")
        if stars:
            ends = check_stars(lines, f"{stars}.{rank}")
            print(f", {ends} of them in the STARS log", end="")
        print()
    if len(truths) > 1:
        check_collectives(truths)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"selftest.py: {failure}", file=sys.stderr)
        sys.exit(1)
