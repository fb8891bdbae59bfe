"""Solutions to the riddles and exercises of the chapter on parity."""

import math

from common.models.nets import MOMENTUM


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


def riddle_2(factor: float, examples: int) -> float:
    """The gradient of the summed loss instead of the mean loss.

    Logits and the first loss are right. Every tensor of the first gradient is the right one times
    the batch size, with a residual of rounding: a missing division, not a wrong formula. The result
    is 1. From the second step on everything is off, because the steps are too long.
    """
    return factor / examples


def excess(n: int, steps: int, variance: float) -> float:
    """The excess of a running variance over n - 1, relative to the one over n.

    It starts at 1, and each of the `steps` sees the same `variance` of n numbers.
    """
    share = share_replaced(MOMENTUM, steps)
    return share * variance / (n - 1) / (1 - share + share * variance)
