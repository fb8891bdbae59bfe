"""How many minibatches a run trains on, over which epochs, and at which rates."""

import math

from common.settings.config import Config


def steps_of_epochs(config: Config) -> list[int]:
    """How many minibatches each epoch trains on; with `steps`, the last one may be cut short."""
    whole = math.ceil(config.train_examples / config.batch_size)
    if config.steps is None:
        return [whole] * (config.epochs or 0)
    epochs, rest = divmod(config.steps, whole)
    return [whole] * epochs + [rest] * (rest > 0)


def number_of_epochs(config: Config) -> int:
    """How many epochs a run trains for; with `steps`, the last one counts, however short."""
    if config.steps is None:
        return config.epochs or 0
    return math.ceil(config.steps / math.ceil(config.train_examples / config.batch_size))


def number_of_steps(config: Config) -> int:
    """How many minibatches a run trains on."""
    whole = math.ceil(config.train_examples / config.batch_size)
    return (config.epochs or 0) * whole if config.steps is None else config.steps


def learning_rate(config: Config, step: int) -> float:
    """That of a step, counted from 0; with linear decay it would be 0 one step after the last."""
    if config.lr_decay == "none":
        return config.lr
    return config.lr * (1 - step / sum(steps_of_epochs(config)))


def examples_in(config: Config, steps: int) -> int:
    """The number of examples in the first `steps` minibatches of an epoch."""
    return min(steps * config.batch_size, config.train_examples)
