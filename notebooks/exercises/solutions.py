"""Solutions of the chapters' exercises; `chapter` is a `Chapter` of a framework's backend."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, chain, pairwise, product
from statistics import fmean
from typing import Any, Final, NamedTuple, SupportsFloat, SupportsInt, TypeVar

import numpy  # `np` is MXNet's in its notebooks

from common.backends.interface import Chapter
from common.base.arrays import Array, Weights
from common.chapters.scratch import ScratchOptions
from common.models.nets import MOMENTUM
from common.parallel.schedules import SCHEDULES, Schedule, execute
from common.scaling.cluster import ITEM, Link, path, seconds
from common.trainers.scratch import FromScratch
from common.training.loop import accuracy

Examples = tuple[Array, Array]  # images (n, 1, 28, 28) in 0..1, and their classes (n,)

T = TypeVar("T")

LARGEST: Final = 2**40
"""The length at which the search for a faster ring ends."""


class Trial(NamedTuple):
    """The result of one epoch on some examples; the loss is the mean of its last quarter."""

    devices: int
    batch_size: int
    lr: float
    loss: float
    accuracy: float
    images_per_second: float


def scaled_batches(
    run: Callable[[Sequence[Any], int, float], Trial],
    devices: Sequence[Any],
    batch_size: int,
    lr: float,
) -> Iterator[Trial]:
    """Trials on each number k of devices: k times the minibatch, at the rate and at k times it."""
    for k in range(1, len(devices) + 1):
        for rate in sorted({lr, k * lr}):
            yield run(devices[:k], k * batch_size, rate)


def train_once(
    chapter: Chapter,
    weights: Mapping[str, Array],
    data: Examples,
    held_out: Examples,
    devices: Sequence[Any],
    batch_size: int,
    lr: float,
) -> Trial:
    """Trains one epoch on `data` from these weights; the accuracy is measured on `held_out`."""
    (X, y), options = data, ScratchOptions()
    starts = range(0, len(y), batch_size)
    batches = [(X[i : i + batch_size], y[i : i + batch_size]) for i in starts]
    spare, trainer = (chapter.trainer(weights, devices, options) for _ in range(2))
    float(spare.train_batch(*batches[0], lr))  # compiles, off the clock
    started = time.perf_counter()
    losses = [trainer.train_batch(*batch, lr) for batch in batches]
    chapter.synchronize(trainer.replicas)
    speed = len(y) / (time.perf_counter() - started)
    share = accuracy(trainer.predict(held_out[0]).argmax(axis=1), held_out[1])
    return Trial(len(devices), batch_size, lr, final_loss(losses), share, speed)


def final_loss(losses: Sequence[SupportsFloat]) -> float:
    """The mean over the last quarter of the steps, rounded up."""
    return fmean(float(loss) for loss in losses[-math.ceil(len(losses) / 4) :])


def sum_in_turn(
    allreduce: Callable[[Sequence[T]], list[T]], grads: Sequence[Mapping[str, T]]
) -> list[dict[str, T]]:
    """The sum of k devices' gradients, on each: device i mod k is the centre for parameter i.

    `allreduce` sums on the device of its first tensor.
    """
    k = len(grads)
    summed: list[dict[str, T]] = [{} for _ in range(k)]
    for number, name in enumerate(grads[0]):
        order = [(number + i) % k for i in range(k)]
        totals = allreduce([grads[device][name] for device in order])
        for device, total in zip(order, totals, strict=True):
            summed[device][name] = total
    return summed


def accuracy_of_shards(
    logits: Sequence[T],
    labels: Sequence[Any],
    count_right: Callable[[T, Any], SupportsInt],
) -> float:
    """The share of right answers: each device counts those of its shard, by `count_right`.

    Empty shards come last, and may have no logits.
    """
    counts = [count_right(*shard) for shard in zip(logits, labels, strict=False)]
    return sum(int(count) for count in counts) / sum(len(shard) for shard in labels)


def learning_rates(
    run: Callable[[Sequence[Any], int, float], Trial],
    devices: Sequence[Any],
    batch_size: int,
    rates: Sequence[float],
) -> dict[tuple[int, float], float]:
    """By number of devices and rate: the loss of a trial, with `batch_size` per device."""
    pairs = product(range(1, len(devices) + 1), rates)
    return {(k, lr): run(devices[:k], k * batch_size, lr).loss for k, lr in pairs}


def weighted_shard_sizes(examples: int, speeds: Sequence[float]) -> list[int]:
    """Sizes in proportion to the speeds; examples left by rounding down go to largest remainders.

    Raises ValueError if all speeds are 0, or if a speed is negative or not finite.
    """
    if not all(0 <= speed < math.inf for speed in speeds) or not any(speeds):
        raise ValueError(f"no shards for devices of the speeds {list(speeds)}")
    total = sum(map(Fraction, speeds))
    exact = [examples * Fraction(speed) / total for speed in speeds]
    sizes = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: sizes[i] - exact[i])
    for i in by_remainder[: examples - sum(sizes)]:
        sizes[i] += 1
    return sizes


def weighted_gradient(
    chapter: FromScratch,
    weights: Mapping[str, Array],
    data: Examples,
    devices: Sequence[Any],
    sizes: Sequence[int],
) -> Weights:
    """The gradient of the mean loss over all examples, from shards of any sizes."""
    grads, listing = [], chapter.listing
    bounds = pairwise([0, *accumulate(sizes)])
    for device, (a, b) in zip(devices, bounds, strict=True):
        params = listing.get_params(weights, device)
        [X], [y] = listing.split_batch(data[0][a:b], data[1][a:b], [device])
        grads.append(listing.shard_loss_and_grad(params, X, y, len(data[1]))[1])
    summed = {name: listing.allreduce([grad[name] for grad in grads]) for name in grads[0]}
    copies = [{name: summed[name][i] for name in summed} for i in range(len(devices))]
    return chapter.export(copies)


def seconds_with_and_without_waiting(
    step: Callable[[], SupportsFloat], wait: Callable[[], None], steps: int
) -> tuple[float, float]:
    """Seconds until the last step is queued, and until it is done."""
    float(step())  # compiles, off the clock
    wait()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    queued = time.perf_counter() - started
    wait()
    return queued, time.perf_counter() - started


def losses_behind(losses: Iterable[SupportsFloat], ahead: int) -> list[float]:
    """The losses as numbers; each is read once `ahead` later steps are queued."""
    waiting: deque[SupportsFloat] = deque()
    read = []
    for loss in losses:
        waiting.append(loss)
        if len(waiting) > ahead:
            read.append(float(waiting.popleft()))
    return read + [float(loss) for loss in waiting]


def drop_barriers(schedule: Schedule) -> Schedule:
    """The same messages, but all are sent at once, without waiting for earlier ones."""
    return replace(schedule, rounds=(tuple(chain(*schedule.rounds)),))


def carry_out(schedule: Schedule, vectors: Sequence[Array]) -> list[Array]:
    """The vector of each device after the schedule, from the vector of each before."""
    held = [numpy.array_split(vector, schedule.chunks) for vector in vectors]
    execute(schedule, held, receive=lambda chunk, target: chunk.copy())
    return [numpy.concatenate(chunks) for chunks in held]


def busiest_traffic(algorithm: str, k: int, sizes: Sequence[int]) -> tuple[int, int]:
    """Messages and bytes of the busiest device if each tensor is summed by itself.

    The bytes stay the same, up to the rounding of chunks. With t tensors there are t times as many
    messages, and each costs its latency: so frameworks put gradients together.
    """
    paths = [path(SCHEDULES[algorithm](k), size) for size in sizes]
    return sum(route.messages for route in paths), sum(ITEM * route.moved for route in paths)


def ring_beats_halving_from(k: int, link: Link) -> int | None:
    """The number of entries from which a ring is faster than halving; None if it never is.

    If k is a power of two, halving sends as little in fewer messages. Otherwise the devices beyond
    the largest power send whole vectors, so that halving sends more than twice as much, and for
    long vectors the ring's many small messages cost less.
    """

    def ring_wins(entries: int) -> bool:
        return seconds("ring", k, entries, link) < seconds("halving", k, entries, link)

    if not ring_wins(LARGEST):
        return None
    few, enough = 0, LARGEST
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if ring_wins(middle) else (middle, enough)
    return enough


def share_replaced(share: float, steps: int) -> float:
    """The share of a statistic that is replaced after `steps`, if each step replaces `share`."""
    return 1 - math.pow(1 - share, steps)


def riddle_1(factor: float, steps: int) -> float:
    """The momentum of batch normalization: each step replaces a hundredth instead of a tenth.

    Training normalizes by the minibatch's mean and variance, so logits, gradients, losses and
    trained weights are right. Evaluation normalizes by the running statistics, so the last logits
    are off. The running means start at 0 and are `factor` times the right ones, which gives the
    share that each step replaced. If 0.99, the share of the old value, is taken for 0.1, the share
    of the new one, the same net is trained, but accuracies differ.
    """
    return 1 - math.pow(1 - factor * share_replaced(MOMENTUM, steps), 1 / steps)


def riddle_2(factor: float, examples: int) -> float:
    """The gradient of the summed loss instead of the mean loss.

    Logits and the first loss are right. Every tensor of the first gradient is the right one times
    the batch size, with a residual of rounding: a missing division, not a wrong formula. The result
    is 1. From the second step on everything is off, because the steps are too long.
    """
    return factor / examples


def excess(n: int, steps: int, variance: float) -> float:
    """The excess of a running variance over n - 1, relative to the one over n.

    It starts at 1, and each of the `steps` sees the same `variance` of n numbers.
    """
    share = share_replaced(MOMENTUM, steps)
    return share * variance / (n - 1) / (1 - share + share * variance)
