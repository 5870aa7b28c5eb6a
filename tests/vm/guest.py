# SPDX-License-Identifier: BSD-2-Clause
"""One virtual machine from switching on to its result, emulated (TCG) so that it runs on any host.

/dev/kvm is never used: it can be there and not fit a stock kernel. All processors of a machine take turns in
one thread: with a thread each, QEMU before 8.1 can keep the translation of an instruction that another
processor has patched meanwhile, and what switches branches of the kernel while others run through them
(tracing does) hangs both for good.
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import cpio
from kernels import HERE, Kernel

SECONDS = 1800  # of a processor that one machine may use, which is a multiple of what it needs
PATIENCE = 2  # times as long it may take: at low priority on a busy host it gets little of a processor
USED, NO_END = "it used", "it did not end in"
QUIET = ("panic=-1 oops=panic quiet nokaslr no_timer_check rcupdate.rcu_cpu_stall_suppress=1 rcupdate.rcu_expedited=1 "
         "nowatchdog "
         "mitigations=off")
MACHINES = {
    "amd64": ("qemu-system-x86_64", ["-cpu", "max"], "ttyS0"),
    # Pointer authentication in software would make the boot ten times longer.
    "arm64": ("qemu-system-aarch64", ["-M", "virt", "-cpu", "max,pauth-impdef=on"], "ttyAMA0"),
}


@dataclass
class Outcome:
    """What a machine left: STATUS of its script, None if it never came to an end, and WHY then."""

    status: int | None
    why: str
    out: Path


def run(kernel: Kernel, payload: Path, share: Path, cpus: int = 2, memory: int = 1024,
        seconds: int = SECONDS, counted: bool = False) -> Outcome:
    """Boots KERNEL and runs SHARE/in/run.sh in it, PAYLOAD being mounted read-only as /payload.

    The script's output is in SHARE/out/log, the console in SHARE/out/console, the emulator's messages in
    SHARE/out/emulator; what the script left as SHARE/out/NAME.tar is unpacked there. The machine is ended
    when it has used SECONDS of the host's processors, or has not ended in PATIENCE times that. COUNTED: its
    clock goes by its instructions, a nanosecond each, and not by the host's, which stops and hurries it. It
    has one processor then: a second one would not start.
    """
    out = share / "out"
    out.mkdir(parents=True, exist_ok=True)
    for old in ("rc", "rc.part", "log", "console", "dmesg", "emulator"):
        (out / old).unlink(missing_ok=True)
    first = cpio.Writer()
    first.file("init", (HERE / "init").read_bytes(), 0o755)
    initrd = share / "initrd"
    initrd.write_bytes((kernel.directory / "base.cpio").read_bytes() + first.finish())
    program, machine, console = MACHINES[kernel.arch]
    command = [program, *machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
               "-accel", "tcg,tb-size=256,thread=single", "-smp", "1" if counted else str(cpus), "-m", str(memory),
               "-kernel", str(kernel.directory / "kernel"), "-initrd", str(initrd),
               "-append", f"console={console} {QUIET}", "-serial", f"file:{out}/console",
               *(["-icount", "shift=0,sleep=on"] if counted else []),
               *_share("share", share, ""), *_share("payload", payload, ",readonly=on")]
    try:
        with (out / "emulator").open("w", encoding="utf-8") as output, \
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output) as process:
            try:
                why = _end(process, seconds)
            finally:
                process.kill()
        why = why or (out / "emulator").read_text(encoding="utf-8").strip() or "the kernel gave up"
    except FileNotFoundError:
        return Outcome(None, f"{program} is not installed: sh tools/setup.sh vm", out)
    finally:
        initrd.unlink()
    for packed in out.glob("*.tar"):
        unpacked = subprocess.run(["tar", "-xf", packed, "-C", out], capture_output=True, text=True, check=False)
        packed.unlink()
        if unpacked.returncode:
            return Outcome(None, f"{packed.name} cannot be unpacked: {unpacked.stderr.strip()}", out)
    if (out / "rc").exists():
        return Outcome(int((out / "rc").read_text(encoding="utf-8")), "", out)
    return Outcome(None, why, out)


def _end(process: subprocess.Popen[bytes], seconds: int) -> str:
    """Waits for it to end by itself; returns why it has to be ended, else nothing."""
    begin = time.monotonic()
    while True:
        try:
            process.wait(timeout=1)
            return ""
        except subprocess.TimeoutExpired:
            pass
        if _used(process.pid) > seconds:
            return f"{USED} {seconds} s of a processor"
        if time.monotonic() - begin > PATIENCE * seconds:
            return f"{NO_END} {PATIENCE * seconds} s"


def _used(pid: int) -> float:
    """Seconds of a processor that all threads of a process have had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _share(tag: str, directory: Path, more: str) -> list[str]:
    return ["-fsdev", f"local,id={tag},path={directory},security_model=none{more}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
