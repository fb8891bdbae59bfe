"""What a step of a plan moves and keeps, by formula: what a run counts has to be just that."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from common.parallel.ledger import KEPT, MOVED, Usage
from common.parallel.plans import Plan
from common.parallel.shards import shard_sizes


def predicted(plan: Plan, examples: int, itemsize: int, state: int | None = None) -> Usage:
    """What a step on so many examples moves and keeps, if a number has `itemsize` bytes.

    The optimizer keeps `state` bytes for each number that it updates; None: one number, as SGD with
    momentum does.
    """
    state = itemsize if state is None else state
    count = plan.replicas * plan.devices
    moved, kept, live = Moved(), Counter[tuple[str, int]](), Counter[int]()
    group = range(plan.devices)
    weights = [weights_kept(plan, device) for device in group]
    updated = [sum(parts(plan, device).values()) for device in group]
    gradients = {
        several: [gradients_kept(plan, device, several) for device in group]
        for several in (False, True)
    }
    for replica, rows in enumerate(plan.rows_of(examples)):
        numbers = range(replica * plan.devices, (replica + 1) * plan.devices)
        here = rows.stop - rows.start
        moves, activations = WAYS[plan.strategy]
        moves(plan, here, numbers, moved)
        found, several = activations(plan, here), len(plan.shards_of(here)) > 1
        for device, number in enumerate(numbers):
            kept["activations", number], live[number] = found[device]
            kept["weights", number] = weights[device]
            kept["gradients", number] = gradients[several][device]
            kept["momentum", number] = updated[device]
    for device in range(plan.devices):  # and each column of the mesh adds up its gradients
        column = range(device, count, plan.devices)
        for size in parts(plan, device).values():
            moved.allreduce(column, size, "gradients")
    every = range(count)
    return Usage(
        examples=examples,
        sent={kind: [itemsize * moved.sent[kind, i] for i in every] for kind in MOVED},
        received={kind: [itemsize * moved.received[kind, i] for i in every] for kind in MOVED},
        messages=[moved.messages[i] for i in every],
        live=[live[i] for i in every],
        peak={
            kind: [(state if kind == "momentum" else itemsize) * kept[kind, i] for i in every]
            for kind in KEPT
        },
    )


@dataclass
class Moved:
    """How many numbers each device sends and receives, by kind, and how many messages it sends."""

    sent: Counter[tuple[str, int]] = field(default_factory=Counter)
    received: Counter[tuple[str, int]] = field(default_factory=Counter)
    messages: Counter[int] = field(default_factory=Counter)

    def message(self, source: int, target: int, size: int, kind: str, count: int = 1) -> None:
        """So many messages, of `size` numbers together."""
        self.sent[kind, source] += size
        self.received[kind, target] += size
        self.messages[source] += count

    def allreduce(self, devices: Sequence[int], size: int, kind: str, count: int = 1) -> None:
        """So many sums on the first device, which then go to all others."""
        for other in devices[1:]:
            self.message(other, devices[0], size, kind, count)
            self.message(devices[0], other, size, kind, count)

    def reduce_scatter(self, devices: Sequence[int], size: int, kind: str, times: int) -> None:
        """Each device adds up its slice of all others' tensors."""
        others = len(devices) - 1
        for device, own in zip(devices, shard_sizes(size, len(devices)), strict=True):
            self.sent[kind, device] += times * (size - own)
            self.received[kind, device] += times * others * own
            self.messages[device] += times * others

    def all_gather(self, devices: Sequence[int], size: int, kind: str, times: int) -> None:
        """Each device gives its slice to all others."""
        others = len(devices) - 1
        for device, own in zip(devices, shard_sizes(size, len(devices)), strict=True):
            self.sent[kind, device] += times * others * own
            self.received[kind, device] += times * (size - own)
            self.messages[device] += times * others


def data_moves(plan: Plan, examples: int, numbers: Sequence[int], moved: Moved) -> None:
    """Within a replica, nothing."""


def pipeline_moves(plan: Plan, examples: int, numbers: Sequence[int], moved: Moved) -> None:
    """What a stage hands on of each microbatch, and the gradient of that on the way back."""
    count = len(plan.microbatches_of(examples))
    for stage, names in enumerate(plan.stages[1:]):
        size = examples * plan.inputs[names[0]]
        moved.message(numbers[stage], numbers[stage + 1], size, "activations", count)
        moved.message(numbers[stage + 1], numbers[stage], size, "gradients", count)


def tensor_moves(plan: Plan, examples: int, numbers: Sequence[int], moved: Moved) -> None:
    """For each pair of layers, one allreduce forward and, but for the first pair, one back."""
    count = len(plan.microbatches_of(examples))
    for column, row in plan.pairs:
        moved.allreduce(numbers, examples * plan.output(row), "activations", count)
        if column != plan.layers[0]:
            moved.allreduce(numbers, examples * plan.inputs[column], "gradients", count)


