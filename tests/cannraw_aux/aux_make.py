# SPDX-License-Identifier: BSD-2-Clause
"""A PROF_* directory with control files only, for runs that need no tasks."""

from __future__ import annotations

import json
import random
import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Optional

from aux_clock import whole
from aux_io import append_dic

CHIP = "5"
TYPES = ("10000_6:task_memory_info", "10000_11:static_op_mem", "6000_0:aicpu_node", "6000_1:aicpu_dp",
         "6000_2:aicpu_model", "6000_3:aicpu_mi")
# what the readers of the generated files need; added to a directory without it
WANTED = {"llc_profiling": "read", "hbm_profiling_events": "read,write", "ddr_master_id": "0", "host_disk_freq": 50,
          "qosEvents": "OTHERS,AICORE,SDMA", "l2CacheTaskProfilingEvents": "0xf6,0xfb,0xfc,0xbf,0x90,0x91,0x9c,0x9d",
          "aiv_profiling_events": "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55",
          "ai_core_profiling_events": "0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55"}


def _put(path: Path, text: str, done: bool) -> None:
    path.write_text(text, encoding="utf-8")
    if done:
        path.with_name(path.name + ".done").write_text(
            f"filesize:{len(text.encode())}\n", encoding="ascii")


def _rewrite(path: Path, content: dict) -> None:
    """Replace a control file by a changed one, and its size where that is recorded."""
    text = json.dumps(content)
    path.write_text(text, encoding="utf-8")
    done = path.with_name(path.name + ".done")
    if done.exists():
        done.write_text(re.sub(r"filesize:\d+", f"filesize:{len(text.encode())}", done.read_text(encoding="ascii")),
                        encoding="ascii")


def _info(device: Optional[int], pid: int, host_mhz: str, device_mhz: str, version: str) -> dict:
    info = {"version": version, "jobInfo": "NA", "OS": "Linux-6.1.0-generic", "hostname": "node-17", "hwtype": "",
            "devices": "64" if device is None else str(device), "platform": "", "platform_version": CHIP,
            "pid": str(pid), "pid_name": "python3", "upTime": "171000.12 4000000.00", "memoryTotal": 527513488,
            "cpuNums": 8, "sysClockFreq": 100, "cpuCores": 8, "netCardNums": 1,
            "netCard": [{"netCardName": "enp189s0f0", "speed": 1000}], "rank_id": 0, "drvVersion": 467733,
            "cannVersion": "9.1.0", "hostUid": "3538958389648580163",
            "CPU": [{"Id": 0, "Name": "Kunpeng", "Frequency": host_mhz, "Logical_CPU_Count": 8, "Type": "920"}],
            "DeviceInfo": []}
    if device is not None:
        info["DeviceInfo"] = [{
            "id": device, "env_type": 3, "ctrl_cpu_core_num": 2, "ctrl_cpu_endian_little": 1, "ts_cpu_core_num": 1,
            "ai_cpu_core_num": 6, "ai_core_num": 24, "ai_cpu_core_id": 2, "ai_core_id": 0, "aicpu_occupy_bitmap": 252,
            "aiv_num": 48, "ctrl_cpu_id": "ARMv8_Cortex_A55", "ctrl_cpu": "0,1", "ai_cpu": "2,3,4,5,6,7",
            "hwts_frequency": device_mhz, "aic_frequency": "1800", "aiv_frequency": "1800"}]
    return info


def _sample(devices: str) -> dict:
    sample = {"devices": devices, "ai_core_profiling": "on", "ai_core_metrics": "PipeUtilization",
              "ai_core_profiling_mode": "sample-based", "aicore_sampling_interval": 10, "aiv_profiling": "on",
              "aiv_metrics": "PipeUtilization", "aiv_profiling_mode": "sample-based", "aiv_sampling_interval": 10,
              "prof_level": "l1", "profLevel": "l1", "instrProfilingFreq": 0, "dynamic": "off", "msproftx": "off",
              "l2CacheTaskProfiling": "on", "result_dir": "", "job_id": "", "host_sys": "cpu,mem,disk,network,osrt"}
    return {**sample, **WANTED}


