# SPDX-License-Identifier: BSD-2-Clause
"""docs/kernels.md: what works on which kernel and processor, every cell from a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matrix import Case, Result

HEAD = """# Kernels and processors

What npuscope does on other kernels than the one it was built on, from runs of `make vmtest`, which writes this page.
Each kernel boots in a virtual machine, a mock of the NPU's driver is loaded, the simulated job is recorded, and the
result is compared with the simulated device's own log. "as it is": the kernel lacks the feature anyway, and the first
captures are that case. "not run": that kernel could not be fetched, or the case was not tested; the page makes no
statement about it.

"""

FORBID = """
## Forcing a fallback

npuscope tests once what the kernel supports, and `npuscope doctor` shows it. The environment variable
`NPUSCOPE_FORBID` disables features, comma-separated: `btf`, `ringbuf`, `task_storage`, `cookie`, `uprobe_session`,
`uprobe_multi`, `fentry`, `python_samples`. So every fallback can be tested on any kernel:

    NPUSCOPE_FORBID=uprobe_multi,cookie npuscope record -p PID -d 5s

## Running it

    sh tools/setup.sh vm        # QEMU, the cross compiler, pahole
    make vmtest                 # all kernels, all fallbacks; writes this page
    make vmtest VM=quick        # three kernels

apt fetches kernels, their headers and the packages to compile against from Debian's suites (`tests/vm/kernels.tsv`)
into `/var/cache/npuscope-vm` (root) or `~/.cache/npuscope-vm`; `NPUSCOPE_VM_CACHE` names another directory. The
machines are emulated (QEMU's TCG): no `/dev/kvm` is used or needed, and times measured in them mean nothing, except
those of the driver on x86-64. These are measured in machines with one processor, whose clock advances by a nanosecond
for each instruction.
"""

ROWS = ("BTF", "ring buffer", "task storage", "raw tracepoints", "attach cookies", "fentry", "uprobes")


def rows_of(text: str) -> dict[str, tuple[str, str]]:
    """The table of `npuscope doctor`: what -> (yes or no, detail)."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"  (\S.*?)\s{2,}(yes|no)\s*(.*)$", line)
        if match:
            found[match[1]] = (match[2], match[3])
    return found


NAMES = {"BTF": "btf", "ring buffer": "ringbuf", "task storage": "task_storage", "attach cookies": "cookie",
         "fentry": "fentry"}


def lacking(rows: dict[str, tuple[str, str]]) -> set[str]:
    """What is missing by `npuscope doctor`, in the words of NPUSCOPE_FORBID."""
    missing = {name for row, name in NAMES.items() if rows.get(row, ("no", ""))[0] == "no"}
    return missing | (set() if "multi" in rows.get("uprobes", ("", ""))[1] else {"uprobe_multi"})


def document(results: "list[Result]", cases: "list[Case]") -> str:
    """The page."""
    ran = [result for result in results if not result.not_run]
    lines = [HEAD, _row(["", *(result.kernel.label for result in results)]), _row(["---"] * (len(results) + 1)),
             _row(["kernel", *(result.release or "not run" for result in results)])]
    for row in ROWS:
        lines.append(_row([row, *(_capability(result, row) for result in results)]))
    lines.append(_row(["types of modules (BTF)", *(_module_types(result) for result in results)]))
    lines.append(_row(["mock driver", *(_cell(result, "driver") for result in results)]))
    lines.append(_row(["complaints in the kernel's log", *(_cell(result, "kernel_log") for result in results)]))
    lines.append(_row(["driver unloaded while it is recorded", *(_cell(result, "driver_goes") for result in results)]))
    lines.append(_row(["locked down for confidentiality", *(_cell(result, "locked_down") for result in results)]))
    lines.append(_row(["tracepoints of the driver", *(_cell(result, "switches") for result in results)]))
    for case in cases:
        title = case.title + (f" (`{case.forbid}` forbidden)" if case.forbid != "-" else "")
        lines.append(_row([title, *(_cell(result, case.name) for result in results)]))
        if case.mode != "-" and case.how != "nodes" and not case.timed:
            way = "past the driver" if case.mode == "uio_d" else f"through the driver ({case.mode.split(':')[0]})"
            lines.append(_row([f"the same: SQEs {way}", *(_cell(result, f"{case.name}_driver") for result in results)]))
            lines.append(_row(["the same: recorded of the driver",
                               *(_cell(result, f"{case.name}_events") for result in results)]))
    lines.append("\n")
    if len(ran) < len(results):
        lines += [f"{result.kernel.label} was not run: {result.not_run}.\n" for result in results if result.not_run]
    lines.append(FORBID)
    return "".join(lines)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |\n"


def _capability(result: "Result", row: str) -> str:
    if row not in result.rows:
        return "not run"
    have, detail = result.rows[row]
    if row == "uprobes" and have == "yes":
        return f"works: {detail}" if "perf" not in detail else f"falls back: {detail}s"
    if have == "yes":
        return "works"
    return f"falls back: {detail.split(': ', 1)[-1]}" if "instead" in detail else "not available"


def _module_types(result: "Result") -> str:
    if "driver" not in result.verdicts:
        return "not run"
    return "works" if result.module_types else "not available"


def _cell(result: "Result", name: str) -> str:
    found = result.verdicts.get(name)
    if found is None and name in result.as_it_is:
        return "as it is"
    if found is None:
        return "not run"
    return f"works: {found.text}" if found.passed else "FAILS"
