#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws how far device times were off, as SVG: `draw_errors.py ERRORS.tsv OUT.svg`, from compare's
--errors.

Left: every task's error over time, with the band that the result itself stated; right: how errors are
distributed. Prints the distribution.
"""
from __future__ import annotations

import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, SPLIT, RIGHT = 1100, 380, 64, 40, 44, 760, 20
COLUMNS = SPLIT - LEFT
BINS = 80
HIST_LEFT = 72
SHARES = (50, 90, 99, 99.9, 100)


def load(path: Path) -> list[tuple[float, float, float]]:
    """(seconds since the first task, error of start or end, stated bound); us"""
    rows = [tuple(map(int, line.split("\t"))) for line in path.read_text(encoding="utf-8").splitlines()]
    if not rows:
        raise SystemExit(f"draw_errors: {path}: no task has a stated error")
    first = min(row[1] for row in rows)
    found = []
    for _, time, start, end, bound in rows:
        found += [((time - first) / 1e9, start / 1e3, bound / 1e3), ((time - first) / 1e9, end / 1e3, bound / 1e3)]
    return sorted(found)


def share_of(ordered: list[float], share: float) -> float:
    """Nearest-rank percentile."""
    return ordered[max(0, -(-int(share * 10) * len(ordered) // 1000) - 1)]


def columns(rows: list[tuple[float, float, float]]) -> list[list[float]]:
    """Of each column of pixels: least and greatest error, greatest bound."""
    length = rows[-1][0] or 1
    found: list[list[float]] = [[] for _ in range(COLUMNS)]
    for time, error, bound in rows:
        bin = min(COLUMNS - 1, int(time / length * COLUMNS))
        one = found[bin]
        if not one:
            one += [error, error, bound]
        one[0], one[1], one[2] = min(one[0], error), max(one[1], error), max(one[2], bound)
    return found


def axis(scale: float, step: float, middle: float) -> list[str]:
    """Lines and numbers of the vertical axis."""
    out = []
    at = 0.0
    while at <= scale:
        for sign in {1, -1 if at else 1}:
            y = middle - sign * at / scale * (middle - TOP)
            out.append(f'<line x1="{LEFT}" x2="{SPLIT}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>'
                       f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="r">{sign * at:+g}</text>')
        at += step
    return out


def histogram(errors: list[float]) -> list[str]:
    """How errors are distributed, on a scale of their own."""
    scale = max(map(abs, errors)) * 1.05 or 1
    counts = [0] * BINS
    for error in errors:
        counts[min(BINS - 1, int((error + scale) / (2 * scale) * BINS))] += 1
    left, tall = SPLIT + HIST_LEFT, (HEIGHT - BOTTOM - TOP) / BINS
    out = []
    for number, count in enumerate(counts):
        if count:
            out.append(f'<rect x="{left}" y="{HEIGHT - BOTTOM - (number + 1) * tall:.1f}" height="{tall - 0.5:.1f}" '
                       f'width="{max(0.5, count / max(counts) * (WIDTH - RIGHT - left)):.1f}" class="h"/>')
    for number in range(-2, 3):
        y = (TOP + HEIGHT - BOTTOM) / 2 - number / 2 * (HEIGHT - BOTTOM - TOP) / 2 / 1.05
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" class="r">{number / 2 * scale / 1.05:+.3f}</text>')
    return out


def draw(rows: list[tuple[float, float, float]]) -> str:
    """The picture."""
    errors = sorted(abs(row[1]) for row in rows)
    bounds = sorted(row[2] for row in rows)
    scale = max(share_of(bounds, 99) * 1.15, errors[-1] * 1.05)
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if scale / s <= 6)
    middle = (TOP + HEIGHT - BOTTOM) / 2
    length = rows[-1][0] or 1

    def y_of(value: float) -> float:
        return middle - max(-scale, min(scale, value)) / scale * (middle - TOP)

    body = axis(scale, step, middle)
    upper, lower = [], []
    for number, column in enumerate(columns(rows)):
        if not column:
            continue
        x = LEFT + number
        upper.append(f"{x},{y_of(column[2]):.1f}")
        lower.append(f"{x},{y_of(-column[2]):.1f}")
        body.append(f'<line x1="{x}" x2="{x}" y1="{y_of(column[1]) - 0.5:.1f}" y2="{y_of(column[0]) + 0.5:.1f}"'
                    ' class="e"/>')
    body.insert(0, f'<polygon points="{" ".join(upper + lower[::-1])}" class="b"/>')
    body += histogram([row[1] for row in rows])
    for number in range(7):
        body.append(f'<text x="{LEFT + number * COLUMNS / 6:.0f}" y="{HEIGHT - BOTTOM + 18}" class="m">'
                    f'{length * number / 6:.0f} s</text>')
    summary = "   ".join(f"p{share:g} {share_of(errors, share):.3f}" for share in SHARES[:-1])
    inside = sum(abs(row[1]) <= row[2] for row in rows) / len(rows)
    body += [f'<text x="{LEFT}" y="22" class="t">error of device times against the truth, us: {summary}   '
             f'max {errors[-1]:.3f}</text>',
             f'<text x="{LEFT}" y="{HEIGHT - 8}">band: what the result says of its own error '
             f'(true for {inside:.4%} of {len(rows)} times)</text>',
             f'<text x="{SPLIT + HIST_LEFT}" y="{HEIGHT - BOTTOM + 18}">how many, by error in us</text>']
    style = ("text{font:12px sans-serif;fill:#333}.r{text-anchor:end}.m{text-anchor:middle}"
             ".t{font-size:14px;font-weight:bold}.g{stroke:#ddd}.e{stroke:#1f5fa8}.b{fill:#f6dfb0}.h{fill:#1f5fa8}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
            f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n')


def main() -> int:
    """Entry point."""
    if len(sys.argv) != 3:
        print("usage: draw_errors.py ERRORS.tsv OUT.svg", file=sys.stderr)
        return 2
    rows = load(Path(sys.argv[1]))
    Path(sys.argv[2]).write_text(draw(rows), encoding="utf-8")
    errors, bounds = sorted(abs(row[1]) for row in rows), sorted(row[2] for row in rows)
    print("share      error (us)   stated bound (us)", file=sys.stderr)
    for share in SHARES:
        print(f"{share:5g} % {share_of(errors, share):12.3f} {share_of(bounds, share):15.3f}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
