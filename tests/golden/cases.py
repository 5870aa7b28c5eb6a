# SPDX-License-Identifier: BSD-2-Clause
"""What the golden results are made of: inputs that are the same each time, in every format that is read.

Most come from the generators of the other tests, whose options and seeds are fixed. Captures of the
simulated job, which nothing generates, and files as other programs leave them are in inputs/
(README.md describes how they were made).
"""

from __future__ import annotations

import functools
import json
import lzma
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import Callable, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("NPS_BUILD", ROOT / "build"))
AUX = ROOT / "tests" / "cannraw_aux"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"

sys.path += [str(ROOT / "tests" / "fuzz"), str(ROOT / "tests" / "conformance")]

import pack  # noqa: E402
import test_torchair as torchair  # noqa: E402
import test_trace_inputs as traces  # noqa: E402

Make = Callable[[Path], None]   # fills the folder
# Of the generators: one names its folder by local time. The analyzer has another zone
# (golden.py): what is converted twice shows.
SURROUNDINGS = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TZ": "UTC", "LC_ALL": "C.UTF-8",
                "PYTHONDONTWRITEBYTECODE": "1"}


class Case(NamedTuple):
    """An input and how it is analysed."""

    name: str
    make: Make
    options: tuple[str, ...] = ()   # of `analyze`
    shown_only: bool = False        # traces are no input of `analyze`


def run(*command: object) -> str:
    """What a generator prints."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=SURROUNDINGS)
    assert done.returncode == 0, f"{Path(str(command[0])).name}: exit {done.returncode}: {done.stderr[-500:]}"
    return done.stdout


# --- programs -----------------------------------------------------------------------------------------------

_compiling = threading.Lock()
_compiled = tempfile.TemporaryDirectory(prefix="npuscope-golden-programs.")


def _program(known: Path, sources: list[Path], *options: str) -> Path:
    """A generator of the build, or compiled now."""
    if known.exists():
        return known
    own = Path(_compiled.name) / known.name
    with _compiling:
        if not own.exists():
            run("gcc", "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-o", own, *sources, *options)
    return own


@functools.cache
def session_program() -> Path:
    """Of sessions."""
    return _program(BUILD / "bench" / "gen_session",
                    [ROOT / "tools" / "bench" / "gen_session_main.c", ROOT / "tests" / "unit" / "gen_session.c"],
                    f"-I{ROOT}/kheaders", f"-I{ROOT}/analyzer", f"-I{ROOT}/tests/unit", "-lz", "-lm")


@functools.cache
def cann_program() -> Path:
    """Of CANN's raw data."""
    return _program(ROOT / "build" / "tests" / "gen-cann", sorted((ROOT / "tests" / "cannraw").glob("*.c")), "-lm")


# --- sessions -----------------------------------------------------------------------------------------------

def session(tasks: int, *words: str) -> Make:
    """Of two ranks, generated."""
    return lambda folder: run(session_program(), folder / "npuscope_session", tasks, *words) and None


def capture(name: str) -> Make:
    """A real one."""
    def make(folder: Path) -> None:
        with tarfile.open(HERE / "inputs" / f"{name}.tar.xz") as tar:
            tar.extractall(folder)
    return make


def of_the_whole_host(one: Make) -> Make:
    """The same as if it were of `record -a`."""
    def make(folder: Path) -> None:
        one(folder)
        for path in folder.glob("*/session.json"):
            profile = json.loads(path.read_text(encoding="utf-8"))
            profile["request"]["all"] = True
            path.write_text(json.dumps(profile), encoding="utf-8")
    return make


def cut(one: Make, share: float) -> Make:
    """All its streams end there, within a record."""
    def make(folder: Path) -> None:
        one(folder)
        for path in [*folder.glob("*/*.nps"), *folder.glob("*/PROF_*/device_*/data/*slice_0")]:
            os.truncate(path, int(path.stat().st_size * share) | 1)
        for path in folder.glob("*/session.json"):
            path.write_text(path.read_text().replace('"complete": true', '"complete": false'))
    return make


def damaged(one: Make, name: str) -> Make:
    """A byte in the middle of a file is another."""
    def make(folder: Path) -> None:
        one(folder)
        (path,) = folder.glob(f"*/{name}")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x55
        path.write_bytes(data)
    return make


