# SPDX-License-Identifier: BSD-2-Clause
"""What the integration tests share: jobs that are always cleaned up, runs of npuscope with a
time limit, an independent decoder of session files, and a look at what is left in the kernel.

A test is a function decorated with @test; it gets a Case. Outcomes are printed as
`PASS name`, `FAIL name: reason`, `SKIP name: reason`.
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import functools
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from records import CHUNK_EVENTS, CHUNK_STRINGS, EVENT, STRING, Event, chunk, chunks

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NPUSCOPE_BUILD", ROOT / "build"))
NPUSCOPE = BUILD / "npuscope"
SANITIZED = BUILD / "san" / "npuscope"
AGENT = BUILD / "libnpuscope_agent.so"
SIM = ROOT / "build" / "npusim" / "Ascend"
JOBS = ROOT / "build" / "jobs"
JOB_SOURCES = ROOT / "tests" / "integration" / "jobs"

TEST_SECONDS = 150  # for one test unless it states otherwise
WAIT_SECONDS = 60  # for one thing to happen on a busy machine
# launches a second of a rank of npusim's job, unless a test states another: each record costs CPU time
RATE = 1000
SOAK = bool(os.environ.get("NPUSCOPE_SOAK"))  # `make soak`: the same tests with inputs that take minutes

DONE, FAILED, USAGE, PARTIAL = 0, 1, 2, 3  # exit status of npuscope

SANITIZER = re.compile(r"(Address|Leak|UndefinedBehavior)Sanitizer|: runtime error: ")


class Skip(Exception):
    """The test cannot run here; the text names what is missing."""


class TooLong(BaseException):
    """A test exceeded its time. Not an Exception: no test may swallow it."""


# ---- tests and their outcomes ------------------------------------------------

_tests: list[tuple[str, Callable[["Case"], None], int]] = []


def test(function: Optional[Callable[["Case"], None]] = None, *, seconds: int = TEST_SECONDS) -> Any:
    """Decorator: this function is a test."""
    def register(f: Callable[["Case"], None]) -> Callable[["Case"], None]:
        _tests.append((f.__name__, f, seconds))
        return f
    return register(function) if function else register


def add_test(name: str, function: Callable[["Case"], None], seconds: int = TEST_SECONDS) -> None:
    """Register a test that a table made."""
    _tests.append((name, function, seconds))


def _on_alarm(_signal: int, _frame: Any) -> None:
    raise TooLong()


def _outcome(name: str, function: Callable[["Case"], None], seconds: int) -> bool:
    case = Case(name)
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.alarm(seconds)
    try:
        function(case)
        case.finish()
    except Skip as why:
        print(f"SKIP {name}: {why}")
        return True
    except TooLong:
        print(f"FAIL {name}: took more than {seconds} s")
        _print_trace()
    except AssertionError as error:
        print(f"FAIL {name}: {_one_line(error) or _where()}")
        _print_trace()
    except Exception as error:  # a broken test is a failed test
        print(f"FAIL {name}: {type(error).__name__}: {_one_line(error)}")
        _print_trace()
    else:
        print(f"PASS {name}")
        return True
    finally:
        signal.alarm(0)
        case.clean_up()
    return False


def _print_trace() -> None:
    """Indented: a line of a message can begin as an outcome does."""
    print(textwrap.indent(traceback.format_exc(), "    "), file=sys.stderr)


def _one_line(error: BaseException) -> str:
    return " | ".join(str(error).split("\n"))[:1000]


def _where() -> str:
    frame = traceback.extract_tb(sys.exc_info()[2])[-1]
    return f"{frame.line} ({Path(frame.filename).name}:{frame.lineno})"


ENDED_EARLY = 70  # not as by a test that fails


def main() -> int:
    """Run the tests whose names match the patterns on the command line, or all. The exit status."""
    patterns = sys.argv[1:] or ["*"]
    chosen = [t for t in _tests if any(fnmatch.fnmatch(t[0], p) for p in patterns)]
    # Orphans of a job become our children, so that they can be found and ended.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    # The runner's time limit: the test's processes are ended all the same.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: sys.exit(143))
    try:
        good = [_outcome(*t) for t in chosen]
    except Exception:  # of ours: the tests behind it have not been run
        _print_trace()
        return ENDED_EARLY
    return 0 if good and all(good) else 1


# ---- what a test needs ---------------------------------------------------------

def need(condition: bool, what: str) -> None:
    """Skip unless."""
    if not condition:
        raise Skip(f"needs {what}")


def need_root() -> None:
    need(os.geteuid() == 0, "root: probes are loaded into the kernel")


def need_program(name: str, package: str) -> str:
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    need(path is not None, f"{name}: package {package}")
    return str(path)


def need_npusim() -> None:
    need((SIM / "bin" / "npusim-train").exists(), "build/npusim: make npusim")


def need_job(name: str) -> Path:
    need((JOBS / name).exists(), f"build/jobs/{name}: make jobs")
    return JOBS / name


def need_mounts() -> None:
    need_root()
    need_program("unshare", "util-linux")
    can = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    need(can, "mount namespaces (not in a chroot)")


# ---- files with a number of bytes that a job prints, results, sessions ----------

Arg = Union[str, Path, int]


def environment(*, sim: bool = False, agent: bool = False, libs: Sequence[Arg] = (), installed: Path = SIM,
                **more: Arg) -> dict[str, str]:
    """Environment of a job; with `sim`, for the simulator that is INSTALLED there."""
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
    path = [str(p) for p in libs]
    if sim:
        # The way a user does it.
        run = subprocess.run(["bash", "-c", '. "$0" && env -0', installed / "cann" / "set_env.sh"], env=env, text=True,
                             capture_output=True, check=True)
        env = dict(line.split("=", 1) for line in run.stdout.split("\0") if line)
        path.append(env["LD_LIBRARY_PATH"])
    if path:
        env["LD_LIBRARY_PATH"] = ":".join(path)
    if agent:
        env["LD_PRELOAD"] = str(AGENT)
    env.update({k: str(v) for k, v in more.items()})
    return env


def is_root_alones(path: Path) -> bool:
    """Can nobody but root change what the path leads to, and everybody read it? So
    is a driver's installation on a host."""
    for part in [path, *path.parents]:
        st = part.stat()
        if st.st_uid or st.st_mode & 0o022 or not st.st_mode & 0o001:
            return False
    return True


