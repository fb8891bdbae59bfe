"""A mixture of experts whose experts are on several devices: tokens go to them, and come back."""

from collections.abc import Sequence
from typing import Any, Final

from common.parallel.ledger import Kept
from frameworks.strategies.collectives import all_to_all
from frameworks.strategies.layers import accumulate
from frameworks.strategies.primitives import Params, Tensor
from frameworks.strategies.replica import Replica
from frameworks.strategies.tensor import keep, taken

EXPERTS, SLOTS = 0, 1
"""The axes of what experts take and make."""

TAKES: Final = {
    "layer": (".",),
    "probabilities": (".norm.", ".router."),
    "dispatch": (".norm.",),
    "experts": (".up.", ".down."),
    "combine": (),
}
"""How the names of the parameters go on, after the layer's, that functions of the net take."""


def forward(
    replica: Replica,
    name: str,
    X: list[Tensor],
    slots: Sequence[int],
    kept: Sequence[list[Tensor]],
) -> tuple[list[Tensor], list[Tensor]]:
    """The layer's output with its input, and the load of experts; keeps what comes and goes."""
    each = replica.ops.on_each_device
    probabilities, chosen, routes = routed(replica, name, X, slots)
    sent = each(*call(replica, "dispatch", name, X, routes=routes))
    received = exchange(replica, sent, replica.plan.owned, EXPERTS, "activations")
    made = each(*call(replica, "experts", name, received))
    outputs = exchange(replica, made, slots, SLOTS, "activations")
    keep(kept, received)
    keep(kept, outputs)
    combine = call(replica, "combine", name, probabilities, routes=routes, outputs=outputs)
    return each(replica.ops.add, X, each(*combine)), each(replica.net.load, chosen)


def backward(
    replica: Replica,
    name: str,
    output_grads: list[Tensor],
    kept: Sequence[list[Tensor]],
    grads: Sequence[Kept],
    slots: Sequence[int],
    balance: tuple[Sequence[Tensor], float],
) -> tuple[list[Tensor], list[Tensor]]:
    """The gradient of the input, and the auxiliary loss; adds parameters' gradients to `grads`.

    `balance` has the load of experts in the minibatch, and what it is scaled by.
    """
    ops, each = replica.ops, replica.ops.on_each_device
    outputs, received, X = taken(kept), taken(kept), taken(kept)
    probabilities, _, routes = routed(replica, name, X, slots)
    combine = call(replica, "combine", name, probabilities, routes=routes, outputs=outputs)
    to_router, further = back(replica, *combine, output_grads, grads)
    made = [here["outputs"] for here in further]
    made = exchange(replica, made, replica.plan.owned, EXPERTS, "gradients")
    made, _ = back(replica, *call(replica, "experts", name, received), made, grads)
    sent = exchange(replica, made, slots, SLOTS, "gradients")
    load, scale = balance
    parts = each(replica.net.balance_loss_and_grad, probabilities, load, scale=scale)
    to_router = each(ops.add, to_router, [grad for _, grad in parts])
    to_router, _ = back(replica, *call(replica, "probabilities", name, X), to_router, grads)
    dispatch = call(replica, "dispatch", name, X, routes=routes)
    sent, _ = back(replica, *dispatch, sent, grads)
    input_grads = each(ops.add, output_grads, each(ops.add, to_router, sent))
    return input_grads, [loss for loss, _ in parts]


def routed(
    replica: Replica, name: str, X: list[Tensor], slots: Sequence[int]
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The router's probabilities for each token, the experts chosen, and the routes to them."""
    each, choices = replica.ops.on_each_device, replica.net.choices
    probabilities = each(*call(replica, "probabilities", name, X))
    chosen = each(replica.ops.partial(choices, replica.plan.experts.top_k), probabilities)
    return probabilities, chosen, each(replica.net.routes, slots, chosen)


def exchange(
    replica: Replica, values: list[Tensor], sizes: Sequence[int], axis: int, kind: str
) -> list[Tensor]:
    """An all-to-all of parts along one of these axes, which are joined along the other."""
    parts = [replica.ops.cut(here, sizes, axis) for here in values]
    received = all_to_all(replica.ops, parts, kind, replica.group)
    return [replica.ops.join(here, 1 - axis) for here in received]


def call(
    replica: Replica, what: str, name: str, X: list[Tensor], **tensors: list[Tensor]
) -> tuple[Any, list[Tensor], list[Params]]:
    """A function of the net for a layer, its inputs, and on each device the tensors it takes."""
    function = getattr(replica.net, what)
    begins = tuple(f"{name}{end}" for end in TAKES[what])
    local = [{x: here[x] for x in here if x.startswith(begins)} for here in replica.params]
    for device, here in enumerate(local):
        here |= {key: values[device] for key, values in tensors.items()}
    return function if what == "combine" else replica.ops.partial(function, name), X, local


def back(
    replica: Replica,
    function: Any,
    X: list[Tensor],
    local: list[Params],
    output_grads: list[Tensor],
    grads: Sequence[Kept],
) -> tuple[list[Tensor], list[Params]]:
    """The gradients of inputs and of tensors; adds those of parameters to `grads`."""
    vjp = replica.ops.partial(replica.ops.vjp, function)
    results = replica.ops.on_each_device(vjp, X, local, output_grads)
    for total, (_, tensors) in zip(grads, results, strict=True):
        if further := {x: tensors[x] for x in tensors if x in replica.plan.shapes}:
            accumulate(replica.ops, total, further)
    return [grad for grad, _ in results], [tensors for _, tensors in results]
