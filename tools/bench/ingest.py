# SPDX-License-Identifier: BSD-2-Clause
"""`make bench BENCH=ingest`: what one task of the device's log costs.

From the helper's blocks to the session, and from the session to a task with its times.
"""
import subprocess
import tempfile

TARGET = 1e6  # tasks a second and core


def ingest(program, out, add, tasks=1_000_000, rounds=3):
    best = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=out) as folder:
            text = subprocess.run([str(program), folder, str(tasks)], check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name, seconds, done = line.split()
            best[name] = min(best.get(name, float("inf")), float(seconds) / int(done))
    for name, words in (("collect", "from the helper's blocks to the session's files"),
                        ("decode", "from those files to tasks with their times")):
        add(f"task log: {words}", 1 / best[name], "tasks/s", "1000000 tasks/s of a core", TARGET)
