# SPDX-License-Identifier: BSD-2-Clause
"""Which folder may include which: the order of the layers, as data that rules.py walks."""

from __future__ import annotations

from typing import NamedTuple

# What is checked at all. bpf, kheaders, user and analyzer are one program: their names share one name space.
FOLDERS = ("bpf", "kheaders", "user", "analyzer", "tools", "tests")
SHIPPED = ("bpf", "kheaders", "user", "analyzer")

# In which folders a compiler searches for what a file includes, after the file's own.
SEARCHED: dict[str, tuple[str, ...]] = {
    "bpf": ("kheaders", "bpf"),
    "kheaders": ("kheaders",),
    "analyzer": ("kheaders", "analyzer", "user"),
    "user": ("kheaders", "analyzer", "user"),
}

# What a folder may include besides itself.
BORDERS: dict[str, tuple[str, ...]] = {
    "kheaders": (),
    "bpf": ("kheaders/",),
    "analyzer": ("kheaders/",),
    # One program: its commands call the analyzer's, and their options are rows of the same kind.
    "user": ("kheaders/", "analyzer/analyze.h", "analyzer/cli/", "analyzer/export/formats.h",
             "bpf/"),
    # The mock builds alone: what it implements is written down in it once more, from the vendor's documents.
    "tools/npusim": (),
}


class Layer(NamedTuple):
    """Rooms that may include those of layers before it, and not each other.

    A room is a folder ("base/") or one folder each ("import/*/"). What does not end in "/" begins names of
    files, which are one room; "" is what is in no other.
    """

    name: str
    rooms: tuple[str, ...]
    readers: tuple[str, ...] = ()   # the only layers that may include it; none: all after it


# From the bottom. Data flows import -> model -> derive -> findings and export.
ANALYZER = (
    Layer("base", ("base/",)),
    Layer("stack", ("stack/",)),                    # ELF files and unwinding: knows no table
    Layer("schema", ("schema/",)),
    Layer("model", ("model/",)),
    Layer("clock", ("clock/",)),                    # a clock's errors are rows of the model
    Layer("import interface", ("import/import.h", "import/input.")),
    Layer("import/common", ("import/common/",), ("CANN's raw data", "importers", "analysis", "commands")),
    # A session of npuscope has PROF_* directories, too: its importer reads them with CANN's.
    Layer("CANN's raw data", ("import/cann/",), ("importers", "analysis", "commands")),
    Layer("importers", ("import/*/",), ("analysis", "commands")),
    Layer("derive", ("derive/",)),
    Layer("findings and export", ("findings/", "export/")),
    Layer("analysis", ("",)),                       # from an input to its results
    Layer("commands", ("cli/",)),
)

USER = (
    # What runs in the job, and the process without privileges that calls the vendor's library.
    Layer("injob", ("injob/",)),
    Layer("worker", ("worker/",)),
    Layer("core", ("core/",)),          # what knows no capture: clocks, session files, budgets, /proc
    Layer("attach", ("attach/",)),
    Layer("driver", ("driver/",)),      # the NPU's driver, through its libraries
    Layer("capture", ("capture/",)),    # the loop, the registry of sources, the processes, what it costs
    Layer("inject", ("inject/",)),
    Layer("what sources share", ("sources/",)),
    Layer("device sampler", ("sources/device/",)),  # the task log lets go of what it samples
    Layer("sources", ("sources/*/",)),
    Layer("no room", ("",)),
    Layer("commands", ("cli/",)),
)

LAYERS = {"analyzer": ANALYZER, "user": USER}
# These include nothing of their component at all, not even what is below them.
ALONE = ("injob", "worker")

# Exceptions: (room, what it includes, why).
ALLOWED = (
    ("export/", "import/ascend_db/spec.h",
     "one table of the database's columns, for who reads it and for who writes it"),
)
