#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A training or inference job of PyTorch, on the simulated NPU or on the CPU.

It prints `ready PID...` when its ranks run, and at its end `result steps=N losses=A,B,... checksum=C`.
The same options give the same result on both devices.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

CLASSES = 4
PIXELS = 12  # width and height of an image


class Net(nn.Module):
    """Convolution, ReLU, Linear."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.hidden = nn.Linear(4 * PIXELS * PIXELS, 32)
        self.classes = nn.Linear(32, CLASSES)

    def forward(self, x):
        x = torch.relu(self.convolution(x))
        x = torch.relu(self.hidden(x.flatten(1)))
        return self.classes(x)


class Perceptron(nn.Module):
    """Linear, ReLU, Linear."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(PIXELS * PIXELS, 32)
        self.classes = nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.classes(torch.relu(self.hidden(x.flatten(1))))


class Deep(nn.Module):
    """More kinds of layers: normalisation, pooling, dropout."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, padding=1)
        self.batch_norm = nn.BatchNorm2d(4)
        self.pool = nn.MaxPool2d(2)
        self.hidden = nn.Linear(4 * (PIXELS // 2) ** 2, 32)
        self.layer_norm = nn.LayerNorm(32)
        self.dropout = nn.Dropout(0.25)
        self.classes = nn.Linear(32, CLASSES)

    def forward(self, x):
        x = self.pool(torch.relu(self.batch_norm(self.convolution(x))))
        x = self.layer_norm(self.hidden(x.flatten(1)))
        return self.classes(self.dropout(nn.functional.gelu(x)))


class Images(Dataset):
    """Images that follow from their number."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(1, PIXELS, PIXELS, generator=generator), i % CLASSES


MODELS = {"conv": Net, "linear": Perceptron, "deep": Deep}


def read_slow_file(seconds, _device):
    """A step that is slow because its thread sleeps."""
    time.sleep(seconds)


def choose_on_device(_seconds, device):
    """A step that is slow because its kernel is (NPUSIM_SLOW_KERNEL=TopK:NS)."""
    scores = torch.zeros(8).to(device)
    return scores.topk(1)


def augment_in_python(seconds, _device):
    """A step that is slow because Python computes."""
    end, total = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        total = (total * 31 + 7) % 1000003
    return total


SLOW = {"sleep": read_slow_file, "loop": augment_in_python, "device": choose_on_device}


class StepLog:
    """The steps, for the truth file (tools/npusim/TRUTH.md)."""

    def __init__(self):
        directory = os.environ.get("NPUSIM_TRUTH")
        self._file = open(f"{directory}/truth.{os.getpid()}.steps.tsv", "w", buffering=1) if directory else None

    def put(self, step, begin, end):
        if self._file:
            self._file.write(f"step\t{step}\t{begin}\t{end}\n")

    def close(self):
        if self._file:
            self._file.write("end\texit\n")
            self._file.close()


