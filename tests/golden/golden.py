#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Golden results: everything the analyzer writes of fixed inputs, held
byte for byte against what it wrote before.

    golden.py [update] [keep=DIR] [against=DIR] [WORD...]

Without words, all cases; else those whose name holds one of them. `update` writes expected.txt. `keep=DIR`
leaves inputs and results in DIR; `against=DIR` then shows where text differs from the results another tree
left there. NPUSCOPE names the program, NPS_BUILD another build directory. Exit status 1: something differs,
is missing or is new.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

sys.dont_write_bytecode = True

from cases import BUILD, CASES, Case, fill  # noqa: E402

PROGRAM = Path(os.environ.get("NPUSCOPE", BUILD / "npuscope")).absolute()
EXPECTED = Path(__file__).resolve().parent / "expected.txt"
MARK = ".npuscope_golden"
EXPORTS = ["text,db", "text", "db", "perfetto", "folded"]
SHOWN = ["text", "db"]      # results that `show` reads back
SECONDS = 600               # for one run of the program: it ends what hangs
HEAD = "# SHA-256, exports that have the file, its name and, of a database, rows a table; " \
       "`make golden GOLDEN=update`.\n"


class File(NamedTuple):
    """What is compared of a result file."""

    digest: str
    rows: str = ""  # of the tables of a database that have any


Files = dict[str, File]     # by "EXPORT NAME"


# --- what of the run's surroundings would get into results
# -------------------------------------------------- Everything else is the same because the program always
# runs in the folder of its case, and gets paths relative to that.

def surroundings(root: Path) -> dict[str, str]:
    """The whole environment of the program."""
    return {
        "PATH": "/usr/bin:/bin",
        # names of folders and files are local times; not UTC, so that this is seen
        "TZ": "CST-8",
        "LC_ALL": "C.UTF-8",
        "HOME": str(root / "home"),     # notes of unfinished results are looked for there
        "TMPDIR": str(root / "tmp"),
        **{key: value for key, value in os.environ.items() if key in ("ASAN_OPTIONS", "UBSAN_OPTIONS")},
    }


def normal(path: Path, data: bytes, where: Path) -> bytes:
    """A file's content without what is no result."""
    if path.name == ".npuscope_input":      # it is there to know the input again: its absolute path
        data = data.replace(os.fsencode(where), b"/golden")
    if path.suffix == ".gz":                # how it is compressed is zlib's affair
        data = gzip.decompress(data)
    return data


# SQLite's own version is in its files, and how rows lie in pages is its affair: a
# database is what it holds, in its order.

def dump(path: Path) -> tuple[bytes, str]:
    """A database as text, and the rows of its tables."""
    out, counts = [], []
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")  # blobs are bytes
    for pragma in ("user_version", "application_id", "encoding", "page_size"):
        (value,) = db.execute(f"PRAGMA {pragma}").fetchone()
        out.append(f"{pragma} {value!r}")
    made = db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
    for kind, name, sql in made:
        out.append(f"{kind} {name}: {sql or ''}")
    for kind, name, sql in made:
        if kind == "table":
            order = "" if "WITHOUT ROWID" in (sql or "") else " ORDER BY rowid"
            before = len(out)
            out += [f"{name} {row!r}" for row in db.execute(f'SELECT * FROM "{name}"{order}')]
            if len(out) > before:
                counts.append(f"{name}={len(out) - before}")
    db.close()
    return "\n".join(out).encode() + b"\n", " ".join(counts)


# --- one case -----------------------------------------------------------------------------------------------

def npuscope(where: Path, log: Path, *words: object) -> None:
    """Run it; its messages and its status are a result, too."""
    done = subprocess.run([str(PROGRAM), *map(str, words)], cwd=where, env=surroundings(where), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=SECONDS, check=False)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"%sstatus %d\n%s" % (done.stdout, done.returncode, done.stderr))


