#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""npuscope on other kernels and processors: boots each, records the demo
job in every way, compares with the truth.

A kernel that cannot be fetched is not run, and counted as skipped; a processor without any kernel fails.
Last line: N passed, N failed, N skipped.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import driver  # noqa: E402
import guest  # noqa: E402
import kernels  # noqa: E402
import payload  # noqa: E402
import report  # noqa: E402
import selfproof  # noqa: E402
import verdict  # noqa: E402
from kernels import debian  # noqa: E402
from payload import ROOT  # noqa: E402

OUT = ROOT / "build/vm"
TIMED = ("amd64",)  # whose clocks follow the emulator's count of instructions


@dataclass(frozen=True)
class Case:
    """One capture: how (guest.sh, one_case), through which mock driver,
    and what is forbidden to the collector."""

    name: str
    how: str = "-"
    mode: str = "-"
    forbid: str = "-"
    quick: bool = False
    title: str = ""
    seconds: int = 60  # that it may take
    timed: bool = False  # in a machine of its own, whose clock goes by its instructions

    def can_run_on(self, kernel: kernels.Kernel) -> bool:
        """Is there anything in KERNEL that it forbids?"""
        return self.forbid == "-" or not set(self.forbid.split(",")) <= kernel.lacks

    @property
    def line(self) -> str:
        """As guest.sh reads it."""
        return f"{self.name} {self.how} {self.mode} {self.forbid}\n"


CASES = (
    Case("helper", how="helper", mode="uio_t", quick=True, title="demo job with the helper library"),
    Case("alone", mode="uio_d", title="demo job as it is"),
    Case("inject", how="inject", title="demo job into which the helper library is put while it runs"),
    Case("states", how="states", seconds=420, title="the helper library is put into jobs that are hard to interrupt"),
    Case("all", how="all", mode="kio", title="demo job that profiles itself, all that can be recorded of it"),
    Case("plain", how="helper", mode="kio:plain", title="demo job, driver without types"),
    Case("chan", how="helper", mode="kio:agentless", title="demo job, driver whose ts_agent is of an unknown version"),
    Case("strange", mode="kio:strange", title="demo job, driver of an unknown version"),
    Case("lone", how="helper", mode="uio_t:lone", title="the same without ts_agent"),
    Case("refused", mode="kio:refused", title="demo job, driver whose ts_agent cannot be probed"),
    Case("hidden", mode="kio:strange", title="demo job, driver of an unknown version and without /proc/trs_chan"),
    Case("nodes", mode="kio", how="nodes", quick=True, title="a job that calls the driver alone"),
    Case("nodes_plain", mode="kio:plain", how="nodes", title="the same, driver without types"),
    Case("no_multi", forbid="uprobe_multi", title="perf events instead of a multi link"),
    Case("no_cookie", forbid="cookie", title="a program for each probe instead of cookies"),
    Case("no_storage", forbid="task_storage", title="hashes instead of task storage"),
    Case("no_fentry", forbid="fentry", title="tracepoints instead of fentry"),
    Case("no_ringbuf", forbid="ringbuf", title="perf buffers instead of ring buffers"),
    Case("no_btf", forbid="btf", title="without BTF"),
    Case("no_jit", how="no_jit", title="with the kernel's JIT for BPF off, stacks too"),
    Case("late_no_btf", how="late", forbid="btf", title="the same without BTF"),
    Case("late", how="late", quick=True, title="a job that loads CANN while it is recorded"),
    Case("late_no_cookie", how="late", forbid="uprobe_multi,cookie", title="the same by a program for each probe"),
    Case("times", mode="kio", how="helper", timed=True, title="how long the demo job was in the driver"),
    Case("times_plain", mode="kio:plain", how="helper", timed=True, title="the same, driver without types"),
    Case("nodes_times", mode="kio", how="nodes", timed=True, title="the same of a job that calls the driver alone"),
    Case("nodes_times_plain", mode="kio:plain", how="nodes", timed=True, title="the same, driver without types"),
    Case("oldest", forbid="task_storage,cookie,uprobe_multi,fentry", title="all of the fallbacks at once"),
)


@dataclass
class Result:
    """All that was learnt of one kernel."""

    kernel: kernels.Kernel
    not_run: str = ""
    release: str = ""
    seconds: float = 0
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)  # of doctor: what -> (yes or no, detail)
    modules: frozenset[str] = frozenset()  # kinds of the driver's, as driver.build() names them
    module_types: bool = False
    verdicts: dict[str, verdict.Verdict] = field(default_factory=dict)
    as_it_is: set[str] = field(default_factory=set)  # cases that would take away what is not there

    @property
    def probes_by_types(self) -> bool:
        """Are functions of the driver probed by fexit?"""
        return "btf" in self.modules and "fentry" not in self.kernel.lacks


