# SPDX-License-Identifier: BSD-2-Clause
"""Single faults in a db export and in the folder itself."""

from __future__ import annotations

import os
from typing import Callable

from harness import Skip
from mutation import Copy, Mutation

MUTATIONS: list[Mutation] = []
KERNEL = "globalTaskId = (SELECT globalTaskId FROM COMPUTE_TASK_INFO LIMIT 1)"
ANALYSIS = "analysis.db"


def sql(name: str, expected: str, statement: str, needs: str = "", database: str = "", generation: str = "") -> None:
    """Register a statement."""
    def apply(copy: Copy) -> None:
        if generation:
            copy.only(generation)
        if expected.startswith("X"):            # found by comparing the two forms of one result
            copy.file("trace_view.json")
        if expected == "J9":                    # found by comparing the tables with the JSON files
            copy.file("communication_matrix.json")
        copy.sql(statement, needs, *([database] if database else []))
    MUTATIONS.append(Mutation(name, expected, apply))


sql("a kernel's name is no string", "D1", f"UPDATE COMPUTE_TASK_INFO SET name = 99999999 WHERE {KERNEL}",
    "COMPUTE_TASK_INFO")
sql("a call's name is no string", "D1", "UPDATE CANN_API SET name = -1 WHERE rowid = (SELECT max(rowid) FROM CANN_API)",
    "CANN_API")
sql("a shape is no string", "D1", f"UPDATE COMPUTE_TASK_INFO SET inputShapes = NULL WHERE {KERNEL}",
    "COMPUTE_TASK_INFO")
sql("a string is gone", "D1", "DELETE FROM STRING_IDS WHERE id = (SELECT name FROM COMPUTE_TASK_INFO LIMIT 1)",
    "COMPUTE_TASK_INFO")
sql("a task id occurs twice", "D2", "UPDATE TASK SET globalTaskId = 0 WHERE globalTaskId = 1", "TASK")
sql("a task is gone", "D2", f"DELETE FROM TASK WHERE {KERNEL}", "TASK COMPUTE_TASK_INFO")
sql("details of no task", "D2", f"UPDATE COMPUTE_TASK_INFO SET globalTaskId = 99999999 WHERE {KERNEL}",
    "COMPUTE_TASK_INFO")
sql("a task has an unknown connection id", "D3", f"UPDATE TASK SET connectionId = 3000000000 WHERE {KERNEL}",
    "TASK COMPUTE_TASK_INFO")
sql("a kernel's call is no node", "D3",
    "UPDATE CANN_API SET type = 15000 WHERE connectionId = (SELECT connectionId FROM TASK JOIN COMPUTE_TASK_INFO"
    " USING (globalTaskId) LIMIT 1)", "TASK COMPUTE_TASK_INFO")
sql("a launch is gone", "D4", "DELETE FROM CANN_API WHERE connectionId = (SELECT connectionId FROM TASK JOIN"
    " COMPUTE_TASK_INFO USING (globalTaskId) LIMIT 1) AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name LIKE"
    " 'NPUSCOPE%')", "TASK COMPUTE_TASK_INFO", generation="A")
sql("most launches are gone", "D4", "DELETE FROM CANN_API WHERE type = 10000", "CANN_API COMPUTE_TASK_INFO")
sql("an operator ends before its tasks", "D5", "UPDATE COMMUNICATION_OP SET endNs = endNs - 1000 WHERE opId IN"
    " (SELECT opId FROM COMMUNICATION_TASK_INFO)", "COMMUNICATION_OP COMMUNICATION_TASK_INFO")
sql("the session begins too late", "D6", "UPDATE SESSION_TIME_INFO SET startTimeNs = (SELECT max(startNs) FROM TASK)",
    "TASK")
sql("the session ends too early", "D6", "UPDATE SESSION_TIME_INFO SET endTimeNs = (SELECT min(endNs) + 1 FROM TASK)",
    "TASK")
sql("the session has no window", "D6", "DELETE FROM SESSION_TIME_INFO")
sql("a task ends before it starts", "D6", f"UPDATE TASK SET endNs = startNs - 1 WHERE {KERNEL}", "COMPUTE_TASK_INFO")
sql("a call lies outside of the session", "D6", "UPDATE CANN_API SET endNs = endNs + 3600000000000 WHERE rowid ="
    " (SELECT max(rowid) FROM CANN_API)", "CANN_API")
