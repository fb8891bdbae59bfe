"""How long a training step takes on a cluster that communicates while it computes, or after it."""

from dataclasses import dataclass
from math import prod
from typing import Final

from common.chapters.chapters import SPECS
from common.chapters.operations import layer_operations, training_operations
from common.models.nets import trainable
from common.parallel.shards import shard_sizes
from common.scaling.formulas import ITEM, Link, seconds

BUCKET: Final = 25 * 2**20
"""Bytes of gradient that are sent together, as in PyTorch's DistributedDataParallel."""

COUNTS: Final = tuple(2**power for power in range(1, 13))
"""The devices that are simulated."""


@dataclass(frozen=True)
class Net:
    """What a step computes on each device, in floating-point operations, and what it then sums."""

    name: str
    examples: str
    parameters: int
    forward: float
    backward: float

    def buckets(self) -> list[int]:
        """The entries of each bucket: as few buckets as can be, of almost equal size."""
        return shard_sizes(self.parameters, -(-ITEM * self.parameters // BUCKET))


def nets() -> list[Net]:
    """The book's two, and one of a billion parameters."""
    return [
        *(_of_the_book(name) for name in ("scratch", "concise")),
        # Each parameter multiplies and adds once for each token, and twice on the way back.
        Net("net of a billion", "2,048 tokens", 10**9, 2e9 * 2048, 4e9 * 2048),
    ]


def _of_the_book(chapter: str, images: int = 256) -> Net:
    spec = SPECS[chapter]
    options = spec.of_the_book()
    shapes = options.shapes().items()
    parameters = sum(prod(shape) for key, shape in shapes if trainable(key))
    forward = sum(layer_operations(options).values())
    backward = training_operations(options) - forward
    return Net(spec.net, f"{images} images", parameters, images * forward, images * backward)


@dataclass(frozen=True)
class Timing:
    """Seconds of a step: those that it computes, and each bucket's allreduce."""

    forward: float
    backward: float
    allreduces: list[float]

    def apart(self) -> float:
        """The whole step, if nothing is sent before all is computed."""
        return self.forward + self.backward + sum(self.allreduces)

    def overlapped(self) -> float:
        """The whole step, if a bucket is sent as soon as it is ready and the link is free.

        Buckets become ready evenly during the backward pass.
        """
        end = 0.0
        for number, taken in enumerate(self.allreduces, start=1):
            ready = self.forward + self.backward * number / len(self.allreduces)
            end = max(end, ready) + taken
        return end


def timing(net: Net, algorithm: str, k: int, link: Link, rate: float) -> Timing:
    """One step of `net` on k devices that each compute at `rate` operations per second."""
    each = [seconds(algorithm, k, entries, link) for entries in net.buckets()]
    return Timing(net.forward / rate, net.backward / rate, each)