def main() -> int:
    """Entry point."""
    options = parse_arguments()
    wanted = [k for k in kernels.listed() if options.set in ("full", k.sets) and
              (not options.kernel or f"{k.name}:{k.arch}" in options.kernel)]
    cases = [case for case in CASES if (case.quick or options.set == "full") and
             (not options.case or case.name in options.case)]
    cache = debian.default_cache()
    for arch in sorted({kernel.arch for kernel in wanted}) if not options.judge else ():
        payload.make(arch, OUT / f"payload-{arch}")
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda kernel: run(kernel, cases, cache, not options.judge), wanted))
    if options.set == "full" and not options.kernel and not options.judge:
        # One machine is enough: what is tried is the runner.
        for result in [result for result in results if not result.not_run][:1]:
            proofs = selfproof.prove(result.kernel, OUT / f"payload-{result.kernel.arch}", OUT / "selfproof")
            result.verdicts.update({f"runner_{name}": found for name, found in proofs.items()})
    status = print_results(results, cases)
    if options.docs:
        options.docs.write_text(report.document(results, cases), encoding="utf-8")
    return status


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("quick", "full"), default="full",
                        help="quick: three kernels, two captures each (default: %(default)s)")
    parser.add_argument("--kernel", action="append", metavar="NAME:ARCH", help="only this one; can be repeated")
    parser.add_argument("--case", action="append", metavar="NAME", help="only this capture; can be repeated")
    parser.add_argument("--jobs", type=int, default=3, help="machines at a time (default: %(default)s)")
    parser.add_argument("--judge", action="store_true", help="boot nothing: judge what the last runs left")
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the table of what works where")
    return parser.parse_args()


def run(kernel: kernels.Kernel, cases: list[Case], cache: Path, boot: bool) -> Result:
    """One kernel from the archive to its verdicts."""
    result = Result(kernel, as_it_is={case.name for case in cases if not case.can_run_on(kernel)})
    cases = [case for case in cases if case.can_run_on(kernel) and not (case.timed and kernel.arch not in TIMED)]
    timed = [case for case in cases if case.timed]
    cases = [case for case in cases if not case.timed]
    share = OUT / f"{kernel.name}-{kernel.arch}"
    try:
        kernels.fetch(kernel, cache)
        modules = driver.build(kernel)
        result.modules = frozenset(modules)
    except debian.Unavailable as reason:
        result.not_run = str(reason)
        return result
    except RuntimeError as reason:
        result.verdicts["driver"] = verdict.Verdict(False, str(reason))
        return result
    result.release = kernel.release
    outcome = guest.Outcome(0, "", share / "out")
    if boot:
        begin = time.monotonic()
        if cases:
            prepare(share, cases, modules)
            outcome = guest.run(kernel, OUT / f"payload-{kernel.arch}", share,
                                seconds=guest.SECONDS + sum(case.seconds for case in cases))
        result.seconds = time.monotonic() - begin
    else:  # what was not tried is not judged
        cases = [case for case in cases if (outcome.out / case.name).is_dir()]
        if not (outcome.out / "doctor").exists():
            result.not_run = "it was not tried"
            return result
    if cases or not boot:
        judge(result, outcome, cases)
    if timed:
        time_it(result, timed, modules, boot)
    return result


def time_it(result: Result, cases: list[Case], modules: dict[str, Path], boot: bool) -> None:
    """CASES in a machine whose clock goes by its instructions: what takes long on
    an emulator does not take long in it."""
    share = OUT / f"{result.kernel.name}-{result.kernel.arch}-timed"
    if boot:
        prepare(share, cases, modules)
        (share / "in/timed").touch()
        begin = time.monotonic()
        outcome = guest.run(result.kernel, OUT / f"payload-{result.kernel.arch}", share, counted=True)
        result.seconds += time.monotonic() - begin
        if outcome.status is None:
            result.verdicts["timed"] = verdict.Verdict(False, f"the machine did not come to an end: {outcome.why}")
    for case in cases:
        directory = share / "out" / case.name
        if boot or directory.is_dir():
            result.verdicts[case.name] = verdict.of_times(directory, case.how, case.mode, result.probes_by_types)


