#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws a stretch of a trace_view.json as SVG: `picture.py TRACE OUT.svg [--start MS] [--length MS]`.

For README: the lanes are those of the file, chosen by layer, the busiest of each.
"""
import argparse
import hashlib
import json
from collections import defaultdict
from xml.sax.saxutils import escape

LAYERS = ("CANN", "OS Runtime API", "Process Scheduling", "Ascend Hardware", "Communication", "Overlap Analysis")
LANES_PER_LAYER = {"CANN": 1, "OS Runtime API": 2, "Process Scheduling": 2, "Ascend Hardware": 3, "Communication": 2,
                   "Overlap Analysis": 4}
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#9c755f")
WIDTH, LEFT, ROW, DEPTH = 1200, 270, 16, 3


def colour(name):
    return COLOURS[hashlib.md5(name.encode()).digest()[0] % len(COLOURS)]


def short(lane):
    return lane if len(lane) <= 18 else lane[:17] + "\u2026"


def nanoseconds(event):
    """Start of an event; a float cannot hold Unix time to the ns."""
    whole, _, part = event["ts"].partition(".")
    return int(whole) * 1000 + int(part.ljust(3, "0"))


def load(path):
    """Slices by (layer, lane), in us since the first of them."""
    processes, threads, slices = {}, {}, defaultdict(list)
    with open(path, encoding="utf-8") as f:
        events = json.load(f)
    for e in events:
        if e["ph"] == "M" and e["name"] == "process_name":
            processes[e["pid"]] = e["args"]["name"]
        elif e["ph"] == "M" and e["name"] == "thread_name":
            threads[e["pid"], e["tid"]] = e["args"]["name"]
    first = min(nanoseconds(e) for e in events if e["ph"] == "X")
    for e in events:
        if e["ph"] == "X" and processes.get(e["pid"]) in LAYERS:
            lane = threads.get((e["pid"], e["tid"]), str(e["tid"]))
            slices[processes[e["pid"]], lane].append(((nanoseconds(e) - first) / 1000, float(e["dur"]), e["name"]))
    return slices


def depths(slices):
    """Nesting level of each slice of one lane."""
    ends, out = [], []
    for ts, dur, name in sorted(slices, key=lambda s: (s[0], -s[1])):
        while ends and ends[-1] <= ts + 0.002:  # printed ends are rounded
            ends.pop()
        out.append((ts, dur, name, min(len(ends), DEPTH - 1)))
        ends.append(ts + dur)
    return out


def draw(slices, start, length):
    scale = (WIDTH - LEFT - 10) / length
    body, y = [], 24
    for layer in LAYERS:
        lanes = sorted((k for k in slices if k[0] == layer), key=lambda k: -len(slices[k]))[:LANES_PER_LAYER[layer]]
        for key in sorted(lanes, key=lambda k: k[1]):
            rows = [s for s in depths(slices[key]) if s[0] < start + length and s[0] + s[1] > start]
            if not rows:
                continue
            height = ROW * (1 + max(s[3] for s in rows))
            body.append(f'<text x="6" y="{y + 12}" class="l">{escape(layer)}</text>'
                        f'<text x="{LEFT - 8}" y="{y + 12}" class="r">{escape(short(key[1]))}</text>')
            for ts, dur, name, depth in rows:
                x = LEFT + (max(ts, start) - start) * scale
                w = max(0.5, (min(ts + dur, start + length) - max(ts, start)) * scale)
                body.append(f'<rect x="{x:.1f}" y="{y + depth * ROW}" width="{w:.1f}" height="{ROW - 2}" '
                            f'fill="{colour(name)}"><title>{escape(name)} {dur:.3f} us</title></rect>')
                if w > 7 * len(name):
                    body.append(f'<text x="{x + 3:.1f}" y="{y + depth * ROW + 11}" class="t">{escape(name)}</text>')
            y += height + 6
    ticks = [f'<text x="{LEFT + i * (WIDTH - LEFT - 10) / 10:.0f}" y="14" class="a">{i * length / 10000:.1f} ms</text>'
             for i in range(10)]
    style = ("text{font:11px sans-serif;fill:#222}.r{text-anchor:end}.l{font-weight:bold}"
             ".t{fill:#fff;font-size:9px}.a{fill:#777}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 6}" viewBox="0 0 {WIDTH} {y + 6}">'
            f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>'
            f'{"".join(ticks + body)}</svg>\n')


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("trace")
    p.add_argument("out")
    p.add_argument("--start", type=float, default=1000, help="ms after the first slice")
    p.add_argument("--length", type=float, default=60, help="ms drawn")
    a = p.parse_args()
    with open(a.out, "w", encoding="utf-8") as f:
        f.write(draw(load(a.trace), a.start * 1000, a.length * 1000))


if __name__ == "__main__":
    main()
