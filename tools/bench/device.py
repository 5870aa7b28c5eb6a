# SPDX-License-Identifier: BSD-2-Clause
"""The CPU time of sampling a device, by the clock of the thread that samples."""
import json
import shutil
import subprocess
from pathlib import Path

GROUPS = {
    "--sys-io": ["--sys-io"],
    "--sys-interconnection": ["--sys-interconnection"],
    "--sys-hardware-mem": ["--sys-hardware-mem"],
    "--aic-metrics PipeUtilization": ["--aic-metrics", "PipeUtilization"],
    "--npu-usage": ["--npu-usage"],
}
EVERYTHING = [word for words in GROUPS.values() for word in words]


def share(npuscope, out, env, pid, options, seconds):
    """(percent of one CPU, that of the process that calls the driver's libraries, bytes a second)."""
    done = subprocess.run([npuscope, "record", "-q", "-p", str(pid), "-d", f"{seconds}s", "-o", out, "--export", "none",
                           "--host-sys",
                           "none", "--level", "none", *options], capture_output=True, text=True, check=False, env=env)
    session = Path(done.stdout.split()[0])
    story = json.loads((session / "session.json").read_text())
    shutil.rmtree(session)
    (device,) = story["device_sampler"]["devices"]
    elapsed = story["capture"]["end_monotonic"] - story["capture"]["begin_monotonic"]
    if any(c["lost"] or c["torn_bytes"] for c in device["channels"]):
        raise RuntimeError(f"records were lost: {device}")
    worker = story["device_sampler"]["worker_cpu_ns"]
    written = sum(c["bytes"] for c in device["channels"])
    return 100 * device["cpu_ns"] / elapsed, 100 * worker / elapsed, written * 1e9 / elapsed


def sampling(npuscope, sim, out, env, seconds, add):
    """A job of one rank; each group of counters at its default rate, and all of them."""
    env = {**env, "NPUSIM_BOARD": env.get("NPUSIM_BOARD", "bench")}
    job = [sim / "bin/npusim-train", "--ranks", "1", "--rate", "1000", "--seconds", str(seconds * 10 + 60), "--quiet"]
    with subprocess.Popen(job, env=env, stdout=subprocess.PIPE, text=True) as running:
        pid = int(running.stdout.readline().split()[1])
        try:
            all_of_it = share(npuscope, out, env, pid, EVERYTHING, seconds)[0]
            for name, options in GROUPS.items():
                add(f"{name}, one device", share(npuscope, out, env, pid, options, seconds)[0], "% of one CPU",
                    "everything", all_of_it)
            percent, worker, rate = share(npuscope, out, env, pid, EVERYTHING, seconds)
            add("everything, one device", percent, "% of one CPU", "the same", all_of_it)
            add("everything, one device, in the driver's libraries", worker, "% of one CPU", "everything", all_of_it)
            add("everything, one device, to disk", rate / 1e3, "kB/s", "the same", rate / 1e3)
        finally:
            running.terminate()
