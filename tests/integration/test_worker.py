#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who runs the code of the driver's libraries, and with which rights. Witnesses: /proc, as
the host sees the process that loaded them, and a library of the job's that tries what an
attacker would (jobs/evil_hal_lib.c)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, Optional, Sequence

from harness import (DONE, NPUSCOPE, PARTIAL, SIM, Arg, Case, Running, Session, Skip, build_library, catalogue,
                     children_of, environment, host_environment, is_ours, main, need_job, need_mounts, need_npusim,
                     need_program, need_root, pid_list, test, threads_of, wait_until)
from records import API

NAMESPACES = ("mnt", "uts", "ipc", "net", "cgroup", "pid", "user")
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
CALLS = 321
# two that a user waits for the end of a capture, beside what the machine takes for
# any; one for workers that are kept waiting
END_S = 3.0
LAST_WORD = "session in /"


def status(pid: int) -> dict[str, str]:
    """/proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: " ".join(value.split()) for key, value in (line.split(":", 1) for line in lines)}


def namespace(pid: int, name: str) -> str:
    return os.readlink(f"/proc/{pid}/ns/{name}")


def workers() -> dict[int, list[str]]:
    """Processes that serve the driver's libraries to captures of this test: pid on the host and arguments."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if argv[0] == "npuscope-device-worker" and len(argv) > 1 and is_ours(int(folder.name)):
            found[int(folder.name)] = argv[1:]
    return found


def serving(library: str) -> Optional[int]:
    return next((pid for pid, argv in workers().items() if argv[0] == "serve" and library in argv), None)


def nothing_left() -> None:
    wait_until(lambda: not workers(), f"the end of {workers()}")


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for child in children_of(pid):
        yield from descendants(child)


# ---- jobs with a library of their own ----------------------------------------------------------------------

class EvilJob:
    """A job that has evil_hal_lib.c mapped as libascend_hal.so. `pid`: on the host;
    `library`, `report`: as it sees them."""

    def __init__(self, run: Running, library: str, files: Path) -> None:
        self.run, self.library, self.files = run, library, files
        run.wait_for("^ready")
        run.send(f"load {library}")
        run.wait_for("^loaded")
        self.pid = wait_until(lambda: next((p for p in descendants(run.pid) if self._has_it(p)), None),
                              "the job's process")

    def _has_it(self, pid: int) -> bool:
        try:
            return self.library in Path(f"/proc/{pid}/maps").read_text() and \
                "loader_job" in Path(f"/proc/{pid}/comm").read_text()
        except OSError:
            return False

    def tried(self) -> dict[str, str]:
        """What the library tried in the worker, and what came of it."""
        return dict(re.findall(r"^try (\w+) (\w+)$", (self.files / "report").read_text(), re.M))

    def descriptors(self) -> list[str]:
        return re.findall(r"^fd \d+ (.*)$", (self.files / "report").read_text(), re.M)


def evil_files(case: Case, name: str, owner: int = 0) -> Path:
    """A folder of that owner with the library and the job."""
    folder = case.open_path(name, folder=True)
    shutil.copy(build_library(case, "evil_hal_lib.c", "libascend_hal.so", case.path("built")), folder)
    shutil.copy(need_job("loader_job"), folder)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
        os.chown(path, owner, owner)
    return folder


def evil_environment(mode: str, folder: Arg, **more: Arg) -> dict[str, str]:
    return environment(EVIL=mode, REPORT=f"{folder}/report", **more)


def evil_user(case: Case, mode: str, uid: int = 12345) -> EvilJob:
    """An ordinary user's, outside of any container."""
    folder = evil_files(case, f"user-{mode}", uid)
    run = case.start(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", folder / "loader_job"],
                     env=evil_environment(mode, folder), cwd="/")
    return EvilJob(run, f"{folder}/libascend_hal.so", folder)


IN_CHROOT = """
mount -t tmpfs none '{root}'; cd '{root}'; mkdir usr lib lib64 bin proc dev evil tmp
for d in usr lib lib64 bin; do mount --bind -o ro /$d $d; done
mount -t proc proc proc; mount --bind '{folder}' evil; mknod dev/null c 1 3; chmod 666 dev/null; chmod 1777 tmp
exec chroot . /usr/bin/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs /evil/loader_job
"""


