"""Whether a record is what a run leaves that went well: whether it agrees with itself."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from common.backends.frameworks import WRAPPERS
from common.base.arrays import Array, part
from common.chapters.chapters import SPECS
from common.models.weights_file import digest
from common.records.record import Record
from common.records.store import seal


def distrust(record: Record) -> str:
    """Why a record cannot be what a run left that went well; empty if it can."""
    return next(_troubles(record), "")


def _troubles(record: Record) -> Iterator[str]:
    if record.status == "failed":
        failure = record.failure
        yield f"the run failed: {failure.message if failure else 'it does not say why'}"
    elif record.status != "complete":
        yield f"the run is {record.status}, not complete"
    yield from inconsistencies(record)
    if len(record.epochs) != record.config.number_of_epochs():
        yield _so_far(record)


def inconsistencies(record: Record) -> Iterator[str]:
    """What a record says that it denies elsewhere, however far its run has come."""
    config, data = record.config, record.data
    if (record.framework, record.chapter) != (config.framework, config.chapter):
        yield f"comes from {record.framework} {record.chapter}, its configuration from another"
    yield from _of_devices(record)
    yield from _of_options(record)
    if (data.name, data.train_examples, data.test_examples) != (
        config.dataset,
        config.train_examples,
        config.test_examples,
    ):
        yield f"its data is {data.train_examples} images of {data.name}, its configuration differs"
    yield from _of_progress(record)
    if record.sha256 != seal(record):
        yield "was changed after it was written"


def _of_devices(record: Record) -> Iterator[str]:
    names, config = record.devices, record.config
    if len(names) != config.devices:
        yield f"ran on {len(names)} devices, and {config.devices} were asked for"
    if len(set(names)) != len(names):
        yield f"names a device twice: {', '.join(names)}"
    kinds = [name.rpartition(" ")[2].lower() for name in names]  # a host may be called n1-highcpu
    if any(("cpu" in kind) != (config.device_kind == "cpu") for kind in kinds):
        yield f"ran on devices of the kind {config.device_kind}, and names {', '.join(names)}"


def _of_options(record: Record) -> Iterator[str]:
    """What no command line could have asked for."""
    config = record.config
    if config.preset not in SPECS[config.chapter].presets:
        yield f"its preset is {config.preset}, which does not exist"
    wrapper, known = config.settings().get("wrapper"), WRAPPERS.get(config.framework)
    if wrapper and known and wrapper not in known:
        yield f"its wrapper is {wrapper}, which {config.framework} does not have"
    if record.traffic != config.traffic():
        yield "its traffic is not that of its allreduce"


def _of_progress(record: Record) -> Iterator[str]:
    config, done, finished = record.config, len(record.losses), len(record.epochs)
    *bounds, most = (config.steps_before(epoch) for epoch in range(finished + 2))
    planned = [stop - start for start, stop in pairwise(bounds)]
    if not bounds[-1] <= done <= most:
        yield _so_far(record)
    for number, (epoch, steps) in enumerate(zip(record.epochs, planned, strict=True), start=1):
        if (epoch.epoch, epoch.steps) != (number, steps):
            yield f"epoch {number} is called {epoch.epoch}, with {epoch.steps} steps of {steps}"
        images = epoch.images_per_second * epoch.seconds
        if not math.isclose(images, config.examples_in(steps), rel_tol=1e-6):
            yield f"the speed of epoch {number} is not its images over its seconds"


def _so_far(record: Record) -> str:
    steps, epochs = record.config.number_of_steps(), record.config.number_of_epochs()
    return f"has {len(record.losses)} of {steps} losses and {len(record.epochs)} of {epochs} epochs"


def contradiction(record: Record, arrays: Mapping[str, Array]) -> str:
    """What a record says that its own tensors deny; empty if nothing.

    Missing tensors, and those of another shape or type, are found elsewhere.
    """
    first = part(arrays, "trace/weights/0/")
    first = {name: values for name, values in first.items() if values.dtype.kind == "f"}
    if first and digest(first) != record.initial_weights_sha256:
        return "its trace begins with other weights than its initial ones"
    labels, predictions = (arrays.get(f"test/{name}") for name in ("labels", "predictions"))
    if labels is None or predictions is None or not labels.size:
        return ""
    if predictions.ndim != 2 or predictions.shape[1:] != labels.shape:
        return ""
    for epoch, found in zip(record.epochs, predictions, strict=False):
        with np.errstate(invalid="ignore"):  # they may be of any type, and hold any kind of NaN
            share = float(np.mean(found == labels))
        if not math.isclose(epoch.test_accuracy, share, abs_tol=1e-9):
            return (
                f"its test accuracy of epoch {epoch.epoch} is {epoch.test_accuracy:g}, "
                f"and {share:g} of its predictions are right"
            )
    return ""