def make(case: Case, where: Path) -> str:
    """All results of a case, in `where`/out; its input is `where`/in, whose digest is returned."""
    shutil.rmtree(where, ignore_errors=True)
    for name in ("home", "tmp", "out"):
        (where / name).mkdir(parents=True)
    fill(case, where / "in")
    digest = input_digest(where)
    inputs, out = sorted(f"in/{path.name}" for path in (where / "in").iterdir()), where / "out"
    shown = {"input": inputs}
    for export in [] if case.shown_only else EXPORTS:
        (out / export).mkdir()
        npuscope(where, out / export / "analyze.log", "analyze", "--progress=never", "--max-process-number=2",
                 *case.options,
                 "--export", export, "-o", f"out/{export}/results", *inputs)
        assert (out / export / "results").is_dir(), (out / export / "analyze.log").read_text()
        if export in SHOWN:
            shown[export] = [f"out/{export}/results"]
    for name, paths in shown.items():
        npuscope(where, out / name / "show.log", "show", "--progress=never", *paths)
        npuscope(where, out / name / "show.json.log", "show", "--progress=never", "--json", "--top=1000", *paths)
    assert input_digest(where) == digest, "the program has changed its input"
    return digest


def files(folder: Path) -> list[Path]:
    """All below it, in one order everywhere."""
    return sorted((path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()), key=os.fspath)


def input_digest(where: Path) -> str:
    """Of an input's names and contents: whether a difference is the generator's."""
    total = hashlib.sha256()
    for path in files(where / "in"):
        # a database is made here by SQLite, whose version is in it
        data = dump(path)[0] if path.suffix == ".db" else path.read_bytes()
        total.update(f"{path.relative_to(where)}\n{len(data)}\n".encode() + data)
    return total.hexdigest()


def compared(where: Path, digest: str, keep: bool) -> Files:
    """What a case's results are; `digest`: of its input."""
    found: Files = {"input .": File(digest)}
    dumps: dict[str, tuple[bytes, str]] = {}
    for path in files(where / "out"):
        export, name = str(path.relative_to(where / "out")).split("/", 1)
        data, rows = path.read_bytes(), ""
        if path.suffix == ".db":
            same = hashlib.sha256(data).hexdigest()
            data, rows = dumps[same] if same in dumps else dumps.setdefault(same, dump(path))
            if keep:
                path.with_name(path.name + ".sql").write_bytes(data)
        else:
            data = normal(path, data, where)
            if keep:
                path.write_bytes(data)
        assert os.fsencode(where) not in data, f"{path.relative_to(where)} tells where this run was"
        found[f"{export} {name}"] = File(hashlib.sha256(data).hexdigest(), rows)
    return found


def folder_name(name: str) -> str:
    """Of a case."""
    return name.replace("/", "-").replace(", ", "-").replace(" ", "_")


def results(case: Case, root: Path, keep: bool = False) -> Files:
    """Make a case's results below a folder and read them; they stay there if `keep`."""
    where = root.resolve() / folder_name(case.name)
    found = compared(where, make(case, where), keep)
    if not keep:
        shutil.rmtree(where)
    return found


# --- expected.txt -------------------------------------------------------------------------------------------

def lines(found: Files) -> list[str]:
    """A case's lines: a file that several exports have alike is one."""
    exports: dict[tuple[str, File], list[str]] = {}
    for key, file in found.items():
        export, name = key.split(" ", 1)
        exports.setdefault((name, file), []).append(export)
    return sorted((f"{file.digest} {'+'.join(sorted(of))} {name}{' | ' if file.rows else ''}{file.rows}"
                   for (name, file), of in exports.items()), key=lambda line: line.split(" ", 1)[1])


def expected() -> dict[str, Files]:
    """Of all cases, by name."""
    all_cases: dict[str, Files] = {}
    if not EXPECTED.exists():
        return all_cases
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        if line.startswith("case "):
            current = all_cases.setdefault(line[5:], {})
        elif line and not line.startswith("#"):
            digest, exports, rest = line.split(" ", 2)
            name, _, rows = rest.partition(" | ")
            for export in exports.split("+"):
                current[f"{export} {name}"] = File(digest, rows)
    return all_cases


def write(all_cases: dict[str, Files]) -> None:
    """Of the cases that there are, in their order."""
    parts = [f"case {case.name}\n" + "".join(f"{line}\n" for line in lines(all_cases[case.name]))
             for case in CASES if case.name in all_cases]
    EXPECTED.write_text(HEAD + "\n" + "\n".join(parts), encoding="utf-8")