def evil_chroot(case: Case, mode: str) -> EvilJob:
    """A container without a user namespace: its root is root, without rights, in a directory."""
    need_mounts()
    folder, root = evil_files(case, f"chroot-{mode}"), case.path(f"root-{mode}")
    root.mkdir()
    run = case.start(["unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--fork", "--kill-child", "sh", "-ec",
                      IN_CHROOT.format(root=root, folder=folder)], env=evil_environment(mode, "/evil"))
    return EvilJob(run, "/evil/libascend_hal.so", folder)


def evil_bind(case: Case, mode: str, uid: int = 65534) -> EvilJob:
    """A user namespace of an ordinary user, in which a library of root's stands under the driver's name."""
    need_mounts()
    folder = evil_files(case, f"bind-{mode}", uid)
    library = folder / "libascend_hal.so"
    roots = case.path("roots.so")
    shutil.copy(library, roots)
    roots.chmod(0o755)
    of_root = case.open_path(f"of-root-{mode}", folder=True)
    of_root.chmod(0o755)
    shutil.copy(roots, of_root / "roots.so")
    run = case.start(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "unshare", "--user",
                      "--map-root-user", "--mount",
                      "sh", "-ec", f"mount --bind '{of_root}/roots.so' '{library}'; exec '{folder}/loader_job'"],
                     env=evil_environment(mode, folder), cwd="/")
    return EvilJob(run, str(library), folder)


def a_disk() -> Optional[tuple[int, int]]:
    """Numbers of a block device of this machine."""
    for line in Path("/proc/partitions").read_text().splitlines()[2:]:
        major, minor = map(int, line.split()[:2])
        return major, minor
    return None


def evil_podman(case: Case, mode: str, *options: str, owner: int = 0) -> EvilJob:
    """A container that podman made, with control groups of its own;
    its root has a node of the host's disk."""
    need_root()
    need_program("podman", "podman")
    folder = evil_files(case, f"podman-{mode}-{owner}", owner)
    root = case.open_path(f"rootfs-{mode}-{owner}", folder=True)
    root.chmod(0o755)
    for name in ("usr", "lib", "lib64", "bin", "proc", "sys", "dev", "etc", "run", "tmp", "evil"):
        (root / name).mkdir()
    for path in (root, *root.iterdir()):
        os.chown(path, owner, owner)
    disk = a_disk()
    if disk:
        os.mknod(folder / "disk", 0o60600, os.makedev(*disk))
        os.chown(folder / "disk", owner, owner)
    name = f"npuscope-{case.name}-{owner}-{os.getpid()}"
    case.at_end.append(lambda: subprocess.run(["podman", "rm", "-f", "-t", "0", name], capture_output=True,
                                              check=False))
    variables = [text for key, value in {"EVIL": mode, "REPORT": "/evil/report", "DISK": "/evil/disk"}.items()
                 for text in ("--env", f"{key}={value}")]
    mounts = [text for d in ("usr", "lib", "lib64", "bin") for text in ("-v", f"/{d}:/{d}:ro")]
    # Limits that a machine without CAP_SYS_RESOURCE can set, too. crun refuses hybrid control groups.
    run = case.start(["podman", "--runtime", "runc", "run", "--rm", "-i", "--name", name, "--ulimit",
                      "nofile=1024:1024", "--ulimit",
                      "nproc=4096:4096", "--network", "none", "--cap-add", "MKNOD", *options, *variables, *mounts, "-v",
                      f"{folder}:/evil", "--rootfs", str(root), "/evil/loader_job"])
    try:
        run.wait_for("^ready")
    except AssertionError as error:
        raise Skip(f"needs podman to make a container here: {run.err.strip() or error}") from error
    # It is no descendant of ours: conmon starts it.
    inspect = subprocess.run(["podman", "inspect", "-f", "{{.State.Pid}}", name], capture_output=True, text=True,
                             check=True)
    run.pid_in_podman = int(inspect.stdout)  # type: ignore[attr-defined]
    return PodmanJob(run, "/evil/libascend_hal.so", folder)


