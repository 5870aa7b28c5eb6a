# SPDX-License-Identifier: BSD-2-Clause
"""Time, memory and temporary disk of `npuscope analyze` over the size of its input, and a picture of them.

Input: raw data of tests/cannraw (868 bytes a kernel: n kernels, n/5 tasks of collectives, calls of three
layers). Time is CPU time, memory the largest resident set, disk the most that unlinked temporary files
hold, sampled 20 times a second.
"""
import math
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

# CPU s and peak MB of the vendor's parser for data of the same generator, on 2 cores and 23 GiB (its C++
# part; timeline, summary and database exports together, each of which also writes the database).
VENDOR = {10_000: (6.6, 150), 100_000: (43.8, 1055), 1_000_000: (503, 8602)}


TEXT_MOST = 1_000_000  # kernels up to which text is written too: 2.1 kB each
ROUNDS = 3  # of runs up to that size, of which the one with the middle CPU time counts


def temporary_bytes(pid):
    """Bytes of deleted files that the process has open."""
    total = 0
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                path = f"/proc/{pid}/fd/{fd}"
                if os.readlink(path).endswith(" (deleted)"):
                    total += os.stat(path).st_blocks * 512
            except OSError:
                continue
    except OSError:
        pass
    return total


def run(command):
    """CPU s, wall s, peak MB, most temporary bytes of a command."""
    most = [0]
    done = threading.Event()
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def watch():
        while not done.wait(0.05):
            most[0] = max(most[0], temporary_bytes(child.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - begin
    done.set()
    watcher.join()
    if child.returncode not in (0, 3):
        raise RuntimeError(f"{command}: status {child.returncode}: {errors.decode()[-500:]}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, most[0]


def directory_bytes(path):
    return sum(f.stat().st_size for f in Path(path).rglob("*") if f.is_file())


def room(path):
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize


def measure(generator, npuscope, out, sizes, progress):
    """[(tasks, formats, cpu, wall, peak, temporary, raw, result)]"""
    results = []
    for tasks in sizes:
        # Raw and temporary data need 1.8 kB a kernel, the database 1 kB, text 2.1 kB.
        if room(out) < tasks * (5000 if tasks <= TEXT_MOST else 3000):
            progress(f"analyze {tasks} kernels: the disk has no room: left out")
            continue
        folder = out / f"cann_{tasks}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        made = subprocess.run([str(generator), "--tasks", str(tasks), str(folder)], check=True, capture_output=True,
                              text=True)
        prof = made.stdout.split()[-1]
        raw = directory_bytes(prof)
        for formats in ("text,db", "db") if tasks <= TEXT_MOST else ("db",):
            target = out / f"result_{tasks}"
            rounds = []
            for _ in range(ROUNDS if tasks <= TEXT_MOST else 1):
                shutil.rmtree(target, ignore_errors=True)
                subprocess.run(["sync"], check=True)
                rounds.append(run([str(npuscope), "analyze", "--export", formats, "-o", str(target), prof]))
            cpu, wall, peak, temporary = sorted(rounds)[len(rounds) // 2]
            result = directory_bytes(target)
            shutil.rmtree(target)
            results.append((tasks, formats, cpu, wall, peak, temporary, raw, result))
            progress(f"{tasks:>9} kernels {formats:8} {cpu:8.2f} s CPU {wall:8.2f} s {peak:7.1f} MB "
                f"{temporary / raw:5.2f} of the raw data as temporary files, {raw / cpu / 1e6:.0f} MB/s")
        shutil.rmtree(folder)
    return results


# --- the picture ---------------------------------------------------------------------------------------

COLOURS = {"text,db": "#1f6fb4", "db": "#2c9a4b", "vendor": "#b4451f"}
LABELS = {"text,db": "npuscope, text and database", "db": "npuscope, database", "vendor": "the vendor's parser"}


class Plot:
    """One logarithmic plot in an SVG."""

    def __init__(self, x, y, width, height, title, unit, xs, ys):
        self.box = (x, y, width, height)
        self.title, self.unit = title, unit
        self.xs = (math.log10(min(xs)) - 0.1, math.log10(max(xs)) + 0.1)
        self.ys = (math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))))

    def at(self, x, y):
        left, top, width, height = self.box
        fx = (math.log10(x) - self.xs[0]) / (self.xs[1] - self.xs[0])
        fy = (math.log10(y) - self.ys[0]) / (self.ys[1] - self.ys[0])
        return left + fx * width, top + height - fy * height

    def frame(self):
        left, top, width, height = self.box
        yield f'<text x="{left}" y="{top - 12}" font-size="15" font-weight="bold">{self.title}</text>'
        yield f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
        for power in range(self.ys[0], self.ys[1] + 1):
            _, y = self.at(10 ** self.xs[0], 10 ** power)
            yield f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            yield f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10 ** power:g} {self.unit}</text>'
        for power in range(math.ceil(self.xs[0]), math.floor(self.xs[1]) + 1):
            x, _ = self.at(10 ** power, 10 ** self.ys[0])
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{top + height}" stroke="#ddd"/>'
            yield f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">1e{power}</text>'

    def line(self, points, colour):
        offsets = [self.at(x, y) for x, y in sorted(points)]
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' + \
            " ".join(f"{x:.1f},{y:.1f}" for x, y in offsets) + '"/>'
        for x, y in offsets:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def series(results, column):
    lines = {}
    for row in results:
        lines.setdefault(row[1], []).append((row[0], row[column]))
    lines["vendor"] = [(n, v[0 if column == 2 else 1]) for n, v in VENDOR.items()]
    return lines


def picture(results, path):
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="900" height="380" viewBox="0 0 900 380" '
             'font-family="sans-serif" font-size="12">', '<rect width="900" height="380" fill="white"/>']
    for x, column, title, unit in ((70, 2, "CPU time over kernels", "s"),
                                   (520, 4, "Peak resident memory over kernels", "MB")):
        lines = series(results, column)
        points = [p for line in lines.values() for p in line]
        plot = Plot(x, 40, 350, 270, title, unit, [p[0] for p in points], [p[1] for p in points])
        parts += plot.frame()
        for name, line in lines.items():
            parts += plot.line(line, COLOURS[name])
    for i, (name, label) in enumerate(LABELS.items()):
        parts.append(f'<circle cx="{110 + 260 * i}" cy="355" r="5" fill="{COLOURS[name]}"/>'
                     f'<text x="{122 + 260 * i}" y="359">{label}</text>')
    parts.append("</svg>")
    Path(path).write_text("\n".join(parts) + "\n", encoding="utf-8")
