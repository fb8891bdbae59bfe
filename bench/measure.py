"""One measurement in its process, which prints a line of JSON.

python -m bench.measure jax scratch ours 2
"""

import argparse
import importlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.plan import WORKLOADS, Contender, Entry
from common.backends.frameworks import FRAMEWORKS
from common.backends.interface import Chapter, Process
from common.backends.loading import backend, import_backend, package, set_tf32
from common.base.children import end_with
from common.base.errors import RunError
from common.base.machine import cores, peak_memory, versions
from common.data.dataset import Bytes, Dataset, load, minibatches, numbers
from common.models.weights_file import initial_weights
from common.terminal.command import status


class Ours:
    """Our own chapter, trained as `common.training.loop` does it: losses stay on the device."""

    def __init__(self, chapter: Chapter, entry: Entry, devices: Sequence[Any]) -> None:
        self.chapter, self.workload = chapter, entry.workload
        weights = initial_weights(entry.options.shapes(), 8, "float32")
        self.trainer = chapter.trainer(weights, devices, entry.options)

    def prepare(self, images: Bytes, labels: Bytes) -> tuple[Bytes, Bytes]:
        """The bytes as they are: a run makes its minibatches while it trains."""
        return images, labels

    def train(self, data: tuple[Bytes, Bytes]) -> None:
        """Trains for one epoch."""
        losses = []
        batch_size = self.workload.batch_size
        for batch in minibatches(*data, batch_size=batch_size, seed=8, epoch=0):
            losses.append(self.trainer.train_batch(*numbers(*batch, "float32"), self.workload.lr))
        self.chapter.synchronize(self.trainer.replicas)
        float(losses[-1])


@dataclass(frozen=True)
class Measurement:
    """A worker: times one contender; the process of rank 0 prints the figures."""

    entry: Entry
    data: Dataset
    started: float

    def __call__(self, process: Process) -> None:
        """Times the contender and prints."""
        figures = self.figures(self.contender(process))
        if process.rank == 0:
            print(json.dumps({"figures": figures, **self.provenance()}), flush=True)

    def contender(self, process: Process) -> Contender:
        """The contender, ready to train."""
        entry = self.entry
        if entry.contender != "ours":
            return rival(entry)
        chapter: Any = backend(entry.framework, entry.chapter)
        devices = chapter.devices(process, entry.request)
        return Ours(chapter, entry, devices.local)

    def figures(self, contender: Contender) -> dict[str, float]:
        """Images per second, seconds from the process's start to the first step, and memory."""
        workload = self.entry.workload
        images = self.data.train_images[: workload.examples]
        labels = self.data.train_labels[: workload.examples]
        b, rest = workload.batch_size, len(images) % workload.batch_size
        contender.train(contender.prepare(images[:b], labels[:b]))
        first_step = time.time() - self.started
        # The shape of the last, shorter minibatch is compiled before the clock starts, too.
        contender.train(contender.prepare(images[: 2 * b + rest], labels[: 2 * b + rest]))
        data = contender.prepare(images, labels)
        begun = time.perf_counter()
        contender.train(data)
        seconds = time.perf_counter() - begun
        return {
            "images_per_second": len(images) / seconds,
            "first_step": first_step,
            "peak_memory": peak_memory(),
        }

    def provenance(self) -> dict[str, Any]:
        """The data set, which is synthetic where Fashion-MNIST is missing, and the versions."""
        data = self.data
        sizes = {"train_examples": len(data.train_labels), "test_examples": len(data.test_labels)}
        used = {"name": data.name, "sha256": data.digest(), **sizes}
        names = ("numpy", "keras", "lightning-fabric", *package(self.entry.framework).DISTRIBUTIONS)
        return {"data": used, "versions": versions(names)}


def rival(entry: Entry) -> Contender:
    """The rival's loop that an entry names. Raises RunError if it needs a GPU and sees none."""
    os.environ["KERAS_BACKEND"] = entry.framework.removeprefix("py")  # Keras reads it once
    set_tf32(False)  # as in ours
    if entry.kind == "gpu" and not gpus_seen(entry.framework):
        raise RunError(f"{entry.framework} sees no GPU here")
    module: Any = importlib.import_module(f"bench.{entry.contender}_fit")
    fit: Contender = module.Fit(entry.workload)
    return fit


def gpus_seen(framework: str) -> int:
    """The number of GPUs that a framework sees; XLA is told not to use TF32 there."""
    package(framework)  # MXNet then finds CUDA's libraries
    os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"
    module: Any = importlib.import_module("torch" if framework == "pytorch" else framework)
    if framework == "pytorch":
        return int(module.cuda.device_count())
    if framework == "mxnet":
        return int(module.context.num_gpus())
    if framework == "jax":
        return len(module.devices()) if module.default_backend() == "gpu" else 0
    module.config.experimental.enable_tensor_float_32_execution(False)
    return len(module.config.list_physical_devices("GPU"))


def main(argv: Sequence[str] | None = None) -> None:
    """Measures the entry that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("chapter", choices=WORKLOADS)
    parser.add_argument("contender")
    parser.add_argument("devices", type=int)
    parser.add_argument("--kind", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--started", type=float, default=time.time())
    flags = parser.parse_args(argv)
    end_with(os.getppid())
    entry = Entry(flags.framework, flags.chapter, flags.contender, flags.devices, flags.kind)
    work = Measurement(entry, load("auto", None, lambda _: None), flags.started)
    if entry.contender == "ours":
        single = entry.devices > 1 and package(entry.framework).ONE_THREAD_EACH
        threads = 1 if single else cores()
        chapter = import_backend(entry.framework, entry.chapter, threads)
        chapter.launch(work, entry.request, entry.options)
    else:
        # A library that starts further processes sets this variable to the rank of each.
        work(Process(int(os.environ.get("LOCAL_RANK", "0"))))


if __name__ == "__main__":
    raise SystemExit(status("bench.measure", main))
