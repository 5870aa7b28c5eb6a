#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The training-like job in Python, through ctypes.

Like PyTorch on this hardware it runs phase 1 of an operator in the main thread and phase 2 in a thread
named acl_thread, loads the operator library with the first operator, makes the tensors of an operator for
each call, and queries the cache of executors.
"""
import argparse
import ctypes
import functools
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int8, c_int64, c_size_t, c_uint32, c_uint64, \
    c_void_p
from typing import NamedTuple

H2D = 1
FLOAT16, BFLOAT16, FORMAT_ND, FORMAT_NZ = 1, 27, 2, 29
HCCL_FP16, HCCL_SUM = 3, 0
PR_SET_NAME = 15
ROOT_INFO_BYTES = 4108
ELEMENTS = 1 << 20
BYTES = 2 * ELEMENTS
LAYERS = 4
LAUNCHES_PER_STEP = 3 + LAYERS * 8

# name -> argument types; every handle is a c_void_p, or ctypes would cut it to an int
ACL = {
    "aclInit": [c_char_p],
    "aclFinalize": [],
    "aclrtSetDevice": [c_int],
    "aclrtResetDevice": [c_int],
    "aclrtCreateStream": [POINTER(c_void_p)],
    "aclrtDestroyStream": [c_void_p],
    "aclrtSynchronizeStream": [c_void_p],
    "aclrtCreateEventWithFlag": [POINTER(c_void_p), c_uint32],
    "aclrtDestroyEvent": [c_void_p],
    "aclrtRecordEvent": [c_void_p, c_void_p],
    "aclrtStreamWaitEvent": [c_void_p, c_void_p],
    "aclrtMalloc": [POINTER(c_void_p), c_size_t, c_int],
    "aclrtFree": [c_void_p],
    "aclrtMallocHost": [POINTER(c_void_p), c_size_t],
    "aclrtFreeHost": [c_void_p],
    "aclrtMemcpyAsync": [c_void_p, c_size_t, c_void_p, c_size_t, c_int, c_void_p],
}
HCCL = {
    "HcclGetRootInfo": [c_void_p],
    "HcclCommInitRootInfo": [c_uint32, c_void_p, c_uint32, POINTER(c_void_p)],
    "HcclCommDestroy": [c_void_p],
    "HcclAllReduce": [c_void_p, c_void_p, c_uint64, c_int, c_int, c_void_p, c_void_p],
}
OPERATORS = {
    "aclnnMatmul": [c_void_p, c_void_p, c_void_p, c_int8],
    "aclnnLayerNorm": [c_void_p, c_void_p, c_void_p, c_void_p, c_double, c_void_p, c_void_p, c_void_p],
    "aclnnGelu": [c_void_p, c_void_p],
    "aclnnSoftmax": [c_void_p, c_int64, c_void_p],
    "aclnnGeluBackward": [c_void_p, c_void_p, c_void_p],
    "aclnnMul": [c_void_p, c_void_p, c_void_p],
}


class Library:
    """A library whose functions fail the job when they do not return 0."""

    def __init__(self, name, functions):
        self._lib = ctypes.CDLL(name)
        for function, types in functions.items():
            getattr(self._lib, function).argtypes = types
            setattr(self, function, self._checked(function))

    def _checked(self, name):
        function = getattr(self._lib, name)

        def call(*args):
            err = function(*args)
            if err:
                raise RuntimeError(f"{name}: error {err}")
        return call


class Tensor(NamedTuple):
    """The tensor of an operator; the aclTensor is made for one call."""

    rows: int
    type: int
    format: int


class Executors:
    """libnnopbase: the tensors and the cache of executors."""

    def __init__(self):
        lib = ctypes.CDLL("libnnopbase.so")
        self.create, self.destroy = lib.aclCreateTensor, lib.aclDestroyTensor
        self.create.restype = c_void_p
        self.create.argtypes = [c_void_p, c_uint64, c_int, c_void_p, c_int64, c_int, c_void_p, c_uint64, c_void_p]
        self.destroy.argtypes = [c_void_p]
        self.cached = lib.PTAGetExecCache
        self.cached.restype = c_void_p
        self.cached.argtypes = [c_uint64, POINTER(c_uint64)]
        self.set_key = lib.SetPTAHashKey
        self.set_key.argtypes = [c_uint64]
        self.begin, self.end = lib.InitHugeMemThreadLocal, lib.UnInitHugeMemThreadLocal
        self.begin.argtypes = self.end.argtypes = [c_void_p, c_bool]

    def tensor(self, tensor, data):
        columns = ELEMENTS // tensor.rows
        dims, strides = (c_int64 * 2)(tensor.rows, columns), (c_int64 * 2)(columns, 1)
        return c_void_p(self.create(dims, 2, tensor.type, strides, 0, tensor.format, dims, 2, data))


class Operators:
    """Phase 1 here, phase 2 in acl_thread. Every second call queries the cache; a hit has no phase 1."""

    def __init__(self, device, acl):
        self._calls = 0
        self._nnop = Executors()
        self._functions = {name + "GetWorkspaceSize": types + [POINTER(c_uint64), POINTER(c_void_p)]
                           for name, types in OPERATORS.items()}
        self._functions.update({name: [c_void_p, c_uint64, c_void_p, c_void_p] for name in OPERATORS})
        self._library = None
        self._queue = queue.SimpleQueue()
        self._acl = acl
        self._device = device
        self._error = None
        self._thread = threading.Thread(target=self._consume, daemon=True)
        self._thread.start()

    def _consume(self):
        ctypes.CDLL(None).prctl(PR_SET_NAME, b"acl_thread", 0, 0, 0)
        self._acl.aclrtSetDevice(self._device)
        while True:
            call = self._queue.get()
            if call is None:
                return
            try:
                call()
            except RuntimeError as error:
                self._error = error

    def defer(self, call):
        self._queue.put(call)

    def drain(self):
        done = threading.Event()
        self._queue.put(done.set)
        done.wait()
        if self._error:
            raise self._error

    def stop(self):
        self._queue.put(None)
        self._thread.join()

    def run(self, stream, name, *args):
        if not self._library:
            self._library = Library("libopapi.so", self._functions)
        self._calls += 1
        nnop, workspace, executor, made = self._nnop, c_uint64(), c_void_p(), []
        nnop.begin(None, False)
        if self._calls % 2:
            key = zlib.crc32(repr((name, args)).encode())
            executor.value = nnop.cached(key, byref(workspace))
            if not executor:
                nnop.set_key(key)
        if not executor:
            made = [nnop.tensor(arg, None) for arg in args if isinstance(arg, Tensor)]
            tensors = iter(made)
            passed = [next(tensors) if isinstance(arg, Tensor) else arg for arg in args]
            getattr(self._library, name + "GetWorkspaceSize")(*passed, byref(workspace), byref(executor))
        nnop.end(None, False)
        self.defer(functools.partial(self._phase_2, name, workspace.value, executor.value, stream, made))

    def _phase_2(self, name, workspace, executor, stream, made):
        getattr(self._library, name)(None, workspace, executor, stream)
        for tensor in made:
            self._nnop.destroy(tensor)


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class StepLog:
    def __init__(self):
        directory = os.environ.get("NPUSIM_TRUTH")
        self._file = open(f"{directory}/truth.{os.getpid()}.steps.tsv", "w", buffering=1) if directory else None

    def put(self, step, begin, end):
        if self._file:
            self._file.write(f"step\t{step}\t{begin}\t{end}\n")

    def close(self):
        if self._file:
            self._file.write("end\texit\n")
            self._file.close()


class Rank:
    def __init__(self, args):
        self.args = args
        self.rank = int(os.environ["RANK"])
        self.world = int(os.environ["WORLD_SIZE"])
        self.device = int(os.environ["LOCAL_RANK"])
        self.directory = os.environ["NPUSIM_TRAIN_DIR"]
        self.stopping = False
        self.loss = 0
        here = os.path.dirname(os.path.realpath(__file__))
        self.mark = ctypes.CDLL(os.path.join(here, "libtrainmark.so")).train_step_begin
        self.mark.argtypes = [ctypes.c_long]
        self.acl = Library("libascendcl.so", ACL)
        self.hccl = Library("libhccl.so", HCCL)

    def handle(self, create, *args):
        handle = c_void_p()
        create(byref(handle), *args)
        return handle

    def path(self, name):
        return os.path.join(self.directory, name)

    def root_info(self):
        root = ctypes.create_string_buffer(ROOT_INFO_BYTES)
        if self.rank == 0:
            self.hccl.HcclGetRootInfo(root)
            with open(self.path("root.part"), "wb") as f:
                f.write(root.raw)
            os.rename(self.path("root.part"), self.path("root"))
        while not os.path.exists(self.path("root")):
            time.sleep(0.001)
        with open(self.path("root"), "rb") as f:
            root.raw = f.read()
        return root

    def set_up(self):
        acl = self.acl
        acl.aclInit(None)
        acl.aclrtSetDevice(self.device)
        self.steps = StepLog()
        self.compute = self.handle(acl.aclrtCreateStream)
        self.communication = self.handle(acl.aclrtCreateStream)
        self.computed = self.handle(acl.aclrtCreateEventWithFlag, 1)
        self.reduced = self.handle(acl.aclrtCreateEventWithFlag, 8)
        self.comm = c_void_p()
        self.hccl.HcclCommInitRootInfo(self.world, self.root_info(), self.rank, byref(self.comm))
        self.gradients = self.handle(acl.aclrtMalloc, BYTES, 0)
        self.batch = self.handle(acl.aclrtMallocHost, BYTES // 16)
        self.operators = Operators(self.device, acl)

    def tear_down(self):
        acl = self.acl
        self.operators.stop()
        self.hccl.HcclCommDestroy(self.comm)
        acl.aclrtFreeHost(self.batch)
        acl.aclrtFree(self.gradients)
        acl.aclrtDestroyEvent(self.computed)
        acl.aclrtDestroyEvent(self.reduced)
        acl.aclrtDestroyStream(self.communication)
        acl.aclrtDestroyStream(self.compute)
        acl.aclrtResetDevice(self.device)
        acl.aclFinalize()
        self.steps.close()

    def load_batch(self):
        with open(self.path("dataset"), "rb") as f:
            data = f.read()
        ctypes.memmove(self.batch, data, len(data))

    @staticmethod
    def tensors(layer):
        """Two activations and a weight; each layer has shapes of its own."""
        return (Tensor(256 << layer, FLOAT16, FORMAT_ND), Tensor(128 << layer, BFLOAT16, FORMAT_ND),
                Tensor(64 << layer, FLOAT16, FORMAT_NZ))

    def step(self, step):
        self.mark(step)
        begin = raw_ns()
        acl, run, compute = self.acl, self.operators.run, self.compute
        self.load_batch()
        activations = self.handle(acl.aclrtMalloc, BYTES, 0)
        acl.aclrtMemcpyAsync(activations, BYTES, self.batch, BYTES // 16, H2D, compute)
        for layer in range(LAYERS):
            x, y, w = self.tensors(layer)
            run(compute, "aclnnLayerNorm", x, None, w, w, 1e-5, y, None, None)
            run(compute, "aclnnMatmul", x, w, y, 0)
            run(compute, "aclnnGelu", y, x)
            run(compute, "aclnnMatmul", y, w, x, 0)
        run(compute, "aclnnSoftmax", x, -1, y)
        for layer in reversed(range(LAYERS)):
            x, y, w = self.tensors(layer)
            run(compute, "aclnnGeluBackward", x, y, x)
            run(compute, "aclnnMatmul", w, x, y, 0)
            run(compute, "aclnnMatmul", w, y, x, 0)
            run(compute, "aclnnMul", x, y, y)
        self.operators.defer(self.reduce)
        self.operators.drain()
        acl.aclrtSynchronizeStream(compute)
        acl.aclrtFree(activations)
        self.loss = (self.loss * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        self.steps.put(step, begin, raw_ns())

    def reduce(self):
        acl = self.acl
        acl.aclrtRecordEvent(self.computed, self.compute)
        acl.aclrtStreamWaitEvent(self.communication, self.computed)
        self.hccl.HcclAllReduce(self.gradients, self.gradients, ELEMENTS, HCCL_FP16, HCCL_SUM, self.comm,
                                self.communication)
        acl.aclrtRecordEvent(self.reduced, self.communication)
        acl.aclrtStreamWaitEvent(self.compute, self.reduced)

    def must_stop(self, step, start):
        """Ranks are at most a step apart, so a stop two steps ahead is in everybody's future."""
        try:
            with open(self.path("stop"), encoding="ascii") as f:
                return step >= int(f.read())
        except FileNotFoundError:
            pass
        if self.args.steps and step >= self.args.steps:
            return True
        if self.stopping or (self.args.seconds and raw_ns() - start >= self.args.seconds * 1e9):
            part = self.path(f"stop.{self.rank}")
            with open(part, "w", encoding="ascii") as f:
                f.write(str(step + 2))
            try:
                os.link(part, self.path("stop"))
            except FileExistsError:
                pass
        return False

    def request_stop(self, *_):
        self.stopping = True

    def main(self):
        signal.signal(signal.SIGTERM, self.request_stop)
        signal.signal(signal.SIGINT, self.request_stop)
        self.set_up()
        open(self.path(f"ready.{self.rank}"), "w", encoding="ascii").close()
        start, step = raw_ns(), 0
        due = start
        while not self.must_stop(step, start):
            self.step(step)
            step += 1
            due = max(due + LAUNCHES_PER_STEP * 10 ** 9 // self.args.rate, raw_ns())
            time.sleep((due - raw_ns()) / 1e9 if due > raw_ns() else 0)
        if self.rank == 0:
            print(f"result steps={step} loss={(self.loss >> 11) / (1 << 53):.6f} checksum={self.loss:016x}", flush=True)
        self.tear_down()


def launch(args):
    with tempfile.TemporaryDirectory(prefix="npusim-train.") as directory:
        with open(os.path.join(directory, "dataset"), "wb") as f:
            f.write(os.urandom(BYTES // 16))
        ranks = []
        for rank in range(args.ranks):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks),
                       NPUSIM_TRAIN_DIR=directory)
            ranks.append(subprocess.Popen([sys.executable, os.path.realpath(__file__), *sys.argv[1:]], env=env))

        def forward(signum, _):
            for rank in ranks:
                rank.send_signal(signum)
        signal.signal(signal.SIGTERM, forward)
        signal.signal(signal.SIGINT, forward)
        while not all(os.path.exists(os.path.join(directory, f"ready.{r}")) for r in range(args.ranks)):
            if any(r.poll() for r in ranks):
                break
            time.sleep(0.005)
        else:
            if args.pidfile:
                with open(args.pidfile, "w", encoding="ascii") as f:
                    f.writelines(f"{r.pid}\n" for r in ranks)
            print("ready", *(r.pid for r in ranks), flush=True)
        return 1 if any([r.wait() for r in ranks]) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2, help="processes, one device each (default 2)")
    parser.add_argument("--rate", type=int, default=1000, help="launches a second per rank, at most (default 1000)")
    parser.add_argument("--seconds", type=float, default=0, help="stop after so many seconds")
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps; default: run until SIGTERM")
    parser.add_argument("--pidfile", help="write the rank pids, one a line, when training begins")
    args = parser.parse_args()
    if "NPUSIM_TRAIN_DIR" in os.environ:
        Rank(args).main()
        return 0
    return launch(args)


if __name__ == "__main__":
    sys.exit(main())