def make_prof(out: Path, device: int, seed: int, host_mhz: str, device_mhz: str, version2: bool, span_ns: int,
              done: bool) -> Path:
    """Make host/ and device_N/ with every control file; the directory's path."""
    rng = random.Random(f"{seed}:control")
    pid = 3_178_231
    unix_us = 1_736_408_883_000_000 + rng.randrange(10**6)
    raw = 172_163_581_670_080 + rng.randrange(10**9)
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(unix_us // 10**6)) + f"{unix_us // 1000 % 1000:03}"
    letters = "".join(rng.choice("ABCDEFGHIJKLMNOPQR") for _ in range(8))
    prof = out / f"PROF_000001_{stamp}_{pid:08}{letters}"
    cnt = 17_238_197_612_056
    later = 3_140_007                       # the device is synchronised a little after the host
    host_later = later if not host_mhz else whole(later * Fraction(host_mhz) / 1000)
    dev_raw, dev_cnt = 9_876_543_210_123 + rng.randrange(10**9), 493_827_160_506 + rng.randrange(10**6)
    version = "2.0" if version2 else "1.0"
    for number, folder in ((None, prof / "host"), (device, prof / f"device_{device}")):
        tail = "" if number is None else f".{number}"
        (folder / "data").mkdir(parents=True)
        _put(folder / f"info.json{tail}", json.dumps(_info(number, pid, host_mhz, device_mhz, version)), done)
        _put(folder / "sample.json", json.dumps(_sample("64" if number is None else str(number))), done)
        # the two directories pair real and raw time at moments of their own, so their offsets differ a little
        shift = 0 if number is None else 1_734
        begin = {"collectionDateBegin": stamp, "collectionDateEnd": "", "collectionTimeBegin": str(unix_us + shift),
                 "collectionTimeEnd": "", "clockMonotonicRaw": str(raw - 40_000 + shift * 1000 + shift)}
        _put(folder / f"start_info{tail}", json.dumps(begin), done)
        if done:
            end = {"collectionDateBegin": "", "collectionDateEnd": stamp, "collectionTimeBegin": "",
                   "collectionTimeEnd": str(unix_us + 20_000 + span_ns // 1000), "clockMonotonicRaw": ""}
            _put(folder / f"end_info{tail}", json.dumps(end), done)
        head = "Host" if number is None else f"Device{number}"
        add = (0, 0) if number is None else (later, host_later)
        _put(folder / f"host_start.log{tail}",
             f"[{head}]\nclock_monotonic_raw: {raw + add[0]}\ncntvct: {cnt + add[1]}\ncntvct_diff: 0\n", done)
        if number is not None:
            _put(folder / f"dev_start.log{tail}", f"clock_monotonic_raw: {dev_raw}\ncntvct: {dev_cnt}\n", done)
    append_dic(prof / "host" / "data", "unaging.additional.type_info_dic", TYPES, done)
    return prof


def complete_sample(prof: Path, device: int) -> None:
    """Add to both sample.json what the generated files need and the directory does not have."""
    for path in (prof / "host" / "sample.json", prof / f"device_{device}" / "sample.json"):
        if not path.exists():
            continue
        with open(path, encoding="utf-8") as file:
            sample = json.loads(file.readline())
        added = {key: value for key, value in WANTED.items() if not sample.get(key)}
        if added:
            _rewrite(path, {**sample, **added})


def set_version(prof: Path, device: int) -> None:
    """State in the device's info.json that its structures are those of version 2.0."""
    for path in (prof / f"device_{device}").glob("info.json*"):
        if path.name.endswith(".done"):
            continue
        info = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
        info["version"] = "2.0"
        _rewrite(path, info)
