"""What the allreduce of a run moves."""

import math

import numpy as np

from common.config import Config
from common.models import shapes_of, trainable
from common.record import Traffic
from common.schedules import SCHEDULES


def traffic(config: Config) -> Traffic | None:
    """What one allreduce of the gradient moves; a framework's own collective does not tell."""
    if config.allreduce not in SCHEDULES:
        return None
    schedule = SCHEDULES[config.allreduce](config.devices)
    shapes = shapes_of(config.chapter, config.width)
    entries = sum(math.prod(shape) for name, shape in shapes.items() if trainable(name))
    size = np.dtype(config.dtype).itemsize
    sent, received = zip(*schedule.traffic(entries), strict=True)
    return Traffic(
        rounds=len(schedule.rounds),
        sent=[size * each for each in sent],
        received=[size * each for each in received],
    )
