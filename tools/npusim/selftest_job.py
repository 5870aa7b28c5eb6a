#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A job that profiles itself on the simulated device, through the driver's API. Needs set_env.sh sourced.

selftest_job.py DIR SCENARIO: the data of every channel goes to DIR/channel.N. SCENARIO is `channels`, or a
check of its own: `errors`, `reset`, `clocks`, `busy`.
"""
import ctypes
import os
import struct
import subprocess
import sys
import time
from ctypes import byref, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p

TS, PERIPHERAL = 0, 1
PERIOD = 20
# Of the nine groups the events do not matter to the device: any eight, some of them in pairs.
EVENTS = [0x416, 0x417, 0x9, 0x302, 0xC, 0x303, 0x54, 0x55]
EVENTS_V = [0x8, 0xA, 0x9, 0xB, 0xC, 0xD, 0x54, 0x55]


class StartPara(ctypes.Structure):
    _fields_ = [("type", c_int), ("period", c_uint32), ("real_time", c_uint32), ("user_data", c_void_p),
                ("user_data_size", c_uint32)]


class DevBinary(ctypes.Structure):
    _fields_ = [("magic", c_uint32), ("version", c_uint32), ("data", c_void_p), ("length", c_uint64)]


hal = ctypes.CDLL("libascend_hal.so")


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"selftest_job.py: {what}: {got!r}, not {wanted!r}")


def pairs(events, room):
    padded = events + [0] * (room - len(events))
    return [padded[i] | padded[i + 1] << 16 for i in range(0, room, 2)]


def ffts(kind, room):
    words = [3]
    for events in (EVENTS, EVENTS_V):
        words += [kind, PERIOD, 0xFFFFFFFF, len(events)] + pairs(events, room)
    return words + ([0] * 3 if room == 10 else [0])


def parameters(chip, channel):
    room = 10 if chip == 15 else 8
    table = {
        1: (PERIPHERAL, [PERIOD, 0, 2, 0, 1]),
        3: (PERIPHERAL, []),
        4: (PERIPHERAL, []),
        7: (PERIPHERAL, [PERIOD, 0, 2, 0, 1]),
        8: (PERIPHERAL, [PERIOD, 0]),
        9: (PERIPHERAL, []),
        43: (TS, [1 if chip == 5 else 0, 26214, PERIOD, 0xFFFF, 8] + EVENTS + [0]),
        44: (TS, [PERIOD, 1, 0, 0, 0, 0, 1, 1, 1]),
        45: (TS, [0]),
        47: (TS, [8, 1, 2, 3, 4, 5, 6, 7, 8]),
        50: (TS, [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        51: (TS, []),
        52: (TS, [1, PERIOD] * 7),
        53: (TS, ffts(1, room)),
        54: (TS, ffts(2, room)),
        85: (TS, [1 if chip == 5 else 0, 26214, PERIOD, 0xFFFF, 8] + EVENTS_V + [0]),
        129: (PERIPHERAL, []),
        130: (PERIPHERAL, [PERIOD, 0, 1, 0]),
        131: (PERIPHERAL, [PERIOD, 0, 2, 0]),
        132: (PERIPHERAL, [PERIOD, 1]),
        133: (PERIPHERAL, [PERIOD, 2, 0, 0, 0, 0, 0]),
        134: (TS, [1, 1, 0, 0]),
        142: (PERIPHERAL, [PERIOD, 0, 2, 0]),
        143: (TS, []),
        146: (PERIPHERAL, []),
    }
    return table[channel]


def start(channel, kind, words, period=PERIOD):
    data = (c_uint32 * max(len(words), 1))(*words)
    para = StartPara(kind, period, 1, ctypes.addressof(data) if words else None, 4 * len(words))
    return hal.prof_drv_start(0, channel, byref(para))


def channel_list():
    data = ctypes.create_string_buffer(6408)
    expect("prof_drv_get_channels", hal.prof_drv_get_channels(0, data), 0)
    chip, n = struct.unpack_from("<II", data)
    return chip, [struct.unpack_from("<II", data, 8 + 40 * i + 32)[::-1] for i in range(n)]


class Work:
    """Kernels of three sorts and copies, on one stream."""

    def __init__(self):
        self.rt = ctypes.CDLL("libruntime.so")
        expect("rtSetDevice", self.rt.rtSetDevice(0), 0)
        self.stream = c_void_p()
        expect("rtStreamCreate", self.rt.rtStreamCreate(byref(self.stream), 0), 0)
        self.image = ctypes.create_string_buffer(4096)
        binary, handle = DevBinary(1, 0, ctypes.addressof(self.image), 4096), c_void_p()
        expect("rtDevBinaryRegister", self.rt.rtDevBinaryRegister(byref(binary), byref(handle)), 0)
        self.stubs = [ctypes.create_string_buffer(8) for _ in range(3)]
        for stub, name in zip(self.stubs, (b"MatMulV2_self", b"Add_self", b"Attention_self_mix_aic")):
            expect("rtFunctionRegister", self.rt.rtFunctionRegister(
                handle, c_void_p(ctypes.addressof(stub)), c_char_p(name), None, 0), 0)
        self.memory = ctypes.create_string_buffer(1 << 20)
        self.rt.rtMemcpyAsync.argtypes = [c_void_p, c_uint64, c_void_p, c_uint64, c_int, c_void_p]
        self.rt.rtMemcpyAsyncWithoutCheckKind.argtypes = self.rt.rtMemcpyAsync.argtypes

    def launch(self, n):
        at, half = ctypes.addressof(self.memory), 1 << 19
        for i in range(n):
            expect("rtKernelLaunch", self.rt.rtKernelLaunch(c_void_p(ctypes.addressof(self.stubs[i % 3])), 20 + i % 50,
                                                            None, 0, None, self.stream), 0)
            if i % 10 == 0:
                self.rt.rtMemcpyAsync(at, half, at + half, half, 1, self.stream)
                self.rt.rtMemcpyAsync(at, half, at + half, half // 2, 2, self.stream)
                self.rt.rtMemcpyAsync(at, half, at + half, half, 3, self.stream)
                for peer in (1, 5):  # in the same server, and in another one where there are four in each
                    self.rt.rtMemcpyAsyncWithoutCheckKind(0x500000000000 + (peer << 36), half, at, half, 3, self.stream)
        expect("rtAicpuKernelLaunchExWithArgs", self.rt.rtAicpuKernelLaunchExWithArgs(
            0, c_char_p(b"GetNext_self"), 1, None, None, self.stream, 0), 0)
        expect("rtProfilerTraceEx", self.rt.rtProfilerTraceEx(c_uint64(n), c_uint64(7), 11, self.stream), 0)
        expect("rtStreamSynchronize", self.rt.rtStreamSynchronize(self.stream), 0)


def read_all(channel, data):
    buf = ctypes.create_string_buffer(1 << 20)
    while True:
        n = hal.prof_channel_read(0, channel, buf, len(buf))
        if n <= 0:
            return n
        data[channel] = data.get(channel, b"") + buf.raw[:n]


def drain(seconds, data):
    until = time.monotonic() + seconds
    ready = ctypes.create_string_buffer(8 * 160)
    while time.monotonic() < until:
        n = hal.prof_channel_poll(ready, 160, 1)
        expect("poll", n >= 0, True)
        for i in range(n):
            device, channel = struct.unpack_from("<II", ready, 8 * i)
            expect("device of a poll", device, 0)
            expect(f"read of {channel}", read_all(channel, data), 0)


def channels(directory):
    chip, listed = channel_list()
    for channel, application in listed:
        kind, words = parameters(chip, channel)
        if application and channel not in (43, 85):
            expect(f"start of {channel} without a context", start(channel, kind, words), 115)
    work = Work()
    data = {}
    for channel, _ in listed:
        kind, words = parameters(chip, channel)
        expect(f"start of {channel}", start(channel, kind, words), 0)
    time.sleep(0.1)
    for _ in range(6):
        work.launch(200)
        drain(0.05, data)
    time.sleep(0.1)
    for channel, _ in listed:
        length = c_uint32()
        expect(f"flush of {channel}", hal.halProfDataFlush(0, channel, byref(length)), 0)
        expect(f"last read of {channel}", read_all(channel, data), 0)
        expect(f"stop of {channel}", hal.prof_stop(0, channel), 0)
    for channel, _ in listed:
        with open(os.path.join(directory, f"channel.{channel}"), "wb") as f:
            f.write(data.get(channel, b""))
    with open(os.path.join(directory, "chip"), "w", encoding="ascii") as f:
        f.write(f"{chip}\n")


def order(text):
    path = os.environ["NPUSIM_CONTROL"]
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path + ".new", path)


def errors(_directory):
    kind, words = parameters(5, 1)
    buf, length = ctypes.create_string_buffer(64), c_uint32()
    expect("type", start(1, TS, words), -1)
    expect("short parameters", start(1, kind, words[:2]), -1)
    expect("long parameters", start(1, kind, words + [0] * 40), -1)
    expect("period 9", start(1, kind, words, 9), -1)
    expect("period 10001", start(1, kind, words, 10001), -1)
    expect("no such channel", start(77, kind, words), -1)
    expect("read before start", hal.prof_channel_read(0, 1, buf, 64), -4)
    expect("flush before start", hal.halProfDataFlush(0, 1, byref(length)), -4)
    order("error 0 1 start -10 2\nerror 0 * read -6\nerror * * poll -5 1\nerror 0 1 stop 2326 1\nerror 0 1 flush -1\n"
          "error 0 * channels -8\nslow 0 1 stop 150\n")
    expect("ordered channels", hal.prof_drv_get_channels(0, ctypes.create_string_buffer(6408)), -8)
    expect("ordered start", [start(1, kind, words) for _ in range(4)], [-10, -10, 0, -3])
    expect("ordered read", [hal.prof_channel_read(0, 1, buf, 64) for _ in range(2)], [-6, 0])
    expect("ordered poll", hal.prof_channel_poll(buf, 8, 1), -5)
    expect("ordered flush", [hal.halProfDataFlush(0, 1, byref(length)) for _ in range(2)], [-1, 0])
    begin = time.monotonic()
    expect("ordered stop", [hal.prof_stop(0, 1) for _ in range(3)], [2326, 0, -4])
    expect("slow stop", time.monotonic() - begin > 0.4, True)
    order("# none\n")
    # Another process has the channel; ours waits for its end.
    other = subprocess.Popen([sys.executable, __file__, ".", "busy"], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    other.stdout.readline()
    expect("busy channel", start(1, kind, words), -10)
    other.stdin.close()
    other.wait()
    expect("channel of the dead", start(1, kind, words), 0)
    expect("stop", hal.prof_stop(0, 1), 0)


def busy(_directory):
    kind, words = parameters(5, 1)
    expect("start", start(1, kind, words), 0)
    print("started", flush=True)
    sys.stdin.read()


def counter():
    value = c_int64()
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    expect("counter", hal.halGetDeviceInfo(0, 0, 13, byref(value)), 0)
    return begin, value.value, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def reset(_directory):
    work = Work()
    dcmi = ctypes.CDLL("libdcmi.so")
    power, data = c_int(), {}
    expect("dcmi before dcmi_init", dcmi.dcmi_get_device_power_info(0, 0, byref(power)), -8012)
    expect("dcmi_init", dcmi.dcmi_init(), 0)
    expect("power", (dcmi.dcmi_get_device_power_info(0, 0, byref(power)), power.value > 0), (0, True))
    for channel in (1, 50):
        kind, words = parameters(5, channel)
        expect(f"start of {channel}", start(channel, kind, words), 0)
    work.launch(10)
    before = counter()[1]
    order("reset 0\n")
    time.sleep(0.3)
    expect("read after a reset", [read_all(c, data) for c in (1, 50)], [-4, -4])
    expect("the counter began anew", counter()[1] < before, True)
    expect("DCMI after a reset", dcmi.dcmi_get_device_power_info(0, 0, byref(power)), -8015)
    expect("the context is gone", work.rt.rtStreamSynchronize(work.stream) != 0, True)
    expect("it can be had again", hal.halDeviceOpen(0, None, None), 0)
    expect("start again", start(50, *parameters(5, 50)), 0)
    expect("stop again", hal.prof_stop(0, 50), 0)


def clocks(directory):
    expect("rtSetDevice", ctypes.CDLL("libruntime.so").rtSetDevice(0), 0)
    with open(os.path.join(directory, "clocks"), "w", encoding="ascii") as f:
        for _ in range(400):
            f.write("%d %d %d\n" % counter())
            time.sleep(0.002)


if __name__ == "__main__":
    {"channels": channels, "errors": errors, "busy": busy, "reset": reset, "clocks": clocks}[sys.argv[2]](sys.argv[1])
