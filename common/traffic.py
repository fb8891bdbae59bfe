"""What the allreduce of a run moves."""

import numpy as np

from common.config import Config
from common.interface import Weights
from common.models import trainable
from common.record import Traffic
from common.schedules import SCHEDULES


def traffic(config: Config, weights: Weights) -> Traffic | None:
    """What one allreduce of the gradient moves; a framework's own collective does not tell."""
    if config.allreduce not in SCHEDULES:
        return None
    schedule = SCHEDULES[config.allreduce](config.devices)
    entries = sum(values.size for name, values in weights.items() if trainable(name))
    size = np.dtype(config.dtype).itemsize
    sent, received = zip(*schedule.traffic(entries), strict=True)
    return Traffic(
        rounds=len(schedule.rounds),
        sent=[size * each for each in sent],
        received=[size * each for each in received],
    )
