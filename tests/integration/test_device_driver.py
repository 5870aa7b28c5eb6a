#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The device sampler and a driver that refuses, loses, is in use or is reset. Witnesses: npusim's orders to
itself, what its truth file has of them, and the files' records decoded in device_witness.py."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Sequence

from device_witness import HBM, Truth, channel, complaints, control, sample, sampler, stored
from harness import DONE, PARTIAL, Case, Running, Session, environment, need_npusim, test, main, wait_until

SLEEP = ("sleep", "3")
# what the driver can answer (cann-abi 4.1), and whether a retry can help
CODES = {-1: True, -2: True, -3: True, -4: True, -5: True, -6: True, -8: True, -9: True, -10: True, -11: True,
         115: False}


def alone(case: Case, *args: str, orders: str = "", truth: bool = True, seconds: str = "3", devices: str = "0",
          command: Sequence[str] = (), **env: str) -> Running:
    """Sample device 0 while nothing runs but `sleep`, or COMMAND; npusim obeys ORDERS from the start."""
    need_npusim()
    for name in ("orders", "truth"):
        if not case.path(name).exists():
            case.open_path(name, folder=name == "truth")
    case.path("orders").write_text(orders)
    return sample(case, None, *args, "--sys-devices", devices, truth=case.path("truth").resolve(),
                  command=tuple(command) or ("sleep", seconds),
                  NPUSIM_CONTROL=str(case.path("orders").resolve()), **env)


def hbm_groups(data: bytes) -> list[int]:
    """Times of HBM samples: each is eight records."""
    times = [record[0] for record in HBM.iter_unpack(data)]
    return sorted(set(times))


def check_no_sample_is_missing(case: Case, session: Session) -> None:
    """The samples of HBM are those that the device took, but for what
    came between the last read and the stop."""
    times, sampled = hbm_groups(stored(session, 0, "hbm.data")), set(Truth(case.path("truth")).samples[0, 1])
    assert len(times) > 20, f"only {len(times)} samples"
    different = sorted(sampled ^ set(times))
    assert all(time > times[-1] for time in different), (different, times[-1])


def hbm_files(case: Case) -> list[Path]:
    """Of captures that have some of those samples on the disk."""
    return [path for path in case.path("out").rglob("hbm.data.0.slice_0") if path.stat().st_size]


@test(seconds=240)
def errors_at_start(case: Case) -> None:
    """Each code is reported once; where a retry helps, the channel is sampled in the end."""
    need_npusim()
    for code, again in CODES.items():
        result = alone(case, "--sys-hardware-mem", "--export", "none", orders=f"error 0 1 start {code}\n").result()
        lines = complaints(result, r"device 0: HBM:")
        assert len(lines) == 1 and f"code {code})" in lines[0] and "start of channel 1" in lines[0], (code, result.err)
        info = channel(result.session, 0, 1)
        assert info["errors"] == [code], info
        assert bool(info["records"]) == again, (code, info)
        assert info["starts"] == again
        assert channel(result.session, 0, 8)["records"] > 0, "the others are sampled all the same"
        result.expect(DONE if again else PARTIAL)
        if again:  # times of its records count from its own start: it has a directory of its own
            assert len(sampler(result.session)[0]["segments"]) == 2


@test(seconds=120)
def a_channel_that_is_always_busy(case: Case) -> None:
    """One line however often it is tried; exit status 3."""
    result = alone(case, "--sys-hardware-mem", "--export", "none", orders="error 0 1 start -10 always\n").result()
    result.expect(PARTIAL)
    assert len(complaints(result, "HBM")) == 1, result.err
    info = channel(result.session, 0, 1)
    assert (info["state"], info["records"]) == ("waits", 0), info


@test(seconds=120)
def errors_of_reads_and_stops(case: Case) -> None:
    """A read that fails now and then costs nothing; what goes on failing is started afresh."""
    need_npusim()
    orders = "error 0 1 read -5\nerror 0 8 read -1 4\nerror 0 131 stop -2\nerror 0 142 read -4\n"
    result = alone(case, "--sys-hardware-mem", "--export", "none", orders=orders).result().expect(DONE)
    session = result.session
    assert [channel(session, 0, c)["errors"] for c in (1, 8, 131, 142)] == [[-5], [-1], [-2], [-4]], result.err
    assert len(complaints(result, r"^npuscope: device 0: ")) == 4, result.err
    assert channel(session, 0, 1)["starts"] == 1 and channel(session, 0, 8)["starts"] == 2
    check_no_sample_is_missing(case, session)