class PodmanJob(EvilJob):
    """Its process is conmon's child."""

    # pylint: disable-next=super-init-not-called
    def __init__(self, run: Running, library: str, files: Path) -> None:
        self.run, self.library, self.files = run, library, files
        run.send(f"load {library}")
        run.wait_for("^loaded")
        self.pid = run.pid_in_podman  # type: ignore[attr-defined]


# ---- what the worker is ------------------------------------------------------------------------------------

def stands_in_for(worker: int, job: int) -> None:
    """It is what the job is, without a right."""
    own, theirs = status(worker), status(job)
    for key in ("Uid", "Gid", "Groups"):
        assert own[key] == theirs[key], (key, own[key], theirs[key])
    has_no_rights(worker)
    for name in NAMESPACES:
        assert namespace(worker, name) == namespace(job, name), name
    assert os.readlink(f"/proc/{worker}/root") == os.readlink(f"/proc/{job}/root")
    root, job_root = (os.stat(f"/proc/{pid}/root") for pid in (worker, job))
    assert (root.st_dev, root.st_ino) == (job_root.st_dev, job_root.st_ino), "its root directory"
    for file in ("cgroup",):
        assert Path(f"/proc/{worker}/{file}").read_text() == Path(f"/proc/{job}/{file}").read_text(), file


def has_no_rights(worker: int) -> None:
    own = status(worker)
    assert {own[key] for key in CAPABILITIES} == {"0" * 16}, {key: own[key] for key in CAPABILITIES}
    assert own["NoNewPrivs"] == "1" and own["Seccomp"] == "2", own
    program = os.readlink(f"/proc/{worker}/exe")
    assert program.startswith("/memfd:"), f"a file of the host's that could be written through it: {program}"


def captured(case: Case, jobs: Sequence[EvilJob], name: str, seconds: str = "4s", wait: bool = True,
             **kwargs: str) -> tuple[Running, Running]:
    """A capture of them and of a job that does no harm: (capture, that job)."""
    library = build_library(case, "acl_rt_lib.c", "libacl_rt.so", case.path("innocent"))
    innocent = case.start([need_job("loader_job")], env=environment(libs=[library.parent]))
    innocent.wait_for("^ready")
    innocent.send(f"load {library}")
    innocent.wait_for("^loaded")
    run = case.record("-p", pid_list([job.pid for job in jobs] + [innocent.pid]), "-d", seconds, "-o",
                      case.path(f"out-{name}"),
                      "--export", "none", "--sys-hardware-mem", "--npu-usage", "--sys-devices", "0", wait=wait,
                      env=environment(**kwargs))
    return run, innocent


def recorded_whole(session: Session, innocent: Running) -> None:
    seen = sum(e.probe == catalogue()["aclrtSynchronizeDevice"][0] for e in session.of(API, innocent.pid))
    assert seen == CALLS, f"{seen} calls of the job that does no harm, not {CALLS}"
    assert not session.dropped(), session.json["drops"]


# What an attacker's code tries in a worker. Its own /etc/shadow a container may have.
REFUSED = ("mknod", "setuid", "ptrace", "kill", "inet", "unshare", "mount", "bpf", "keyctl", "pdeathsig", "fork",
           "exec")


def rights_of(case: Case, job: EvilJob, name: str) -> None:
    run, innocent = captured(case, [job], name)
    worker = wait_until(lambda: serving(job.library), "a worker for the job's library")
    stands_in_for(worker, job.pid)
    innocent.send(f"call aclrtSynchronizeDevice {CALLS}")
    innocent.wait_for("^called")
    tried = wait_until(lambda: job.tried() if "exec" in job.tried() else None, "the library's report")
    assert {what: tried[what] for what in REFUSED} == {what: "EPERM" for what in REFUSED}, tried
    assert tried["shadow"] != "ok" and tried["disk"] != "ok", tried
    # Not even the host's /dev/null, whose mode its owner can change: three ends of one pipe, and sockets.
    assert len([file for file in job.descriptors() if file.startswith("pipe:")]) == 3, job.descriptors()
    assert all(file.startswith(("pipe:", "socket:", job.library)) for file in job.descriptors()), job.descriptors()
    result = run.result().expect(DONE, PARTIAL)
    recorded_whole(result.session, innocent)
    assert result.session.json["device_sampler"]["driver"] == job.library, result.session.json["device_sampler"]
    nothing_left()


