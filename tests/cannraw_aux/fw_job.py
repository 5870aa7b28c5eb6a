# SPDX-License-Identifier: BSD-2-Clause
"""A training loop laid out in time around its kernel launches. Times are Unix ns until they are written."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Iterable, Iterator, Optional

GAP = 400                   # between the windows of two slots; what Python does stands in there
NARROW, WIDE = 2_000, 25_000
LAG = 40_000                # how long an operator's work waits in the task queue
FIRST_STEP, FIRST_SEQUENCE, FORWARD_THREAD = 3, 1350, 1

Launch = tuple[int, int, int]

# (forward chain, backward node, backward operator, shapes, dtypes, module)
LAYERS = [
    (["aten::linear", "aten::addmm"], "AddmmBackward0", "aten::mm", "1000;32,4096;4096,1000;;",
     "float;float;float;Scalar;Scalar", "Linear"),
    (["aten::conv2d", "aten::convolution", "aten::_convolution"], "ConvolutionBackward0",
     "aten::convolution_backward", "32,3,224,224;64,3,11,11;64;;;;;;", "float;float;float;ScalarList;;;;;Scalar",
     "Conv2d"),
    (["aten::relu_"], "ReluBackward0", "aten::threshold_backward", "32,64,55,55", "float", "ReLU"),
    (["aten::layer_norm", "aten::native_layer_norm"], "NativeLayerNormBackward0",
     "aten::native_layer_norm_backward", "8,128,768;;768;768;", "c10::BFloat16;;c10::BFloat16;c10::BFloat16;Scalar",
     "LayerNorm"),
    (["aten::softmax", "aten::_softmax"], "SoftmaxBackward0", "aten::_softmax_backward_data", "8,12,128,128;;",
     "float;Scalar;None", "Softmax"),
    (["aten::matmul", "aten::mm"], "MmBackward0", "aten::mm", "1024,768;768,3072", "c10::Half;c10::Half", "Attention"),
]
UPDATES = ["aten::_foreach_mul_", "aten::_foreach_add_", "aten::_foreach_addcdiv_"]
NASTY = [b'quo"ted,\'op\'', b"two\nlines\r\nand\ttab", b"bad \xff\xfe utf-8 \xc3\x28", b"", b"A" * 70_000,
         b"nul\x00inside", "名前::操作".encode(), b"</script><b>", b"=cmd|' /C calc'!A0", b"\\u0041 \\n %s {}"]


@dataclass
class Op:
    """One torch.op_range record."""

    name: bytes
    start: int
    end: int
    tid: int
    sequence: int = -1
    forward: int = 0
    scope: int = 0
    shapes: str = ""
    dtypes: str = ""
    stack: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    tensors: str = ""
    extra: str = ""
    mstx: bool = False


@dataclass
class Mark:
    """An enqueue or a dequeue: two torch.op_mark records."""

    name: str
    start: int
    end: int
    tid: int
    correlation: int
    dequeue: bool


@dataclass
class Job:
    """Calls of the runtime that belong together: the work of one task of the queue, or of one operator."""

    tid: int
    begin: int
    end: int
    before: int = 0
    after: int = 0


@dataclass
class Slot:
    """A stretch of one thread's time in which one operator with its children runs."""

    tid: int
    start: int
    end: int
    jobs: list[Job]
    phase: str = ""
    layer: Optional[int] = None
    inner: tuple[int, int] = (0, 0)
    head: int = 0


@dataclass
class Step:
    """A ProfilerStep."""

    number: int
    start: int
    end: int
    slots: list[Slot]


@dataclass
class Loop:
    """Everything that was laid out."""

    main: int
    steps: list[Step] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    pairs: list[tuple[int, Op, Op]] = field(default_factory=list)