sql("a PMU value is gone", "D7", "DELETE FROM TASK_PMU_INFO WHERE rowid = 5", "TASK_PMU_INFO")
sql("a framework connection is gone", "D8", "DELETE FROM CONNECTION_IDS WHERE rowid = 1", "CONNECTION_IDS")
sql("tasks are out of order", "D9",
    "UPDATE TASK SET startNs = (SELECT max(startNs) FROM TASK) + 1, endNs = (SELECT max(endNs) FROM TASK) + 1 WHERE"
    " rowid = 1 AND (SELECT count(*) FROM TASK) > 1", "TASK")
sql("calls are out of order", "D9",
    "UPDATE CANN_API SET startNs = (SELECT max(startNs) FROM CANN_API) + 1 WHERE rowid = (SELECT min(rowid) FROM "
    "CANN_API)"
    " AND (SELECT count(*) FROM CANN_API) > 1", "CANN_API")
sql("computing time is wrong", "D10", "UPDATE StepTraceTime SET computing = computing + 5", "StepTraceTime", ANALYSIS)
sql("free time is wrong", "D10", "UPDATE StepTraceTime SET free = free + 5", "StepTraceTime", ANALYSIS)
sql("a step's name is wrong", "D10", "UPDATE StepTraceTime SET step = '777' WHERE rowid = 1", "StepTraceTime", ANALYSIS)
sql("steps overlap", "D11", "INSERT INTO STEP_TIME SELECT 777, startNs + 1, endNs + 1 FROM STEP_TIME LIMIT 1",
    "STEP_TIME")
sql("a step occurs twice", "D11", "INSERT INTO STEP_TIME SELECT * FROM STEP_TIME LIMIT 1", "STEP_TIME")
sql("a memory duration is wrong", "D12", "UPDATE OP_MEMORY SET duration = duration + 1 WHERE duration IS NOT NULL",
    "OP_MEMORY")
sql("a sum of memory is wrong", "D12", "UPDATE MEMORY_RECORD SET totalAllocated = totalAllocated + 1 WHERE rowid ="
    " (SELECT min(MEMORY_RECORD.rowid) FROM MEMORY_RECORD JOIN STRING_IDS ON id = component WHERE value = 'PTA+GE')",
    "MEMORY_RECORD")
sql("a string id is skipped", "D13", "INSERT INTO STRING_IDS VALUES (200000000, 'far away')")
sql("a string is empty", "D13", "UPDATE STRING_IDS SET value = '' WHERE id = 0")
sql("a string occurs twice", "D13",
    "UPDATE STRING_IDS SET value = (SELECT value FROM STRING_IDS WHERE id = 0) WHERE id = 1")
sql("a kernel has no details", "D14",
    "DELETE FROM COMPUTE_TASK_INFO WHERE globalTaskId = (SELECT globalTaskId FROM COMPUTE_TASK_INFO JOIN TASK t USING"
    " (globalTaskId) JOIN STRING_IDS ON id = t.taskType WHERE t.contextId = 4294967295 AND (value LIKE 'KERNEL%' OR "
    "value"
    " LIKE 'AI_%' OR value LIKE 'MIX_%') LIMIT 1)", "COMPUTE_TASK_INFO")
sql("a table is missing", "S1", "DROP TABLE HOST_INFO")
sql("an unknown table", "S1", "CREATE TABLE status_info (a INTEGER)")
sql("a helper column was added", "S2", "ALTER TABLE TASK ADD COLUMN depth INTEGER")
sql("a column has another name", "S2", "ALTER TABLE TASK RENAME COLUMN modelId TO model")
sql("an analysis column is gone", "S2", "ALTER TABLE StepTraceTime DROP COLUMN preparing", database=ANALYSIS)
sql("columns have another type", "S2",
    "CREATE TABLE other (rankId TEXT,deviceId INTEGER); INSERT INTO other SELECT * FROM RANK_DEVICE_MAP;"
    "DROP TABLE RANK_DEVICE_MAP; ALTER TABLE other RENAME TO RANK_DEVICE_MAP")
sql("an enumeration lacks a row", "S3", "DELETE FROM ENUM_API_TYPE WHERE id = 15000")
sql("an enumeration has another name", "S3", "UPDATE ENUM_HCCL_DATA_TYPE SET name = 'HALF' WHERE id = 3")
sql("a viewer's version stamp", "S4", "PRAGMA user_version = 7")
sql("write-ahead logging", "S4", "PRAGMA journal_mode = WAL")
sql("the schema version is unknown", "S5",
    "UPDATE META_DATA SET value = '1.2.9' WHERE name = 'SCHEMA_VERSION' AND value"
    " != '1.0.0'; UPDATE META_DATA SET value = '1.0.9' WHERE name = 'SCHEMA_VERSION' AND value = '1.0.0'")
