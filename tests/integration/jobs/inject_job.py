# SPDX-License-Identifier: BSD-2-Clause
"""inject_job's sibling in CPython: inject_job.py SECONDS LIBRARY. It maps LIBRARY and, until its input is
closed, creates and deletes objects, collects them, calls C and back, and sleeps, in two threads; it checks
all results that it knows. Ends with
  result python rounds=N wrong=N eintr=N slowest_us=N
"""
import ctypes
import gc
import hashlib
import os
import select
import sys
import threading
import time
import zlib

seconds, library = float(sys.argv[1]), sys.argv[2]
ctypes.CDLL(library)
end, wrong, slowest = time.monotonic() + seconds, 0, 0.0
stop = threading.Event()


class Node:
    """In a ring, so that only the collector frees it."""

    def __init__(self, after: "Node | None", value: int) -> None:
        self.after, self.value = after, value


def expect(good: bool) -> None:
    global wrong
    wrong += not good


def compute(round_: int) -> None:
    first = last = Node(None, round_)
    for i in range(1, 500):
        last = Node(last, round_ + i)
    first.after = last
    total, node = 0, last
    for _ in range(500):
        total += node.value
        assert node.after
        node = node.after
    expect(total == 500 * round_ + 499 * 250)
    data = bytes(range(256)) * 64
    expect(zlib.crc32(data) == 0xE81722F0)
    expect(hashlib.sha256(data).hexdigest().startswith("a1f259d4365ed432"))
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    array = (ctypes.c_int * 50)(*((i * 37 + round_) % 101 for i in range(50)))
    wanted = sorted(array)
    ctypes.CDLL(None).qsort(array, 50, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: a[0] - b[0]))
    expect(list(array) == wanted)
    expect(2 ** 521 % 1_000_003 == pow(2, 521, 1_000_003))


def sleeper() -> None:
    global slowest
    while not stop.is_set():
        begin = time.monotonic()
        time.sleep(0.02)
        elapsed = time.monotonic() - begin
        expect(elapsed >= 0.02)
        slowest = max(slowest, elapsed - 0.02)


thread = threading.Thread(target=sleeper)
thread.start()
print(f"ready {os.getpid()}", flush=True)
rounds = 0
while time.monotonic() < end and not select.select([0], [], [], 0)[0]:
    compute(rounds)
    if rounds % 8 == 0:
        gc.collect()
    rounds += 1
stop.set()
thread.join()
print(f"result python rounds={rounds} wrong={wrong} eintr=0 slowest_us={round(slowest * 1e6)}", flush=True)