SESSIONS = [
    Case("session/two ranks", session(300)),
    Case("session/two ranks, older names, gzip", session(300), ("--compat", "a", "--gzip")),
    Case("session/memory, lost device records", session(300, "more")),
    Case("session/host only", session(300, "host")),
    Case("session/operators", session(300, "ops")),
    Case("session/operators, older names", session(300, "ops"), ("--compat", "a")),
    Case("session/whole host", of_the_whole_host(session(100, "more"))),
    Case("session/cut", cut(session(300), 0.6)),
    Case("session/damaged events", damaged(session(300), "events.nps")),
    Case("session/damaged strings", damaged(session(300), "strings.nps")),
    Case("capture/every option", capture("full")),
    Case("capture/every option, own threads, older names", capture("full"), ("--show-self", "--compat", "a")),
    Case("capture/every option, whole host", of_the_whole_host(capture("full"))),
    Case("capture/profiler as the source", capture("profiler")),
    Case("capture/host only", capture("host")),
    Case("capture/killed", capture("killed")),
    Case("capture/Python stacks", capture("python")),
]


# --- raw data of the vendor's profilers ---------------------------------------------------------------------

def corpus(name: str) -> Make:
    """A committed input of the fuzzers."""
    return lambda folder: pack.unpack((CORPUS / name).read_bytes(), folder)


def raw(tasks: str | None, framework: str | None = None, aux: str | None = None) -> Make:
    """What the three generators make with these options; None: without."""
    def make(folder: Path) -> None:
        more: list[object] = []
        with tempfile.TemporaryDirectory() as scratch:
            where = Path(scratch) / "cann" if framework is not None else folder
            truth = Path(scratch) / "truth"
            if tasks is not None:
                run(cann_program(), *tasks.split(), "--truth", truth, where)
                (prof,) = where.glob("PROF_*")
                more = ["--prof", prof, "--prof-truth", truth]
                if aux is not None:
                    run(sys.executable, AUX / "sidecars.py", prof, *aux.split())
            elif aux is not None:
                run(sys.executable, AUX / "sidecars.py", folder, "--make", *aux.split())
            if framework is not None:
                run(sys.executable, AUX / "framework.py", folder, *more, *framework.split())
    return make


ALL_KINDS = "--comm-every 7 --memcpy-every 5 --event-every 6 --aicpu-every 11 --bare-every 13 --ffts-every 9 " \
            "--mstx-every 8 --model 6 --step-trace --pmu --shapes"

CANN = [
    Case("cann/level 2", raw("--tasks 300")),
    Case("cann/level 2, older names, gzip", raw("--tasks 300"), ("--compat", "a", "--gzip")),
    Case("cann/level 1", raw("--tasks 200 --level 1 --pmu")),
    Case("cann/level 0", raw("--tasks 200 --level 0 --ffts-every 4 --model 3")),
    Case("cann/every kind", raw(f"--tasks 400 {ALL_KINDS}")),
    Case("cann/every kind, older names", raw(f"--tasks 400 {ALL_KINDS}"), ("--compat", "a")),
    Case("cann/every kind, cut records", raw(f"--tasks 300 {ALL_KINDS} --level 1 --straddle --no-done "
                                             "--host-counter 2593.905 --device-mhz 38.4")),
    Case("cann/devices, nasty names", raw(f"--tasks 300 {ALL_KINDS} --nasty-names --devices 3 --threads 6 --mangle "
                                          "--ffts-parent --seed 12345")),
    Case("cann/collectives as graphs, 8.5.0",
         raw(f"--tasks 300 {ALL_KINDS} --devices 2 --threads 2 --streams 3 --comm-ffts "
                                                  "--comm-tasks 9 --cann-version 8.5.0")),
    Case("cann/unique names", raw("--tasks 200 --unique-names --threads 1 --streams 1 --host-counter none")),
    Case("cann/wrapping ids", raw("--tasks 800 --flip --level 0 --threads 3 --comm-every 0")),
    Case("cann/chip 15", raw("--tasks 400 --chip 15 --memcpy-every 9 --event-every 4 --aicpu-every 8 --pmu --model 4 "
                             "--mstx-every 7 --devices 2")),
    Case("cann/chip 15, older names", raw("--tasks 200 --chip 15 --pmu"), ("--compat", "a")),
    Case("cann/one kernel", raw("--tasks 1 --comm-every 0")),
    Case("cann/old", corpus("cann/old")),
    Case("cann/side files", raw("--tasks 200 --pmu", aux="")),
    Case("cann/side files, older names", raw("--tasks 100", aux="--samples 20"), ("--compat", "a")),
    Case("cann/side files 2.0", raw("--tasks 200 --aicpu-every 9", aux="--version2")),
    Case("cann/side files alone, aged",
         raw(None, aux="--aged --slice-bytes 777 --device 3 --host-mhz none --no-done")),
    Case("cann/side files alone, wrapping",
         raw(None, aux="--wrap --samples 120 --host-mhz 2399.87 --device-mhz 48.5")),
]

