# SPDX-License-Identifier: BSD-2-Clause
"""Prints the line tables of the standard library's code, and the line of each instruction as Python has it.

For Python 3.8 to 3.15. Two lines for each code object: version, first line, table in hex, bytes of code; then
the lines, 0: none.
"""

import dis
import glob
import os
import sys

FILES = 120


def lines_of(code):
    """The line of each instruction, from what the interpreter itself offers."""
    lines = [0] * (len(code.co_code) // 2)
    if hasattr(code, "co_lines"):
        ranges = list(code.co_lines())
    else:
        starts = list(dis.findlinestarts(code))
        ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
        ranges = [(start, end, line) for (start, line), end in zip(starts, ends)]
    for start, end, line in ranges:
        for unit in range(start // 2, end // 2):
            lines[unit] = line or 0
    return lines


def show(code):
    """Prints it, and what is in it."""
    table = code.co_lnotab if sys.version_info < (3, 10) else code.co_linetable
    print(sys.hexversion >> 16, code.co_firstlineno, table.hex() or "-", len(code.co_code))
    print(*lines_of(code))
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            show(constant)


MADE_UP = """
def f(a,
      b=[x for x in
         range(3)]):
    return (a
            if b else


            g(
        a))
""" + "\n" * 300 + """
def far(): return [
""" + "\n" * 500 + """ 1 + f(2),
 x]; y = 1; z = far(
)
"""

show(compile(MADE_UP, "made up", "exec"))
for name in sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))[:FILES]:
    if os.path.exists(name):  # links may lead out of unpacked packages
        with open(name, encoding="utf-8") as file:
            show(compile(file.read(), name, "exec"))
