"""The record of a run that is about to start."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from common.backends.loading import distributions
from common.base.arrays import Weights
from common.base.machine import describe_machine, now
from common.data.dataset import Dataset
from common.models.nets import shapes_of, trainable
from common.models.weights_file import digest
from common.parallel.schedules import SCHEDULES
from common.records.fingerprint import source_digest, versions
from common.records.record import DataUsed, Record, Traffic
from common.settings.config import Config


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


def new_record(
    config: Config,
    data: Dataset,
    weights: Weights,
    devices: Sequence[Any],
    command_line: Sequence[str] = (),
) -> Record:
    """The record of a run that is about to start."""
    return Record(
        framework=config.framework,
        chapter=config.chapter,
        status="running",
        command=["python", "-m", f"frameworks.{config.framework}.{config.chapter}", *command_line],
        started=now(),
        machine=describe_machine(),
        versions=versions(("numpy", *distributions(config.framework))),
        source_sha256=source_digest(config.framework),
        devices=[str(device) for device in devices],
        config=config,
        data=DataUsed(
            name=data.name,
            sha256=data.digest(),
            train_examples=config.train_examples,
            test_examples=config.test_examples,
        ),
        initial_weights_sha256=digest(weights),
        traffic=traffic(config),
    )
