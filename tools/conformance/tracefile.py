# SPDX-License-Identifier: BSD-2-Clause
"""Incremental reader of Chrome trace files.

A trace_view.json of a real job is hundreds of megabytes, so events are decoded
one at a time from a sliding buffer.  Numbers with a fraction stay text
(`Number`), because the exact digits of a timestamp are part of what is checked.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterator

CHUNK = 4 << 20
MAX_EVENT = 16 << 20
HEAD_LIMIT = 1 << 20

_SEPARATOR = re.compile(r"[ \t\r\n,]*")
_EXACT_US = re.compile(r"\d+\.\d{3}")
_ARRAY_KEY = re.compile(r'"traceEvents"\s*:\s*\[')


class Number(str):
    """A JSON number that has a fraction or an exponent, as it is spelled."""


class TraceError(ValueError):
    """The file is not a JSON array of events."""


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield every event of PATH; raise TraceError where the syntax breaks.

    Accepts a bare array and an object with `traceEvents` in its first MiB.
    """
    decode = json.JSONDecoder(parse_float=Number).raw_decode
    with open(path, encoding="utf-8", newline="") as file:
        buffer = file.read(CHUNK)
        pos = _array_start(buffer)
        eof = False
        while True:
            pos = _SEPARATOR.match(buffer, pos).end()
            if pos < len(buffer) and buffer[pos] == "]":
                return
            try:
                event, pos = decode(buffer, pos)
            except json.JSONDecodeError as error:
                if eof:
                    raise TraceError(f"{path.name}: {error.msg} near the end of the file") from None
                if len(buffer) - pos > MAX_EVENT:
                    raise TraceError(f"{path.name}: {error.msg}: {buffer[pos:pos + 80]!r}") from None
                more = file.read(CHUNK)
                eof = not more
                buffer = buffer[pos:] + more
                pos = 0
                continue
            if not isinstance(event, dict):
                raise TraceError(f"{path.name}: an element is no object: {event!r:.80}")
            yield event


def _array_start(buffer: str) -> int:
    start = _SEPARATOR.match(buffer).end()
    if buffer[start:start + 1] == "[":
        return start + 1
    match = _ARRAY_KEY.search(buffer, 0, HEAD_LIMIT)
    if buffer[start:start + 1] == "{" and match:
        return match.end()
    raise TraceError("neither a JSON array nor an object with traceEvents")


def is_exact_us(text: object) -> bool:
    """True for microseconds with exactly three decimals, given as text."""
    return isinstance(text, str) and _EXACT_US.fullmatch(text) is not None


def us_to_ns(value: object) -> int:
    """Nanoseconds of a timestamp in microseconds, without going through float."""
    text = str(value)
    whole, dot, fraction = text.partition(".")
    if len(fraction) == 3 and whole.isdigit() and fraction.isdigit():
        return int(whole + fraction)
    if not dot and text.isdigit():
        return int(text) * 1000
    if whole.isdigit() and fraction.isdigit():
        return int(whole) * 1000 + round(float("0." + fraction) * 1000)
    return round(float(text) * 1000)
