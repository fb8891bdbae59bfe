"""Tensor parallelism: the weights of almost every layer are cut over all devices.

In the book's words: layerwise partitioning. Layers go in pairs. The first one is cut by what it
makes: each device makes some channels. The second one is cut by what it takes, just these channels,
so that the devices' results only have to be summed: one allreduce for two layers.
"""

from collections.abc import Callable, Mapping, Sequence

import jax
from jax import Array as Tensor, numpy as jnp

from common.base.arrays import Array
from common.parallel.ledger import Group, Kept
from common.parallel.plans import Plan
from frameworks.jax.kernels import avg_pool2d, conv2d, dense, relu
from frameworks.jax.strategies.layers import add, layer, loss_and_gradient, of_layer
from frameworks.jax.strategies.moves import Params, allreduce, on_each_device, partial, place, vjp


@partial(jax.jit, static_argnums=0)
def product(name: str, X: Tensor, params: Params) -> Tensor:
    """What a layer makes of the channels that a device has, before its bias is added."""
    weight = params[f"{name}.weight"]
    if name.startswith("conv"):
        return conv2d(X, weight, jnp.zeros(len(weight), weight.dtype))
    return dense(X, weight, jnp.zeros(weight.shape[1], weight.dtype))


@partial(jax.jit, static_argnums=0)
def finish(name: str, Y: Tensor, params: Params) -> Tensor:
    """The rest of a layer, once the products of all devices are summed: the bias is added once."""
    bias = params[f"{name}.bias"]
    if name.startswith("conv"):
        return avg_pool2d(relu(Y + bias[:, None, None, None]))
    return Y + bias if name == "fc2" else relu(Y + bias)


def forward(
    X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits on each device, and what each device keeps for the way back, in order."""
    given = [place(X, device) for device in group.devices]
    kept: list[list[Tensor]] = [[] for _ in params]

    def keep(values: Sequence[Tensor]) -> None:
        for own, value in zip(kept, values, strict=True):
            own.append(value)

    for column, row in plan.pairs:
        sliced = on_each_device(partial(layer, column), given, own_of(column, params))
        products = on_each_device(partial(product, row), sliced, own_of(row, params))
        summed = allreduce(products, "activations", group)
        for values in (given, sliced, summed):
            keep(values)
        given = on_each_device(partial(finish, row), summed, own_of(row, params))
    for name in plan.unpaired:  # every device has the whole of it
        keep(given)
        given = on_each_device(partial(layer, name), given, own_of(name, params))
    return given, kept


def backward(
    back: Sequence[Tensor],
    kept: Sequence[list[Tensor]],
    params: Sequence[Kept],
    grads: Sequence[Kept],
    plan: Plan,
    group: Group,
) -> None:
    """From the gradients of the logits, adds those of each device's slices to `grads`."""
    for name in plan.unpaired:
        back = through(partial(layer, name), kept, own_of(name, params), back, grads)
    for column, row in plan.pairs[::-1]:
        bias, weight = (own_of(row, params, kind) for kind in ("bias", "weight"))
        back = through(partial(finish, row), kept, bias, back, grads)
        back = through(partial(product, row), kept, weight, back, grads)
        back = through(partial(layer, column), kept, own_of(column, params), back, grads)
        if column != plan.layers[0]:
            # Each device knows what its own slice adds to the gradient of what all were given.
            back = allreduce(back, "gradients", group)


def predict(
    X: Array, params: Sequence[Mapping[str, Tensor]], plan: Plan, group: Group
) -> list[Tensor]:
    """The logits of a batch, on the first device: all have the same."""
    return forward(X, params, plan, group)[0][:1]


def loss_and_grads(
    X: Array, y: Array, params: Sequence[Kept], examples: int, plan: Plan, group: Group
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `examples`, on the first device, and each device's gradient."""
    losses: list[Tensor] = []
    grads, kept = group.kept("gradients"), group.kept("activations")
    for number, rows in enumerate(plan.microbatches_of(len(X))):
        with group.event("forward", number):
            logits, found = forward(X[rows], params, plan, group)
            for own, values in zip(kept, found, strict=True):
                own[number] = values
            targets = [place(y[rows], device) for device in group.devices]
            parts = on_each_device(loss_and_gradient, logits, targets, examples=examples)
        losses.append(parts[0][0])
        with group.event("backward", number):
            waiting = [own.pop(number) for own in kept]
            backward([grad for _, grad in parts], waiting, params, grads, plan, group)
    return losses, grads


def own_of(name: str, params: Sequence[Mapping[str, Tensor]], kind: str = "") -> list[Params]:
    """What each device has of a layer, or its weight or bias alone."""
    found = [of_layer(name, each) for each in params]
    return [{key: own[key] for key in own if key.endswith(kind)} for own in found]


def through(
    function: Callable[[Tensor, Params], Tensor],
    kept: Sequence[list[Tensor]],
    own: Sequence[Params],
    back: Sequence[Tensor],
    grads: Sequence[Kept],
) -> list[Tensor]:
    """The gradient of what each device kept last; that of its weights is added to `grads`."""
    given = [each.pop() for each in kept]
    results = on_each_device(partial(vjp, function), given, own, back)
    for total, (_, found) in zip(grads, results, strict=True):
        add(total, found)
    return [grad for grad, _ in results]
