"""How many minibatches a run trains on, over which epochs, and at which rates.

All follows from a few numbers: a record may ask for more epochs than a list of them could hold.
"""

import math
from itertools import pairwise

from common.settings.config import Config


def steps_of_whole(config: Config) -> int:
    """How many minibatches a whole epoch has; the last of them may be short."""
    return math.ceil(config.train_examples / config.batch_size)


def number_of_steps(config: Config) -> int:
    """How many minibatches a run trains on."""
    return config.steps or (config.epochs or 0) * steps_of_whole(config)


def number_of_epochs(config: Config) -> int:
    """How many epochs a run trains for; with `steps`, the last one counts, however short."""
    return math.ceil(number_of_steps(config) / steps_of_whole(config))


def steps_before(config: Config, epoch: int) -> int:
    """How many minibatches come before an epoch, counted from 0; of the one after the last: all."""
    return min(epoch * steps_of_whole(config), number_of_steps(config))


def steps_of_epochs(config: Config) -> list[int]:
    """How many minibatches each epoch trains on; with `steps`, the last one may be cut short."""
    bounds = [steps_before(config, epoch) for epoch in range(number_of_epochs(config) + 1)]
    return [stop - start for start, stop in pairwise(bounds)]


def learning_rate(config: Config, step: int) -> float:
    """That of a step, counted from 0; with linear decay it would be 0 one step after the last."""
    if config.lr_decay == "none":
        return config.lr
    return config.lr * (1 - step / number_of_steps(config))


def examples_in(config: Config, steps: int) -> int:
    """The number of examples in the first `steps` minibatches of an epoch."""
    return min(steps * config.batch_size, config.train_examples)