@test(seconds=120)
def no_list_of_channels(case: Case) -> None:
    result = alone(case, "--sys-hardware-mem", "--export", "none", orders="error 0 * channels -1 always\n").result()
    result.expect(PARTIAL)
    assert len(complaints(result, "does not list its channels")) == 1, result.err


@test(seconds=120)
def two_samplers(case: Case) -> None:
    """The second leaves alone what the first uses, and has it when that has exited."""
    for name in ("end first", "end second"):
        os.mkfifo(case.path(name))  # a command that reads it ends when it has been opened for writing
    first = alone(case, "--sys-hardware-mem", "--export", "none", command=("cat", str(case.path("end first"))))
    first.wait_for("^npuscope: recording ", err=True)
    second = sample(case, None, "--sys-hardware-mem", "--sys-devices", "0", "--export", "none",
                    command=("cat", str(case.path("end second"))))
    second.wait_for("another profiler uses it", err=True)
    wait_until(lambda: len(hbm_files(case)) == 1, "samples of the first")
    time.sleep(1)
    case.path("end first").write_text("")
    one = first.result().expect(DONE)
    wait_until(lambda: len(hbm_files(case)) == 2, "samples of the second")
    time.sleep(1)  # the other channels
    case.path("end second").write_text("")
    two = second.result().expect(DONE)
    assert not complaints(one, "device 0:"), one.err
    refused = [c for c in sampler(two.session)[0]["channels"] if c["errors"]]
    assert len(refused) > 5 and all(c["errors"] == [-10] for c in refused), refused
    assert len(complaints(two, "another profiler uses it")) == len(refused), two.err
    assert all(c["records"] or c["name"] == "x" for c in refused), "all of them were free in the end"
    check_no_sample_is_missing(case, one.session)


@test(seconds=120)
def lost_records_are_counted(case: Case) -> None:
    """Records with a running number: what the device dropped is what is reported lost."""
    run = alone(case, "--sys-interconnection", "--export", "none", orders="lose 0 52 23\n", seconds="4")
    result = run.result().expect(PARTIAL)
    truth = Truth(case.path("truth"))
    assert truth.lost[0, 52] == 23, dict(truth.lost)
    assert channel(result.session, 0, 52)["lost"] == 23
    assert result.session.json["drops"]["device"] == 23
    assert len(complaints(result, "23 records were lost")) == 1, result.err


