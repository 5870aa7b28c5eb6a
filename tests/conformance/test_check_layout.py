#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The checker of layout finds what each rule forbids, and takes neither comments nor strings for code.

Every test makes a tree of a few small files.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable

sys.dont_write_bytecode = True

from harness import ROOT, Tests  # noqa: E402

CHECKER = ROOT / "tools/check_layout.py"
BASELINE = "tools/layout_baseline.txt"
Files = dict[str, str]


def write(root: Path, files: Files) -> None:
    """Make a tree."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the checker on a tree."""
    return subprocess.run([sys.executable, CHECKER, "--root", root, *arguments], capture_output=True, text=True,
                          check=False, timeout=300)


def found(files: Files, rule: str) -> list[str]:
    """FILE:LINE of each violation of a rule."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), files)
        done = run(Path(folder), "--list", rule)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert all(line.endswith(f"[{rule}]") for line in lines), done.stdout
        return [":".join(line.split(":")[:2]) for line in lines]


def expect(rule: str, files: Files, *wanted: str) -> None:
    """The violations of a rule are these, in order."""
    got = found(files, rule)
    assert got == list(wanted), f"{rule}: {got}, not {list(wanted)}"


def function(name: str, lines: int) -> str:
    """A function of so many lines."""
    return f"static int {name}(int a)\n{{\n" + "\ta++;\n" * (lines - 4) + "\treturn a;\n}\n"


# --- rules of one file ----------------------------------------------------------------------------

def arguments() -> None:
    expect("args", {
        "bpf/a.bpf.c": "/* args[0] */\n// args[1]\nchar *s = \"args[2]\";\nint x = e->args[3];\n"
                       "#define A(e) e->args [4]\nint y = my_args[5] + args;\nint z = '\"'; int u = args[6];\n",
        "kheaders/event.h": "unsigned args[4];\n",
        "tests/t.py": "args[0]\n",
    }, "bpf/a.bpf.c:4", "bpf/a.bpf.c:5", "bpf/a.bpf.c:7")


def long_files() -> None:
    expect("long-file", {f"{folder}/{lines}{end}": "\n" * lines for folder in ("user", "tools")
                         for lines in (800, 801) for end in (".c", ".h", ".py", ".sh", ".txt")},
           *(f"{folder}/801{end}:1" for folder in ("tools", "user") for end in (".c", ".h", ".py", ".sh")))


def long_functions() -> None:
    brace = "static int odd(int a)\n{\n\tchar *s = \"}\"; /* } */\n\tint c = '}';\n" + "\ta++;\n" * 76 + "}\n"
    branches = "#ifdef A\nint either(int a)\n{\n#else\nint either(int b)\n{\n#endif\n" + "\ta++;\n" * 77 + "}\n" \
        + "int after(void)\n{\n}\n"
    table = "static const struct row rows[] = {\n" + "\t{ F(1), 2 },\n" * 90 + "};\n"
    expect("long-function", {
        "user/a.c": function("short_enough", 80) + function("too_long", 81),
        "user/b.c": brace,
        "user/c.c": branches,
        "user/d.c": table,
        "user/e.c": "ROWS(F)\nstruct big {\n" + "\tint a;\n" * 90 + "};\n"
                    "#define LONG(a) do { \\\n" + "\ta++; \\\n" * 90 + "} while (0)\n",
        "bpf/a.bpf.c": "SEC(\"x\")\nint BPF_PROG(program, int a)\n{\n" + "\ta++;\n" * 80 + "}\n",
    }, "bpf/a.bpf.c:2", "user/a.c:81", "user/b.c:1", "user/c.c:5")


def error_chains() -> None:
    expect("if-not-err", {
        "analyzer/a.c": "if (!err)\nif ( ! err /* x */ )\n/* if (!err) */\n\"if (!err)\";\nif (!error)\n"
                        "if (!err && x)\nwhile (!err)\n#define X if (!err)\nif\n(!err)\n",
    }, "analyzer/a.c:1", "analyzer/a.c:2", "analyzer/a.c:8", "analyzer/a.c:9")


def wide() -> None:
    files = {
        "user/a.c": "/* " + "c" * 104 + " */\n" "/* " + "c" * 105 + " */\n"     # 110 and 111 columns
                    "/*\n * " + "c" * 108 + "\n */\n"
                    "\t// " + "c" * 100 + "\n"
                    "char *s = \"/* " + "s" * 98 + "\";\n"
                    + "a" * 120 + "\n" + "a" * 121 + "\n\t" + "a" * 113 + "\n",
        "tools/a.py": "# " + "c" * 109 + "\nS = \"# " + "s" * 108 + "\"\n",
        "tools/a.sh": "# " + "c" * 109 + "\ncat << EOF\n# " + "c" * 109 + "\nEOF\n",
    }
    expect("wide-comment", files, "tools/a.py:1", "tools/a.sh:1", "user/a.c:2", "user/a.c:4", "user/a.c:6")
    expect("wide-line", files, "user/a.c:9", "user/a.c:10")


def words() -> None:
    expect("word:place", {
        "user/place_it.c": "int put_place(void);\nint put_place(void);\nint replace(int placeholder);\n",
        "user/a.h": "/* takes\n * its place; not in place,\n * nor in\n place */\n#include \"place.h\"\n"
                    "char *s = \"one place\";\n",
        "tests/t.py": "\"\"\"A place.\n\nPlaces.\n\"\"\"\n\nS = \"place\"\nplaces = 1  # place\n",
        "tools/t.sh": "place=1 # place\n",
    }, "tests/t.py:1", "tests/t.py:3", "tests/t.py:7", "tests/t.py:7", "user/a.h:2", "user/a.h:6",
        "user/place_it.c:1", "user/place_it.c:1")
    expect("word:take", {"bpf/a.h": "/* it takes 5 us */\nint take_it(void);\nint retake_it(void);\nint TAKEN;\n"},
           "bpf/a.h:2", "bpf/a.h:4")
    expect("word:sort", {"user/a.c": "/* Each sort, sorted; a sort by time */\nint sort(void);\n/* sorts of rows */\n"},
           "user/a.c:1", "user/a.c:3")
    expect("word:sort", {"user/a.c": "char *s = \"a sort a second, to sort a list\";\n"}, "user/a.c:1")
    expect("word:of-its-own-will", {"user/a.c": "/* asleep of its own will */\n"}, "user/a.c:1")
    expect("word:stubs", {"user/a.c": "int stub;\n", "tests/a.c": "int stub;\n"}, "user/a.c:1")


# --- rules of the whole tree ----------------------------------------------------------------------

def borders() -> None:
    expect("include-up", {
        "analyzer/base/a.c": "#include \"event.h\"\n#include \"log.h\"\n// #include \"log.h\"\n"
                             "/*\n#include \"log.h\"\n*/\n"
                             "char *s = \"\\\n#include \\\"log.h\\\"\";\n#include \"../../bpf/a.bpf.h\"\n",
        "analyzer/base/b.c": "#include \"a.skel.h\"\n#include <log.h>\n",
        "analyzer/analyze.h": "", "analyzer/base/b.h": "", "analyzer/show.h": "",
        "kheaders/event.h": "#include \"../user/log.h\"\n",
        "bpf/a.bpf.h": "#include \"event.h\"\n", "bpf/a.bpf.c": "#include \"a.bpf.h\"\n",
        "user/log.h": "",
        "user/cli/main.c": "#include \"a.skel.h\"\n#include \"analyze.h\"\n#include \"base/b.h\"\n#include \"log.h\"\n",
        "user/injob/a.c": "#include \"event.h\"\n#include \"a.h\"\n#include \"../log.h\"\n#include \"analyze.h\"\n",
        "user/injob/a.h": "",
        "user/injob/agent.c": "#include \"agent_impl.h\"\n#include \"log.h\"\n", "user/injob/agent_impl.h": "",
        "tools/npusim/a.c": "#include \"../../kheaders/event.h\"\n",
        "tests/unit/a.c": "#include \"../../user/log.h\"\n",
    }, "analyzer/base/a.c:2", "analyzer/base/a.c:9", "analyzer/base/b.c:1", "analyzer/base/b.c:2", "kheaders/event.h:1",
        "tools/npusim/a.c:1", "user/cli/main.c:3", "user/injob/a.c:3", "user/injob/a.c:4", "user/injob/agent.c:2")


def layers() -> None:
    headers = ("base/b.h", "model/model.h", "derive/d.h", "export/e.h", "import/import.h", "import/cann/c.h",
               "import/torch/t.h", "import/ascend_db/spec.h", "import/common/c.h", "import/new/n.h", "job.h", "cli/c.h")
    files = {f"analyzer/{name}": "" for name in headers}

    def including(*names: str) -> str:
        return "".join(f"#include \"{name}\"\n" for name in names)

    files |= {
        "analyzer/base/a.c": including("base/b.h", "model/model.h"),
        "analyzer/import/cann/a.c": including("model/model.h", "import/import.h", "import/torch/t.h", "import/cann/c.h",
                                              "import/common/c.h", "derive/d.h"),
        "analyzer/derive/a.c": including("model/model.h", "import/cann/c.h", "import/common/c.h", "export/e.h"),
        "analyzer/export/a.c": including("derive/d.h", "import/ascend_db/spec.h", "import/torch/t.h"),
        "analyzer/import/common/a.c": including("model/model.h", "import/new/n.h"),
        "analyzer/import/new/a.c": including("import/common/c.h", "import/new/n.h", "import/cann/c.h",
                                             "import/torch/t.h"),
        "analyzer/job.c": including(*headers),
        "analyzer/cli/a.c": including(*headers),
    }
    expect("include-up", files, "analyzer/base/a.c:2", "analyzer/derive/a.c:2", "analyzer/derive/a.c:3",
           "analyzer/derive/a.c:4", "analyzer/export/a.c:3", "analyzer/import/cann/a.c:3", "analyzer/import/cann/a.c:6",
           "analyzer/import/common/a.c:2", "analyzer/import/new/a.c:4", "analyzer/job.c:12")


def rooms() -> None:
    chain = ("injob/injob", "core/core", "attach/attach", "driver/driver", "capture/capture", "inject/inject",
             "sources/source", "sources/device/device", "sources/host/host", "cli/cli")
    headers = {f"user/{name}.h": "" for name in (*chain, "sources/stacks/stacks", "worker/worker")}
    includes = "".join(f"#include \"{name}.h\"\n" for name in chain)
    first = {"core/": 3, "attach/": 4, "driver/": 5, "capture/": 6, "inject/": 7, "sources/": 8, "sources/device/": 9,
             "sources/host/": 10, "sources/stacks/": 9, "cli/": 11}
    files = {f"user/{room}a.c": includes for room in first}
    expected = (f"user/{room}a.c:{line}" for room in sorted(first) for line in range(first[room], len(chain) + 1))
    expect("include-up", headers | files | {"user/worker/a.c": includes + "#include \"worker.h\"\n"},
           *expected, *(f"user/worker/a.c:{line}" for line in range(1, len(chain) + 1)))


def circles() -> None:
    files = {
        "analyzer/base/a.h": "#include \"model/m.h\"\n", "analyzer/base/b.h": "#include \"base/a.h\"\n",
        "analyzer/model/m.h": "#include \"base/b.h\"\n", "analyzer/derive/d.h": "#include \"base/b.h\"\n",
        "user/one/a.h": "#include \"two/b.h\"\n", "user/two/b.h": "#include \"three/c.h\"\n",
        "user/three/c.h": "#include \"one/d.h\"\n",
        "user/one/d.h": "", "user/four/e.h": "#include \"one/a.h\"\n",
    }
    expect("cycle", files, "analyzer/base/a.h:1", "user/one/a.h:1", "user/three/c.h:1", "user/two/b.h:1")
    files["analyzer/base/a.h"] = files["user/three/c.h"] = "/* #include */\n"
    expect("cycle", files)


def tags() -> None:
    expect("tag", {
        "user/a.c": "struct group { int a; };\nstruct group *g; /* struct group { */\n"
                    "struct { struct inner { int b; } c; } d;\nenum group { A };\nchar *s = \"struct only {\";\n",
        "user/b.c": "struct group;\nvoid f(struct group *g) { }\nstruct only { int a; };\n",
        "analyzer/a.c": "struct __attribute__((packed)) group\n{ int a; };\nunion { int u; } u;\n",
        "bpf/a.bpf.c": "typedef struct inner { int c; } inner;\nstruct twice { int a; };\n"
                       "#if 0\nstruct twice { int b; };\n#endif\n",
        "tests/unit/a.c": "struct group { int a; };\n",
        "tools/npusim/a.c": "struct only { int a; };\n",
    }, "analyzer/a.c:1", "bpf/a.bpf.c:1", "user/a.c:1", "user/a.c:3")


def static_names() -> None:
    expect("static-name", {
        "user/a.c": "static int add(int a);\nstatic int add(int a)\n{\n}\nstatic int own(void) { return add(1); }\n",
        "user/b.c": "static inline __attribute__((unused)) struct x *add(void (*f)(int))\n{\n\treturn own(f);\n}\n",
        "user/c.c": "/* static int add(void) { */\nchar *s = \"static int own(void) {\";\nint add(void)\n{\n}\n"
                    "static int table[] = { F(x) };\n",
        "analyzer/a.c": "static int add(void)\n{\n}\nstatic int run(void) { }\n",
        "analyzer/b.c": "extern \"C\" {\nstatic int run(void)\n{\n}\n}\n",
        "tests/unit/a.c": "static void add(void) { }\n", "tests/unit/b.c": "static void add(void) { }\n",
    }, "analyzer/a.c:4", "analyzer/b.c:2", "user/a.c:2", "user/b.c:1")


# --- baseline and report --------------------------------------------------------------------------

def ratchet() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        baseline = root / BASELINE
        baseline.parent.mkdir()
        write(root, {"user/a.c": "if (!err)\nif (!err)\n", "user/b.c": "int a;\n"})
        assert run(root).returncode == 2, "no baseline"
        assert run(root, "--update").returncode == 0
        assert "user/a.c if-not-err=2\n" in baseline.read_text() and "user/b.c" not in baseline.read_text()
        done = run(root)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout
        before = baseline.read_text()

        write(root, {"user/b.c": "\nif (!err)\nint place;\n"})
        done = run(root)
        assert done.returncode == 1 and "user/b.c:2: if (!err)" in done.stdout and "user/b.c:3: `place`" in done.stdout
        assert "user/a.c:" not in done.stdout, done.stdout
        done = run(root, "--update")
        assert done.returncode == 1 and "may only fall" in done.stdout, done.stdout
        assert baseline.read_text() == before, "a rise is written"

        write(root, {"user/a.c": "if (!err)\n", "user/b.c": "if (!err)\n"})
        assert run(root).returncode == 1, "one that moved"
        assert run(root, "--update").returncode == 0 and run(root).returncode == 0

        write(root, {"user/b.c": "\n"})
        done = run(root)
        assert done.returncode == 1 and "lower the baseline: run tools/check_layout.py --update" in done.stdout
        assert run(root, "--update").returncode == 0 and run(root).returncode == 0
        (root / "user/a.c").unlink()
        assert run(root).returncode == 1, "a file that has been removed"
        assert run(root, "--update").returncode == 0 and "user/" not in baseline.read_text()
        write(root, {"user/a.c": "if (!err)\n"})
        assert run(root, "--update").returncode == 1, "a rule that had fallen to 0"

        # A rule that the baseline was written without is new: what it counts is accepted once.
        baseline.write_text(baseline.read_text().replace(" if-not-err", ""))
        assert run(root, "--update").returncode == 0 and run(root).returncode == 0
        baseline.write_text(baseline.read_text() + "user/a.c if-not-err=1\n")
        assert run(root).returncode == 2, "twice the same"
        baseline.write_text("<<<<<<< HEAD\n")
        assert run(root).returncode == 2, "a merge that is not resolved"


def report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {
            "analyzer/import/new/a.c": "/* comment\n\n */\n\nint a; /* code */\n"
                                       "char *s = \"//\\\nmore\";\n// comment\n",
            "tests/unit/a.py": "#!/usr/bin/python3\n\"\"\"Doc.\n\nstring\n\"\"\"\nS = \"\"\"\n\ncode\"\"\"\n",
        })
        rows = [line.split(" | ")[:5] for line in run(Path(folder), "--report").stdout.splitlines()]
        assert ["| analyzer/import/new", "1", "3", "3", "2"] in rows, rows
        assert ["| tests/unit", "1", "3", "4", "1"] in rows, rows
        assert ["| all", "2", "6", "7", "3"] in rows, rows


def main() -> int:
    tests = Tests()
    checks: tuple[Callable[[], None], ...] = (
        arguments, long_files, long_functions, error_chains, wide, words, borders, layers, rooms, circles, tags,
        static_names, ratchet, report)
    for check in checks:
        if not sys.argv[1:] or any(word in check.__name__ for word in sys.argv[1:]):
            tests.run(check.__name__.replace("_", " "), check)
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