sql("no map of ranks", "W1", "DELETE FROM RANK_DEVICE_MAP")
sql("the map names another device", "W1", "UPDATE RANK_DEVICE_MAP SET deviceId = 9")
sql("a global thread id has no process", "W2", "UPDATE CANN_API SET globalTid = globalTid & 4294967295 WHERE rowid ="
    " (SELECT max(rowid) FROM CANN_API)", "CANN_API TASK")
sql("a call is of no type", "W3", "UPDATE CANN_API SET type = 12345 WHERE rowid = (SELECT max(rowid) FROM CANN_API)",
    "CANN_API")
sql("bounds are the wrong way round", "W4",
    "UPDATE NPUSCOPE_TASK_TIME SET startLowNs = 2, startHighNs = 1 WHERE rowid = (SELECT min(rowid) FROM"
    " NPUSCOPE_TASK_TIME)", "NPUSCOPE_TASK_TIME")
sql("a group's number is no hash", "J5", "UPDATE CommAnalyzerTime SET group_name = '12345'", "CommAnalyzerTime",
    ANALYSIS)
sql("a group's name is another", "J5", "UPDATE STRING_IDS SET value = value || 'x' WHERE id = (SELECT groupName FROM"
    " COMMUNICATION_OP LIMIT 1)", "COMMUNICATION_OP")
sql("an elapsed time is wrong", "J6", "UPDATE CommAnalyzerTime SET elapse_time = elapse_time + 0.001",
    "CommAnalyzerTime", ANALYSIS)
sql("a start of communication is wrong", "J7", "UPDATE CommAnalyzerTime SET start_timestamp = start_timestamp + 90",
    "CommAnalyzerTime", ANALYSIS)


sql("a task is elsewhere in the db", "X1",
    "UPDATE TASK SET startNs = startNs + 2000, endNs = endNs + 2000 WHERE rowid = 5",
    "TASK")
sql("a kernel has another name in the db", "X2",
    "UPDATE STRING_IDS SET value = value || 'y' WHERE id = (SELECT name FROM"
    " COMPUTE_TASK_INFO LIMIT 1)", "COMPUTE_TASK_INFO")
sql("a call is missing in the db", "X3", "DELETE FROM CANN_API WHERE rowid = (SELECT max(rowid) FROM CANN_API)",
    "CANN_API")
sql("a step is shorter in the db", "X4", "UPDATE StepTraceTime SET stage = stage - 5", "StepTraceTime", ANALYSIS)
sql("an operator is longer in the db", "X5", "UPDATE COMMUNICATION_OP SET endNs = endNs + 5000", "COMMUNICATION_OP")
sql("a system call is missing in the db", "X6", "DELETE FROM OSRT_API WHERE rowid = 1", "OSRT_API")
sql("an overlap is longer", "D15", "UPDATE OVERLAP_ANALYSIS SET endNs = endNs + 10 WHERE id = (SELECT max(id) FROM"
    " OVERLAP_ANALYSIS WHERE type = 0)", "OVERLAP_ANALYSIS")
sql("a free time is gone", "D15",
    "DELETE FROM OVERLAP_ANALYSIS WHERE id = (SELECT max(id) FROM OVERLAP_ANALYSIS WHERE type ="
    " 3)", "OVERLAP_ANALYSIS")
sql("an overlap is of another device", "D15",
    "UPDATE OVERLAP_ANALYSIS SET deviceId = deviceId + 1 WHERE id = (SELECT max(id)"
    " FROM OVERLAP_ANALYSIS WHERE type = 1)", "OVERLAP_ANALYSIS")
sql("framework rows are out of order", "D16", "UPDATE PYTORCH_API SET type = 50003, connectionId = NULL WHERE rowid ="
    " (SELECT max(rowid) FROM PYTORCH_API WHERE type = 50001)", "PYTORCH_API")
sql("a Python function has a connection", "D16",
    "UPDATE PYTORCH_API SET connectionId = 1 WHERE rowid = (SELECT max(rowid)"
    " FROM PYTORCH_API WHERE type = 50003)", "PYTORCH_API")
sql("numbers of the queue collide with CANN's", "D16",
    "UPDATE CONNECTION_IDS SET connectionId = connectionId - 1342177280 +"
    " 100000000 WHERE connectionId >= 1342177280", "CONNECTION_IDS", generation="B")
sql("an operator has the number of the queue", "D17", "UPDATE PYTORCH_API SET connectionId = (SELECT connectionId FROM"
    " PYTORCH_API WHERE type = 50002 AND connectionId IS NOT NULL LIMIT 1) WHERE rowid = (SELECT max(rowid) FROM "
    "PYTORCH_API"
    " WHERE type = 50001)", "PYTORCH_API CONNECTION_IDS")
