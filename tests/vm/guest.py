# SPDX-License-Identifier: BSD-2-Clause
"""One virtual machine from switching on to its result, emulated (TCG) so that it runs on any host.

/dev/kvm is never used: it can be there and not fit a stock kernel. All processors of a machine take turns in one thread:
with a thread each, QEMU before 8.1 can keep the translation of an instruction that another processor has patched
meanwhile, and what switches branches of the kernel while others run through them (tracing does) hangs both for good.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import cpio
from kernels import HERE, Kernel

SECONDS = 900  # of one machine's whole life, which takes a tenth on an idle host
QUIET = ("panic=-1 oops=panic quiet nokaslr no_timer_check rcupdate.rcu_cpu_stall_suppress=1 rcupdate.rcu_expedited=1 nowatchdog "
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

    What the script says is in SHARE/out/log, the console in SHARE/out/console. COUNTED: the machine's clock goes by its
    instructions, a nanosecond each, and not by the host's, which stops and hurries it. It has one processor then: a second
    one would not start.
    """
    out = share / "out"
    out.mkdir(parents=True, exist_ok=True)
    for old in ("rc", "rc.part", "log", "console", "dmesg"):
        (out / old).unlink(missing_ok=True)
    first = cpio.Writer()
    first.file("init", (HERE / "init").read_bytes(), 0o755)
    initrd = share / "initrd"
    initrd.write_bytes((kernel.place / "base.cpio").read_bytes() + first.finish())
    program, machine, console = MACHINES[kernel.arch]
    command = [program, *machine, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
               "-accel", "tcg,tb-size=256,thread=single", "-smp", "1" if counted else str(cpus), "-m", str(memory),
               "-kernel", str(kernel.place / "kernel"), "-initrd", str(initrd),
               "-append", f"console={console} {QUIET}", "-serial", f"file:{out}/console",
               *(["-icount", "shift=0,sleep=on"] if counted else []),
               *_share("share", share, ""), *_share("payload", payload, ",readonly=on")]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds,
                              check=False)
        why = done.stderr.strip() or "the kernel gave up"
    except subprocess.TimeoutExpired:
        why = f"nothing more came for {seconds} s"
    except FileNotFoundError:
        return Outcome(None, f"{program} is not installed: sh tools/setup.sh vm", out)
    finally:
        initrd.unlink()
    if (out / "rc").exists():
        return Outcome(int((out / "rc").read_text(encoding="utf-8")), "", out)
    return Outcome(None, why, out)


def _share(tag: str, place: Path, more: str) -> list[str]:
    return ["-fsdev", f"local,id={tag},path={place},security_model=none{more}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
