"""What the tests of the concise chapter let a backend do, in as many processes as it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from common.backends.devices import DeviceRequest, Process
from common.backends.frameworks import WRAPPERS
from common.backends.loading import backend
from common.base.arrays import Array, Weights
from common.chapters.concise import ConciseOptions
from common.compare.distances import distance
from common.data.minibatches import pixels
from common.data.synthetic import synthetic
from common.models.initial import initial_weights
from common.models.nets import resnet18_shapes
from common.models.weights_file import save_weights
from common.parallel.shards import shard_bounds

WIDTH = 4
RATES = (0.1, 0.08, 0.05)
"""Of each step: a backend must not stay with the first."""
IMAGES, LABELS, *_ = synthetic(20, 1)

Batches = list[tuple[Array, Array]]


def batches(dtype: str) -> Batches:
    """Three minibatches, uneven on three devices; one of them idles in the second.

    With synchronized statistics no ReLU unit has an input nearer to zero than 7e-7 of the largest
    input of its layer. Rounding to float32 would decide on nearer ones.
    """
    return [
        (pixels(IMAGES[a:b], dtype), LABELS[a:b].astype(np.int64))
        for a, b in ((0, 10), (11, 13), (10, 20))
    ]


def start(dtype: str, width: int = WIDTH) -> Weights:
    """Weights and running statistics of which none is 0 or 1, so that each is seen to count."""
    random = np.random.RandomState(1)
    weights = {}
    for name, values in initial_weights(resnet18_shapes(width), 0, "float64").items():
        noise = random.standard_normal(values.shape)
        moved = 10 * values if values.ndim > 1 else values + 0.1 * noise
        moved = np.abs(moved) if name.endswith("running_var") else moved
        weights[name] = moved.astype(np.float32).astype(dtype)
    return weights


def split(batch_norm: str, k: int) -> Callable[[int], list[tuple[int, int]]]:
    """How a minibatch is divided for batch normalization."""
    return lambda n: shard_bounds(n, k if batch_norm == "per-device" else 1)


def options(
    framework: str, batch_norm: str = "per-device", wrapper: str | None = None
) -> ConciseOptions:
    """The options of a run; without a wrapper, the framework's first."""
    return ConciseOptions(WIDTH, batch_norm, wrapper or WRAPPERS[framework][0])


def request(devices: int) -> DeviceRequest:
    """A request for so many virtual devices."""
    return DeviceRequest(devices, "cpu", 2)


@dataclass(frozen=True)
class Worker:
    """Saves the arrays that `work` gives in each process, by the process's rank."""

    work: Callable[[Any, Sequence[Any], ConciseOptions], Weights]
    framework: str
    devices: Sequence[Any]
    options: ConciseOptions
    folder: Path

    def __call__(self, process: Process) -> None:
        chapter = backend(self.framework, "concise")
        found = self.work(chapter, process.share_of(self.devices), self.options)
        save_weights(self.folder / f"{process.rank}.safetensors", found)

    def run(self, chapter: Any) -> Weights:
        """Launches the processes; returns the arrays of the first one."""
        chapter.launch(self, request(len(self.devices)), self.options)
        return load_file(self.folder / "0.safetensors")


def trained(chapter: Any, devices: Sequence[Any], chosen: ConciseOptions) -> Weights:
    """Takes the steps: their losses, and the weights after them."""
    replicas = chapter.replicate(start("float64"), devices, chosen)
    losses = losses_of(chapter, replicas, devices, chosen)
    return losses | under("weights", chapter.export(replicas))


def losses_of(chapter: Any, replicas: Any, devices: Any, chosen: ConciseOptions) -> Weights:
    """Takes the steps; returns their losses."""
    losses = [
        chapter.train_batch(*step, replicas, devices, lr, chosen)
        for step, lr in zip(batches("float64"), RATES, strict=True)
    ]
    chapter.synchronize(replicas)
    return {"losses": np.array([float(loss) for loss in losses])}


def everything(chapter: Any, devices: Sequence[Any], chosen: ConciseOptions) -> Weights:
    """Takes the steps, with all else that a backend computes before, between and after."""
    (X, y), _, last = batches("float64")
    replicas = chapter.replicate(start("float64"), devices, chosen)
    found = {
        "logits/before": chapter.predict(X, replicas, devices),
        **under("layers/before", chapter.activations(X, replicas, devices)),
        **under("gradients", chapter.gradients(X, y, replicas, devices, chosen)),
        **under("untouched", chapter.export(replicas)),
        **losses_of(chapter, replicas, devices, chosen),
        # To export may give all devices the first one's statistics: what needs these comes before.
        **under("own", chapter.save(replicas)),
        "logits/after": chapter.predict(X, replicas, devices),
        **under("layers/after", chapter.activations(X, replicas, devices)),
        "logits/one": chapter.predict(X[:1], replicas, devices),
        **under("weights", chapter.export(replicas)),
    }
    others = chapter.replicate(start("float64"), devices, chosen)
    # As a resumed run does: PyTorch's DDP sums in another way in its very first pass.
    chapter.gradients(*last, others, devices, chosen)
    saved = chapter.save(replicas)
    chapter.restore(saved, others, devices)
    found |= under("saved", saved) | under("restored", chapter.save(others))
    for when, each in (("on", replicas), ("resumed", others)):
        chapter.train_batch(*last, each, devices, RATES[0], chosen)
        found |= under(when, chapter.save(each))
    return found


def far(found: Array, expected: Array) -> float:
    """The largest difference over the largest expected entry; shapes must agree."""
    assert found.shape == expected.shape
    return distance(found, expected)[0]


def under(prefix: str, arrays: Weights) -> Weights:
    """The same arrays, under names that begin so; `part` takes them out again."""
    return {f"{prefix}/{name}": values for name, values in arrays.items()}