@test(seconds=120)
def library_of_a_user(case: Case) -> None:
    rights_of(case, evil_user(case, "report"), "user")


@test(seconds=120)
def library_of_a_container_without_user_namespace(case: Case) -> None:
    rights_of(case, evil_chroot(case, "report"), "chroot")


@test(seconds=120)
def library_bound_in_a_user_namespace(case: Case) -> None:
    rights_of(case, evil_bind(case, "report"), "bind")


@test(seconds=120)
def library_of_a_podman_container(case: Case) -> None:
    """The node of the host's disk that its root has cannot be opened by what the
    worker runs, as it cannot by the container."""
    rights_of(case, evil_podman(case, "report"), "podman")


@test(seconds=120)
def library_of_a_podman_container_with_user_namespace(case: Case) -> None:
    rights_of(case,
              evil_podman(case, "report", "--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536", owner=100000),
              "userns")


@test(seconds=120)
def container_that_may_trace(case: Case) -> None:
    """Its root looks at every process that appears beside it: none leads to the
    host's files, programs or environment."""
    job = evil_podman(case, "report", "--cap-add", "SYS_PTRACE")
    shutil.copy(need_job("spy_job"), job.files)
    (job.files / "spy_job").chmod(0o755)
    secret = case.open_path("secret")
    name = next(a for a in job.run.argv if a.startswith("npuscope-"))
    spy = case.start(["podman", "--runtime", "runc", "exec", name, "/evil/spy_job", str(secret)])
    spy.wait_for("^spying")
    for i in range(3):
        run, _innocent = captured(case, [job], f"spied{i}", seconds="500ms", wait=False,
                                  COLLECTORS_SECRET="none of theirs")
        run.result().expect(DONE, PARTIAL)
    nothing_left()
    assert "saw" in spy.out, "it saw no process: this test proves nothing"
    assert "reached" not in spy.out, set(re.findall("^reached.*$", spy.out, re.M))
    spy.kill()


@test(seconds=120)
def container_ends_while_it_is_watched(case: Case) -> None:
    """Its pid namespace ends when all in it have been waited for, the worker too: that
    is not put off until the capture's end."""
    job = evil_podman(case, "report")
    run, innocent = captured(case, [job], "ending", seconds="60s")
    wait_until(lambda: serving(job.library), "a worker for the job's library")
    os.kill(job.pid, 9)
    wait_until(lambda: not Path(f"/proc/{job.pid}").exists(), "the end of the container's first process", 20)
    assert run.alive(), "the capture ended first: this test proves nothing"
    innocent.send("quit 0")
    run.signal(2)
    run.result().expect(DONE, PARTIAL)
    nothing_left()


@test(seconds=120)
def library_that_another_user_can_replace(case: Case) -> None:
    """A job of root's with the library in a folder of somebody else: who could put
    another file there would run as root."""
    need_root()
    folder = evil_files(case, "theirs", 12345)
    job = EvilJob(case.start([folder / "loader_job"], env=evil_environment("report", folder)),
                  f"{folder}/libascend_hal.so", folder)
    run, innocent = captured(case, [job], "theirs", seconds="2s")
    innocent.send(f"call aclrtSynchronizeDevice {CALLS}")
    result = run.result().expect(PARTIAL)
    assert "can be written by others: Permission denied" in result.err, result.err
    assert not (folder / "report").exists()
    recorded_whole(result.session, innocent)
    nothing_left()


# ---- workers that do harm ----------------------------------------------------------------------------------

_calm: list[float] = []


def calm_end(case: Case) -> float:
    """What the machine takes to end a capture of the job that does no harm; measured once."""
    if _calm:
        return _calm[0]
    run, _innocent = captured(case, [], "calm", seconds="60s")
    _calm.append(run.seconds_to_end(LAST_WORD, signal.SIGINT))
    run.result().expect(DONE, PARTIAL)
    return _calm[0]


