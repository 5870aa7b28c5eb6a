# SPDX-License-Identifier: BSD-2-Clause
"""Threads that print their own Python stack, as JSON, and then stay where they are: a line for each.

For Python 3.8 to 3.15. Each line: {"thread": name, "tid": native id, "frames": [[name, file, line]...]},
innermost first; a name as the code object has it. The last thread never releases the interpreter's lock.
"""

import functools
import itertools
import json
import sys
import threading
import time

REPORTED = threading.Semaphore(0)
NEVER = threading.Lock()
NEVER.acquire()
SLEEP = functools.partial(time.sleep, 100000)  # no function of Python


def report(frame, thread):
    """Prints the stack from that frame on."""
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    print(json.dumps({"thread": thread, "tid": threading.get_native_id(), "frames": frames}), flush=True)
    REPORTED.release()


def stay(thread, wait):
    """Reports, and waits on the line that it reported."""
    report(sys._getframe(), thread), wait()


def sleeping():
    stay("sleeping", SLEEP)


def locked():
    def inner(depth):
        return NEVER.acquire() if not depth and not report(sys._getframe(), "locked") else inner(depth - 1)
    inner(50)


def deep():
    def fall(depth):
        if depth:
            fall(
                depth - 1
            )
        else:
            stay("deep", SLEEP)
    sys.setrecursionlimit(10000)
    fall(1200)


def callbacks():
    class Key:
        def __init__(self, value):
            self.value = value

        def __lt__(self, other):
            return list(map(lambda pair: self.compare(*pair), [(self.value, other.value)]))[0]

        @property
        def waits(self):
            return functools.reduce(lambda a, b: stay("callbacks", SLEEP), [1, 2])

        def compare(self, a, b):
            return {name: getattr(self, name) for name in ["waits"]}

        def __getattr__(self, name):
            raise AttributeError(name)

    sorted([3, 1, 2], key=Key)


def generators():
    def leaf():
        yield 1
        stay("generators", SLEEP)
        yield 2

    def middle():
        x = yield from leaf()
        return x

    def outer():
        for value in middle():
            yield (value for value in [value])

    for inner in outer():
        for _ in inner:
            pass


def coroutines():
    async def leaf():
        try:
            raise KeyError
        except KeyError:
            with Context():
                stay("coroutines", SLEEP)

    async def middle():
        async for value in agen():
            await leaf()

    async def agen():
        yield 1

    class Context:
        def __enter__(self):
            return self

        def __exit__(self, *args):
            return False

    middle().send(None)


def constructors():
    class Pair:
        def __init__(self, depth, wait):
            if depth:
                self.next = Pair(depth - 1, wait)
            elif wait:
                stay("constructors", SLEEP)

    for _ in range(1000):  # often enough for the interpreter to specialize the call
        Pair(3, False)
    Pair(3, True)


def classes():
    class Outer:
        class Inner:
            x = [1]
            stay("classes", SLEEP)


def executed():
    exec(compile("def f(n):\n\n  return stay('executed', SLEEP) if not n else f(n - 1)\n\n\nf(3)", "<made up>", "exec"),
         {"stay": stay, "SLEEP": SLEEP})


def größe():
    def 名前(x):
        stay("größe", SLEEP)
    namespace = {"名前": 名前}
    exec(compile("def 𐍈(n):\n  名前(n)\n𐍈(1)", "/tmp/ünï/文件/𐍈.py", "exec"), namespace)


def long_name():
    name = "n" * 200
    text = "def " + name + "():\n" + "\n" * 70000 + "  stay('long_name', SLEEP)\n" + name + "()"
    exec(compile(text, "/" + "d/" * 200 + "f.py", "exec"), {"stay": stay, "SLEEP": SLEEP})


def lines():
    value = [
        len("x"),
        (lambda:
            (1,
             stay("lines", SLEEP),
             2))(),
    ]
    return value


def subinterpreter():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    interpreters.run_string(interpreters.create(), SUBINTERPRETER)


SUBINTERPRETER = """
import json, sys, threading, time
def report(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    print(json.dumps({"thread": "subinterpreter", "tid": threading.get_native_id(), "frames": frames}), flush=True)
def stay():
    report(sys._getframe()), time.sleep(100000)
stay()
"""


def main():
    work = [sleeping, locked, deep, callbacks, generators, coroutines, constructors, classes, executed, größe,
            long_name, lines]
    threading.stack_size(64 << 20)
    for function in work:
        threading.Thread(target=function, daemon=True).start()
        REPORTED.acquire()
    threading.Thread(target=subinterpreter, daemon=True).start()
    time.sleep(1)  # it cannot release ours
    report(sys._getframe(), "main"), print("ready", flush=True), time.sleep(0.5), sum(itertools.repeat(0))


main()
