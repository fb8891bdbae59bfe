"""Solutions to the riddles and exercises of the chapter on parity."""

import math
from pathlib import Path

import numpy as np

from common.compare.folder import examine
from common.diagnose.suspects import suspects
from common.models.nets import MOMENTUM
from common.models.weights_file import load_arrays


def moved(share: float, steps: int) -> float:
    """How far steps that each replace `share` of a statistic move it, as a share of the way."""
    return 1 - math.pow(1 - share, steps)


def riddle_1(factor: float, steps: int) -> float:
    """The momentum of batch normalization. Each step replaces a hundredth, where a tenth is due.

    Training normalizes by the minibatch's own mean and variance, so logits, gradients, losses and
    trained weights are right. Evaluation normalizes by the running statistics, so the last logits
    are off. The running means start at 0 and moved `factor` times as far as they should have:
    that tells which share each step replaced. Who takes 0.99, the share of the old, for 0.1, the
    share of the new, trains the same net and gets other accuracies.
    """
    return 1 - math.pow(1 - factor * moved(MOMENTUM, steps), 1 / steps)


def evidence(folder: Path) -> list[str]:
    """What the arrays of the runs in a folder tell about the wrong one, by the project itself."""
    (accused, *_) = suspects(examine(folder))
    return [accused.framework, accused.divergence.what, *accused.evidence]


def riddle_2(wrong: Path, right: Path) -> tuple[str, bool]:
    """The rows of fc1 stand in the order row, column, channel: a file from channels-last images.

    The shape is the same, so nothing complains. The digest of the initial weights is another one,
    and array by array, only fc1.weight differs: it takes the flattened output of conv2, 50 channels
    of 4 × 4. With its rows in the order channel, row, column again, it is equal.
    """
    ours, expected = load_arrays(wrong), load_arrays(right)
    (name,) = (name for name in expected if not np.array_equal(ours[name], expected[name]))
    channels_first = ours[name].reshape(4, 4, 50, -1).transpose(2, 0, 1, 3).reshape(800, -1)
    return name, np.array_equal(channels_first, expected[name])


def riddle_3(factor: float, examples: int) -> float:
    """The gradient is that of the summed loss, where that of the mean is due.

    Logits and the first loss are right. Every tensor of the first gradient is the right one times
    the batch size, and nothing is left over: no wrong formula does that, but a missing division
    does. The result is 1. From the second step on everything is off, as the steps are too long.
    """
    return factor / examples


def excess(n: int, steps: int, variance: float) -> float:
    """How far a running variance over n - 1 is above that over n, as a share of the latter.

    It starts at 1, and every one of the `steps` sees the same `variance` of n numbers.
    """
    way = moved(MOMENTUM, steps)
    return way * variance / (n - 1) / (1 - way + way * variance)
