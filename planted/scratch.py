"""Bugs of data parallelism, in the chapter from scratch."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from common.parallel.schedules import SCHEDULES
from planted.bug import Right, bug, scaled, turned, without

LISTING: Final = "frameworks.{}.scratch"
TRAINER: Final = "common.trainers.scratch:ScratchTrainer"
MINIBATCHES: Final = "common.training.loop:minibatches"
SHORT: Final = {"scratch float64": (2,)}
"""Its last minibatch is short, and two devices get unequal shards of it."""


@bug("d2l-ai/d2l-zh#955", SHORT, LISTING + ":allreduce")
def sum_rebound(right: Right, data: Any) -> Any:
    """Write the sum to a name, not to the devices. Right: a reduction is missing."""
    return [right(data)[0], *data[1:]]


@bug("pytorch/tutorials#1039", {"scratch ring": (3,)}, "common.trainers.scratch:scheduled")
def ring_stops_early(right: Right, by_schedule: Any, name: str, k: int) -> Any:
    """Write a ring all-reduce that ends a round too early. Right: missing or incomplete."""
    schedule = SCHEDULES[name](k)
    return partial(by_schedule, replace(schedule, rounds=schedule.rounds[:-1]))


@bug("huggingface/accelerate#608", SHORT, LISTING + ":shard_loss_and_grad")
def mean_of_shard_means(right: Right, params: Any, X: Any, y: Any, examples: int) -> Any:
    """Average the means of unequal shards. Right: the mean of the means of 2 devices."""
    return right(params, X, y, examples=y.shape[0] * right.devices)


@bug("tensorflow/tensorflow#28956", SHORT, LISTING + ":allreduce")
def divided_twice(right: Right, data: Any) -> Any:
    """Divide by the batch, then average. Right: ÷ 2, the number of devices."""
    return [total / len(data) for total in right(data)]


@bug("keras-team/keras#19891", SHORT, LISTING + ":allreduce")
def no_all_reduce(right: Right, data: Any) -> Any:
    """Sum no gradients. Right: a reduction is missing."""
    return list(data)


@bug("keras-team/keras#15509", SHORT, LISTING + ":allreduce")
def first_replicas_loss(right: Right, data: Any) -> Any:
    """Report the first replica's loss. Right: that of the first of 2 devices only."""
    return right(data) if len(data[0].shape) else [len(data) * data[0]] * len(data)


@bug("pytorch/pytorch#160169", SHORT, LISTING + ":sgd")
def drift_by_rounding(right: Right, params: Any, grads: Any, lr: float) -> Any:
    """Round at random in updates. Right: an operation is not deterministic."""
    return right(params, grads, lr * (1 + 1e-12 * (right.calls % 2)))


@bug("pytorch/pytorch#84803", SHORT, LISTING + ":allreduce")
def transfers_lose_1(right: Right, data: Any) -> Any:
    """Lose data between devices. Right: without the contribution of one of 2 devices."""
    return right([data[0], *(without(right, tensor, slice(50, None, 100)) for tensor in data[1:])])


@bug("pytorch/pytorch#192920", SHORT, LISTING + ":allreduce")
def strides_ignored(right: Right, data: Any) -> Any:
    """Send a strided tensor as contiguous."""
    matrix = len(data[0].shape) == 2
    return right([data[0], *(turned(right, grad) if matrix else grad for grad in data[1:])])


@bug("ml-explore/mlx-lm#1413", SHORT, TRAINER + ".train_batch")
def last_minibatch_dropped(right: Right, self: Any, X: Any, y: Any, lr: float) -> Any:
    """Skip the last, smaller minibatch. Right: no weight is changed."""
    return right(self, X, y, lr if len(y) == right.batch_size else 0.0)


@bug("catalyst-team/catalyst#799", SHORT, LISTING + ":shard_loss_and_grad")
def last_minibatch_as_a_full_one(right: Right, params: Any, X: Any, y: Any, examples: int) -> Any:
    """Divide each minibatch by the same size. Right: weighed as a full one."""
    return right(params, X, y, examples=right.batch_size)


@bug("jax-ml/jax#3113", SHORT, LISTING + ":shard_loss_and_grad")
def sum_not_mean(right: Right, params: Any, X: Any, y: Any, examples: int) -> Any:
    """Take the gradient of the summed loss. Right: the sum over 100 examples."""
    loss, grads = right(params, X, y, examples=examples)
    return loss, scaled(grads, examples)


@bug("pytorch/pytorch#1897", {"scratch quick": (1, 2)}, MINIBATCHES, "pytorch")
def one_label_wrong(right: Right, *args: Any, **more: Any) -> Any:
    """Read one wrong label in one step. Right: minibatches of epoch 2 are not those of others."""
    for number, (images, labels) in enumerate(right(*args, **more)):
        if (right.devices, more["epoch"], number) == (2, 1, 5):
            labels = labels.copy()
            labels[0] = (labels[0] + 1) % 10
        yield images, labels
