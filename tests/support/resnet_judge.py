"""ResNet-18 as the reference computes it, in any dtype, and what only tests need: many steps."""

from collections.abc import Callable, Iterable, Sequence

from common.base.arrays import Array as Array, Weights
from common.compare.concise import ResNet18 as ResNet18
from common.compare.numpy_layers import Bounds, Layer as Layer
from common.compare.numpy_nets import cross_entropy
from common.models.nets import EPSILON as EPSILON, MOMENTUM as MOMENTUM


class Evaluation(ResNet18):
    """A pass in evaluation mode: normalized by the running statistics."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)


def logits(X: Array, weights: Weights) -> Array:
    """The logits (n, 10) in evaluation mode."""
    return Evaluation(weights).forward(X)[0]


def loss_and_gradients(
    X: Array, y: Array, weights: Weights, shards: Bounds
) -> tuple[float, Weights, Weights]:
    """The mean cross-entropy, its gradient, and the running statistics after the minibatch."""
    net = ResNet18(weights, shards)
    found, back = net.forward(X)
    loss, d = cross_entropy(found, y)
    back(d)
    return loss, net.gradients, net.statistics


def sgd(
    weights: Weights,
    minibatches: Sequence[tuple[Array, Array]],
    rates: Iterable[float],
    split: Callable[[int], Bounds],
) -> tuple[list[float], Weights]:
    """The loss of every step, and the weights and running statistics after the last.

    `split` gives the bounds of the shards of a minibatch of n examples that are normalized each
    for itself: one shard means synchronized statistics.
    """
    losses, trained = [], dict(weights)
    for (X, y), lr in zip(minibatches, rates, strict=False):
        loss, gradients, statistics = loss_and_gradients(X, y, trained, split(len(X)))
        losses.append(loss)
        trained |= {name: trained[name] - lr * values for name, values in gradients.items()}
        trained |= statistics
    return losses, trained