sql("a mark has a length", "D18",
    "UPDATE MSTX_EVENTS SET endNs = endNs + 5 WHERE rowid = (SELECT max(rowid) FROM MSTX_EVENTS"
    " WHERE startNs = endNs)", "MSTX_EVENTS")
sql("two marks share a connection", "D18", "UPDATE MSTX_EVENTS SET connectionId = 4000000077", "MSTX_EVENTS")
sql("an idle time is wrong", "J8", "UPDATE CommAnalyzerTime SET idle_time = idle_time + 1 WHERE rowid = 1",
    "CommAnalyzerTime",
    ANALYSIS)
sql("a bandwidth is wrong", "J8", "UPDATE CommAnalyzerBandwidth SET bandwidth = bandwidth + 1 WHERE rowid = 1",
    "CommAnalyzerBandwidth", ANALYSIS)
sql("a link is faster in the table", "J9", "UPDATE CommAnalyzerMatrix SET transit_size = transit_size * 2, bandwidth ="
    " bandwidth * 2 WHERE rowid = 1", "CommAnalyzerMatrix", ANALYSIS)


def _analysis_row(copy: Copy) -> None:
    copy.file("communication.json")
    copy.sql("DELETE FROM CommAnalyzerTime WHERE rowid = 1", "CommAnalyzerTime", ANALYSIS)


# ---- the folder ----



def _remove_info(copy: Copy) -> None:
    for path in copy.path.glob("profiler_info*.json"):
        path.unlink()


def _rename_info(copy: Copy) -> None:
    for path in copy.path.glob("profiler_info_*.json"):
        path.rename(path.with_name("profiler_info_77.json"))
        return
    raise Skip("no rank")


def _garble_info(copy: Copy) -> None:
    for path in copy.path.glob("profiler_info*.json"):
        path.write_text("{", encoding="utf-8")


def _link(copy: Copy) -> None:
    (copy.out / "link.csv").symlink_to(next(copy.out.iterdir()))


def _bad_name(copy: Copy) -> None:
    (copy.out / "a&b.txt").write_text("")


def _no_trace(copy: Copy) -> None:
    copy.file("trace_view.json").unlink()


def _second_trace(copy: Copy) -> None:
    ((copy.out if copy.prof else copy.path) / "trace_view.json").write_bytes(copy.file("trace_view.json").read_bytes())


def _cache(copy: Copy) -> None:
    (copy.out / "mindstudio_insight_data.db").write_bytes(b"")


def _other_time(copy: Copy) -> None:
    path = copy.file("api_statistic.csv")
    if not copy.prof:
        raise Skip("no times in names")
    path.rename(path.with_name("api_statistic_20010101000000.csv"))


def _slice_number(copy: Copy) -> None:
    path = copy.file("kernel_details.csv")
    if not copy.prof:
        raise Skip("no slices")
    path.rename(path.with_name(path.name.replace("op_summary_", "op_summary_slice_1_")))


def _stray(copy: Copy) -> None:
    if not copy.prof:
        raise Skip("no times in names")
    (copy.out / "op_statistic.csv").write_bytes(copy.file("op_statistic.csv").read_bytes())


def _mode(copy: Copy) -> None:
    copy.only("B")
    os.chmod(next(path for path in copy.out.iterdir() if path.is_file()), 0o666)


def _folder_mode(copy: Copy) -> None:
    copy.only("B")
    os.chmod(copy.out, 0o777)


def _metadata(copy: Copy) -> None:
    with copy.json(copy.path / "profiler_metadata.json") as content:
        content["distributed_args"] = {"world_size": "2"}


def _environment(copy: Copy) -> None:
    with copy.json(copy.path / "profiler_metadata.json") as content:
        content["ENV_VARIABLES"] = {"HCCL_ALGO": 1}


MUTATIONS += [
    Mutation("a communication row is gone", "J4", _analysis_row),
    Mutation("no profiler_info", "F1", _remove_info),
    Mutation("profiler_info of another rank", "F1", _rename_info),
    Mutation("profiler_info is cut off", "F1", _garble_info),
    Mutation("a file of another time", "F8", _other_time),
    Mutation("slices do not begin with 0", "F8", _slice_number),
    Mutation("a file without a time in its name", "F8", _stray),
    Mutation("a file may be written by all", "F2", _mode),
    Mutation("a folder may be written by all", "F2", _folder_mode),
    Mutation("a link", "F3", _link),
    Mutation("a forbidden character", "F3", _bad_name),
    Mutation("no trace", "F4", _no_trace),
    Mutation("a second trace", "F5", _second_trace),
    Mutation("a viewer's cache", "F5", _cache),
    Mutation("world_size is a string", "F6", _metadata),
    Mutation("an environment variable is a number", "F6", _environment),
]
