"""What the comparison's nets in NumPy give in tests: gradients, logits, and SGD, in any dtype."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from common.base.arrays import Array, Weights
from common.compare.numpy_layers import Bounds
from common.compare.numpy_nets import cross_entropy, net_of


def whole(examples: int) -> Bounds:
    """One shard: batch normalization sees the whole minibatch."""
    return [(0, examples)]


def logits(chapter: str, X: Array, weights: Mapping[str, Array]) -> Array:
    """The logits (n, 10) in evaluation mode."""
    return net_of(chapter)(weights).forward(X)[0]


def loss_and_gradients(
    chapter: str, X: Array, y: Array, weights: Mapping[str, Array], shards: Bounds = ()
) -> tuple[float, Weights, Weights]:
    """The mean cross-entropy, its gradient, and the running statistics after the minibatch."""
    net = net_of(chapter)(weights, shards or whole(len(X)))
    found, back = net.forward(X)
    loss, d = cross_entropy(found, y)
    back(d)
    return loss, net.gradients, net.statistics


def sgd(
    chapter: str,
    weights: Weights,
    minibatches: Sequence[tuple[Array, Array]],
    rates: Iterable[float],
    split: Callable[[int], Bounds] = whole,
) -> tuple[list[float], Weights]:
    """The loss of every step, and the weights and running statistics after the last.

    `split` gives the bounds of the shards of a minibatch of n examples that are normalized each
    for itself.
    """
    losses, trained = [], dict(weights)
    for (X, y), lr in zip(minibatches, rates, strict=False):
        loss, gradients, statistics = loss_and_gradients(chapter, X, y, trained, split(len(X)))
        losses.append(loss)
        trained |= {name: trained[name] - lr * values for name, values in gradients.items()}
        trained |= statistics
    return losses, trained
