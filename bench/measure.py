"""One measurement, in a process of its own: it prints a line of JSON.

python -m bench.measure jax scratch ours 2 --started $(date +%s.%N)
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bench.d2l_package import home
from bench.ours import Ours, pipeline
from bench.plan import WORKLOADS, Contender, Entry
from bench.rivals_on_gpus import require_gpu
from common.backends.devices import Process
from common.backends.frameworks import FRAMEWORKS
from common.backends.loading import (
    backend,
    distributions,
    import_backend,
    one_thread_each,
    set_tf32,
)
from common.base.children import end_with
from common.base.machine import cores, peak_memory
from common.data.dataset import Dataset, load
from common.records.fingerprint import versions
from common.records.record import DataUsed
from common.terminal.command import status


@dataclass(frozen=True)
class Measurement:
    """A worker: times one contender; the first process prints what it found."""

    entry: Entry
    data: Dataset
    started: float

    def __call__(self, process: Process) -> None:
        """Times the contender and prints."""
        figures = self.figures(self.contender(process))
        if process.rank == 0:
            report(self.entry, figures, used(self.data))

    def contender(self, process: Process) -> Contender:
        """The contender, ready to train."""
        workload = self.entry.workload
        if self.entry.ours:
            chapter: Any = backend(self.entry.framework, self.entry.chapter)
            devices = chapter.devices(process, self.entry.wanted)
            return Ours(chapter, workload, devices.local, self.entry.options)
        return rival(self.entry)

    def figures(self, contender: Contender) -> dict[str, float]:
        """Seconds to the first step from the process's start, per epoch and per step, and more."""
        workload = self.entry.workload
        images = self.data.train_images[: workload.examples]
        labels = self.data.train_labels[: workload.examples]
        b, rest = workload.batch_size, len(images) % workload.batch_size
        contender.train(contender.prepare(images[:b], labels[:b]))
        first_step = time.time() - self.started
        # What the last, shorter minibatch needs is compiled before the clock starts, too.
        contender.train(contender.prepare(images[: 2 * b + rest], labels[: 2 * b + rest]))
        seconds = timed(contender.train, contender.prepare(images, labels))
        steps = -(-len(images) // b)
        found = {
            "first_step": first_step,
            "epoch": seconds * workload.epoch / len(images),
            "step": seconds / steps,
            "images_per_second": len(images) / seconds,
            "peak_memory": peak_memory(),
        }
        if self.entry.contender == "ours":
            alone = timed(lambda data: list(pipeline(workload, *data)), (images, labels))
            found["data_share"] = alone / seconds
        return found


def rival(entry: Entry) -> Contender:
    """The loop of others that an entry names, ready to train.

    It takes a GPU if it sees one: they are hidden where CPUs are timed.
    """
    # Keras reads these once; the backend means nothing to others.
    os.environ["KERAS_BACKEND"] = entry.framework.removeprefix("py")
    home()
    set_tf32(False)  # as in ours
    if entry.kind == "gpu":
        require_gpu(entry.framework)
    module: Any = importlib.import_module(entry.module())
    fit: Contender = module.Fit(entry.workload)
    return fit


def timed(work: Any, argument: Any) -> float:
    """The seconds that `work(argument)` takes."""
    begun = time.perf_counter()
    work(argument)
    return time.perf_counter() - begun


PRODUCTS: Final[dict[str, tuple[str, Callable[[Any, int], object]]]] = {
    "pytorch": ("torch", lambda torch, n: (torch.ones(n, n) @ torch.ones(n, n)).sum().item()),
    "tensorflow": ("tensorflow", lambda tf, n: float((tf.ones((n, n)) @ tf.ones((n, n)))[0, 0])),
    "jax": ("jax.numpy", lambda np, n: (np.ones((n, n)) @ np.ones((n, n))).block_until_ready()),
    "mxnet": ("mxnet", lambda mx, n: mx.nd.dot(*[mx.nd.ones((n, n))] * 2).wait_to_read()),
}
"""The float32 product of n by n matrices, by a module of each framework: a machine's best."""


def machine(framework: str) -> dict[str, float]:
    """The rate of the framework's own float32 product, and how long imports and --help take."""
    name, product = PRODUCTS[framework]
    module, side = importlib.import_module(name), 2048
    seconds = [timed(partial(product, module), side) for _ in range(8)]
    return {
        "operations_per_second": 2 * side**3 / min(seconds[1:]),
        "import": timed(python, ["-c", f"import {name.partition('.')[0]}"]),
        "help": timed(python, ["-m", f"frameworks.{framework}.scratch", "--help"]),
    }


def python(arguments: list[str]) -> None:
    """Runs this Python in another process, and waits for its end."""
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)


def used(data: Dataset) -> dict[str, Any]:
    """Which data was trained on: where Fashion-MNIST is missing, it is the synthetic set."""
    sizes = {"train_examples": len(data.train_labels), "test_examples": len(data.test_labels)}
    return DataUsed(name=data.name, sha256=data.digest(), **sizes).model_dump()


def report(entry: Entry, figures: dict[str, float], data: dict[str, Any] | None) -> None:
    """Prints what was found, and with which versions."""
    names = distributions(entry.framework)
    rivals = ("keras", "d2l", "lightning-fabric")
    known = versions(("numpy", *rivals, *names))
    found = {"figures": figures, "data": data, "versions": known}
    print(json.dumps(found), flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Measures what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("chapter", choices=(*WORKLOADS, "none"))
    parser.add_argument("contender")
    parser.add_argument("devices", type=int)
    parser.add_argument("--kind", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--started", type=float, default=time.time())
    parser.add_argument("--child", action="store_true", help="end with the process that starts it")
    flags = parser.parse_args(argv)
    if flags.child:
        end_with(os.getppid())
    entry = Entry(flags.framework, flags.chapter, flags.contender, flags.devices, flags.kind)
    if entry.contender == "machine":
        report(entry, machine(entry.framework), None)
        return
    data = load("auto", None, lambda _: None, progress=False)
    if not entry.ours:
        # A library that starts processes of its own says in this variable which one it is.
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        Measurement(entry, data, flags.started)(Process(rank))
        return
    threads = 1 if entry.devices > 1 and one_thread_each(entry.framework) else cores()
    backend = import_backend(entry.framework, entry.chapter, threads)
    backend.launch(Measurement(entry, data, flags.started), entry.wanted, entry.options)


if __name__ == "__main__":
    raise SystemExit(status("bench.measure", main))
