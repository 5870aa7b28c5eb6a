# SPDX-License-Identifier: BSD-2-Clause
"""Checks what a guest recorded against the logs of the simulated device and the mock driver."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import driver_events
from payload import ROOT

DONE, FAILED, INCOMPLETE = 0, 1, 3
KINDS = ("api", "sqe", "mark", "syscall", "sched")  # that every capture of the demo job has
# Counts of compare that are 0 in a true result. Not how far times are off: an emulated
# machine's clocks are not to be judged.
FAULTS = ("tasks_extra", "name_mismatches", "causality_violations", "bounds_violations", "steps_renumbered",
          "step_assignment_errors")
AGENT, CHAN, CQE, COPY = ("tsagent_sqe_update", "trs_chan_ops_sqe_update", "tsagent_cqe_update",
                          "hal_kernel_devdrv_dma_sync_copy")
TRACED_SQE, TRACED_CQE = "trs_chan:sqe", "trs_core:logic_cqe"
# What reports tasks, CQEs and copies, by the folder of the driver's modules;
# functions of modules with types by fexit.
REPORTED_BY = {"modules": (AGENT, CQE, COPY), "plain": (AGENT, CQE, COPY), "agentless": (CHAN, CQE, COPY),
           "strange": (TRACED_SQE, CQE, COPY), "refused": (CHAN, TRACED_CQE, COPY),
           "lone": (TRACED_SQE, TRACED_CQE, COPY)}
# What the switches of trs_chan and trs_core are to be.
SWITCHES = {"before": "00", "recorded": "11", "interrupted": "00", "one_of_two": "11", "killed": "11",
            "next_start": "00",
            "others": "11", "others_stays": "10"}
MORE_KINDS = ("tensor", "stack", "irq", "driver")  # of one that records all there is
# What an older kernel cannot do, in the collector's words.
REPORTED = ("no uprobe_multi", "this kernel lacks BTF or ring buffers")
LATE_CALLS = 40  # guest.sh, late
CAP_SYS_ADMIN = 1 << 21
OFF_NS, TIMES = 5000, 50  # how far times may be off (99th percentile), and of how many at least
LEGACY_KINDS = ("api", "sqe", "syscall")


@dataclass
class Verdict:
    """Of one case."""

    passed: bool
    text: str  # a few words for a table, or what is wrong
    numbers: dict[str, Any] = field(default_factory=dict)


def of_case(directory: Path, how: str) -> Verdict:
    """DIRECTORY: what one_case of guest.sh left, which got HOW."""
    if not (directory / "status").exists():
        return Verdict(False, "there is no result")
    status = int((directory / "status").read_text(encoding="utf-8"))
    text = (directory / "messages").read_text(encoding="utf-8", errors="replace")
    sessions = sorted(directory.glob("out/*/session.json"))
    if status not in (DONE, INCOMPLETE) or not sessions:
        return Verdict(False, f"status {status}: {last_line(text)}")
    session = json.loads(sessions[0].read_text(encoding="utf-8"))
    kinds = LEGACY_KINDS if session.get("kernel_side") == "legacy" else KINDS
    if how == "all":
        kinds += MORE_KINDS
    if how == "no_jit" and session.get("kernel_side") != "legacy":
        kinds += ("stack",)
    missing = [kind for kind in kinds if not session["events"].get(kind)]
    if missing:
        return Verdict(False, f"no events of the kinds {', '.join(missing)}")
    analyzed = subprocess.run([str(ROOT / "build/npuscope"), "analyze", str(sessions[0].parent)], capture_output=True,
                              text=True, check=False)
    if analyzed.returncode not in (DONE, INCOMPLETE):
        return Verdict(False, f"analyze: status {analyzed.returncode}: {last_line(analyzed.stderr)}")
    report = directory / "truth.json"
    compared = subprocess.run([str(ROOT / "tools/truth/compare"), "--truth", str(directory / "truth"),
                               "--result", str(sessions[0].parent), "--session", str(sessions[0].parent),
                               "--json", str(report), "--reach-ms", "10000", "--slack-us", "100"], capture_output=True,
                              text=True,
                              check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    numbers = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    if not numbers:
        return Verdict(False, f"it cannot be compared: {last_line(compared.stderr)}")
    wrong = [key for key in FAULTS if numbers[key]]
    wrong += [f"{what}_found" for what in ("launches", "tasks", "steps")
              if numbers[f"{what}_found"] != numbers[f"{what}_expected"] and not numbers["dropped"]]
    if wrong:
        return Verdict(False, "it is not the truth: " + ", ".join(f"{key} {numbers[key]}" for key in wrong), numbers)
    if not numbers["launches_found"] or not numbers["tasks_found"]:
        return Verdict(False, "nothing of the job was found", numbers)
    if how in ("helper", "inject", "all") and numbers["start_error_us_p50"] is None:
        return Verdict(False, "the device's log was to be had, and tasks have no times of it", numbers)
    sampled = [channel["records"] for device in session.get("device_sampler", {}).get("devices", [])
               for channel in device["channels"] if channel["name"] == "HBM"]
    # An emulated machine that gets little of a CPU can take longer to load the driver than
    # npuscope waits for it, and reports it.
    if how == "helper" and not any(sampled) and "the driver does not answer" not in text:
        return Verdict(False, f"its device was to be sampled: {last_line(text)}", numbers)
    refused = [line for line in text.splitlines() if "cannot " in line and not any(words in line for words in REPORTED)]
    if refused:
        return Verdict(False, refused[0], numbers)
    return Verdict(True, f"{numbers['launches_found']} of {numbers['launches_expected']} launches, "
                         f"{numbers['tasks_found']} of {numbers['tasks_expected']} tasks", numbers)


def of_late(directory: Path, perf: bool) -> Verdict:
    """Of a library that is loaded while its job is recorded all calls are there: nothing that this takes was
    given up. PERF: functions are probed by perf events, for which who attaches them may have to be an
    administrator; nobody else is."""
    session = next(directory.glob("out/*/session.json"), None)
    messages = (directory / "messages").read_text(encoding="utf-8", errors="replace") if session else ""
    if session is None:
        return Verdict(False, "there is no session")
    hits = {Path(probe["library"]).name: probe["hits"]
            for probe in json.loads(session.read_text(encoding="utf-8"))["probes"]
            if probe["symbol"] == "aclrtSynchronizeDevice"}
    wrong = [line for line in messages.splitlines() if "will be missing" in line]
    if wrong or hits != {"libacl_rt.so": LATE_CALLS}:
        return Verdict(False, f"{hits}: {wrong[0] if wrong else last_line(messages)}")
    threads = [line.split() for line in (directory / "rights").read_text(encoding="utf-8").splitlines()]
    # One switches on statistics of BPF programs: it has nothing else.
    admins = {name for name, rights in threads if int(rights, 16) & CAP_SYS_ADMIN and int(rights, 16) != CAP_SYS_ADMIN}
    if admins - ({"main"} if perf else set()):
        return Verdict(False, f"{', '.join(sorted(admins))} kept CAP_SYS_ADMIN")
    return Verdict(True, f"{LATE_CALLS} calls")


def of_driver(directory: Path, mode: str) -> Verdict:
    """The mock driver's own record of a case, held against the simulated device's."""
    lines = [line.split("\t") for line in (directory / "driver.tsv").read_text(encoding="utf-8").splitlines()]
    counts: dict[str, int] = {}
    for line in lines:
        counts[line[0]] = counts.get(line[0], 0) + 1
    if lines[-1] != ["lost", "0"]:
        return Verdict(False, "the driver's record has no end, or lost lines")
    sent = sorted((line[1], line[4], line[5]) for line in lines if line[0] == "sqe")
    launched = sorted(_launched(directory / "truth"))
    if mode == "uio_d":
        if sent:
            return Verdict(False, f"{len(sent)} SQEs in a mode where none comes by")
    elif sent != launched:
        return Verdict(False, f"{len(sent)} SQEs came by, {len(launched)} were sent")
    for line in lines:
        if line[0] == "wake" and not int(line[6]) <= int(line[7]) <= int(line[8]):
            return Verdict(False, f"woken before the interrupt: {line}")
    # Not of waits: on a slow host the device has often done all before the job waits.
    for kind in ("svm", "dma", "hdc", "msg", "open"):
        if not counts.get(kind):
            return Verdict(False, f"no {kind} in the driver's record")
    return Verdict(True, f"{len(sent)} SQEs, {counts.get('wake', 0)} interrupts", counts)


def of_driver_events(directory: Path, mode: str, fexit: bool) -> Verdict:
    """What was recorded of the driver, compared with the driver's own log. FEXIT: what there
    is has types and can be probed by them."""
    session = sorted(directory.glob("out/*/session.json"))[0]
    about = json.loads(session.read_text(encoding="utf-8"))
    if about.get("kernel_side") == "legacy":
        return Verdict(True, "old kernel: nothing of it")
    if directory.name == "hidden":
        return _of_strange(directory, session.parent)
    how, wrong = _ways(about, mode, fexit)
    if wrong:
        return Verdict(False, wrong)
    listed = ", ".join(f"{kind} {row}" for kind, row in how.items())
    found, missing = driver_events.compare(directory, session.parent, about, mode.split(":")[0], how)
    if missing:
        return Verdict(False, f"{listed}: not recorded: " + ", ".join(missing))
    missing = driver_events.joined(directory, session.parent, about, how)
    if missing:
        return Verdict(False, "; ".join(missing[:3]))
    if mode == "uio_d" and "go past the driver" not in (directory / "messages").read_text(encoding="utf-8"):
        return Verdict(False, "not a word of that its tasks go past the driver")
    return Verdict(True, f"{listed}: {found}")


def _ways(about: dict[str, Any], mode: str, fexit: bool) -> tuple[dict[str, str], str]:
    """Kind -> row that a capture took, and what is wrong with them."""
    ways = about.get("driver", {}).get("functions", {})
    folder = mode.split(":")[1] if ":" in mode else "modules"
    expected = [(name, "tracepoint" if ":" in name else "fexit" if folder == "modules" and fexit else "kprobe")
                for name in REPORTED_BY[folder]]
    detached = [(way["function"], way["how"]) for way in ways.values()]
    return ({kind: way["how"] for kind, way in ways.items()},
            "" if detached == expected else f"{detached}: expected {expected}")


def of_states(directory: Path) -> Verdict:
    """The helper library was put into each of these jobs, and none found
    anything changed (jobs/inject_job.c)."""
    states = {file.name: file.read_text(encoding="utf-8") for file in directory.glob("*")}
    wrong = [mode for mode, text in states.items()
             if "the helper library is loaded" not in text or not text.endswith("\n0\n") or
             not re.search(r"^result \w+ rounds=[1-9]\d* wrong=0 eintr=0 ", text, re.M)]
    if wrong or not states:
        return Verdict(False, f"{', '.join(wrong) or 'none was tried'}: {last_line(states[wrong[0]]) if wrong else ''}")
    return Verdict(True, f"{len(states)} jobs noticed nothing")


def of_nodes(directory: Path, mode: str, fexit: bool) -> Verdict:
    """The same of a job that is no simulated one: it submits nothing, and calls the driver by its nodes."""
    session = next(directory.glob("out/*/session.json"), None)
    if session is None:
        return Verdict(False, "there is no session")
    about = json.loads(session.read_text(encoding="utf-8"))
    how, unexpected = _ways(about, mode, fexit)
    if unexpected:
        return Verdict(False, unexpected)
    analyzed = subprocess.run([str(ROOT / "build/npuscope"), "analyze", str(session.parent)], capture_output=True,
                              text=True, check=False)
    if analyzed.returncode not in (DONE, INCOMPLETE):
        return Verdict(False, f"analyze: status {analyzed.returncode}: {last_line(analyzed.stderr)}")
    found, wrong = driver_events.compare(directory, session.parent, about, "uio_d", how)
    wrong += driver_events.joined(directory, session.parent, about, how)
    some = driver_events.reported(directory)
    wrong += [f"no {what}" for what in ("cqe", "wake", "dma", "hdc", "svm") if not some.get(what)]
    return Verdict(not wrong,
                   "; ".join(wrong[:3]) or f"{', '.join(f'{kind} {row}' for kind, row in how.items())}: {found}")


def of_times(directory: Path, how: str, mode: str, fexit: bool) -> Verdict:
    """How far recorded times are from those that the mock driver stamped: SQEs and copies in it, and from an
    interrupt to when the thread that waited goes on."""
    found = of_nodes(directory, mode, fexit) if how == "nodes" else of_case(directory, how)
    if found.passed and how != "nodes":
        found = of_driver_events(directory, mode, fexit)
    if not found.passed:
        return found
    session = next(directory.glob("out/*/session.json"))
    about = json.loads(session.read_text(encoding="utf-8"))
    off = driver_events.off_by(directory, session.parent, about)
    # The job of nodes submits nothing, and the demo job's waits are few.
    needed = ("copies", "wake-ups") if how == "nodes" else ("SQEs",)
    too_few = [what for what in needed if len(off[what]) < TIMES]
    figures = {what: values[len(values) * 99 // 100] for what, values in off.items() if values}
    text = ", ".join(f"{len(off[what])} {what} within {p99 / 1000:.1f} us (p99)" for what, p99 in figures.items())
    return Verdict(not too_few and max(figures.values()) <= OFF_NS,
                   text + "".join(f"; too few {what}" for what in too_few))


def _launched(directory: Path) -> list[tuple[str, str, str]]:
    """(device, stream, task) of every SQE that was sent."""
    sent = []
    for file in directory.glob("truth.*.tsv"):
        for line in file.read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            if fields[0] == "launch":
                sent.append((fields[6], fields[7], fields[8]))
    return sent


def last_line(text: str) -> str:
    """The last line of a program."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _of_strange(directory: Path, session: Path) -> Verdict:
    """Nothing is guessed of a driver that is not known, but its calls are recorded."""
    kinds = {event.kind for event in driver_events.events(session)}
    unknown = (directory / "messages").read_text(encoding="utf-8").count("is not known")
    if driver_events.DRIVER_TASK in kinds or driver_events.DRIVER not in kinds or unknown != 1:
        return Verdict(False,
                       f"records of the kinds {sorted(kinds)}, and {unknown} lines of that the version is not known")
    return Verdict(True, "its version is not known: calls alone, and a line")


