#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Add the small files of a CANN PROF_* directory, and state in a truth file what a reader must read."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Optional, TextIO

import aux_chip
import aux_host
import aux_links
import aux_proc
import aux_tasks
from aux_io import (DEVICE, SLICE_BYTES, Context, Product, Truth, append_dic, free_slice, warn, write_slices)
from aux_make import complete_sample, make_prof, set_version

PRODUCTS = aux_links.PRODUCTS + aux_chip.PRODUCTS + aux_tasks.PRODUCTS + aux_host.PRODUCTS + aux_proc.PRODUCTS
AGED = 3                    # records whose beginning an aged stream has lost
AGED_REST = 7               # bytes of the last of them that are lost


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("prof", type=Path, help="the PROF_* directory; with --make, where to make one")
    parser.add_argument("--make", action="store_true", help="make a directory with control files first")
    parser.add_argument("--samples", type=int, default=50, help="moments at which things are sampled")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--truth", type=Path, help="where to write what a reader must find")
    parser.add_argument("--version2", action="store_true", help="structures of version 2.0")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--only", help="comma list of file names, such as hbm.data,host_cpu.data")
    parser.add_argument("--slice-bytes", type=int, default=SLICE_BYTES, help="a slice is closed at this size")
    parser.add_argument("--no-done", action="store_true", help="no .done files, no end_info")
    parser.add_argument("--aged", action="store_true", help="streams begin in the middle of a record")
    parser.add_argument("--wrap", action="store_true", help="32-bit microseconds wrap (with --make)")
    parser.add_argument("--host-mhz", default="100", help="host counter with --make; none: raw ns")
    parser.add_argument("--device-mhz", default="50", help="device counter with --make")
    chosen = parser.parse_args()
    if chosen.samples < 1 or chosen.slice_bytes < 1:
        parser.error("--samples and --slice-bytes must be positive")
    if chosen.wrap and not chosen.make:
        parser.error("--wrap needs --make")
    if not chosen.make and not (chosen.prof / f"device_{chosen.device}" / "data").is_dir():
        parser.error(f"{chosen.prof}: not a PROF_* directory with device {chosen.device}")
    return chosen


def file_name(product: Product, ctx: Context) -> str:
    name = product.name.format(pid=ctx.pid)
    return f"{name}.{ctx.device}" if product.part == DEVICE else name


def usable(product: Product, ctx: Context, folder: Path, name: str) -> bool:
    """Whether a file can be added without changing what another one means."""
    if free_slice(folder, name):
        warn(f"{name}: is there already: left alone")
        return False
    if product.name == "ffts_profile.data" and ctx.sample.get("ai_core_profiling_mode") != "sample-based":
        warn(f"{name}: the directory's PMU mode is not sample-based: left out")
        return False
    return True


def add(product: Product, ctx: Context, args: argparse.Namespace, truth: Truth) -> None:
    """Write one file and what must become of it."""
    name = file_name(product, ctx)
    folder = ctx.prof / (f"device_{ctx.device}" if product.part == DEVICE else "host") / "data"
    if not usable(product, ctx, folder, name):
        return
    records = product.make(ctx)
    if not records:
        return
    data = b"".join(record for record, _ in records)
    # host files are never cut: their readers demand whole records in every file
    if args.aged and product.part == DEVICE and not product.text and len(records) > AGED:
        data = data[(AGED - 1) * len(records[0][0]) + AGED_REST:]
        records = records[AGED:]
    limit = args.slice_bytes
    if product.part != DEVICE and not product.text:
        size = len(records[0][0])
        limit = max(1, limit // size) * size
        write_records(folder, name, data, limit, not args.no_done)
    else:
        write_slices(folder, name, data, limit, not args.no_done)
    truth.write(name if product.part == DEVICE else f"host/{name}", product.truth(ctx, [item for _, item in records]))


def write_records(folder: Path, name: str, data: bytes, limit: int, done: bool) -> None:
    """Slices that end between records."""
    for number, start in enumerate(range(0, len(data), limit)):
        write_slices(folder, name, data[start:start + limit], limit, done, number)


def main() -> int:
    args = options()
    span = 20_000_000 * (args.samples + 2)
    base = 0
    if args.wrap:
        base = 2**32 - span // 2000
        span += base * 1000
    prof: Path = args.prof
    host_mhz = "" if args.host_mhz == "none" else args.host_mhz
    if args.make:
        prof = make_prof(prof, args.device, args.seed, host_mhz, args.device_mhz, args.version2, span,
                         not args.no_done)
    else:
        complete_sample(prof, args.device)
        if args.version2:
            set_version(prof, args.device)
    ctx = Context(prof, args.device, args.samples, args.seed, args.version2, base)
    wanted = set(args.only.split(",")) if args.only else None
    unknown = (wanted or set()) - {product.name for product in PRODUCTS}
    if unknown:
        warn(f"no such file: {', '.join(sorted(unknown))}")
        return 2
    with contextlib.ExitStack() as stack:
        file: Optional[TextIO] = None
        if args.truth:
            file = stack.enter_context(open(args.truth, "w", encoding="utf-8"))
        truth = Truth(file)
        for product in PRODUCTS:
            if wanted is None or product.name in wanted:
                add(product, ctx, args, truth)
        truth.write("host/os_runtime_statistic", aux_host.truth_osrt(ctx))
        truth.end()
    if ctx.texts:
        append_dic(prof / "host" / "data", "unaging.additional.hash_dic",
                   (f"{value}:{text}" for text, value in ctx.texts.items()), not args.no_done)
    print(prof)
    return 0


if __name__ == "__main__":
    sys.exit(main())
