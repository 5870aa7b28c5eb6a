# SPDX-License-Identifier: BSD-2-Clause
"""What a loop leaves beside its operators: memory events, Python frames, garbage collection."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Optional

from fw_job import LAYERS, Loop, Slot, with_empty

MALLOC, FREE, BLOCK_FREE = 0, 1, 2
CACHING, WORKSPACE = 0, 1
CALL, RETURN, C_CALL, C_RETURN = 0, 1, 2, 3
MIB = 1 << 20
STREAM = 897_357_296


@dataclass
class Block:
    """One allocation and what became of it; times are Unix ns, None where the capture does not see it."""

    address: int
    size: int
    component: int
    tid: int
    malloc: Optional[int] = None
    free: Optional[int] = None
    block_free: Optional[int] = None


@dataclass
class Event:
    """One torch.memory_usage record."""

    when: int
    kind: int
    block: Block
    allocated: int = 0
    reserved: int = 0
    active: int = 0


def memory(loop: Loop, slots: list[Slot], rng: random.Random) -> list[Event]:
    """Allocations inside operators, frees inside later ones, with the totals after each event."""
    blocks = [Block(0x1240_0000_0000 + i * MIB, 512 * (3 + i), CACHING, loop.main) for i in range(2)]
    tails: dict[int, list[tuple[Block, str]]] = {}
    order = {id(slot): number for number, slot in enumerate(slots)}
    for number, block in enumerate(blocks):
        tails.setdefault(number, []).append((block, "both"))
    for slot, when in with_empty(loop, slots, rng):
        component = WORKSPACE if rng.random() < 0.15 else CACHING
        address, size = 0x1241_0000_0000 + len(blocks) * 16 * MIB, 512 * rng.randrange(1, 20_000)
        block = Block(address, size, component, slot.tid, when)
        blocks.append(block)
        number, fate = order[id(slot)] + rng.choice((0, 0, 1, 1, 2, 5, 9)), rng.random()
        if fate < 0.75:
            tails.setdefault(number, []).append((block, "both"))
        elif fate < 0.85:
            tails.setdefault(number, []).append((block, "free"))
            tails.setdefault(number + 2, []).append((block, "block"))
    for number, items in tails.items():
        if number < len(slots):
            _release(slots[number], items)
    _reuse(blocks, rng)
    return _account(blocks)


def _reuse(blocks: list[Block], rng: random.Random) -> None:
    """Give some blocks the address of one that was given back before, as an allocator does."""
    spare: list[tuple[int, int]] = []
    for block in sorted((block for block in blocks if block.malloc), key=lambda block: block.malloc or 0):
        ready = [item for item in spare if item[0] < (block.malloc or 0)]
        if ready and rng.random() < 0.6:
            item = rng.choice(ready)
            spare.remove(item)
            block.address = item[1]
        if block.free and block.block_free:
            spare.append((max(block.free, block.block_free), block.address))
        del spare[:-64]


def _release(slot: Slot, items: list[tuple[Block, str]]) -> None:
    """Frees at the end of an operator. The block is given back just before the tensor's end is reported."""
    width = slot.inner[1] - slot.inner[0]
    at = slot.inner[1] - width // 10
    share = max(1, width // 10 // (len(items) * 2 + 1))
    for number, (block, what) in enumerate(items):
        when = at + number * 2 * share
        if block.malloc is not None and when <= block.malloc:
            continue
        if what == "both" or what == "block" and block.free is not None and when > block.free:
            block.block_free = when
        if what in ("both", "free"):
            block.free = when + share


def _account(blocks: list[Block]) -> list[Event]:
    events = []
    for block in blocks:
        for kind, when in ((MALLOC, block.malloc), (FREE, block.free), (BLOCK_FREE, block.block_free)):
            if when is not None:
                events.append(Event(when, kind, block))
    events.sort(key=lambda event: event.when)
    totals = {component: [64 * MIB, 512 * MIB, 64 * MIB] for component in (CACHING, WORKSPACE)}
    freed: set[int] = set()
    for event in events:
        total, size = totals[event.block.component], event.block.size
        if event.kind == MALLOC:
            total[0], total[2] = total[0] + size, total[2] + size
            while total[0] > total[1]:
                total[1] += 20 * MIB
        else:
            if id(event.block) not in freed:
                freed.add(id(event.block))
                total[0] -= size
            if event.kind == BLOCK_FREE:
                total[2] -= size
        event.allocated, event.reserved, event.active = total
    return events


@dataclass
class Frame:
    """A Python or C call on the main thread; `end` None: it never returned in the capture."""

    name: bytes
    start: int
    end: Optional[int]
    tid: int
    c_call: bool
    parent: Optional[int]
    module: Optional[str] = None


def frames(loop: Loop, begin: int, nasty: bool) -> list[Frame]:
    """Frames by start; each one's parent is an index in this list."""
    out = [Frame(b"<string>(1): <module>", begin, None if nasty else loop.steps[-1].end + 900, loop.main, False, None),
           Frame("/ws/train.py(88): main \u00e9".encode(), begin + 100, loop.steps[-1].end + 700, loop.main, False, 0)]
    for step in loop.steps:
        out.append(Frame(b"/ws/train.py(42): train_one_step", step.start + 10, step.end - 10, loop.main, False, 1))
        parent = len(out) - 1
        mine = [slot for slot in step.slots if slot.tid == loop.main]
        updates = [slot for slot in mine if slot.phase == "update"]
        for slot in mine:
            if slot.phase == "forward":
                _module(out, slot, parent)
            elif updates and slot is updates[0] and all(s.phase == "update" for s in mine[mine.index(slot):]):
                out.append(Frame(b"torch/optim/optimizer.py(385): wrapper", slot.start - 120, updates[-1].end + 45,
                                 loop.main, False, parent))
    if nasty:
        out.append(Frame(b'bad \xff "name",\n(1): f', loop.steps[-1].end + 710, loop.steps[-1].end + 720, loop.main,
                         False, 0))
    return out


def _module(out: list[Frame], slot: Slot, parent: int) -> None:
    layer = slot.layer or 0
    module = LAYERS[layer][5]
    name = f"nn.Module: {module}######{0x7f00_0000_0000 + layer * 4096}"
    out.append(Frame(name.encode(), slot.start - 80, slot.end + 70, slot.tid, False, parent, module))
    out.append(Frame(f"<built-in method {LAYERS[layer][0][0].split('::')[1]} of type object>".encode(),
                     slot.start - 40, slot.end + 40, slot.tid, True, len(out) - 1))


def collections(loop: Loop, rng: random.Random) -> list[tuple[int, int]]:
    """When the garbage collector ran: once or twice a step, never twice at a time."""
    out: list[tuple[int, int]] = []
    for step in loop.steps:
        for part in range(1 + rng.randrange(2)):
            start = step.start + (step.end - step.start) * (3 + part * 4) // 10
            out.append((start, start + max(100, (step.end - step.start) // 20)))
    return out