def of_leaving(directory: Path) -> Verdict:
    """The driver was unloaded while it was recorded."""
    if not directory.exists():
        return Verdict(False, "it was not tried to the end")
    status = int((directory / "status").read_text(encoding="utf-8"))
    sessions = sorted(directory.glob("out/*/session.json"))
    if status not in (DONE, INCOMPLETE) or not sessions:
        return Verdict(False, f"status {status}: {last_line((directory / 'messages').read_text(encoding='utf-8'))}")
    complete = json.loads(sessions[0].read_text(encoding="utf-8"))["complete"]
    if not complete:
        return Verdict(False, "the session is not complete")
    if int((directory / "unloaded_at_last").read_text(encoding="utf-8")):
        return Verdict(False, "the driver cannot be unloaded any more")
    unloaded = not int((directory / "unloaded").read_text(encoding="utf-8"))
    return Verdict(True, f"unloaded {'during' if unloaded else 'after'} a capture, without its /proc")


def of_lockdown(directory: Path) -> Verdict:
    """A kernel that is locked down: one line, nothing recorded."""
    if not directory.exists():
        return Verdict(False, "it cannot be locked down")
    status = int((directory / "status").read_text(encoding="utf-8"))
    lines = (directory / "messages").read_text(encoding="utf-8").splitlines()
    seen = re.search(r"^  kernel memory +no +locked down", (directory / "doctor").read_text(encoding="utf-8"), re.M)
    if status != FAILED or len(lines) != 1 or "locked down" not in lines[0] or not seen or (directory / "out").exists():
        return Verdict(False, f"status {status}: {' / '.join(lines)}")
    return Verdict(True, "one line, nothing recorded")


def of_switches(out: Path) -> Verdict:
    """The driver's tracepoints were on while they were recorded, and at no other time."""
    if not (out / "switches_left").exists():
        return Verdict(False, "they were not tried to the end")
    lines = [line.split("\t") for line in (out / "switches").read_text(encoding="utf-8").splitlines()]
    found = {name: chan + core for name, chan, core in lines}
    wrong = [f"{name} {found.get(name)}" for name, state in SWITCHES.items() if found.get(name) != state]
    left = (out / "switches_left").read_text(encoding="utf-8").split()
    if wrong or left not in ([], ["trace.lock"]):
        return Verdict(False, f"trs_chan and trs_core: {', '.join(wrong)}; left in /run: {', '.join(left)}")
    # The switches were the first to need their directory, and costs are to be read there by everybody.
    mode = (out / "run_mode").read_text(encoding="utf-8").strip()
    if mode != "755":
        return Verdict(False, f"/run/npuscope has the mode {mode}")
    return Verdict(True, "on while recorded; off after the end, Ctrl-C, and kill -9 with the next start")