def harmed(case: Case, mode: str, *printed: str) -> None:
    """Whatever the library does, the capture ends in time, reports it, has all of the
    other job, and leaves nothing behind."""
    usual = calm_end(case)
    job = evil_user(case, mode)
    run, innocent = captured(case, [job], mode, seconds="60s")
    innocent.send(f"call aclrtSynchronizeDevice {CALLS}")
    innocent.wait_for("^called")
    time.sleep(3)
    elapsed = run.seconds_to_end(LAST_WORD, signal.SIGINT)
    result = run.result().expect(DONE, PARTIAL)
    assert elapsed < END_S + usual, \
        f"the capture took {elapsed:.2f} s to end, {usual:.2f} s without the library: {result.err}"
    recorded_whole(result.session, innocent)
    for text in printed:
        assert re.search(text, result.err), (text, result.err)
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", result.err), repr(result.err)
    nothing_left()


@test(seconds=120)
def worker_that_does_not_come_back(case: Case) -> None:
    harmed(case, "hang", "the driver does not answer")


@test(seconds=120)
def worker_that_hangs_in_a_read(case: Case) -> None:
    harmed(case, "hang-read", "a call into the driver does not come back")


@test(seconds=120)
def worker_that_hangs_when_channels_are_stopped(case: Case) -> None:
    harmed(case, "hang-stop", "a call into the driver does not come back")


@test(seconds=120)
def worker_that_makes_noise(case: Case) -> None:
    """Bytes without an order are the dearest to look through."""
    harmed(case, "noise", "the driver returned an impossible value|bring more than npuscope reads")


@test(seconds=120)
def worker_that_crashes(case: Case) -> None:
    harmed(case, "crash", "was killed by signal 11")


@test(seconds=120)
def worker_that_refuses_to_end(case: Case) -> None:
    harmed(case, "stay")


@test(seconds=120)
def worker_that_lies(case: Case) -> None:
    harmed(case, "lie")


@test(seconds=120)
def worker_that_floods(case: Case) -> None:
    """More at a time than the driver's ring holds is made up, and not read on."""
    harmed(case, "flood", "the driver returned an impossible value|bring more than npuscope reads")


@test(seconds=120)
def worker_that_babbles(case: Case) -> None:
    harmed(case, "babble", "gives answers that make no sense")


@test(seconds=120)
def worker_that_is_killed(case: Case) -> None:
    """Devices are sampled until then, and one line reports it."""
    need_npusim()
    run = case.record("-d", "4s", "-o", case.path("out"), "--export", "none", "--sys-hardware-mem", "--sys-devices",
                      "0,1", "--", "sleep", "3",
                      env=host_environment(case))
    worker = wait_until(lambda: next((p for p, argv in workers().items() if argv[0] == "serve"), None), "the worker")
    time.sleep(1)
    os.kill(worker, 9)
    result = run.result().expect(PARTIAL)
    assert result.err.count("was killed by signal 9") == 1, result.err
    assert "start of channel" not in result.err and "read of channel" not in result.err, result.err
    assert all(c["records"] for d in result.session.json["device_sampler"]["devices"] for c in d["channels"]
               if c["name"] == "HBM")
    nothing_left()


@test(seconds=120)
def collector_that_is_killed(case: Case) -> None:
    """Its workers end with it, those that hang as well."""
    for mode in ("report", "hang", "stay"):
        job = evil_user(case, mode)
        run, _innocent = captured(case, [job], mode, seconds="60s", wait=False)
        wait_until(lambda j=job: serving(j.library), "a worker for the job's library")
        time.sleep(0.5)
        run.signal(9)
        run.wait()
        nothing_left()
        job.run.kill()
    case.watch_kernel = False  # a tracer that was killed leaves what the kernel takes away a moment later


# ---- the host's own installation ---------------------------------------------------------------------------

@test(seconds=120)
def library_of_the_host(case: Case) -> None:
    """Root alone can write it: it runs as nobody, in the host's namespaces, without a right."""
    need_root()
    need_npusim()
    run = case.record("-d", "10s", "-o", case.path("out"), "--export", "none", "--sys-hardware-mem", "--sys-devices",
                      "0", "--", "sleep", "2",
                      env=host_environment(case))
    worker = wait_until(lambda: next((p for p, argv in workers().items() if argv[0] == "serve"), None), "the worker")
    has_no_rights(worker)
    assert status(worker)["Uid"] == "65534 65534 65534 65534" == status(worker)["Gid"], status(worker)
    assert all(namespace(worker, name) == namespace(os.getpid(), name) for name in NAMESPACES)
    result = run.result().expect(DONE)
    assert result.session.json["device_sampler"]["devices"][0]["channels"], result.err
    nothing_left()


