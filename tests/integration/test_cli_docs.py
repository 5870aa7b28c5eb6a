#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Man pages and completions of shells have what the help has."""

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

from harness import DONE, ROOT, Case, main, need_program, test, wait_until

DOCS = ROOT / "build" / "cli_docs"
COMMANDS = ("record", "analyze", "show", "doctor")


def options_of(case: Case, command: str) -> list[str]:
    """Long options of a command, in the order of its help."""
    return re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)", case.npuscope(command, "--help").expect(DONE).out, re.M)


def words_of(text: str) -> str:
    return " ".join(text.split())


@test
def options_of_the_documents_exist(case: Case) -> None:
    """README and docs name no option that no command has."""
    known = {name for command in COMMANDS for name in options_of(case, command)} | {"version"}
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        strange = set(re.findall(r"--([a-z][a-z0-9-]*[a-z0-9])(?![a-z0-9*-])", path.read_text())) - known
        assert not strange, f"{path.name}: {strange}"


# ---- man pages ---------------------------------------------------------------------------------

def page(name: str) -> str:
    """As man prints it, without what the terminal would do with it."""
    done = subprocess.run(["man", "--warnings", "-l", DOCS / f"{name}.1"], capture_output=True, text=True, check=True,
                          env={**os.environ, "MANWIDTH": "1000", "LC_ALL": "C", "MAN_KEEP_FORMATTING": "",
                               "TERM": "dumb"})
    assert not done.stderr, done.stderr
    return re.sub(r".\x08|\x1b\[\d*m", "", done.stdout)


@test
def pages_have_no_mistakes(_case: Case) -> None:
    need_program("mandoc", "mandoc")
    for path in [DOCS / "npuscope.1", *(DOCS / f"npuscope-{command}.1" for command in COMMANDS)]:
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0 and not done.stdout, done.stdout


@test
def pages_have_every_option(case: Case) -> None:
    """... in the order of the help, with its text, its values and its default."""
    need_program("man", "man-db")
    for command in COMMANDS:
        text = page(f"npuscope-{command}")
        assert re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", text, re.M) == options_of(case, command), text
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
            assert re.search(rf"^{heading}$", text, re.M), f"{command}: no {heading}"
    text = words_of(page("npuscope-record"))
    for part in ("--host-sys-freq=HZ Samples a second (1 to 1000, default: 50)", "2 calls of the runtime's layer, too",
                 "-d, --duration=TIME How long", "record -p 4242 -d 10s -o /data/captures",
                 "3 done, but something was lost"):
        assert part in text, f"{part!r} is not in {text}"


@test
def page_of_the_program(case: Case) -> None:
    need_program("man", "man-db")
    text = words_of(page("npuscope"))
    for command, summary in re.findall(r"^  (\w+) +(\S.*)$", case.npuscope("--help").expect(DONE).out, re.M):
        assert f"npuscope-{command}(1) {summary}" in text, text


# ---- bash --------------------------------------------------------------------------------------

def bash(*words: str, directory: Path = ROOT) -> list[str]:
    """What bash completes of the last of WORDS, as readline splits them."""
    script = 'compopt() { :; } && source "$1" && shift && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _npuscope && ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", DOCS / "npuscope.bash", "npuscope", *words],
                          cwd=directory,
                          capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.split("\n") if line]


@test
def bash_commands(_case: Case) -> None:
    assert bash("") == [*COMMANDS, "help", "--help", "--version"]
    assert bash("re") == ["record"] and bash("help", "sh") == ["show"] and not bash("x")


@test
def bash_options(case: Case) -> None:
    for command in COMMANDS:
        assert bash(command, "--") == ["--" + name for name in options_of(case, command)], command
    assert bash("record", "--le") == ["--level"] and \
        bash("record", "-q", "--max-") == ["--max-overhead", "--max-size", "--max-log-rate"]


@test
def bash_words(case: Case) -> None:
    assert bash("record", "--level", "") == ["none", "0", "1", "2"]
    assert bash("record", "--level", "=") == bash("record", "--level", "=", "") == bash("record", "--level", "")
    assert bash("record", "--level=n") == ["--level=none"]      # where = breaks no word
    assert bash("record", "--unwind", "=", "d") == ["dwarf"]
    assert bash("record", "--aic-metrics", "Memory") == ["Memory", "MemoryL0", "MemoryUB", "MemoryAccess"]
    assert bash("record", "--mstx", "=", "") == ["on", "off"]
    assert "--level" in bash("record", "--mstx", "--")          # its value is behind a =, or is none
    # What is completed is what is valid.
    for command, option in (("record", "--level"), ("record", "--task-source"), ("analyze", "--compat"),
                            ("show", "--only")):
        error = case.npuscope(command, option, "nonsense").err
        assert error.rstrip().endswith("is not one of " + ", ".join(bash(command, option, ""))), error


