# SPDX-License-Identifier: BSD-2-Clause
"""Checks of the folder itself: F1..F8, G1."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

from capture import INFO_NAME, PROF_CSV, PROF_DB, PROF_NAME, PROF_TRACE, RESULT_NAME, Rank
from report import Check, RuleSet, Skip

RULES = RuleSet()
SLICE_ROWS = 1_000_000
_FORBIDDEN = re.compile("[\n\f\r\b\t\v\x7f\"'%><|&$;`\\\\]")
_INTS = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "data_parallel_size", "context_parallel_size",
         "expert_model_parallel_size", "rank", "world_size")


@RULES.rule("G1", "all files are of one generation")
def g1(rank: Rank, check: Check) -> None:
    for marker, generation in rank.markers.items():
        check.expect(generation == rank.generation,
                     f"{marker} is of generation {generation}, the rest {rank.generation}")


@RULES.rule("F1", "profiler_info_N.json names the rank")
def f1(rank: Rank, check: Check) -> None:
    if rank.prof:
        raise Skip("msprof has none")
    check.expect(len(rank.info_paths) == 1, f"{len(rank.info_paths)} profiler_info files in {rank.path.name}")
    for path in rank.info_paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        for key in ("config", "start_info", "end_info", "rank_id"):
            check.expect(key in content, f"{path.name}: no {key}")
        number = INFO_NAME.fullmatch(path.name).group(2)
        rank_id = str(content.get("rank_id"))
        check.expect(rank_id == number or number is None and rank_id == "-1", f"{path.name} says rank_id {rank_id}")
        config = content.get("config", {})
        for key in ("common_config", "experimental_config"):
            check.expect(key in config, f"{path.name}: no config.{key}")


@RULES.rule("F2", "folders have mode 0750 and files 0640")
def f2(rank: Rank, check: Check) -> None:
    if rank.generation == "A":
        raise Skip("real captures lost their modes")
    for path in rank.written:
        mode = stat.S_IMODE(path.lstat().st_mode)
        right = 0o750 if path.is_dir() else 0o640
        check.expect(mode == right, f"{path.relative_to(rank.path.parent)}: mode {mode:o}, expected {right:o}")


@RULES.rule("F3", "no links and no characters that the viewer refuses in paths")
def f3(rank: Rank, check: Check) -> None:
    for path in rank.written:
        check.expect(not path.is_symlink(), f"{path.name} is a link")
        check.expect(not _FORBIDDEN.search(path.name), f"{path.name!r}: a forbidden character")


@RULES.rule("F4", "there is something that the viewer opens as a card")
def f4(rank: Rank, check: Check) -> None:
    text = bool(rank.trace_paths)
    check.expect(rank.out != rank.path, f"{rank.path.name}: no folder of output")
    check.expect(text or rank.has_db, "neither a timeline nor a profiler database: no card")
    check.expect(text or not rank.csv_names, "CSV files without a timeline: no card")
    if text and rank.has_db:
        check.note("text and db in one folder: the viewer shows the db alone")


@RULES.rule("F5", "one trace, and nothing that a viewer left behind")
def f5(rank: Rank, check: Check) -> None:
    names = [path.name for path in rank.written]
    for name in names:
        check.expect(name not in ("mindstudio_insight_data.db", "cluster.db") and not name.endswith(("-wal", "-shm")),
                     f"{name} is a viewer's file")
    check.expect(names.count("trace_view.json") <= (not rank.prof), "more than one trace_view.json")
    check.expect(len(rank.db_paths) <= 1, "more than one profiler database")


@RULES.rule("F6", "profiler_metadata.json has the types that the viewer insists on")
def f6(rank: Rank, check: Check) -> None:
    path = rank.path / "profiler_metadata.json"
    if not path.is_file():
        raise Skip("no profiler_metadata.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    check.expect(isinstance(content, dict), "not an object")
    environment = content.get("ENV_VARIABLES", {})
    check.expect(all(isinstance(value, str) for value in environment.values()), "ENV_VARIABLES: not all strings")
    for name, group in content.get("parallel_group_info", {}).items():
        check.expect({"group_name", "group_rank", "global_ranks"} <= set(group), f"group {name}: {sorted(group)}")
    arguments = content.get("distributed_args", {})
    for key in _INTS:
        if key in arguments:
            check.expect(type(arguments[key]) is int, f"distributed_args.{key}: {arguments[key]!r}")
    if "sequence_parallel" in arguments:
        check.expect(type(arguments["sequence_parallel"]) is bool, "distributed_args.sequence_parallel is no boolean")


@RULES.rule("F7", "the folder is named worker_pid_time_ascend_pt after its process, or PROF_number_time_text")
def f7(rank: Rank, check: Check) -> None:
    if rank.prof:
        check.expect(PROF_NAME.fullmatch(rank.path.name) is not None, f"{rank.path.name}")
        return
    if rank.generation == "A":
        raise Skip("real captures were renamed")
    match = RESULT_NAME.fullmatch(rank.path.name)
    check.expect(match is not None, f"{rank.path.name}")
    stated_pid = rank.trace.process_id() if rank.trace else None
    if match and stated_pid is not None:
        check.expect(int(match.group(1)) == stated_pid, f"{rank.path.name}: the trace is of process {stated_pid}")
    if match and rank.db and "TASK" in rank.db_tables:
        for (pid,) in rank.db.execute("SELECT DISTINCT globalPid FROM TASK"):
            check.expect(int(match.group(1)) == pid, f"{rank.path.name}: the database is of process {pid}")


@RULES.rule("F8", "msprof's files have one time in their names, slices count from 0")
def f8(rank: Rank, check: Check) -> None:
    if not rank.prof:
        raise Skip("not msprof's layout")
    stamps: dict[str, str] = {}
    for path in (*rank.out.glob("*"), *rank.db_paths):
        if path.name.startswith("npuscope") or path.name in ("README.txt", "ftrace_data.db"):
            continue
        form = {".csv": PROF_CSV, ".json": PROF_TRACE, ".db": PROF_DB}.get(path.suffix)
        match = form.fullmatch(path.name) if form else None
        check.expect(match is not None, f"{path.name}: not a name that readers look for")
        if match:
            stamps.setdefault(match.groups()[-1], path.name)
    check.expect(len(stamps) <= 1, f"files of several times: {sorted(stamps.values())}")
    for name, paths in {**rank.csv_paths, "msprof": rank.trace_paths}.items():
        sliced = [path for path in paths if "_slice_" in path.name]
        numbers = [int(path.name.partition("_slice_")[2].partition("_")[0]) for path in sliced]
        check.expect(numbers == list(range(len(numbers))) and (not sliced or len(sliced) == len(paths)),
                     f"{name}: slices {numbers} of {len(paths)} files")
        table = rank.table(name)
        for length in table.lengths[:-1] if table else ():
            check.expect(length == SLICE_ROWS, f"{name}: a slice of {length} rows before the last")
        check.expect(not table or max(table.lengths) <= SLICE_ROWS, f"{name}: a slice is too long")
