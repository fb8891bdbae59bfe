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
    """The options of a chapter; without a wrapper, the framework's first."""
    return ConciseOptions(WIDTH, batch_norm, wrapper or WRAPPERS[framework][0])


def request(devices: int) -> DeviceRequest:
    """A request for so many virtual devices."""
    return DeviceRequest(devices, "cpu", 2)


@dataclass(frozen=True)
class Trained:
    """A worker: takes the steps and saves what they give, each process for itself."""

    framework: str
    devices: Sequence[Any]
    batch_norm: str
    dtype: str
    folder: Path
    wrapper: str | None = None

    def options(self) -> ConciseOptions:
        return options(self.framework, self.batch_norm, self.wrapper)

    def __call__(self, process: Process) -> None:
        chapter = backend(self.framework, "concise")
        devices = process.share_of(self.devices)
        replicas = chapter.replicate(start(self.dtype), devices, self.options())
        found = self.found(chapter, replicas, devices)
        save_weights(self.folder / f"{process.rank}.safetensors", found)

    def found(self, chapter: Any, replicas: Any, devices: Sequence[Any]) -> Weights:
        """What is saved."""
        found = self.trained(chapter, replicas, devices)
        return found | under("weights", chapter.export(replicas))

    def trained(self, chapter: Any, replicas: Any, devices: Sequence[Any]) -> Weights:
        """Takes the steps: their losses, and what each device has of its own after them."""
        losses = [
            chapter.train_batch(*step, replicas, devices, lr, self.options())
            for step, lr in zip(batches(self.dtype), RATES, strict=True)
        ]
        chapter.synchronize(replicas)
        own = under("own", chapter.save(replicas))
        return {"losses": np.array([float(loss) for loss in losses]), **own}

    def run(self, chapter: Any) -> Weights:
        """Launches the steps; what the first process saved."""
        chapter.launch(self, request(len(self.devices)), self.options())
        return load_file(self.folder / "0.safetensors")


class Steps(Trained):
    """The same, with all else that a backend computes before, between and after."""

    def found(self, chapter: Any, replicas: Any, devices: Sequence[Any]) -> Weights:
        """What is saved."""
        X, y = batches(self.dtype)[0]
        before = {
            "logits/before": chapter.predict(X, replicas, devices),
            **under("layers/before", chapter.activations(X, replicas, devices)),
            **under("gradients", chapter.gradients(X, y, replicas, devices, self.options())),
            **under("untouched", chapter.export(replicas)),
        }
        trained = self.trained(chapter, replicas, devices)
        # To export may give all devices the first one's statistics: what needs these comes before.
        after = {
            "logits/after": chapter.predict(X, replicas, devices),
            **under("layers/after", chapter.activations(X, replicas, devices)),
            "logits/one": chapter.predict(X[:1], replicas, devices),
            **under("weights", chapter.export(replicas)),
        }
        return before | trained | after | self.resumed(chapter, replicas, devices)

    def resumed(self, chapter: Any, replicas: Any, devices: Sequence[Any]) -> Weights:
        """What is saved, and of replicas it was restored to; of both, too, after another step."""
        chosen, (X, y) = self.options(), batches(self.dtype)[2]
        others = chapter.replicate(start(self.dtype), devices, chosen)
        # As a resumed run does: PyTorch's DDP sums in another way in its very first pass.
        chapter.gradients(X, y, others, devices, chosen)
        saved = chapter.save(replicas)
        chapter.restore(saved, others, devices)
        found = under("saved", saved) | under("restored", chapter.save(others))
        for when, each in (("on", replicas), ("resumed", others)):
            chapter.train_batch(X, y, each, devices, RATES[0], chosen)
            found |= under(when, chapter.save(each))
        return found


def far(found: Array, expected: Array) -> float:
    """The largest difference over the largest expected entry; shapes must agree."""
    assert found.shape == expected.shape
    return distance(found, expected)[0]


def under(prefix: str, arrays: Weights) -> Weights:
    """The same arrays, under names that begin so; `part` takes them out again."""
    return {f"{prefix}/{name}": values for name, values in arrays.items()}
