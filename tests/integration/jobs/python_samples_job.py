# SPDX-License-Identifier: BSD-2-Clause
"""Threads that compute and sleep in known functions.

A comment `#> F...` names the functions that its line can call, other than those in C. test_python_samples.py
reads them: a stack that does not follow them is wrong.
"""

import functools
import hashlib
import sys
import threading
import time
import zlib

DATA = b"some bytes that can be compressed" * 64
MUTEX = threading.Lock()
BEGUN = []


# --- thread 0: one loop, and nothing else: most samples are in it ---

def hot_loop(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total


def hot_outer():
    return hot_loop(20000)  #> hot_loop


def root_hot():
    BEGUN.append(1)
    while True:
        hot_outer()  #> hot_outer


# --- thread 1: functions that C calls, short ones, deep ones; frames of all sizes at the same addresses ---

def key_small(v):
    return -v


def key_wide(v):
    a = v + 1
    b = a * 2
    c = b - a
    d = (a, b, c, v)
    return d[2] + d[0]


def by_key():
    values = list(range(40))
    values.sort(key=key_small)  #> key_small
    return sorted(values, key=key_wide)  #> key_wide


def add(a, b):
    return key_small(a) + b  #> key_small


def by_reduce():
    return functools.reduce(add, range(30))  #> add


def many_locals(depth):
    a = b = c = d = e = f = g = h = depth
    if depth:
        return many_locals(depth - 1) + a + b + c + d + e + f + g + h  #> many_locals
    return by_key()[0] + by_reduce()  #> by_key by_reduce


def recurse(depth):
    if depth:
        return recurse(depth - 1)  #> recurse
    return sum(map(key_wide, range(20)))  #> key_wide


class Thing:
    def __init__(self, value):
        self.value = key_small(value)  #> key_small

    def __del__(self):
        key_wide(self.value)  #> key_wide


def make_things():
    for i in range(20):
        Thing(i)  #> Thing.__init__ Thing.__del__


def root_calls():
    BEGUN.append(1)
    while True:
        by_key()  #> by_key
        by_reduce()  #> by_reduce
        many_locals(3)  #> many_locals
        recurse(25)  #> recurse
        make_things()  #> make_things


# --- thread 2: generators, and C that computes for long ---

def numbers(n):
    for i in range(n):
        yield twice(i)  #> twice


def twice(i):
    return i + i


def nested(n):
    yield from numbers(n)  #> numbers
    yield from numbers(n // 2)  #> numbers


def consume():
    total = 0
    for v in nested(50):  #> nested
        total += v
    return total + sum(numbers(30))  #> numbers


def compress():
    return zlib.compress(DATA * 8, 6)


def digest():
    return hashlib.sha256(DATA * 32).digest()


def in_c():
    compress()  #> compress
    return digest()  #> digest


def root_mixed():
    BEGUN.append(1)
    while True:
        consume()  #> consume
        in_c()  #> in_c


# --- threads that sleep ---

def nap():
    time.sleep(0.02)  # nap


def root_naps():
    BEGUN.append(1)
    while True:
        nap()  #> nap


def wait_for_mutex():
    MUTEX.acquire()  # mutex
    MUTEX.release()


def root_waits():
    BEGUN.append(1)
    while True:
        wait_for_mutex()  #> wait_for_mutex
        twice(1)  #> twice


def holds():
    with MUTEX:
        time.sleep(0.02)  # holds


def root_holds():
    BEGUN.append(1)
    while True:
        holds()  #> holds
        time.sleep(0.01)  # between


ROOTS = {"cpu": (root_hot, root_calls, root_mixed), "offcpu": (root_naps, root_waits, root_holds)}


def main():
    if len(sys.argv) > 3:
        sys.setswitchinterval(float(sys.argv[3]))
    threads = [threading.Thread(target=root, daemon=True) for root in ROOTS[sys.argv[1]]]
    for thread in threads:
        thread.start()
    while len(BEGUN) < len(threads):
        time.sleep(0.01)
    for thread in threads:
        print("thread", thread.native_id, thread._target.__name__, flush=True)
    print("ready", flush=True)
    sys.stdin.readline()
    clock = time.process_time if sys.argv[1] == "cpu" else time.monotonic
    end = clock() + float(sys.argv[2])
    while clock() < end:
        time.sleep(0.01)
    print("done", flush=True)
    sys.stdin.readline()


main()
