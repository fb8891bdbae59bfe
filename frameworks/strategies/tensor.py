"""Tensor parallelism: the weights of almost every layer are sliced over all devices.

In the book's words: layerwise partitioning. Layers go in pairs (Shoeybi et al., 2019). The first
one is column-parallel: each device computes some output channels. The second one is row-parallel:
it takes just these channels as input, so the devices' partial sums only have to be added: one
all-reduce for two layers. In a transformer, attention and MLP are such pairs, and a device has some
words of the vocabulary.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from common.base.arrays import Array
from common.parallel.ledger import Kept
from frameworks.strategies.collectives import allreduce
from frameworks.strategies.layers import accumulate
from frameworks.strategies.primitives import Layer, Params, Tensor
from frameworks.strategies.replica import (
    Backward,
    Forward,
    Replica,
    local_loss,
    over_microbatches,
)

Collective: TypeAlias = Callable[[Replica, list[Tensor], str], list[Tensor]]
"""From values on each device and the kind of their traffic, what each device gets."""


def all_tokens(replica: Replica, values: list[Tensor], kind: str) -> list[Tensor]:
    """What a product takes: each device has it."""
    return values


def summed(replica: Replica, partial: list[Tensor], kind: str) -> list[Tensor]:
    """The sum of devices' partial sums, on each."""
    return allreduce(replica.ops, partial, kind, replica.group)


def forward(
    replica: Replica, X: list[Tensor], gather: Collective = all_tokens, add: Collective = summed
) -> tuple[list[Tensor], list[list[Tensor]]]:
    """The logits on each device, of its words if words are cut; and the activations it keeps."""
    ops, plan = replica.ops, replica.plan
    kept: list[list[Tensor]] = [[] for _ in X]
    for layers in plan.together:
        keep(kept, X)
        entered = X
        if plan.enters(layers):
            entered = gather(replica, call(replica, layers, X, "enter"), "activations")
        Y = call(replica, layers, entered, "product")
        if layers in plan.summed:
            Y = add(replica, Y, "activations")
            keep(kept, Y)
            Y = call(replica, layers, Y, "finish")
            X = ops.on_each_device(ops.add, X, Y) if plan.enters(layers) else Y
        else:  # each device has the logits of its words
            X = Y
    for name in plan.unpaired:  # every device has the whole of it
        keep(kept, X)
        X = call(replica, (name,), X, "layer")
    return X, kept


def backward(
    replica: Replica,
    output_grads: Sequence[Tensor],
    kept: Sequence[list[Tensor]],
    grads: Sequence[Kept],
    gather: Collective = all_tokens,
    add: Collective = summed,
) -> None:
    """Backpropagates the gradients of the logits; adds those of local slices to `grads`."""
    ops, plan = replica.ops, replica.plan
    for name in plan.unpaired[::-1]:
        output_grads = back(replica, (name,), taken(kept), output_grads, grads, "layer")
    for layers in plan.together[::-1]:
        partial = output_grads
        if layers in plan.summed:
            partial = back(replica, layers, taken(kept), partial, grads, "finish")
            partial = gather(replica, partial, "gradients")
        X = entered = taken(kept)
        if plan.enters(layers):
            entered = gather(replica, call(replica, layers, X, "enter"), "activations")
        partial = back(replica, layers, entered, partial, grads, "product")
        if layers[0] == plan.layers[0]:  # nobody needs the gradient of images or tokens
            break
        # Each device has a partial sum of the gradient of the pair's input.
        total = add(replica, partial, "gradients")
        if plan.enters(layers):
            total = back(replica, layers, X, total, grads, "enter")
        if plan.enters(layers) and layers in plan.summed:
            total = ops.on_each_device(ops.add, output_grads, total)
        output_grads = total


def vocabulary_loss(
    replica: Replica, logits: list[Tensor], y: list[Tensor], count: int
) -> list[tuple[Tensor, Tensor]]:
    """Where each device has the logits of its words: three numbers a token are combined."""
    ops, net, group = replica.ops, replica.net, replica.group
    if not replica.plan.vocabulary:
        return local_loss(replica, logits, y, count)
    largest = ops.on_each_device(net.largest, logits)
    largest = allreduce(ops, largest, "activations", group, ops.maximum)
    parts = ops.on_each_device(net.exponentials_and_label, logits, y, largest)
    sums, labels = (
        allreduce(ops, list(part), "activations", group) for part in zip(*parts, strict=True)
    )
    return ops.on_each_device(
        net.words_loss_and_grad, logits, y, largest, sums, labels, count=count
    )


def predict(replica: Replica, X: Array, forward: Forward = forward) -> list[list[Tensor]]:
    """The logits of a batch: of the first device, which has all, or side by side."""
    logits = forward(replica, replica.place(X))[0]
    return [logits if replica.plan.vocabulary else logits[:1]]


def loss_and_grads(
    replica: Replica,
    X: Array,
    y: Array,
    count: int,
    forward: Forward = forward,
    backward: Backward = backward,
) -> tuple[list[Tensor], list[Kept]]:
    """Parts of the mean loss over `count` labels, on the first device, and all gradients."""
    how = forward, backward, vocabulary_loss
    losses, grads = over_microbatches(replica, X, y, count, *how)
    return losses[:: len(grads)], grads


def call(
    replica: Replica, layers: tuple[str, ...], values: Sequence[Tensor], *what: str
) -> list[Tensor]:
    """Functions of the net for some layers, one after the other, on each device."""
    function = function_of(replica, layers, what)
    return replica.ops.on_each_device(function, values, local_params(replica, layers, what))


def back(
    replica: Replica,
    layers: tuple[str, ...],
    inputs: Sequence[Tensor],
    output_grads: Sequence[Tensor],
    grads: Sequence[Kept],
    *what: str,
) -> list[Tensor]:
    """The gradients of such functions' inputs; adds those of their parameters to `grads`."""
    ops = replica.ops
    vjp = ops.partial(ops.vjp, function_of(replica, layers, what))
    local = local_params(replica, layers, what)
    results = ops.on_each_device(vjp, inputs, local, output_grads)
    for total, (_, param_grads) in zip(grads, results, strict=True):
        accumulate(ops, total, param_grads)
    return [grad for grad, _ in results]


def function_of(
    replica: Replica, layers: tuple[str, ...], what: tuple[str, ...]
) -> Callable[..., Tensor]:
    """The functions of these names as one; a product takes all layers, others one."""
    functions = tuple(getattr(replica.net, each) for each in what)
    name = layers if what == ("product",) else layers[-1]
    return replica.ops.partial(chain, functions, name)


def chain(functions: Sequence[Layer], name: str, X: Tensor, params: Mapping[str, Tensor]) -> Tensor:
    """One function of a layer after the other."""
    for function in functions:
        X = function(name, X, params)
    return X


def local_params(replica: Replica, layers: tuple[str, ...], what: tuple[str, ...]) -> list[Params]:
    """Each device's part of the tensors that functions of some layers take."""
    names = replica.plan.uses(layers, what)
    return [{name: kept[name] for name in names} for kept in replica.params]


def keep(kept: Sequence[list[Tensor]], values: Sequence[Tensor]) -> None:
    for activations, value in zip(kept, values, strict=True):
        activations.append(value)


def taken(kept: Sequence[list[Tensor]]) -> list[Tensor]:
    """What was kept last, on each device."""
    return [activations.pop() for activations in kept]