def prepare(share: Path, cases: list[Case], modules: dict[str, Path]) -> None:
    """What the machine finds in its share; what other cases left there stays."""
    shutil.rmtree(share / "in", ignore_errors=True)
    (share / "in").mkdir(parents=True)
    for name in ("goes", "locked_down", *(case.name for case in cases)):
        shutil.rmtree(share / "out" / name, ignore_errors=True)
    for old in (share / "out").glob("*"):
        if not old.is_dir():
            old.unlink()
    for name in ("guest.sh", "run.sh"):
        shutil.copy(kernels.HERE / name, share / "in")
    for name, directory in modules.items():
        shutil.copytree(directory, share / "in" / name)
    for name, patched in (("agentless", ("ts_agent",)), ("strange", ("ts_agent", "asdrv_trs"))):
        driver.age(share / "in/plain", share / "in" / name, patched)
    shutil.copytree(share / "in/strange", share / "in/lone", ignore=shutil.ignore_patterns("ts_agent.ko"))
    (share / "in/modules").symlink_to("btf" if "btf" in modules else "plain")
    (share / "in/cases.txt").write_text("".join(case.line for case in cases), encoding="utf-8")


def judge(result: Result, outcome: guest.Outcome, cases: list[Case]) -> None:
    """The verdicts of what a machine left."""
    if outcome.status is None:
        console = outcome.out / "console"
        tail = console.read_text(encoding="utf-8", errors="replace")[-1500:] if console.exists() else ""
        result.verdicts["boot"] = verdict.Verdict(False, f"the machine did not come to an end: {outcome.why}\n{tail}")
    doctor = outcome.out / "doctor"
    if doctor.exists():
        result.rows = report.rows_of(doctor.read_text(encoding="utf-8"))
        lacking, expected = report.lacking(result.rows), set(result.kernel.lacks)
        result.verdicts["profile"] = verdict.Verdict(
            lacking == expected, f"lacks {', '.join(sorted(lacking)) or 'nothing'}" +
            ("" if lacking == expected else f", where {', '.join(sorted(expected)) or 'nothing'} was expected"))
    types = outcome.out / "btf"
    if types.exists():
        result.module_types = "asdrv_trs" in types.read_text(encoding="utf-8").split()
        result.verdicts["driver"] = verdict.Verdict(True, "loads and goes")
    else:
        result.verdicts["driver"] = verdict.Verdict(False, f"it cannot be loaded: see {outcome.out}/log")
    dmesg = outcome.out / "dmesg"
    if dmesg.exists():
        complaints = [line for line in dmesg.read_text(encoding="utf-8", errors="replace").splitlines()
                      if any(word in line for word in ("WARNING:", "BUG:", "Oops", "Call Trace", "INFO: task"))]
        result.verdicts["kernel_log"] = verdict.Verdict(not complaints, complaints[0] if complaints else "no complaint")
    result.verdicts["switches"] = verdict.of_switches(outcome.out)
    result.verdicts["driver_goes"] = verdict.of_leaving(outcome.out / "goes")
    result.verdicts["locked_down"] = verdict.of_lockdown(outcome.out / "locked_down")
    fexit = result.probes_by_types
    for case in cases:
        if case.how == "states":
            result.verdicts[case.name] = verdict.of_states(outcome.out / case.name)
            continue
        if case.how == "late":
            result.verdicts[case.name] = verdict.of_late(outcome.out / case.name,
                                                          case.forbid != "-" or "uprobe_multi" in result.kernel.lacks)
            continue
        if case.how == "nodes":
            result.verdicts[case.name] = verdict.of_nodes(outcome.out / case.name, case.mode, fexit)
            continue
        found = verdict.of_case(outcome.out / case.name, case.how)
        result.verdicts[case.name] = found
        if found.passed and case.mode != "-":
            result.verdicts[f"{case.name}_driver"] = verdict.of_driver(outcome.out / case.name, case.mode.split(":")[0])
            result.verdicts[f"{case.name}_events"] = verdict.of_driver_events(outcome.out / case.name, case.mode,
                                                                                     fexit)


def print_results(results: list[Result], cases: list[Case]) -> int:
    """A line for each verdict; returns the exit status."""
    passed = failed = skipped = 0
    for result in results:
        label = result.kernel.label.replace(" ", "_")
        if result.not_run:
            print(f"SKIP vm_{label}: not run: {result.not_run}")
            skipped += 1
            continue
        print(f"--- {result.kernel.label}: {result.release}, {result.seconds:.0f} s")
        for name, found in result.verdicts.items():
            print(f"{'PASS' if found.passed else 'FAIL'} vm_{label}_{name}: {found.text}")
            passed += found.passed
            failed += not found.passed
    for arch in sorted({result.kernel.arch for result in results}):
        if all(result.not_run for result in results if result.kernel.arch == arch):
            print(f"FAIL vm_{arch}: no kernel at all could be had")
            failed += 1
    if not results or not cases:
        print("FAIL vm: nothing was chosen")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