@test(seconds=120)
def library_of_the_host_without_standard_input(case: Case) -> None:
    """As a daemon may start it: the first descriptors that are opened are 0, 1 and 2."""
    need_root()
    need_npusim()
    command = ["sh", "-c", 'exec "$@" <&-', "sh", NPUSCOPE, "record", "-o", case.path("out"), "--export", "none",
               "--sys-hardware-mem",
               "--sys-devices", "0", "--", "sleep", "1"]
    result = case.run(command, env=host_environment(case)).expect(DONE)
    assert result.session.json["device_sampler"]["devices"][0]["channels"], result.err


@test(seconds=120)
def library_of_the_host_that_others_can_write(case: Case) -> None:
    """One folder on the way is enough: it is not loaded, and no job has one."""
    need_root()
    need_npusim()
    directory = case.open_path("installed", folder=True)  # below /tmp
    shutil.copytree(SIM, directory / "Ascend", symlinks=True)
    env = {k: v.replace(str(SIM), f"{directory}/Ascend") for k, v in environment(sim=True).items()}
    result = case.record("-o", case.path("out"), "--export", "none", "--sys-hardware-mem", "--sys-devices", "0", "--",
                         "sleep", "1",
                         wait=False, env=env).result().expect(PARTIAL)
    assert "can be written by others: Permission denied" in result.err, result.err
    nothing_left()


# ---- the collector itself ----------------------------------------------------------------------------------

BITS = {"DAC_READ_SEARCH": 2, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYSLOG": 34, "PERFMON": 38, "BPF": 39,
        "CHECKPOINT_RESTORE": 40}


def mask(*names: str) -> int:
    return sum(1 << BITS[name] for name in names)


@test(seconds=120)
def rights_of_the_collector(case: Case) -> None:
    """Once probes are in place no thread has more than it needs; none
    could get it back by executing a program."""
    need_root()
    need_npusim()
    # Of a kernel that probes functions by perf events some want this of whoever
    # attaches to libraries that come later.
    late = mask("SYS_ADMIN") if "perf event" in case.npuscope("doctor").expect(DONE).out else 0
    job = case.sim_job("--ranks", "1", "--rate", "200", "--seconds", "30")
    for owner in (0, 12345):  # of the directory for results
        out = case.path(f"out{owner}")
        out.mkdir()
        os.chown(out, owner, owner)
        run = case.record("-p", job.pid, "-d", "4s", "-o", out, "--sys-hardware-mem", "--host-sys", "cpu,network",
                          "--stacks", "cpu", env=host_environment(case))
        time.sleep(1)
        most = mask("BPF", "PERFMON", "CHECKPOINT_RESTORE", "SYS_PTRACE", "DAC_READ_SEARCH", "SYSLOG")
        with_admin = 0
        for task in Path(f"/proc/{run.pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                key, _, value = line.partition(":\t")
                if key not in CAPABILITIES:
                    continue
                allowed = most
                if task.name == str(run.pid):
                    allowed |= late
                # they attach nothing
                elif (task / "comm").read_text().strip() in ("nps_reader", "nps_stacks"):
                    allowed &= ~mask("PERFMON")
                elif int(value, 16) & mask("SYS_ADMIN"):
                    allowed = mask("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
                    with_admin += key == "CapEff"
                assert not int(value, 16) & ~allowed, (task.name, line)
        reader = next(tid for tid, name in threads_of(run.pid).items() if name == "nps_reader")
        assert os.sched_getscheduler(reader) == os.SCHED_RR or os.getpriority(os.PRIO_PROCESS, reader) == -10, \
            "the thread that empties the rings goes before others: it asked before it had no right to"
        assert with_admin <= 2, \
            "threads that look into network namespaces, and that switch on statistics of BPF programs"
        result = run.result().expect(DONE)
        assert list(result.session.path.glob("*_ascend_pt")), result.err


if __name__ == "__main__":
    sys.exit(main())