TORCH = [
    Case("torch/everything", raw("--tasks 400", "--task-queue --memory --python-stacks --gc --mstx --steps 3")),
    Case("torch/everything, older names, gzip", raw("--tasks 200", "--task-queue --memory --python-stacks --gc --mstx"),
         ("--compat", "a", "--gzip")),
    Case("torch/no queue", raw("--tasks 300 --threads 2", "")),
    Case("torch/one thread", raw("--tasks 300 --threads 1 --level 1 --pmu", "--threads 1 --steps 1 --memory")),
    Case("torch/level 0", raw("--tasks 300 --level 0", "--task-queue --steps 3 --memory")),
    Case("torch/nasty", raw("--tasks 200 --nasty-names --shapes",
                            "--nasty --task-queue --memory --python-stacks --gc --mstx")),
    Case("torch/side files", raw("--tasks 200 --pmu --memcpy-every 5", "--memory --task-queue", "")),
    Case("torch/devices, chip 15", raw("--tasks 300 --devices 2 --chip 15", "--memory --task-queue --steps 2")),
    Case("torch/host only", raw(None, "--task-queue --memory --python-stacks --gc --mstx --steps 3 --mhz 38.4")),
]


# --- databases ----------------------------------------------------------------------------------------------

def database(name: str, path: str) -> Make:
    """A committed one, at that path."""
    def make(folder: Path) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(folder / path) as db:
            db.executescript(lzma.decompress((HERE / "inputs" / f"{name}.sql.xz").read_bytes()).decode())
        db.close()
    return make


def below(one: Make, path: str) -> Make:
    """The same below that folder."""
    def make(folder: Path) -> None:
        (folder / path).mkdir(parents=True)
        one(folder / path)
    return make


RESULT = "node7_1_20250101010101001_ascend_pt/ASCEND_PROFILER_OUTPUT"

DATABASES = [
    Case("database/torch", database("torch-b", f"{RESULT}/ascend_pytorch_profiler_0.db")),
    Case("database/torch, older names", database("torch-b", f"{RESULT}/ascend_pytorch_profiler_0.db"),
         ("--compat", "a")),
    Case("database/torch of the older generation", database("torch-a", f"{RESULT}/ascend_pytorch_profiler_0.db")),
    Case("database/torch of the older generation, newer names",
         database("torch-a", f"{RESULT}/ascend_pytorch_profiler_0.db"),
         ("--compat", "b")),
    Case("database/mindspore", database("torch-b", f"{RESULT}/ascend_mindspore_profiler_0.db")),
    Case("database/msprof", database("msprof", "PROF_000001_20250101010101001_ABC/msprof_20250101010101.db")),
    Case("database/own", database("own", f"{RESULT}/ascend_pytorch_profiler_0.db")),
    Case("database/every table", below(corpus("ascend_db/tables-b"), RESULT)),
    Case("database/every table, older generation", below(corpus("ascend_db/tables-a"), RESULT)),
]


# --- traces -------------------------------------------------------------------------------------------------

def slices(folder: Path) -> None:
    """Of one trace."""
    traces.sliced(folder / "PROF_1" / "mindstudio_profiler_output", "msprof")


def ranks(folder: Path) -> None:
    """Two, of different lengths, the first with tables beside it."""
    text = traces.rank(folder, 0) / "ASCEND_PROFILER_OUTPUT"
    (text / "kernel_details.csv").write_text("\n".join([traces.KERNELS, *(
        f'aclnnMatmul_MatMulV{i % 2},MatMul{i % 3},AI_VECTOR_CORE,{traces.START + i * 100 + 30}.000\t,50.0,20,'
        f'"""{i},2""",FLOAT,ND'
        for i in range(12))]))
    traces.rank(folder, 1, sum(traces.trace(20, device=1), []))


def graphs(folder: Path) -> None:
    """TorchAir's calls, some of which compile."""
    trace, at = torchair.Trace(), torchair.BEGIN
    for i in range(6):
        at = torchair.call(trace, at + 50_000, 100_000 + i * 7_000, 60_000 if i else 90_000_000, 200_000, cold=i == 0)
    trace.write(folder / "trace_view.json")


def text_alone(folder: Path) -> None:
    """A result without databases."""
    with tarfile.open(HERE / "inputs" / "text.tar.xz") as tar:
        tar.extractall(folder)


TRACES = [
    Case("trace/result", text_alone, shown_only=True),
    Case("trace/slices", slices, shown_only=True),
    Case("trace/ranks and tables", ranks, shown_only=True),
    Case("trace/graphs of TorchAir", graphs, shown_only=True),
    *(Case(f"trace/{n}", corpus(f"trace/{n}"), shown_only=True) for n in (1, 2, 3)),
]

CASES = [*SESSIONS, *CANN, *TORCH, *DATABASES, *TRACES]


def fill(case: Case, folder: Path) -> None:
    """Make a case's input in a folder that is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case.make(folder)