def installed_sim(case: "Case") -> Path:
    """The simulator's installation as a host has it: where it was built, or a copy
    if others than root could change that."""
    if is_root_alones(SIM):
        return SIM
    Path("/opt").mkdir(exist_ok=True)
    copy = Path(tempfile.mkdtemp(prefix="npuscope-test.", dir="/opt"))
    case.at_end.append(lambda: shutil.rmtree(copy, ignore_errors=True))
    copy.chmod(0o755)
    shutil.copytree(SIM, copy / "Ascend", symlinks=True)
    subprocess.run(["chown", "-R", "0:0", copy], check=True)
    subprocess.run(["chmod", "-R", "go-w,a+rX", copy], check=True)
    return copy / "Ascend"


def host_environment(case: "Case", **more: Arg) -> dict[str, str]:
    """Environment of a collector on a host that has the driver installed."""
    path = str(installed_sim(case))
    return {k: v.replace(str(SIM), path) for k, v in environment(sim=True, **more).items()}


class Result:
    """What became of a run of npuscope."""

    def __init__(self, argv: Sequence[str], status: int, out: str, err: str) -> None:
        self.argv, self.status, self.out, self.err = argv, status, out, err
        assert not SANITIZER.search(err), f"sanitizer: {err}"

    @property
    def session(self) -> "Session":
        """The session whose path `record` printed."""
        found = re.search(r"^/.*/npuscope_[^/\n]+$", self.out, re.M)
        assert found, f"no session in the output: {self}"
        return Session(Path(found.group(0)))

    @property
    def complaints(self) -> list[str]:
        """Lines on stderr without the tables that `record` prints."""
        return [line for line in self.err.splitlines() if line.startswith("npuscope: ")]

    def expect(self, *statuses: int) -> "Result":
        """Fail unless the exit status is one of these."""
        assert self.status in statuses, f"exit status {self.status}, not {statuses}: {self}"
        return self

    def __str__(self) -> str:
        return f"{' '.join(self.argv)}\nstatus {self.status}\nstdout: {self.out}\nstderr: {self.err}"


