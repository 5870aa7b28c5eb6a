#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names of the operators of the installed PyTorch, from the symbols and texts of its library.

Witness: what PyTorch itself registered, with names and overloads apart."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from harness import ROOT, Case, main, need, need_program, test

PYTHON = "/usr/bin/python3"  # of the system, for which PyTorch is packaged
SCHEMAS = """
import json, torch
print(json.dumps([(s.name, s.overload_name) for s in torch._C._jit_get_all_schemas()]))
print(torch.__file__)
"""
CPU_US = 300_000  # that reading the schemas may take


@test(seconds=300)
def all_operators(case: Case) -> None:
    """Each operator that the library exports has the name and the overload that it is registered with."""
    run = subprocess.run([PYTHON, "-c", SCHEMAS], capture_output=True, text=True, check=False)
    need(run.returncode == 0, "python3-torch")
    schemas, package = run.stdout.splitlines()
    library = torch_library(Path(package))
    expected = {}
    for name, overload in json.loads(schemas):
        if name.startswith("aten::"):
            struct = name[len("aten::"):] + ("_" + overload if overload else "")
            expected.setdefault(struct, set()).add(name + ("." + overload if overload else ""))
    assert all(len(names) == 1 for names in expected.values())
    found = case.run([ROOT / "build" / "tests" / "torch_names", library]).expect(0)
    names = {line.split()[1]: line.split()[0] for line in found.out.splitlines()}
    exported = {symbol for symbol in exports(library) if re.match(r"_ZN2at4_ops\d+\w+?4callE", symbol)}
    assert set(names) == exported and len(exported) > 1000, f"{len(names)} {len(exported)}"
    wrong = {symbol: name for symbol, name in names.items() if expected.get(struct_of(symbol)) != {name}}
    assert not wrong, f"{len(wrong)} {list(wrong.items())[:5]}"
    assert int(found.err) < CPU_US, found.err


HEADERS = Path("/usr/include/ATen/ops")  # of libtorch-dev
IN_REGISTERS = {"void", "bool", "int64_t", "double", "at::Tensor &", "const at::Tensor &", "at::ScalarType",
                "at::QScheme"}


@test(seconds=300)
def results_and_inputs(case: Case) -> None:
    """Where an operator's result is, and how many inputs it has, is what its C++ declaration states."""
    need((HEADERS / "add_ops.h").exists(), "libtorch-dev")
    declared = {}
    for header in HEADERS.glob("*_ops.h"):
        for struct, result, inputs in re.findall(r"^struct TORCH_API (\w+) {.*?^  static (.*?) call\((.*?)\);$",
                                                 header.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", inputs))
            declared[struct] = ("registers" if result in IN_REGISTERS else "memory", plain.count(",") + bool(plain))
    library = next(Path("/usr/lib").glob("*/libtorch_cpu.so.1.13*")).resolve()
    found = case.run([ROOT / "build" / "tests" / "torch_names", library]).expect(0)
    lines = [line.split() for line in found.out.splitlines()]
    results = {struct_of(symbol): result for _name, symbol, result, _inputs in lines if result != "unknown"}
    wrong = {struct: result for struct, result in results.items() if declared[struct][0] != result}
    assert not wrong and len(results) > 0.99 * len(lines), f"{len(results)} of {len(lines)}, {list(wrong.items())[:5]}"
    counts = {struct_of(symbol): int(inputs) for _name, symbol, _result, inputs in lines if inputs != "-"}
    wrong = {struct: n for struct, n in counts.items() if declared[struct][1] != n}
    assert not wrong and len(counts) > 0.99 * len(lines), f"{len(counts)} of {len(lines)}, {list(wrong.items())[:5]}"


def torch_library(package: Path) -> Path:
    """libtorch_cpu.so of the package, or that of the system where it links to."""
    return next(iter(package.parent.glob("lib/libtorch_cpu.so*"))).resolve()


def exports(library: Path) -> list[str]:
    """Functions that are defined in its dynamic symbols."""
    need_program("nm", "binutils")
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return [line.split()[2] for line in out.splitlines() if line.split()[1] in "TtW"]


def struct_of(symbol: str) -> str:
    """Of _ZN2at4_ops10add_Tensor4callE... it is add_Tensor."""
    digits = re.match(r"_ZN2at4_ops(\d+)", symbol)
    assert digits
    return symbol[digits.end():][:int(digits[1])]


if __name__ == "__main__":
    sys.exit(main())
