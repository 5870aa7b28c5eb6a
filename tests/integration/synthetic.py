# SPDX-License-Identifier: BSD-2-Clause
"""Sessions with known content, made without a capture."""

from __future__ import annotations

import json
from pathlib import Path

from harness import BUILD, ROOT, Case, need_program

KERNELS = 30


def session(case: Case, name: str = "npuscope_session", kernels: int = KERNELS, *words: str) -> Path:
    """Of two ranks, which call CANN and the system; words: of the generator."""
    generator = BUILD / "bench" / "gen_session"
    if not generator.exists():
        generator = case.path("gen_session")
        case.run([need_program("gcc", "gcc"), "-std=gnu11", "-O1", "-w", "-D_GNU_SOURCE", "-o", generator,
                  f"-I{ROOT}/kheaders", f"-I{ROOT}/analyzer", f"-I{ROOT}/tests/unit",
                  ROOT / "tools" / "bench" / "gen_session_main.c", ROOT / "tests" / "unit" / "gen_session.c", "-lz",
                  "-lm"]).expect(0)
    case.run([generator, case.path(name), kernels, *words]).expect(0)
    return case.path(name)


def of_the_whole_host(path: Path) -> Path:
    """The session at PATH as one of `record -a`."""
    document = json.loads((path / "session.json").read_text())
    document["request"]["all"] = True
    (path / "session.json").write_text(json.dumps(document))
    return path
