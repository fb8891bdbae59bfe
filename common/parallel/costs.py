"""Predicts the traffic and the memory of a step of a plan; a run has to count the same."""

from collections.abc import Sequence

from common.parallel.ledger import Ledger, Usage
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
        plan.count_sends(here, group, ledger)
        for device, number in enumerate(group):
            most, ledger.live[number] = plan.in_flight(here, device)
            kept = {
                "activations": itemsize * most * plan.activations_kept(device),
                "weights": itemsize * plan.weights_kept(device),
                "gradients": itemsize * plan.gradients_kept(device, here),
                "momentum": state * sum(plan.elements_updated(device).values()),
            }
            ledger.peak.update({(kind, number): size for kind, size in kept.items()})
    for device in range(plan.devices):  # and each column of the mesh sums its gradients
        column = range(device, ledger.devices, plan.devices)
        for size in plan.elements_updated(device).values():
            count_allreduce(ledger, column, size, "gradients")
    return ledger.usage(examples)


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