def zero_moves(plan: Plan, examples: int, numbers: Sequence[int], moved: Moved) -> None:
    """Gradients are scattered at the end (1), or for each microbatch.

    ZeRO-1 and 2 gather weights once, after the update; ZeRO-3 twice for each microbatch.
    """
    rounds = len(plan.shards_of(examples))
    scatters = 1 if plan.strategy == "zero1" else rounds
    gathers = 2 * rounds if plan.strategy == "zero3" else 1
    for size in map(math.prod, plan.shapes.values()):
        moved.reduce_scatter(numbers, size, "gradients", scatters)
        moved.all_gather(numbers, size, "weights", gathers)


Kept = list[tuple[int, int]]
"""For each device of a replica: the most numbers it keeps of activations, and live microbatches."""


def data_activations(plan: Plan, examples: int) -> Kept:
    """The inputs of all layers, for one microbatch at a time."""
    largest = max(rows.stop - rows.start for rows in plan.microbatches_of(examples))
    return [(largest * sum(plan.inputs.values()), 1)]


def pipeline_activations(plan: Plan, examples: int) -> Kept:
    """The inputs of a stage's layers, for each microbatch that is live."""
    sizes = [rows.stop - rows.start for rows in plan.microbatches_of(examples)]
    found = []
    for names, passes in zip(plan.stages, plan.order(len(sizes)), strict=True):
        signs = [1 if one.forward else -1 for one in passes]
        batches = accumulate(
            sign * sizes[p.microbatch] for sign, p in zip(signs, passes, strict=True)
        )
        each = sum(plan.inputs[name] for name in names)
        found.append((each * max(batches), max(accumulate(signs))))
    return found


def tensor_activations(plan: Plan, examples: int) -> Kept:
    """Of a pair: the whole input, its own slice of what the first makes, and the second's sum."""
    largest = max(rows.stop - rows.start for rows in plan.microbatches_of(examples))
    whole = sum(plan.inputs[column] + plan.output(row) for column, row in plan.pairs)
    whole += sum(plan.inputs[name] for name in plan.unpaired)
    found = []
    for device in range(plan.devices):
        slices = 0
        for column, row in plan.pairs:
            channels = plan.shapes[f"{column}.bias"][0]
            own = shard_sizes(channels, plan.devices)[device]
            slices += plan.inputs[row] // channels * own
        found.append((largest * (whole + slices), 1))
    return found


def zero_activations(plan: Plan, examples: int) -> Kept:
    """The inputs of all layers, for the device's shard of one microbatch at a time."""
    each = sum(plan.inputs.values())
    shards = zip(*plan.shards_of(examples), strict=True)
    return [(each * max(rows.stop - rows.start for rows in own), 1) for own in shards]


def parts(plan: Plan, device: int) -> dict[str, int]:
    """How many numbers of each weight a device updates; it has no others."""
    held = {name: layout[device] for name, layout in plan.updated.items()}
    return {k: part.size(plan.shapes[k]) for k, part in held.items() if part is not None}


def weights_kept(plan: Plan, device: int) -> int:
    """The most numbers of weights: with ZeRO-3, its slices and one whole layer."""
    held = [(plan.shapes[name], layout[device]) for name, layout in plan.weights.items()]
    own = sum(part.size(shape) for shape, part in held if part is not None)
    return own + (max(map(plan.size, plan.layers)) if plan.strategy == "zero3" else 0)


def gradients_kept(plan: Plan, device: int, several: bool) -> int:
    """The most numbers of gradients: of what it updates and, with ZeRO, of what is not scattered.

    ZeRO-1 scatters all at the end. The others scatter one layer at a time, the last one first; of
    `several` microbatches, an earlier one has left all slices.
    """
    own = parts(plan, device)
    if not plan.strategy.startswith("zero"):
        return sum(own.values())
    if plan.strategy == "zero1":
        return sum(map(math.prod, plan.shapes.values())) + sum(own.values())
    layers = [plan.tensors[layer] for layer in plan.layers[::-1]]
    slices = list(accumulate(sum(own[name] for name in names) for names in layers))
    whole = [sum(math.prod(plan.shapes[name]) for name in names) for names in layers]
    left = slices[-1:] * len(layers) if several else slices
    return max(map(sum, zip(left, whole, strict=True)))


Moves = Callable[[Plan, int, Sequence[int], Moved], None]

WAYS: Final[dict[str, tuple[Moves, Callable[[Plan, int], Kept]]]] = {
    "data": (data_moves, data_activations),
    "pipeline": (pipeline_moves, pipeline_activations),
    "tensor": (tensor_moves, tensor_activations),
    **dict.fromkeys(("zero1", "zero2", "zero3"), (zero_moves, zero_activations)),
}
"""By strategy: what devices of a replica send each other, and the activations that they keep."""
