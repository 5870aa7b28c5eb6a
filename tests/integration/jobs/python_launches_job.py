#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Launches kernels from all kinds of Python code, and writes the interpreter's own view of each stack.

python_launches_job.py LOG [KIND]: LOG gets a line of JSON for each launch: thread id, and the frames as
[file, line, qualified name], innermost first. KIND is `shapes`; `fresh`: code that is made and freed again
and again; or `evil:LIBRARY`: a library that launches with made-up thread states.
"""
import ctypes
import json
import os
import sys
import threading

acl = ctypes.CDLL("libascendcl.so")
acl.aclrtLaunchKernel.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
acl.aclrtCreateStream.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
acl.aclrtSynchronizeStream.argtypes = [ctypes.c_void_p]
acl.aclrtBinaryLoadFromFile.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
acl.aclrtBinaryGetFunction.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
KERNEL = "opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b/eval_metric_custom.o"

log = open(sys.argv[1], "w", encoding="utf-8")
log_lock = threading.Lock()
local = threading.local()
function = ctypes.c_void_p()


def frames_of(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    return frames


def launch():
    stack = frames_of(sys._getframe()); error = acl.aclrtLaunchKernel(function, 8, None, 0, local.stream)
    assert not error, error
    with log_lock:
        log.write(json.dumps([threading.get_native_id(), stack]) + "\n")


class Model:
    def forward(self, depth):
        if depth:
            return self.forward(depth - 1)
        launch()
        return depth

    @staticmethod
    def fixed():
        launch()

    @classmethod
    def of_class(cls):
        cls.fixed()

    @property
    def value(self):
        launch()
        return 1

    def __call__(self):
        self.forward(0)


def generate():
    for i in range(3):
        launch()
        yield i


def delegating():
    yield from generate()


def key(x):
    launch()
    return x


def größe_测试_𝓍():
    def внутри():
        launch()
    внутри()


def deep(n):
    if n:
        deep(n - 1)
    else:
        launch()


def shapes():
    launch()
    model = Model()
    for depth in range(6):
        model.forward(depth)
    Model.of_class()
    model.value
    model()
    (lambda: launch())()
    f = lambda x: (
        x,
        launch(),
    )
    f(1)
    [launch() for _ in range(2)]
    {i: launch() for i in range(2)}
    list(launch() for _ in range(2))
    for _ in generate():
        launch()
    list(delegating())
    sorted([3, 1, 2], key=key)
    list(map(key, [1, 2]))
    größe_测试_𝓍()
    deep(20)
    deep(90)
    exec(compile("def made():\n\n\n    launch()\nmade()\n", "<made\u00e9>", "exec"), {"launch": launch})
    eval("launch()")
    try:
        raise ValueError
    except ValueError:
        launch()
    finally:
        launch()
    with Context():
        launch()
    exec("def " + "n" * 150 + "():\n launch()\n" + "n" * 150 + "()", {"launch": launch})
    long_function()
    named["n" * 700]()
    named["ж" * 700]()


class Context:
    def __enter__(self):
        launch()

    def __exit__(self, *_):
        launch()


LONG = "def long_function():\n" + "".join(f"    x{i} = {i} + len(str({i}))\n" for i in range(400)) + "    launch()\n"
exec(compile(LONG, "long.py", "exec"))


named = {"launch": launch}
exec("def " + "n" * 700 + "():\n launch()\ndef " + "ж" * 700 + "():\n launch()\n", named)


def fresh(names):
    """The objects of one round are freed before the next, which gets their memory."""
    for i in range(names):
        text = "\n" * (i % 7) + f"def fresh_{i % 10}{i}():\n" + "\n" * (i % 5) + f"    launch()\nfresh_{i % 10}{i}()\n"
        exec(compile(text, f"file{i % 3}.py", "exec"), {"launch": launch})


def evil(lib, how):
    """Launches with a made-up thread state: not logged, as it has no stack that makes sense."""
    call = ctypes.PyDLL(lib).evil_launch  # without releasing the lock: nobody else sees it
    call.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint]
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    key = ctypes.c_uint.from_address(runtime + 596).value  # autoTSSkey of 3.11 on x86-64
    launch_at = ctypes.cast(acl.aclrtLaunchKernel, ctypes.c_void_p)
    error = call(launch_at, function, local.stream, how, id(evil.__code__), key)
    assert not error, error


def run(kind, rounds):
    acl.aclrtSetDevice(0)
    local.stream = ctypes.c_void_p()
    acl.aclrtCreateStream(ctypes.byref(local.stream))
    for _ in range(rounds):
        if kind == "fresh":
            fresh(300)
        elif kind.startswith("evil:"):
            for how in range(6):
                launch()
                evil(kind[len("evil:"):], how)
        else:
            shapes()
    acl.aclrtSynchronizeStream(local.stream)


def load():
    binary = ctypes.c_void_p()
    path = os.path.join(os.environ["ASCEND_TOOLKIT_HOME"], KERNEL)
    error = acl.aclrtBinaryLoadFromFile(path.encode(), None, ctypes.byref(binary))
    assert not error, f"{path}: {error}"
    error = acl.aclrtBinaryGetFunction(binary, b"eval_metric_custom", ctypes.byref(function))
    assert not error, error


def main():
    kind = sys.argv[2] if len(sys.argv) > 2 else "shapes"
    acl.aclInit(None)
    acl.aclrtSetDevice(0)
    load()
    print("ready", flush=True)
    sys.stdin.readline()
    threads = [threading.Thread(target=run, args=(kind, 20), name=f"worker {i}") for i in range(3)]
    for t in threads:
        t.start()
    run(kind, 20)
    for t in threads:
        t.join()
    log.close()
    print("done", flush=True)
    sys.stdin.readline()


main()