class Running:
    """A process of ours with its output in files."""

    def __init__(self, case: "Case", argv: Sequence[Arg], **kwargs: Any) -> None:
        self.argv = [str(a) for a in argv]
        base = case.path(f"process{len(case.running)}")
        self.out_path, self.err_path = Path(f"{base}.out"), Path(f"{base}.err")
        self.kept = 0.0  # s, of seconds_to_end()
        stdin = kwargs.pop("stdin", subprocess.PIPE)
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(self.argv, stdin=stdin, stdout=out, stderr=err,
                                            start_new_session=True, **kwargs)
        case.running.append(self)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def out(self) -> str:
        return self.out_path.read_text(errors="replace")

    @property
    def err(self) -> str:
        return self.err_path.read_text(errors="replace")

    def send(self, line: str) -> None:
        """Write a line to its stdin."""
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def wait_for(self, pattern: str, *, err: bool = False, seconds: float = WAIT_SECONDS) -> "re.Match[str]":
        """Until its output matches."""
        regex = re.compile(pattern, re.M)

        def search() -> Optional["re.Match[str]"]:
            found = regex.search(self.err if err else self.out)
            if not found and self.process.poll() is not None:
                found = regex.search(self.err if err else self.out)
                assert found, f"{self.argv[0]} ended with {self.process.returncode} before {pattern!r}: " \
                              f"{self.out[-2000:]} {self.err[-2000:]}"
            return found
        return wait_until(search, f"{pattern!r} from {self.argv[0]}: {self.out[-500:]} {self.err[-500:]}", seconds)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def alive(self) -> bool:
        return self.process.poll() is None

    def wait(self, seconds: float = WAIT_SECONDS) -> int:
        """Its exit status; negative for a signal."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{' '.join(self.argv)} still runs after {seconds} s: {self.err[-500:]}") from error

    def result(self, seconds: float = WAIT_SECONDS) -> Result:
        """Wait for a run of npuscope."""
        status = self.wait(seconds)
        return Result(self.argv, status, self.out, self.err)

    def _waited(self) -> float:
        """Seconds that its main thread could have run and had no CPU; 0 once it has exited."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e9
        except OSError:
            return 0

    def seconds_to_end(self, last_word: str, number: int = 0) -> float:
        """Send a signal; seconds until it prints LAST_WORD on stderr or ends, without those that it, or we,
        were kept from a CPU: these are in `kept` then."""
        before = waited = self._waited()
        begin, late = time.monotonic(), 0.0
        if number:
            self.signal(number)
        while self.alive() and last_word not in self.err:
            waited = max(waited, self._waited())
            asleep = time.monotonic()
            time.sleep(0.01)
            late += time.monotonic() - asleep - 0.01
        self.kept = max(waited - before, late)
        return time.monotonic() - begin - self.kept

    def kill(self) -> None:
        """End it and its process group, whatever state they are in."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if self.process.stdin:
            try:
                self.process.stdin.close()
            except OSError:
                pass
        self.process.wait()


@contextlib.contextmanager
def slowed(group: int, run: float = 0.005, stop: float = 0.045) -> Iterator[None]:
    """A process group runs a tenth of the time: what takes long by
    the clock need not take long by the CPU."""
    done = threading.Event()

    def hold() -> None:
        try:
            while not done.wait(run):
                os.killpg(group, signal.SIGSTOP)
                done.wait(stop)
                os.killpg(group, signal.SIGCONT)
        except ProcessLookupError:
            pass
    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def wait_until(search: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """The first true value of `search`."""
    end = time.monotonic() + seconds
    while True:
        found = search()
        if found:
            return found
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.02)


kept: set[int] = set()  # children of ours that no test's end kills: they serve all tests of a script


class Case:
    """One run of one test: its folder, its processes."""

    def __init__(self, name: str) -> None:
        parent = ROOT / "build" / "test-tmp"
        parent.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.dir = Path(tempfile.mkdtemp(prefix=f"{name[:40]}.", dir=parent))
        self.running: list[Running] = []
        self.at_end: list[Callable[[], None]] = []
        self.watch_kernel = False

    def path(self, name: str) -> Path:
        return self.dir / name

    def open_path(self, name: str, *, folder: bool = False) -> Path:
        """An empty file or folder that every user can read and write: the host's driver
        runs as nobody. path(name) leads there."""
        directory = Path(tempfile.mkdtemp(prefix="npuscope-test.", dir="/tmp"))
        self.at_end.append(lambda: shutil.rmtree(directory, ignore_errors=True))
        directory.chmod(0o755)
        target = directory / name
        if folder:
            target.mkdir()
        else:
            target.touch()
        target.chmod(0o777 if folder else 0o666)
        self.path(name).symlink_to(target)
        return target

    def start(self, argv: Sequence[Arg], **kwargs: Any) -> Running:
        """Start a process; it is ended with the test."""
        return Running(self, argv, **kwargs)

    def run(self, argv: Sequence[Arg], *, seconds: float = WAIT_SECONDS, **kwargs: Any) -> Result:
        """Run a command to its end."""
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return self.start(argv, **kwargs).result(seconds)

    def npuscope(self, *args: Arg, program: Path = NPUSCOPE, **kwargs: Any) -> Result:
        """Run npuscope to its end."""
        return self.run([program, *args], **kwargs)

    def record(self, *args: Arg, wait: bool = True, program: Path = NPUSCOPE, **kwargs: Any) -> Running:
        """Start `npuscope record`; with `wait`, until every probe is in place."""
        need_root()
        self.watch_kernel = True
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        run = self.start([program, "record", *args], **kwargs)
        if wait:
            run.wait_for(r"^npuscope: recording ", err=True)
        return run

    def sim_job(self, *args: Arg, agent: bool = True, python: bool = False, truth: Optional[Path] = None,
                wait: bool = True, installed: Path = SIM) -> Running:
        """Start npusim's training job; with `wait`, until it trains. `pids`: its ranks."""
        need_npusim()
        more: dict[str, Arg] = {"NPUSIM_TRUTH": truth} if truth else {}
        env = environment(sim=True, agent=agent, installed=installed, **more)
        script = installed / "bin" / "npusim-train.py"
        if python:
            need(script.exists() and script.stat().st_size > 0, "npusim-train.py: make npusim")
        if "--rate" not in args:
            args = (*args, "--rate", RATE)
        argv: list[Arg] = ["/usr/bin/python3", script, *args] if python else [installed / "bin" / "npusim-train", *args]
        job = self.start(argv, env=env, stdin=subprocess.DEVNULL, cwd=self.dir)
        if wait:
            job.wait_for(r"^ready( \d+)*$")
        return job

    def analyze(self, session: Path, *args: Arg, **kwargs: Any) -> Result:
        return self.npuscope("analyze", session, *args, **kwargs)

    def finish(self) -> None:
        """At the end of a test that went well: nothing of ours may be left in the kernel."""
        if self.watch_kernel and all(not r.alive() for r in self.running if "npuscope" in r.argv[0]):
            left = kernel_leftovers()
            assert not left, f"left in the kernel: {left}"

    def clean_up(self) -> None:
        for run in reversed(self.running):
            run.kill()
        # All at once: the first process of a pid namespace ends after those in
        # it, which may be ours to wait for, too.
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end and (left := [pid for pid in children_of(os.getpid()) if pid not in kept]):
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
                except (ProcessLookupError, ChildProcessError):
                    pass
            time.sleep(0.02)
        for undo in reversed(self.at_end):
            undo()
        if os.environ.get("NPUSCOPE_KEEP_TESTS") is None:
            shutil.rmtree(self.dir, ignore_errors=True)