@test(seconds=120)
def a_round_of_the_ring_is_counted(case: Case) -> None:
    """A read that takes longer than the ring holds: the driver overwrites it, and no number shows it; what is
    reported lost is as in the truth file."""
    # its chip has the fastest channel: a ring is 4 s
    board = f"{os.environ.get('NPUSIM_BOARD', 'tests')}-{case.name}"
    case.at_end.append(lambda: [path.unlink() for path in Path("/dev/shm").glob(f"*{board}*")])
    run = alone(case, "--aic-metrics", "PipeUtilization", "--export", "none", seconds="11", NPUSIM_CHIP="950",
                NPUSIM_BOARD=board)
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(2)
    orders = case.path("orders")
    orders.write_text("slow 0 54 read 6000\n")
    time.sleep(3)  # the read that sleeps now looked before this
    orders.write_text("# no more\n")
    result = run.result().expect(PARTIAL)
    truth = Truth(case.path("truth"))
    assert truth.lost[0, 54] >= (4 << 20) // 112, dict(truth.lost)
    info = channel(result.session, 0, 54)
    assert (info["rounds"], info["lost"]) == (truth.lost[0, 54] // ((4 << 20) // 112), truth.lost[0, 54]), info
    assert result.session.json["drops"]["device"] == truth.lost[0, 54]
    assert len(complaints(result, "AI Core counters: it was not read for")) == 1, result.err


@test(seconds=120)
def overwritten_records_leave_whole_ones(case: Case) -> None:
    """Bytes that are missing in the middle of records: what is stored are
    records, in order; the loss is reported."""
    run = alone(case, "--sys-hardware-mem", "--export", "none", orders="overwrite 0 1 1003\n", seconds="4")
    result = run.result().expect(PARTIAL)
    session, truth = result.session, Truth(case.path("truth"))
    assert (0, 1) in truth.lost, dict(truth.lost)
    info = channel(session, 0, 1)
    assert info["torn_bytes"] > 0 and info["gaps"] > 0, info
    data = stored(session, 0, "hbm.data")
    assert len(data) % 24 == 0
    records = list(HBM.iter_unpack(data))
    strange = [(i, r) for i, r in enumerate(records) if r[2] > 1 or r[3] > 3]
    assert not strange, [records[i - 2:i + 3] for i, _r in strange]
    times = [r[0] for r in records]
    assert times == sorted(times) and len(records) > 1000


@test(seconds=120)
def a_reset_of_the_device(case: Case) -> None:
    """Channels that a reset ended are started again, into another directory, and nothing hangs."""
    run = alone(case, "--sys-hardware-mem", "--sys-interconnection", seconds="6")
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(1.5)
    with open(case.path("orders"), "a", encoding="ascii") as orders:
        orders.write("reset 0\n")
    result = run.result().expect(DONE)
    session = result.session
    segments = sampler(session)[0]["segments"]
    assert len(segments) >= 2, segments
    assert all(s["ended_raw"] > s["started_raw"] for s in segments)
    info = channel(session, 0, 1)
    assert info["starts"] == 2 and info["errors"] == [-4], info
    assert len(complaints(result, r"device 0: HBM: it was stopped by somebody else, or the device was reset")) == 1
    truth = Truth(case.path("truth"))
    assert (0, 1, "reset") in truth.channels
    first, second = (session.path / s["prof_dir"] / "device_0" for s in (segments[0], segments[-1]))
    assert (first / "data" / "hbm.data.0.slice_0").stat().st_size > 0
    assert (second / "data").is_dir()
    control(first, "end_info.0")


@test(seconds=120)
def the_job_exits(case: Case) -> None:
    """The capture ends with the job; its directory is complete."""
    need_npusim()
    job = case.sim_job("--ranks", "1", "--rate", "500", "--seconds", "200")
    run = sample(case, job, "--sys-hardware-mem", "--aic-metrics", "Memory", seconds="100s", wait=True)
    time.sleep(3)
    job.signal(signal.SIGTERM)  # it ends by itself then
    result = run.result().expect(DONE)
    assert result.session.json["end_reason"] == "targets exited"
    (segment,) = sampler(result.session)[0]["segments"]
    device = result.session.path / segment["prof_dir"] / "device_0"
    control(device, "end_info.0")
    data = list((device / "data").glob("*.slice_*[0-9]"))
    assert data and all((p.parent / (p.name + ".done")).exists() for p in data)
    assert all(c["state"] in ("closed", "absent") for c in sampler(result.session)[0]["channels"])


@test(seconds=120)
def killed_with_9(case: Case) -> None:
    """What was stored until then is readable, and the channels are free for the next one."""
    run = alone(case, "--sys-hardware-mem", seconds="60")
    run.wait_for("^npuscope: recording ", err=True)
    time.sleep(3)
    session = next(case.path("out").glob("npuscope_*"))
    run.signal(9)
    run.wait()
    folder = next(session.glob("PROF_*"))
    assert control(folder / "device_0", "start_info.0")["collectionTimeBegin"]
    out = case.path("alone")
    out.mkdir()
    case.analyze(folder, "-o", out).expect(DONE, PARTIAL)
    case.analyze(session, "-o", out).expect(DONE, PARTIAL)
    again = alone(case, "--sys-hardware-mem", "--export", "none", seconds="2").result().expect(DONE)
    assert not complaints(again, "device 0"), again.err


@test(seconds=120)
def a_slow_driver_holds_up_nobody(case: Case) -> None:
    """A start that takes a second delays neither the capture's end nor the other device."""
    run = alone(case, "--sys-hardware-mem", "--export", "none", orders="slow 0 8 start 1000\nslow 0 8 stop 1000\n",
                seconds="4",
                devices="0,1")
    result = run.result().expect(DONE)
    devices = sampler(result.session)
    slow, other = (devices[d]["segments"][0] for d in (0, 1))
    start = next(s for s in slow["starts"] if s["channel"] == 8)
    assert start["after_raw"] - start["before_raw"] > 900_000_000, "the order was obeyed"
    assert other["starts"][-1]["after_raw"] < start["after_raw"], "the other device did not wait"
    assert channel(result.session, 1, 8)["records"] > 0


@test(seconds=120)
def a_hanging_driver_holds_up_nobody(case: Case) -> None:
    """A read that never comes back: the other device is sampled to the end, which comes
    twelve seconds after the call at most."""
    run = alone(case, "--sys-hardware-mem", "--export", "none", orders="slow 0 8 read 600000\n", seconds="4",
                devices="0,1")
    elapsed = run.seconds_to_end("npuscope: session in ")
    result = run.result(60).expect(PARTIAL)
    assert elapsed < 18, f"{elapsed:.1f} s, and {run.kept:.1f} s without a CPU: {result.err}"
    assert len(complaints(result, "device 0: a call into the driver does not come back")) == 1, result.err
    exited = max(int(process["exit_monotonic"] or 0) for process in result.session.json["processes"])
    assert exited, result.session.json["processes"]
    late = (int(result.session.json["capture"]["end_monotonic"]) - exited) / 1e9
    assert late < 1 + run.kept, \
        f"the capture ended {late:.1f} s after the command, {run.kept:.1f} s of them without a CPU"
    groups = hbm_groups(stored(result.session, 1, "hbm.data"))
    assert len(groups) > 100, len(groups)


@test(seconds=120)
def many_slow_answers_are_no_sick_driver(case: Case) -> None:
    """To go through sixteen devices takes the driver longer than one call
    may take: it is not reported as hung."""
    board = f"{os.environ.get('NPUSIM_BOARD', 'tests')}-{case.name}"
    case.at_end.append(lambda: [path.unlink() for path in Path("/dev/shm").glob(f"*{board}*")])
    run = alone(case, "--npu-usage", "--export", "none", orders="slow * * dcmi 300\n", seconds="8", devices="job",
                NPUSIM_DEVICES="16", NPUSIM_BOARD=board)
    result = run.result(60)
    assert not complaints(result, "does not answer|is slow|had not reported"), result.err
    assert len(complaints(result, "no device was sampled: the job used none")) == 1, result.err


SUBMITS = """
import ctypes, time
acl = ctypes.CDLL("libascendcl.so")
memory, stream, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(1 << 16)
assert not acl.aclInit(None) and not acl.aclrtSetDevice(0) and not acl.aclrtCreateStream(ctypes.byref(stream))
assert not acl.aclrtMalloc(ctypes.byref(memory), size, 0)
for _ in range(20):
    time.sleep(0.1)
    assert not acl.aclrtMemsetAsync(memory, size, 0, size, stream) and not acl.aclrtSynchronizeStream(stream)
"""


@test(seconds=120)
def a_program_that_brings_the_driver(case: Case) -> None:
    """Devices are to be sampled before the program runs, when the library is nowhere yet: it
    is looked for again when it is there."""
    need_npusim()
    paths = environment(sim=True)["LD_LIBRARY_PATH"]
    command = ("env", f"LD_LIBRARY_PATH={paths}", sys.executable, "-c", SUBMITS)
    result = case.record("-o", case.path("out"), "--npu-usage", "--task-source", "host", "--export", "none", "--",
                         *command,
                         wait=False, env=environment()).result().expect(PARTIAL)
    assert len(complaints(result, "devices are not sampled: libascend_hal.so is not found")) == 1, result.err
    assert not complaints(result, "its chip is not known"), result.err
    assert [device["chip"] for device in result.session.json["devices"]], result.session.json["devices"]


if __name__ == "__main__":
    raise SystemExit(main())