def invent(count: int, begin: int, queue: bool, steps: int, tids: tuple[int, int, int],
           rng: random.Random) -> list[Launch]:
    """Launches for runs without a PROF_* directory; `tids` are those of main, backward and queue."""
    out: list[Launch] = []
    per = max(1, -(-count // steps))
    for number in range(count):
        begin += 20_000 + rng.randrange(40_000)
        percent = number % per * 100 // per
        tid = tids[2] if queue else tids[1] if 45 <= percent < 90 else tids[0]
        out.append((tid, begin, begin + 3_000 + rng.randrange(9_000)))
    return out


def jobs_of(launches: Iterable[Launch], nearest: int, pad: int) -> list[Job]:
    """Join launches that nest or nearly touch; leave each job the room around it that is its own."""
    threads: dict[int, list[Job]] = {}
    for tid, begin, end in sorted(launches, key=lambda item: (item[1], item[2])):
        jobs = threads.setdefault(tid, [])
        if jobs and begin < jobs[-1].end + nearest:
            jobs[-1].end = max(jobs[-1].end, end)
        else:
            jobs.append(Job(tid, begin, end))
    for jobs in threads.values():
        for job in jobs:
            job.before = job.after = pad
        for one, two in zip(jobs, jobs[1:]):
            one.after = two.before = min(pad, (two.begin - one.end) // 3)
    return sorted((job for jobs in threads.values() for job in jobs), key=lambda job: job.begin)


def queue_slots(jobs: list[Job], main: int) -> list[Slot]:
    """Slots of the threads that fill the queue: each a while before its work is taken out."""
    slots: list[Slot] = []
    for job in jobs:
        start = job.begin - LAG
        if slots and start < slots[-1].start + NARROW:
            slots[-1].jobs.append(job)
        else:
            slots.append(Slot(main, start, 0, [job]))
    for slot, after in zip(slots, slots[1:] + [None]):
        room = WIDE if after is None else after.start - GAP - slot.start
        slot.end = slot.start + min(WIDE, room)
    return slots


def direct_slots(jobs: list[Job]) -> list[Slot]:
    """Slots of threads that launch themselves: around each launch."""
    return [Slot(job.tid, job.begin - job.before, job.end + job.after, [job]) for job in jobs]


class Builder:
    """Turns slots into operators, steps and marks."""

    def __init__(self, slots: list[Slot], main: int, backward: int, queue: bool, steps: int, first: int,
                 nasty: bool) -> None:
        self.slots, self.main, self.backward, self.queue = slots, main, backward, queue
        self.count, self.nasty = steps, nasty
        self.loop = Loop(main)
        self.sequence = FIRST_SEQUENCE
        self.correlation = first
        self.layers = 0
        self.strange = 0

    def build(self) -> Loop:
        """The whole loop."""
        mine = [slot for slot in self.slots if slot.tid == self.main]
        per = max(1, -(-len(mine) // self.count))
        own = [mine[i:i + per] for i in range(0, len(mine), per)]
        groups: list[list[Slot]] = [[] for _ in own]
        at = 0
        for slot in self.slots:         # a step is what the main thread does, and what others do meanwhile
            while at + 1 < len(own) and slot.start >= own[at + 1][0].start:
                at += 1
            groups[at].append(slot)
        for number, group in enumerate(groups):
            start = own[number][0].start - (20_000 if not number else GAP // 2)
            end = own[number + 1][0].start - GAP // 2 - 40 if number + 1 < len(groups) else \
                max(slot.end for slot in group) + 5_000
            self._step(Step(FIRST_STEP + number, start, end, group))
        return self.loop

    def _step(self, step: Step) -> None:
        loop = self.loop
        loop.steps.append(step)
        loop.ops.append(Op(f"ProfilerStep#{step.number}".encode(), step.start, step.end, self.main))
        first = next(slot.start for slot in step.slots if slot.tid == self.main)
        if first - step.start > 5_000:
            loop.ops.append(Op(b"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", step.start + 500,
                               first - 1_000, self.main))
        self._phases(step)
        waiting: list[tuple[Slot, Op]] = []
        for slot in step.slots:
            if slot.phase == "forward":
                waiting.append((slot, self._forward(slot)))
            elif slot.phase == "backward":
                self._backward(slot, waiting.pop() if waiting else None)
            else:
                self._update(slot)
        self._wraps(step)

    def _phases(self, step: Step) -> None:
        direct = not self.queue and any(slot.tid != self.main for slot in step.slots)
        mine = [slot for slot in step.slots if slot.tid == self.main]
        for number, slot in enumerate(mine):
            percent = number * 100 // len(mine)
            if direct:
                slot.phase = "forward" if percent < 80 else "update"
            else:
                slot.phase = "forward" if percent < 45 else "backward" if percent < 90 else "update"
        for slot in step.slots:
            if slot.tid != self.main:
                slot.phase = "backward"
            elif slot.phase == "backward" and self.queue:
                slot.tid = self.backward

    def _strange(self, plain: str) -> bytes:
        if not self.nasty:
            return plain.encode()
        self.strange += 1
        return NASTY[self.strange // 3 % len(NASTY)] if self.strange % 3 == 0 else plain.encode()

    def _chain(self, slot: Slot, names: list[str], strange: bool = False) -> list[Op]:
        """Operators one inside the other, the last with the marks or the launch of the slot."""
        job = slot.jobs[0]
        if self.queue:
            edge = (slot.end - slot.start) // 20
            left = right = min(edge, 500)
        else:
            left, right = job.before // (len(names) + 2), job.after // (len(names) + 2)
        chain = []
        for depth, name in enumerate(names):
            text = self._strange(name) if strange and depth == len(names) - 1 else name.encode()
            chain.append(Op(text, slot.start + depth * left, slot.end - depth * right, slot.tid))
        last = chain[-1]
        slot.inner = (last.start, last.end)
        slot.head = last.start + (last.end - last.start) * 3 // 10 if self.queue else job.begin
        self.loop.ops += chain
        if self.queue:
            self._marks(slot, names[-1])
        return chain

    def _marks(self, slot: Slot, name: str) -> None:
        width = slot.inner[1] - slot.inner[0]
        share = width // 2 // len(slot.jobs)
        for number, job in enumerate(slot.jobs):
            start = slot.head + number * share
            self.correlation += 1
            label = "aclnn" + name.split("::")[-1].title().replace("_", "")
            self.loop.marks.append(Mark(label, start, start + share * 3 // 4, slot.tid, self.correlation, False))
            self.loop.marks.append(Mark(label, job.begin - job.before, job.end + job.after, job.tid, self.correlation,
                                        True))

    def _forward(self, slot: Slot) -> Op:
        slot.layer = self.layers % len(LAYERS)
        self.layers += 1
        names, _, _, shapes, dtypes, module = LAYERS[slot.layer]
        chain = self._chain(slot, names, strange=True)
        self.sequence += 1
        for depth, op in enumerate(chain):
            op.sequence, op.shapes, op.dtypes = self.sequence, shapes, dtypes
            op.stack = [f"/ws/model/layer,{slot.layer}.py({40 + depth}): forward", "/ws/train.py(42): train_one_step",
                        "/ws/train.py(88): main", "<string>(1): <module>"]
            op.modules = ["Net", "Sequential_0", f"{module}_{slot.layer}"]
        chain[-1].extra = f"flops:{1000 + self.sequence};"
        chain[0].tensors = tensor_text(0x1240_0000_0000 + self.sequence * 4096)
        return chain[-1]

    def _backward(self, slot: Slot, pair: Optional[tuple[Slot, Op]]) -> None:
        if pair is None:
            node = "torch::autograd::AccumulateGrad"
            self._chain(slot, [f"autograd::engine::evaluate_function: {node}", node, "aten::add_"])
            return
        layer = LAYERS[pair[0].layer or 0]
        chain = self._chain(slot, [f"autograd::engine::evaluate_function: {layer[1]}", layer[1], layer[2]], True)
        chain[1].sequence, chain[1].forward = pair[1].sequence, FORWARD_THREAD
        for op in chain:
            op.scope = 1
        self.loop.pairs.append((pair[1].sequence, pair[1], chain[1]))

    def _update(self, slot: Slot) -> None:
        self._chain(slot, [UPDATES[self.layers % len(UPDATES)]])
        self.layers += 1

    def _wraps(self, step: Step) -> None:
        """Labels around what follows each other: the optimizer's step and user ranges."""
        mine = [slot for slot in step.slots if slot.tid == self.main]
        updates = [slot for slot in mine if slot.phase == "update"]
        forward = [slot for slot in mine if slot.phase == "forward"]
        if updates and all(slot.phase == "update" for slot in mine[mine.index(updates[0]):]):
            self.loop.ops.append(Op(b"Optimizer.step#AdamW.step", updates[0].start - 100, updates[-1].end + 30,
                                    self.main))
        if forward:
            self.loop.ops.append(Op(b"mstx_forward", forward[0].start - 150, forward[-1].end + 110, self.main,
                                    mstx=True))
            at = forward[-1].end + 105
            self.loop.ops.append(Op(b"mstx_loss_mark", at, at, self.main, mstx=True))


def tensor_text(address: int) -> str:
    """An input tensor as records describe it."""
    return f"{address + 64};{address};float32;4;32,64;64,1;20;0"


def extent(loop: Loop) -> tuple[int, int]:
    """First and last moment of a loop."""
    return (min(op.start for op in loop.ops), max([op.end for op in loop.ops] + [mark.end for mark in loop.marks]))


def with_empty(loop: Loop, slots: Iterable[Slot], chance: random.Random) -> Iterator[tuple[Slot, int]]:
    """Give some slots the `empty_tensor` child that allocates; the moment
    of an allocation in every chosen slot."""
    for slot in slots:
        room = slot.head - slot.inner[0]
        if room < 100 or chance.random() < 0.3:
            continue
        if chance.random() < 0.7:
            loop.ops.append(Op(b"empty_tensor", slot.inner[0] + room // 5, slot.inner[0] + room * 4 // 5, slot.tid))
        yield slot, slot.inner[0] + room // 2