def ranks_of(job: Running) -> list[int]:
    """Process ids that npusim's training job printed."""
    return [int(p) for p in job.wait_for(r"^ready( \d+)*$").group(0).split()[1:]]


def pid_list(pids: Sequence[int]) -> str:
    return ",".join(map(str, pids))


# ---- /proc --------------------------------------------------------------------

def children_of(pid: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            yield int(stat.parent.name)


def threads_of(pid: int) -> dict[int, str]:
    """Threads and their names."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[int(task.name)] = (task / "comm").read_text().strip()
        except OSError:
            pass
    return found


def cpu_ns(pid: int, tid: int) -> int:
    """CPU time of a thread, by the scheduler's own account."""
    return int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0])


def cpu_seconds(pid: int) -> float:
    """CPU time of a process that runs, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stolen_by_host() -> int:
    """Time, ns, that a hypervisor has taken from all CPUs; its unit is 10 ms. Where a kernel accounts for it,
    clocks of CPU time leave it out."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def mappings(pid: int) -> list[tuple[int, int, str, int, str]]:
    """(start, end, permissions, offset, path)"""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(None, 5)
        start, end = (int(x, 16) for x in fields[0].split("-"))
        found.append((start, end, fields[1], int(fields[2], 16), fields[5] if len(fields) > 5 else ""))
    return found


def code_at(pid: int, path: str, offset: int, size: int) -> Optional[bytes]:
    """Bytes that the process would execute at an offset of a mapped file."""
    for start, end, permissions, at, name in mappings(pid):
        if name == path and "x" in permissions and at <= offset < at + end - start:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                memory.seek(start + offset - at)
                return memory.read(size)
    return None


