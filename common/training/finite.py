"""Numbers that are none: they end a run, and no checkpoint has any."""

import math

import numpy as np

from common.base.arrays import Weights
from common.base.errors import RunError


def require_finite(weights: Weights, steps: int) -> None:
    """Raises RunError if a weight is no number: the last update has no loss to show it."""
    for name, values in weights.items():
        if not np.isfinite(values).all():
            message = f"{name} is not finite after step {steps}: try a smaller --lr"
            raise RunError(message, step=steps, tensor=name)


def finite(losses: list[float], first_step: int) -> list[float]:
    """The losses, if all of them are numbers. Raises RunError that names the first step, else."""
    for step, loss in enumerate(losses, start=first_step + 1):
        if not math.isfinite(loss):
            message = f"the loss of step {step} is {loss}: try a smaller --lr"
            raise RunError(message, step=step)
    return losses
