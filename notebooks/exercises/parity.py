"""Solutions to the riddles and exercises of the chapter on parity."""

import math
from pathlib import Path

import numpy as np

from common.compare.folder import examine
from common.diagnose.suspects import suspects
from common.models.nets import MOMENTUM
from common.models.weights_file import load_arrays


def share_replaced(share: float, steps: int) -> float:
    """The share of a statistic that is replaced after `steps`, if each step replaces `share`."""
    return 1 - math.pow(1 - share, steps)


def riddle_1(factor: float, steps: int) -> float:
    """The momentum of batch normalization: each step replaces a hundredth instead of a tenth.

    Training normalizes by the minibatch's mean and variance, so logits, gradients, losses and
    trained weights are right. Evaluation normalizes by the running statistics, so the last logits
    are off. The running means start at 0 and are `factor` times the right ones, which gives the
    share that each step replaced. If 0.99, the share of the old value, is taken for 0.1, the share
    of the new one, the same net is trained, but accuracies differ.
    """
    return 1 - math.pow(1 - factor * share_replaced(MOMENTUM, steps), 1 / steps)


def evidence(folder: Path) -> list[str]:
    """The suspect among the runs in a folder, and the evidence against it, by the project."""
    (suspect, *_) = suspects(examine(folder))
    return [suspect.framework, suspect.first.what, *suspect.evidence]


def riddle_2(wrong: Path, right: Path) -> tuple[str, bool]:
    """The rows of fc1 are in the order row, column, channel: a file from channels-last images.

    The shape is the same, so there is no error. The digest of the initial weights differs, and
    array by array, only fc1.weight: its input is the flattened output of conv2, 50 channels of
    4 × 4. With the rows in the order channel, row, column again, it is equal.
    """
    ours, expected = load_arrays(wrong), load_arrays(right)
    (name,) = (name for name in expected if not np.array_equal(ours[name], expected[name]))
    channels_first = ours[name].reshape(4, 4, 50, -1).transpose(2, 0, 1, 3).reshape(800, -1)
    return name, np.array_equal(channels_first, expected[name])


def riddle_3(factor: float, examples: int) -> float:
    """The gradient of the summed loss instead of the mean loss.

    Logits and the first loss are right. Every tensor of the first gradient is the right one times
    the batch size, with a residual of rounding: a missing division, not a wrong formula. The result
    is 1. From the second step on everything is off, because the steps are too long.
    """
    return factor / examples


def riddle_4(factor: float, devices: int) -> float:
    """The sum over devices is divided by their number, though each has divided by the minibatch.

    On one device all is right. On two, the first loss and the whole gradient are half of the right
    ones, and nothing is left over. The result is 1.
    """
    return factor * devices


def excess(n: int, steps: int, variance: float) -> float:
    """The excess of a running variance over n - 1, relative to the one over n.

    It starts at 1, and each of the `steps` sees the same `variance` of n numbers.
    """
    share = share_replaced(MOMENTUM, steps)
    return share * variance / (n - 1) / (1 - share + share * variance)