# ---- the kernel -----------------------------------------------------------------

@functools.cache
def _own_names() -> tuple[set[str], set[str]]:
    """Names of our BPF programs and maps, from the sources; the kernel keeps 15 bytes."""
    programs, maps = set(), {"nps_ring", "nps_probe"}
    for source in (ROOT / "bpf").glob("*.bpf.*"):
        text = source.read_text()
        programs |= {n[:15] for n in re.findall(r'^SEC\("[^"]+"\)\nint (\w+)\(', text, re.M)}
        maps |= {n[:15] for n in re.findall(r'^} (\w+) SEC\("\.maps"\);', text, re.M)}
    for source in (ROOT / "bpf").glob("*.bpf.c"):
        name = source.name.split(".")[0] + "_bpf"
        maps |= {f"{name[:8]}{section}"[:15] for section in (".rodata", ".bss", ".data")}
    return programs, maps


def _bpftool(*args: str) -> list[dict[str, Any]]:
    tool = need_program("bpftool", "bpftool")
    text = subprocess.run([tool, "-j", *args], capture_output=True, text=True, timeout=60, check=False).stdout
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return found if isinstance(found, list) else []


def is_ours(pid: int) -> bool:
    """Is it a descendant of this test? Orphans are, too (PR_SET_CHILD_SUBREAPER)."""
    at = pid
    while at > 1 and at != os.getpid():
        found = re.search(r"^PPid:\s*(\d+)$", _read(f"/proc/{at}/status"), re.M)
        if not found and at == pid:
            return False
        at = int(found[1]) if found else pid  # a parent has ended: it has another one now
    return at == os.getpid()


# Other tests' processes that hold them while they run: captures, and unit tests that load programs; bpftool
# reads them by id. Held by any other process, or by one of this test's, they are a leak.
HOLDERS = ("npuscope", "test_", "bpftool")


def _read(path: str) -> str:
    """Empty if it went meanwhile. Names of processes are any bytes."""
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _held() -> dict[str, set[int]]:
    """Ids of the BPF objects of each kind (prog, link, map) that a capture of another test
    has a descriptor of. Ours have ended."""
    found: dict[str, set[int]] = {"prog": set(), "link": set(), "map": set()}
    for process in glob.glob("/proc/[0-9]*"):  # pathlib's stops at a process that ends meanwhile
        if _read(f"{process}/comm").startswith(HOLDERS) and not is_ours(int(process.rsplit("/", 1)[1])):
            text = "\n".join(map(_read, glob.glob(f"{process}/fdinfo/*")))
            for kind, number in re.findall(r"^(prog|link|map)_id:\s*(\d+)$", text, re.M):
                found[kind].add(int(number))
    return found


def kernel_objects() -> list[str]:
    """BPF programs, links and maps of ours that no other process holds:
    another npuscope is none of our business."""
    programs, maps = _own_names()
    all_progs = _bpftool("prog", "show")
    progs = [p for p in all_progs if p.get("name") in programs]
    known = {p["id"] for p in all_progs}
    ids = {p["id"] for p in progs}
    # else it went while bpftool looked at it
    links = [link for link in _bpftool("link", "show") if "id" in link
             and (link.get("prog_id") in ids or link.get("prog_id") not in known)]
    all_maps = [m for m in _bpftool("map", "show") if m.get("name") in maps]
    held = _held() if progs or links or all_maps else {"prog": set(), "link": set(), "map": set()}
    return [f"program {p['name']}" for p in progs if p["id"] not in held["prog"]] + \
        [f"link {link['id']} of program {link.get('prog_id')}" for link in links
         if link["id"] not in held["link"] and (link.get("prog_id") not in held["prog"])] + \
        [f"map {m.get('name')}" for m in all_maps if m["id"] not in held["map"]]


def uprobe_events() -> Optional[str]:
    """The kernel's list of named uprobes; None where tracefs cannot be mounted."""
    for path in ("/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"):
        if os.path.exists(path):
            return Path(path).read_text()
    with tempfile.TemporaryDirectory() as path:
        run = subprocess.run(["unshare", "-m", "sh", "-c",
                              f"mount -t tracefs none '{path}' && cat '{path}/uprobe_events'"],
                             capture_output=True, text=True, timeout=30, check=False)
        return run.stdout if run.returncode == 0 else None


def kernel_leftovers() -> list[str]:
    """The same, after the kernel has had time to free what nobody
    holds: others' come and go while one looks."""
    end = time.monotonic() + 15
    polls = 0
    while True:
        found = kernel_objects()
        polls += 1
        if not found or polls >= 5 and time.monotonic() > end:
            return found
        time.sleep(0.2)