@test
def bash_lists(_case: Case) -> None:
    assert bash("record", "--host-sys", "") == ["cpu", "mem", "disk", "network", "osrt", "none"]
    assert bash("record", "--host-sys", "cpu,") == ["cpu,mem", "cpu,disk", "cpu,network", "cpu,osrt"]
    assert bash("record", "--host-sys", "=", "cpu,mem,d") == ["cpu,mem,disk"]
    assert bash("record", "--host-sys", "cpu") == ["cpu"]
    assert bash("analyze", "-e", "db,p") == ["db,perfetto"]
    assert bash("show", "--only=steps,h") == ["--only=steps,host", "--only=steps,host_time"]


@test
def bash_files_and_processes(case: Case) -> None:
    folder = case.path("place")
    for name in ("one", "one more", "two"):
        (folder / name).mkdir(parents=True)
    (folder / "one.db").write_text("")
    assert sorted(bash("record", "-o", "o", directory=folder)) == ["one", "one more"]
    assert sorted(bash("record", "--output", "=", "o", directory=folder)) == ["one", "one more"]
    assert sorted(bash("show", "o", directory=folder)) == ["one", "one more", "one.db"]
    assert sorted(bash("analyze", "--gzip", "--output", "tw", directory=folder)) == ["two"]
    own = str(os.getpid())
    assert own in bash("record", "-p", "") and own in bash("record", "--pid", "=", own[:-1])
    assert f"1,{own}" in bash("record", "-p", f"1,{own[:-1]}")
    assert own in bash("doctor", "--probes", own) and bash("doctor", "--probes", "one.", directory=folder) == ["one.db"]


@test
def bash_command_of_a_job(case: Case) -> None:
    folder = case.path("place")
    folder.mkdir()
    (folder / "train.py").write_text("")
    assert "unshare" in bash("record", "-d", "1s", "--", "unsh")
    assert bash("record", "--", "python3", "tr", directory=folder) == ["train.py"]
    assert not bash("record", "--", "python3", "--level", directory=folder)


@test
def bash_script_has_no_mistakes(case: Case) -> None:
    need_program("shellcheck", "shellcheck")
    case.run(["shellcheck", DOCS / "npuscope.bash"]).expect(0)


# ---- zsh ---------------------------------------------------------------------------------------

def zsh(case: Case, *lines: str) -> list[str]:
    """What each of LINES is after the Tab key, in a terminal of its own."""
    results = case.path("zsh-lines")
    results.unlink(missing_ok=True)
    master, slave = pty.openpty()
    shell = case.start(["zsh", "-f", "-i"], stdin=slave, cwd=case.dir)
    os.close(slave)

    def read_all() -> None:         # what nobody reads would stop it
        try:
            while os.read(master, 1 << 16):
                pass
        except OSError:
            pass

    threading.Thread(target=read_all, daemon=True).start()
    setup = (f"fpath=({DOCS} $fpath); autoload -U compinit; compinit -u -d {case.path('zcompdump')}; "
             f'after_tab() {{ print -r -- "$BUFFER" >> {results}; BUFFER= }}; zle -N after_tab; bindkey "^T" '
             'after_tab\n')
    os.write(master, setup.encode())
    for number, line in enumerate(lines):
        os.write(master, f"{line}\t\x14".encode())
        wait_until(lambda n=number: results.exists() and results.read_text().count("\n") > n,
                   f"zsh to complete {line!r}")
    os.write(master, b"exit\n")
    shell.wait()
    os.close(master)
    return [line.strip() for line in results.read_text().splitlines()]


@test
def zsh_completes(case: Case) -> None:
    need_program("zsh", "zsh")
    folder = case.path("place")
    folder.mkdir()
    (folder / "train.py").write_text("")
    cases = {"npuscope rec": "npuscope record", "npuscope record --lev": "npuscope record --level=",
             "npuscope record --level n": "npuscope record --level none",
             "npuscope record --unwind=d": "npuscope record --unwind=dwarf",
             "npuscope record --host-sys cpu,m": "npuscope record --host-sys cpu,mem,", "npuscope record --mstx=of":
             "npuscope record --mstx=off", "npuscope show --only steps,ov": "npuscope show --only steps,overview,",
             "npuscope analyze -o pl": "npuscope analyze -o place/", "npuscope record -p 1 -a -- unshar":
             "npuscope record -p 1 -a -- unshare",
             "npuscope record -- cat place/t": "npuscope record -- cat place/train.py",
             "npuscope doctor --probes place/t": "npuscope doctor --probes place/train.py",
             "npuscope help doc": "npuscope help doctor"}
    found = zsh(case, *cases)
    assert dict(zip(cases, found)) == cases, found


@test
def zsh_script_has_no_mistakes(case: Case) -> None:
    need_program("zsh", "zsh")
    case.run(["zsh", "-n", DOCS / "_npuscope"]).expect(0)


if __name__ == "__main__":
    sys.exit(main())
