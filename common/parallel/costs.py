"""Predicts the traffic and the memory of a step of a plan; a run has to count the same."""

import math
from collections.abc import Sequence
from itertools import accumulate

from common.parallel.ledger import Ledger, Usage
from common.parallel.pipelines import most_live
from common.parallel.plans import Plan
from common.parallel.shards import shard_sizes


def predicted(plan: Plan, examples: int, itemsize: int, state: int | None = None) -> Usage:
    """Predicts the usage of a step on `examples`, with `itemsize` bytes for each element.

    The optimizer keeps `state` bytes for each element that it updates; None: one element, as SGD
    with momentum does.
    """
    state = itemsize if state is None else state
    ledger = Ledger(plan.replicas * plan.devices, itemsize)
    for replica, rows in enumerate(plan.rows_of(examples)):
        group = range(replica * plan.devices, (replica + 1) * plan.devices)
        here = rows.stop - rows.start
        count_sends(plan, here, group, ledger)
        for device, number in enumerate(group):
            most, ledger.live[number] = in_flight(plan, here, device)
            kept = {
                "activations": itemsize * most * activations_kept(plan, device),
                "weights": itemsize * weights_kept(plan, device),
                "gradients": itemsize * gradients_kept(plan, device, here),
                "momentum": state * sum(elements_updated(plan, device).values()),
            }
            ledger.peak.update({(kind, number): size for kind, size in kept.items()})
    for device in range(plan.devices):  # and each column of the mesh sums its gradients
        column = range(device, ledger.devices, plan.devices)
        for size in elements_updated(plan, device).values():
            count_allreduce(ledger, column, size, "gradients")
    return ledger.usage(examples)


def count_sends(plan: Plan, examples: int, group: Sequence[int], ledger: Ledger) -> None:
    """Counts the messages within a replica, in a step on `examples`.

    Pipeline: activations go to the next stage, their gradients come back. Tensor: an all-reduce
    forward for each pair of layers, and one back except for the first. ZeRO: a reduce-scatter of
    gradients at the end (stage 1) or for each microbatch; an all-gather of the weights after the
    update or, in stage 3, two for each microbatch.
    """
    microbatches = len(plan.microbatches_of(examples))
    if plan.strategy == "pipeline":
        for stage, names in enumerate(plan.stages[1:]):
            size = examples * plan.inputs[names[0]] * ledger.itemsize
            ledger.send(size, group[stage], group[stage + 1], "activations", microbatches)
            ledger.send(size, group[stage + 1], group[stage], "gradients", microbatches)
    elif plan.strategy == "tensor":
        for column, row in plan.pairs:
            size = examples * plan.output(row)
            count_allreduce(ledger, group, size, "activations", microbatches)
            if column != plan.layers[0]:
                size = examples * plan.inputs[column]
                count_allreduce(ledger, group, size, "gradients", microbatches)
    elif plan.strategy.startswith("zero"):
        rounds = len(plan.shards_of(examples))
        scatters = 1 if plan.strategy == "zero1" else rounds
        gathers = 2 * rounds if plan.strategy == "zero3" else 1
        for size in map(math.prod, plan.shapes.values()):
            count_scatter_and_gather(ledger, group, size, scatters, gathers)


def count_allreduce(
    ledger: Ledger, group: Sequence[int], size: int, kind: str, times: int = 1
) -> None:
    """Counts all-reduces of `size` elements together, by a star around the first device."""
    for other in group[1:]:
        ledger.send(size * ledger.itemsize, other, group[0], kind, times)
        ledger.send(size * ledger.itemsize, group[0], other, kind, times)


def count_scatter_and_gather(
    ledger: Ledger, group: Sequence[int], size: int, scatters: int, gathers: int
) -> None:
    """Counts reduce-scatters of gradients and all-gathers of weights of `size` elements.

    In either, each device exchanges its slice with all others.
    """
    others = len(group) - 1
    for device, own in zip(group, shard_sizes(size, len(group)), strict=True):
        rest, slices = (ledger.itemsize * each for each in (size - own, others * own))
        ledger.sent["gradients", device] += scatters * rest
        ledger.received["gradients", device] += scatters * slices
        ledger.sent["weights", device] += gathers * slices
        ledger.received["weights", device] += gathers * rest
        ledger.messages[device] += (scatters + gathers) * others


def in_flight(plan: Plan, examples: int, device: int) -> tuple[int, int]:
    """The most examples, and the most microbatches, of which a device keeps activations."""
    if plan.strategy == "pipeline":
        sizes = [rows.stop - rows.start for rows in plan.microbatches_of(examples)]
        passes = plan.order(len(sizes))[device]
        changes = ((1 if one.forward else -1) * sizes[one.microbatch] for one in passes)
        return max(accumulate(changes)), most_live(passes)
    if plan.strategy.startswith("zero"):
        shards = [each[device] for each in plan.shards_of(examples)]
    else:
        shards = plan.microbatches_of(examples)
    return max(rows.stop - rows.start for rows in shards), 1


def activations_kept(plan: Plan, device: int) -> int:
    """The elements of activations that a device keeps for each example in flight.

    They are the inputs of its layers. Of a pair of layers in tensor parallelism: the input, the
    device's slice of the first one's output, and the sum of the second one.
    """
    if plan.strategy == "pipeline":
        return sum(plan.inputs[name] for name in plan.stages[device])
    if plan.strategy != "tensor":
        return sum(plan.inputs.values())
    kept = sum(plan.inputs[name] for name in plan.unpaired)
    for column, row in plan.pairs:
        channels = plan.shapes[f"{column}.bias"][0]
        own = shard_sizes(channels, plan.devices)[device]
        kept += plan.inputs[column] + plan.inputs[row] // channels * own + plan.output(row)
    return kept


def elements_updated(plan: Plan, device: int) -> dict[str, int]:
    """The number of elements that a device updates, of each weight of which it has a part."""
    held = {name: layout[device] for name, layout in plan.updated.items()}
    return {k: part.size(plan.shapes[k]) for k, part in held.items() if part is not None}


def weights_kept(plan: Plan, device: int) -> int:
    """The most elements of weights: with ZeRO-3, its slices and one whole layer."""
    held = [(plan.shapes[name], layout[device]) for name, layout in plan.weights.items()]
    own = sum(part.size(shape) for shape, part in held if part is not None)
    return own + (max(map(plan.size, plan.layers)) if plan.strategy == "zero3" else 0)


def gradients_kept(plan: Plan, device: int, examples: int) -> int:
    """The most elements of gradients: of what it updates and, with ZeRO, of what is not scattered.

    ZeRO-1 scatters all at the end. The others scatter one layer at a time, the last one first; of
    several microbatches, an earlier one has left all slices.
    """
    own = elements_updated(plan, device)
    if not plan.strategy.startswith("zero"):
        return sum(own.values())
    if plan.strategy == "zero1":
        return sum(map(plan.size, plan.layers)) + sum(own.values())
    layers = [plan.tensors[layer] for layer in plan.layers[::-1]]
    left = list(accumulate(sum(own[name] for name in names) for names in layers))
    if len(plan.shards_of(examples)) > 1:
        left = left[-1:] * len(layers)
    return max(
        slices + plan.size(name) for slices, name in zip(left, plan.layers[::-1], strict=True)
    )