# ---- sessions ------------------------------------------------------------------------

def without_events(session: Path, kind: int, to: Path) -> Path:
    """A copy of the session in which no record is of that kind."""
    copy = to / session.name
    shutil.copytree(session, copy)
    with open(copy / "events.nps", "wb") as out:
        for seq, (what, payload) in enumerate(list(chunks(session / "events.nps"))):
            if what == CHUNK_EVENTS:
                payload = b"".join(payload[at:at + EVENT.size] for at in range(0, len(payload), EVENT.size)
                                   if payload[at] != kind)
            out.write(chunk(what, seq, payload))
    return copy


def wait_for_events(where: Path, number: int, seconds: float = 120) -> None:
    """Until the one session below WHERE has so many events on the disk,
    however long a busy machine takes for them."""
    wait_until(lambda: sum(path.stat().st_size for path in where.glob("npuscope_*/events.nps")) > number * EVENT.size,
               f"{number} events below {where}", seconds)


class Session:
    """A session directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: Optional[list[Event]] = None

    @property
    def json(self) -> dict[str, Any]:
        return json.loads((self.path / "session.json").read_text())

    @property
    def events(self) -> list[Event]:
        if self._events is None:
            self._events = [Event(fields) for kind, payload in chunks(self.path / "events.nps")
                            if kind == CHUNK_EVENTS for fields in EVENT.iter_unpack(payload)]
        return self._events

    @property
    def strings(self) -> dict[int, str]:
        found = {}
        for kind, payload in chunks(self.path / "strings.nps"):
            for what, _pad, length, _pid, ident, _time, text in STRING.iter_unpack(payload):
                if kind == CHUNK_STRINGS and what == 64:
                    found[ident] = text[:length].decode(errors="replace")
        return found

    def of(self, kind: int, pid: Optional[int] = None) -> list[Event]:
        """In the order in which they began: in the file they lie CPU by CPU."""
        return sorted((e for e in self.events if e.kind == kind and pid in (None, e.pid)), key=lambda e: e.start)

    def process(self, pid: int) -> dict[str, Any]:
        found = [p for p in self.json["processes"] if p["pid"] == pid]
        assert found, f"pid {pid} is not in {[p['pid'] for p in self.json['processes']]}"
        return found[0]

    def dropped(self) -> int:
        """Records that the session admits to have lost; null: nobody counts them on this kernel."""
        drops = self.json["drops"]
        return sum(n or 0 for n in drops["ring"].values()) + sum(drops["agent"].values()) + drops["sqe"]


def catalogue() -> dict[str, tuple[int, bool]]:
    """symbol -> (id, is it probed at its return), from kheaders/catalog_rows.h."""
    text = (ROOT / "kheaders" / "catalog_rows.h").read_text()
    rows = re.findall(r'^\tP\((\w+), "([^"]*)", [^,]+, \w+,[\s\\]+\w+, ([^,]+),', text, re.M)
    assert len(rows) > 250, "kheaders/catalog_rows.h is written in another way now"
    return {symbol: (i + 1, "NPS_P_RET" in flags) for i, (_name, symbol, flags) in enumerate(rows)}


def torch_symbols() -> set[str]:
    """Rows of the catalogue that are PyTorch's functions, not CANN's: --ops attaches them."""
    text = (ROOT / "kheaders" / "catalog_rows.h").read_text()
    found = set(re.findall(r'^\tP\(\w+, "([^"]*)", NPS_LIB_TORCH,', text, re.M))
    assert found, "kheaders/catalog_rows.h is written in another way now"
    return found


# ---- libraries of our own with CANN's names -------------------------------------------

def build_library(case: Case, source: str, soname: str, where: Path, *flags: str) -> Path:
    """Compile jobs/SOURCE to a shared library of that name."""
    compiler = need_program("g++" if source.endswith(".cc") else "gcc", "g++" if source.endswith(".cc") else "gcc")
    where.mkdir(parents=True, exist_ok=True)
    out = where / soname
    case.run([compiler, "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-fPIC", "-shared", *flags,
              f"-Wl,-soname,{soname}", JOB_SOURCES / source, "-o", out]).expect(0)
    return out


def readable(descriptor: int, seconds: float) -> bool:
    """Is there something to read within that time?"""
    return bool(select.select([descriptor], [], [], seconds)[0])
