"""Predicts the traffic and the memory of a step of a plan; a run has to count the same."""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from common.parallel.ledger import Ledger, Usage
from common.parallel.pipelines import most_live
from common.parallel.plans import Plan
from common.parallel.shards import shard_sizes


def predicted(plan: Plan, examples: int, itemsize: int, state: int | None = None) -> Usage:
    """Predicts the usage of a step on `examples`, with `itemsize` bytes for each number.

    The optimizer keeps `state` bytes for each number that it updates; None: one number, as SGD with
    momentum does.
    """
    state = itemsize if state is None else state
    ledger = Ledger(plan.replicas * plan.devices, itemsize)
    group = range(plan.devices)
    weights = [weights_kept(plan, device) for device in group]
    updated = [sum(elements_updated(plan, device).values()) for device in group]
    gradients = {
        several: [gradients_kept(plan, device, several) for device in group]
        for several in (False, True)
    }
    sends, activations = STRATEGIES[plan.strategy]
    for replica, rows in enumerate(plan.rows_of(examples)):
        numbers = range(replica * plan.devices, (replica + 1) * plan.devices)
        here = rows.stop - rows.start
        sends(plan, here, numbers, ledger)
        found, several = activations(plan, here), len(plan.shards_of(here)) > 1
        for device, number in enumerate(numbers):
            kept, ledger.live[number] = found[device]
            ledger.peak["activations", number] = itemsize * kept
            ledger.peak["weights", number] = itemsize * weights[device]
            ledger.peak["gradients", number] = itemsize * gradients[several][device]
            ledger.peak["momentum", number] = state * updated[device]
    for device in group:  # and each column of the mesh sums its gradients
        column = range(device, ledger.devices, plan.devices)
        for size in elements_updated(plan, device).values():
            allreduce(ledger, column, size, "gradients")
    return ledger.usage(examples)


def allreduce(ledger: Ledger, devices: Sequence[int], size: int, kind: str, count: int = 1) -> None:
    """Counts `count` all-reduces of `size` elements together, by a star around the first device."""
    for other in devices[1:]:
        ledger.send(size * ledger.itemsize, other, devices[0], kind, count)
        ledger.send(size * ledger.itemsize, devices[0], other, kind, count)


def scatter_and_gather(
    ledger: Ledger, devices: Sequence[int], size: int, scatters: int, gathers: int
) -> None:
    """Counts reduce-scatters of gradients and all-gathers of weights of `size` elements.

    In either, each device exchanges its own slice with all others.
    """
    others = len(devices) - 1
    for device, own in zip(devices, shard_sizes(size, len(devices)), strict=True):
        rest, slices = (ledger.itemsize * each for each in (size - own, others * own))
        ledger.sent["gradients", device] += scatters * rest
        ledger.received["gradients", device] += scatters * slices
        ledger.sent["weights", device] += gathers * slices
        ledger.received["weights", device] += gathers * rest
        ledger.messages[device] += (scatters + gathers) * others


def data_sends(plan: Plan, examples: int, numbers: Sequence[int], ledger: Ledger) -> None:
    """Counts nothing: a replica has one device."""


def pipeline_sends(plan: Plan, examples: int, numbers: Sequence[int], ledger: Ledger) -> None:
    """Counts activations sent to the next stage, and their gradients sent back."""
    count = len(plan.microbatches_of(examples))
    for stage, names in enumerate(plan.stages[1:]):
        size = examples * plan.inputs[names[0]] * ledger.itemsize
        ledger.send(size, numbers[stage], numbers[stage + 1], "activations", count)
        ledger.send(size, numbers[stage + 1], numbers[stage], "gradients", count)


def tensor_sends(plan: Plan, examples: int, numbers: Sequence[int], ledger: Ledger) -> None:
    """Counts an all-reduce forward for each pair of layers, and one back except for the first."""
    count = len(plan.microbatches_of(examples))
    for column, row in plan.pairs:
        allreduce(ledger, numbers, examples * plan.output(row), "activations", count)
        if column != plan.layers[0]:
            allreduce(ledger, numbers, examples * plan.inputs[column], "gradients", count)


def zero_sends(plan: Plan, examples: int, numbers: Sequence[int], ledger: Ledger) -> None:
    """Counts reduce-scatters of gradients: one at the end (stage 1), or one a microbatch.

    Stages 1 and 2 gather the weights once, after the update; stage 3 twice for each microbatch.
    """
    rounds = len(plan.shards_of(examples))
    scatters = 1 if plan.strategy == "zero1" else rounds
    gathers = 2 * rounds if plan.strategy == "zero3" else 1
    for size in map(math.prod, plan.shapes.values()):
        scatter_and_gather(ledger, numbers, size, scatters, gathers)


Kept = list[tuple[int, int]]
"""For each device of a replica: the most elements of activations, and of microbatches in flight."""


def data_activations(plan: Plan, examples: int) -> Kept:
    """The inputs of all layers, for one microbatch at a time."""
    largest = max(rows.stop - rows.start for rows in plan.microbatches_of(examples))
    return [(largest * sum(plan.inputs.values()), 1)]


def pipeline_activations(plan: Plan, examples: int) -> Kept:
    """The inputs of a stage's layers, for each microbatch in flight."""
    sizes = [rows.stop - rows.start for rows in plan.microbatches_of(examples)]
    found = []
    for names, passes in zip(plan.stages, plan.order(len(sizes)), strict=True):
        changes = ((1 if one.forward else -1) * sizes[one.microbatch] for one in passes)
        each = sum(plan.inputs[name] for name in names)
        found.append((each * max(accumulate(changes)), most_live(passes)))
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


def elements_updated(plan: Plan, device: int) -> dict[str, int]:
    """The number of elements that a device updates, of each weight of which it has a part."""
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
    own = elements_updated(plan, device)
    if not plan.strategy.startswith("zero"):
        return sum(own.values())
    if plan.strategy == "zero1":
        return sum(map(math.prod, plan.shapes.values())) + sum(own.values())
    layers = [plan.tensors[layer] for layer in plan.layers[::-1]]
    slices = list(accumulate(sum(own[name] for name in names) for names in layers))
    whole = [sum(math.prod(plan.shapes[name]) for name in names) for names in layers]
    left = slices[-1:] * len(layers) if several else slices
    return max(map(sum, zip(left, whole, strict=True)))


Sends = Callable[[Plan, int, Sequence[int], Ledger], None]

STRATEGIES: Final[dict[str, tuple[Sends, Callable[[Plan, int], Kept]]]] = {
    "data": (data_sends, data_activations),
    "pipeline": (pipeline_sends, pipeline_activations),
    "tensor": (tensor_sends, tensor_activations),
    **dict.fromkeys(("zero1", "zero2", "zero3"), (zero_sends, zero_activations)),
}
"""By strategy: the traffic within a replica, and the activations of each of its devices."""
