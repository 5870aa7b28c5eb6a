#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Return codes of the profiling channel and the counter, by the driver's API. Needs set_env.sh sourced."""
import ctypes
import os
import sys
import time
from ctypes import byref, c_int, c_int64, c_uint32, c_void_p

STARS = 50
SYSTEM, SYS_COUNT, DEV_OSC = 0, 13, 25


class StartPara(ctypes.Structure):
    _fields_ = [("type", c_int), ("period", c_uint32), ("real_time", c_uint32), ("user_data", c_void_p),
                ("user_data_size", c_uint32)]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"selftest_channel.py: {what}: {got}, not {wanted}")


def main():
    hal = ctypes.CDLL("libascend_hal.so")
    config = (c_uint32 * 11)(1)
    para = StartPara(0, 20, 1, ctypes.addressof(config), 44)
    value, first = c_int64(), c_int64()

    expect("start without a device", hal.prof_drv_start(0, STARS, byref(para)), 115)
    expect("counter", hal.halGetDeviceInfo(0, SYSTEM, SYS_COUNT, byref(first)), 0)
    expect("frequency", (hal.halGetDeviceInfo(0, SYSTEM, DEV_OSC, byref(value)), value.value), (0, 50000))
    time.sleep(0.5)
    hal.halGetDeviceInfo(0, SYSTEM, SYS_COUNT, byref(value))
    expect("counter runs at 50 MHz", 24.9e6 < value.value - first.value < 27e6, True)

    acl = ctypes.CDLL("libascendcl.so")
    expect("aclrtSetDevice", acl.aclrtSetDevice(0), 0)
    expect("stop of a stopped channel", hal.prof_stop(0, STARS), -4)
    expect("poll without a channel", hal.prof_channel_poll(ctypes.create_string_buffer(8), 1, 1), -4)
    if "--busy" in sys.argv:
        expect("start of another's channel", hal.prof_drv_start(0, STARS, byref(para)), -10)
        return
    expect("start", hal.prof_drv_start(0, STARS, byref(para)), 0)
    expect("second start", hal.prof_drv_start(0, STARS, byref(para)), -3)
    expect("another process", os.spawnv(os.P_WAIT, sys.executable, [sys.executable, __file__, "--busy"]), 0)
    begin = time.monotonic()
    expect("poll of an idle channel", hal.prof_channel_poll(ctypes.create_string_buffer(8), 1, 1), 0)
    expect("poll timeout", 0.9 < time.monotonic() - begin < 2, True)
    expect("read of an idle channel", hal.prof_channel_read(0, STARS, ctypes.create_string_buffer(64), 64), 0)
    expect("stop", hal.prof_stop(0, STARS), 0)
    expect("start again", hal.prof_drv_start(0, STARS, byref(para)), 0)
    expect("stop again", hal.prof_stop(0, STARS), 0)


if __name__ == "__main__":
    main()