def tables(was: str, now: str) -> str:
    """Tables whose numbers of rows differ."""
    before, after = (dict(item.split("=") for item in rows.split()) for rows in (was, now))
    changed = [f"{name} {before.get(name, 0)} -> {after.get(name, 0)}" for name in sorted({*before, *after})
               if before.get(name) != after.get(name)]
    return f" (rows: {', '.join(changed)})" if changed else ""


def differences(want: Optional[Files], got: Files) -> list[str]:
    """What differs, is missing and is new."""
    if want is None:
        return ["no such case in expected.txt: GOLDEN=update"]
    if want["input ."] != got["input ."]:
        return ["its input is another: a generator has changed, or what it is built of"]
    out = [f"differs: {key}{tables(want[key].rows, got[key].rows)}" for key in want if key in got
           and want[key] != got[key]]
    out += [f"missing: {key}" for key in want if key not in got]
    out += [f"new: {key}" for key in got if key not in want]
    return out


# --- two trees' results -------------------------------------------------------------------------------------

def first_difference(old: bytes, new: bytes) -> str:
    """Where, and what is there: of long lines a part."""
    if b"\0" in old[:4096] or b"\0" in new[:4096]:
        at = next((n for n, (one, two) in enumerate(zip(old, new)) if one != two), min(len(old), len(new)))
        return f"    byte {at} of {len(old)}, {len(new)}"
    before, after = old.split(b"\n"), new.split(b"\n")
    number = next((n for n, (one, two) in enumerate(zip(before, after)) if one != two), min(len(before), len(after)))
    ends = [lines_of[number] if number < len(lines_of) else b"(no such line)" for lines_of in (before, after)]
    column = len(os.path.commonprefix(ends))
    shown = [f"    {sign} {line[max(0, column - 100):column + 140].decode(errors='replace')}" for sign,
             line in zip("-+", ends)]
    return "\n".join([f"    line {number + 1}, column {column + 1}", *shown])


def compare_kept(old: Path, new: Path) -> Iterator[str]:
    """Differences of the results in two folders, in cases that the second has."""
    names = {str(path.relative_to(root)) for case in new.glob("*/out") for root in (old, new)
             for path in files(root / case.relative_to(new))}
    for name in sorted(names):
        if name.endswith(".db"):
            continue    # its text is beside it
        if not (old / name).exists() or not (new / name).exists():
            yield f"only in {old if (old / name).exists() else new}: {name}"
            continue
        one, two = (old / name).read_bytes(), (new / name).read_bytes()
        if one != two:
            yield f"differs: {name}\n{first_difference(one, two)}"


# --- the command --------------------------------------------------------------------------------------------

def keep_in(folder: Path) -> Path:
    """A folder for results: new, empty, or one that was made here."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        sys.exit(f"golden: {folder} holds something else: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    return folder


def main() -> int:
    """Entry point."""
    values = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    words = [word for word in sys.argv[1:] if "=" not in word and word != "update"]
    if set(values) - {"keep", "against"} or ("against" in values and "keep" not in values):
        print(__doc__, file=sys.stderr)
        return 2
    chosen = [case for case in CASES if not words or any(word in case.name for word in words)]
    known, wrong, count = expected(), 0, 0
    with tempfile.TemporaryDirectory(prefix="npuscope-golden.") as scratch:
        root = keep_in(Path(values["keep"])) if "keep" in values else Path(scratch)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for case, found in zip(chosen, pool.map(lambda case: results(case, root, "keep" in values), chosen)):
                count += len(found)
                diffs = [] if "update" in sys.argv[1:] else differences(known.get(case.name), found)
                known[case.name] = found
                wrong += bool(diffs)
                print(f"{case.name}: {'differs' if diffs else f'{len(found)} files'}", *diffs, sep="\n  ", flush=True)
        if "against" in values:
            for line in compare_kept(Path(values["against"]), root):
                print(line)
    if "update" in sys.argv[1:]:
        write(known)
    elif not words and set(known) - {case.name for case in CASES}:
        wrong += 1
        print("no such case any more:", *sorted(set(known) - {case.name for case in CASES}))
    print(f"{len(chosen)} cases, {count} files, {wrong} cases differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
