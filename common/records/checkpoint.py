"""What a checkpoint must hold, so that a run can resume from it."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.base.errors import RunError
from common.models.nets import trainable
from common.records.record import Record
from common.records.trace import trace_shapes
from common.records.trust import inconsistencies
from common.settings.steps import number_of_steps, steps_before


def require_whole(path: Path, record: Record, tensors: Mapping[str, Array]) -> None:
    """Raises RunError if a run could not resume from this record and its tensors."""
    for trouble in _troubles(record, tensors):
        raise RunError(f"{path} is no checkpoint to resume from: {trouble}")


def _troubles(record: Record, tensors: Mapping[str, Array]) -> Iterator[str]:
    if record.framework not in FRAMEWORKS:  # where is the code that wrote it?
        yield f"its framework, {record.framework}, is not known here"
        return
    if record.status != "running":
        yield f"the run is {record.status}"
    yield from inconsistencies(record)
    yield from _of_place(record)
    yield from _of_tensors(record, tensors)


def _of_place(record: Record) -> Iterator[str]:
    """What is wrong with how far it says it has come."""
    config, done, finished = record.config, len(record.losses), len(record.epochs)
    if not 0 < done <= number_of_steps(config):
        yield f"it has {done} losses, of {number_of_steps(config)}"
    bounds = [steps_before(config, epoch) for epoch in range(finished + 2)]
    planned = [stop - start for start, stop in pairwise(bounds)]
    if [(e.epoch, e.steps) for e in record.epochs] != list(enumerate(planned[:-1], 1)):
        yield "its epochs are not those of its configuration"
    if not bounds[-2] <= done <= bounds[-1]:
        yield f"it has {done} losses and the figures of {finished} epochs"


def _of_tensors(record: Record, tensors: Mapping[str, Array]) -> Iterator[str]:
    wanted = _shapes(record)
    if odd := sorted(tensors.keys() ^ wanted.keys()):
        yield f"{odd[0]} is {'missing' if odd[0] in wanted else 'not expected'}"
        return
    for name, values in tensors.items():
        shape, dtypes = wanted[name]
        if not _fits(values.shape, shape) or values.dtype.name not in dtypes:
            yield f"{name} is {values.dtype} {values.shape}, not {' or '.join(dtypes)} {shape}"
        elif not np.isfinite(values).all():
            yield f"{name} is not finite"
    if tensors["epoch/seconds"].min(initial=0) < 0:
        yield "the seconds of its epoch are below 0"


def _shapes(record: Record) -> dict[str, tuple[tuple[int, ...], tuple[str, ...]]]:
    """The shape and the dtypes of every tensor; -1 stands for any number of devices."""
    config, done = record.config, len(record.losses)
    trained_in, either = (config.dtype,), ("float32", "float64")
    wanted: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {"epoch/seconds": ((1,), either)}
    for name, shape in config.shapes().items():
        # A framework may keep running statistics in double precision.
        trained = trainable(name)
        wanted[f"state/{name}"] = (shape, trained_in) if trained else ((-1, *shape), either)
    for name, shape in config.velocities().items():
        wanted[f"state/momentum/{name}"] = (shape, trained_in)
    if record.epochs:
        predictions = (len(record.epochs), config.test_examples)
        wanted["test/predictions"] = (predictions, ("uint8",))
    for name, shape in trace_shapes(config).items():
        _, kind, step, *_ = name.split("/")
        if int(step) <= done:
            wanted[name] = (shape, ("uint8",) if kind in ("images", "labels") else trained_in)
    return wanted


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    if wanted[:1] == (-1,):
        return len(shape) == len(wanted) and shape[0] > 0 and shape[1:] == wanted[1:]
    return shape == wanted