class Rank:
    """One process of the job."""

    def __init__(self, args):
        self.args = args
        self.rank, self.world = int(os.environ.get("RANK", 0)), args.ranks
        self.npu = None
        self.stopping = False
        if args.device == "npu":
            import torch_npu  # pylint: disable=import-outside-toplevel
            self.npu = torch_npu
        self.device = self.npu.npu.device(self.rank) if self.npu else torch.device("cpu")
        self.losses = []

    def set_up(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.join_group()
        self.steps = StepLog()
        self.model = MODELS[self.args.model]().to(self.device)
        parameters = self.model.parameters()
        self.optimizer = (torch.optim.Adam(parameters, lr=0.01) if self.args.optimizer == "adam" else
                          torch.optim.SGD(parameters, lr=0.05, momentum=0.9))
        self.criterion = nn.MSELoss() if self.args.loss == "mse" else nn.CrossEntropyLoss()
        loader = DataLoader(Images(), batch_size=self.args.batch, num_workers=self.args.workers,
                            sampler=range(self.rank, 1 << 20, self.world))
        self.batches = iter(loader)

    def join_group(self):
        if self.world == 1:
            return
        store = os.environ["TORCH_TRAIN_STORE"]
        if self.npu:
            self.npu.distributed.init_process_group(self.rank, self.world, self.rank, store)
        else:
            torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=self.rank,
                                                 world_size=self.world)

    def all_reduce(self, tensor):
        if self.npu:
            self.npu.distributed.all_reduce(tensor)
        else:
            torch.distributed.all_reduce(tensor)

    def reduce_gradients(self):
        if self.world == 1:
            return
        for parameter in self.model.parameters():
            self.all_reduce(parameter.grad)
            parameter.grad.div_(self.world)

    def loss_of(self, batch):
        images, labels = batch
        images, labels = images.to(self.device), labels.to(self.device)
        output = self.model(images)
        if self.args.loss == "mse":
            return self.criterion(output, output.detach() * 0.5 + 0.1)
        return self.criterion(output, labels)

    def train_step(self):
        self.optimizer.zero_grad()
        for _ in range(self.args.accumulate):
            loss = self.loss_of(next(self.batches)) / self.args.accumulate
            loss.backward()
        self.reduce_gradients()
        self.optimizer.step()
        return loss.item()

    def infer_step(self):
        with torch.no_grad():
            images, labels = next(self.batches)
            output = self.model(images.to(self.device))
            return (output.argmax(1) == labels.to(self.device)).float().mean().item()

    def save_checkpoint(self, step):
        state = {name: tensor.cpu() for name, tensor in self.model.state_dict().items()}
        torch.save({"step": step, "model": state}, self.args.checkpoint)

    def labelled_step(self, step):
        if not self.args.labels:
            self.step(step)
            return
        with record_function("loop"), record_function(f"iteration {step}"):
            self.step(step)

    def step(self, step):
        args, begin = self.args, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        if self.npu:
            self.npu.npu.set_step(step)
        if args.slow_every and step % args.slow_every == args.slow_every - 1:
            SLOW[args.slow_how](args.slow_ms / 1e3, self.device)
        self.losses.append(self.infer_step() if args.inference else self.train_step())
        if args.checkpoint_every and step % args.checkpoint_every == args.checkpoint_every - 1 and self.rank == 0:
            self.save_checkpoint(step)
        self.steps.put(step, begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))

    def checksum(self):
        digest = hashlib.sha256()
        for tensor in self.model.state_dict().values():
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def request_stop(self, *_):
        self.stopping = True

    def loop(self):
        start = step = 0
        while not self.stopping and (not self.args.steps or step < self.args.steps):
            self.labelled_step(step)
            step += 1
            start = start or time.monotonic()
            if self.args.seconds and time.monotonic() - start >= self.args.seconds:
                break
        return step

    def main(self):
        signal.signal(signal.SIGTERM, self.request_stop)
        self.set_up()
        if self.world == 1:
            print("ready", os.getpid(), flush=True)
        profile = torch.profiler.profile() if self.args.profile else None
        if profile:
            with profile:
                steps = self.loop()
            self.write_counts(profile)
        else:
            steps = self.loop()
        if self.rank == 0:
            losses = ",".join(f"{loss:.9g}" for loss in self.losses[:200])
            print(f"result steps={steps} losses={losses} checksum={self.checksum()}", flush=True)
        if self.npu:
            self.npu.npu.synchronize(self.rank)
            print("memory", json.dumps(self.npu.npu.memory_stats(self.rank)), flush=True)
        self.steps.close()

    def write_counts(self, profile):
        """How often torch.profiler saw each operator."""
        with open(self.args.profile, "w", encoding="ascii") as f:
            json.dump({event.key: event.count for event in profile.key_averages()}, f)


def launch(args):
    with tempfile.TemporaryDirectory(prefix="torch-train.") as directory:
        ranks = []
        for rank in range(args.ranks):
            env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(args.ranks),
                       TORCH_TRAIN_STORE=os.path.join(directory, "store"))
            ranks.append(subprocess.Popen([sys.executable, os.path.realpath(__file__), *sys.argv[1:]], env=env))
        print("ready", *(rank.pid for rank in ranks), flush=True)
        return 1 if any([rank.wait() for rank in ranks]) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--device", choices=("npu", "cpu"), default="npu", help="default npu")
    add("--model", choices=MODELS, default="conv", help="default conv")
    add("--optimizer", choices=("sgd", "adam"), default="sgd", help="default sgd")
    add("--loss", choices=("cross-entropy", "mse"), default="cross-entropy")
    add("--steps", type=int, default=20, help="default 20; 0: no limit")
    add("--seconds", type=float, default=0, help="stop after so many seconds (one rank)")
    add("--batch", type=int, default=16, help="default 16")
    add("--workers", type=int, default=0, help="processes of the DataLoader")
    add("--accumulate", type=int, default=1, help="batches for each step of the optimizer")
    add("--inference", action="store_true", help="no training: accuracies instead of losses")
    add("--slow-every", type=int, default=0, help="every Nth step is slow for a reason in Python")
    add("--slow-ms", type=float, default=50, help="by so many ms")
    add("--slow-how", choices=SLOW, default="sleep", help="default sleep")
    add("--checkpoint-every", type=int, default=0, help="every Nth step saves the model")
    add("--checkpoint", default="checkpoint.pt", help="the file")
    add("--ranks", type=int, default=1, help="processes, a device each; their gradients are summed")
    add("--labels", action="store_true", help="each step is in two labels, `loop` and `iteration N`")
    add("--wait", action="store_true", help="print `loaded PID` and wait for a line before anything is done (one rank)")
    add("--profile", help="run under torch.profiler and write its counts of operators to this file")
    args = parser.parse_args()
    if args.ranks > 1 and "RANK" not in os.environ:
        return launch(args)
    rank = Rank(args)
    if args.wait:  # all libraries are loaded, and nothing has run
        print("loaded", os.getpid(), flush=True)
        sys.stdin.readline()
    rank.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
