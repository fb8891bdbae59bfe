"""Whether a record is what a run leaves that went well: whether it agrees with itself."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from common.backends.frameworks import WRAPPERS
from common.base.arrays import Array
from common.chapters.chapters import SPECS
from common.models.initial import initial_weights
from common.models.weights_file import digest
from common.records.record import Record
from common.records.store import seal
from common.settings.steps import (
    examples_in,
    number_of_epochs,
    number_of_steps,
    steps_of_epochs,
)
from common.terminal.values import DEVICES

NEAR: Final = 1e-3
"""Part of the largest logit by which classes may be apart for rounding to decide between them.

In 196 records of the grid, what is predicted has the largest logit, always. TF32 rounds by 5e-4.
"""


def distrust(record: Record) -> str:
    """Why a record cannot be what a run left that went well; empty if it can."""
    return next(_troubles(record), "")


def _troubles(record: Record) -> Iterator[str]:
    if record.status != "complete":
        yield _unfinished(record)
    if record.failure is not None:
        yield "is complete, and tells of a failure"
    yield from inconsistencies(record)
    yield from _of_figures(record)


def inconsistencies(record: Record) -> Iterator[str]:
    """What a record says that it denies elsewhere, however far its run has come."""
    config, data = record.config, record.data
    if (record.framework, record.chapter) != (config.framework, config.chapter):
        yield f"comes from {record.framework} {record.chapter}, its configuration from another"
    yield from _of_devices(record)
    yield from _of_processes(record)
    yield from _of_options(record)
    if (data.name, data.train_examples, data.test_examples) != (
        config.dataset,
        config.train_examples,
        config.test_examples,
    ):
        yield f"its data is {data.train_examples} images of {data.name}, its configuration differs"
    if record.sha256 != seal(record):
        yield "was changed after it was written"


def _unfinished(record: Record) -> str:
    """What became of a run that is not complete."""
    if record.status != "failed":
        return f"the run is {record.status}, not complete"
    return f"the run failed: {record.failure.message if record.failure else 'it does not say why'}"


def _of_devices(record: Record) -> Iterator[str]:
    names, config = record.devices, record.config
    if config.devices > DEVICES:
        yield f"ran on {config.devices} devices, and a run takes {DEVICES} at most"
    if len(names) != config.devices:
        yield f"ran on {len(names)} devices, and {config.devices} were asked for"
    if len(set(names)) != len(names):
        yield f"names a device twice: {', '.join(names)}"
    kinds = [name.rpartition(" ")[2].lower() for name in names]  # a host may be called n1-highcpu
    if any(("cpu" in kind) != (config.device_kind == "cpu") for kind in kinds):
        yield f"ran on devices of the kind {config.device_kind}, and names {', '.join(names)}"


def _of_processes(record: Record) -> Iterator[str]:
    """Of a run over hosts: each device is named after the host of the process that has it."""
    if record.cluster is None:
        return
    processes, names = record.cluster.processes, record.devices
    if (total := sum(each.devices for each in processes)) != len(names):
        yield f"its processes had {total} devices, and it names {len(names)}"
        return  # a list of as many as it tells of could be larger than the memory
    hosts = [each.host for each in processes for _ in range(each.devices)]
    named = [name.rpartition(" ")[0] for name in names]
    if hosts != named:
        yield f"its processes ran on {_in_words(hosts)}, its devices are of {_in_words(named)}"


def _in_words(hosts: list[str]) -> str:
    return ", ".join(dict.fromkeys(hosts)) or "no host"


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


def _of_figures(record: Record) -> Iterator[str]:
    steps, epochs = number_of_steps(record.config), number_of_epochs(record.config)
    if len(record.losses) != steps:
        yield f"has {len(record.losses)} losses, of {steps}"
    if len(record.epochs) != epochs:
        yield f"has the figures of {len(record.epochs)} epochs, of {epochs}"
        return  # a list of as many as it asks for could be larger than the memory
    planned_steps = steps_of_epochs(record.config)
    for number, (epoch, planned) in enumerate(
        zip(record.epochs, planned_steps, strict=True), start=1
    ):
        if (epoch.epoch, epoch.steps) != (number, planned):
            yield f"epoch {number} is called {epoch.epoch}, with {epoch.steps} steps of {planned}"
        images = epoch.images_per_second * epoch.seconds
        if not math.isclose(images, examples_in(record.config, planned), rel_tol=1e-6):
            yield f"the speed of epoch {number} is not its images over its seconds"


def _from_seed(record: Record, arrays: Mapping[str, Array]) -> bool:
    """Whether its initial weights are those of its seed, or that cannot be told."""
    config = record.config
    if config.init_weights is not None:
        return True
    # Only of a net whose weights are there: a record alone could ask for more than there is memory.
    for name, shape in config.shapes().items():
        if f"weights/{name}" not in arrays or arrays[f"weights/{name}"].shape != shape:
            return True
    weights = initial_weights(config.shapes(), config.seed, config.dtype)
    return digest(weights) == record.initial_weights_sha256


def contradiction(record: Record, arrays: Mapping[str, Array]) -> str:
    """What a record says that its own tensors deny; empty if nothing.

    Tensors that are not there, or of another shape or type, are somebody else's business.
    """
    if not _from_seed(record, arrays):
        return f"its initial weights are not those of seed {record.config.seed}"
    first = {
        name.removeprefix("trace/weights/0/"): values
        for name, values in arrays.items()
        if name.startswith("trace/weights/0/") and values.dtype.kind == "f"
    }
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
    return _of_probe(predictions, arrays.get("logits/after"))


def _of_probe(predictions: Array, logits: Array | None) -> str:
    """How the last predictions deny the logits after training, which are of the same images."""
    if logits is None or logits.ndim != 2 or not logits.size or logits.dtype.kind != "f":
        return ""
    shown = predictions[-1:, : len(logits)].ravel()
    if len(shown) < len(logits) or shown.dtype.kind not in "iu" or not np.isfinite(logits).all():
        return ""
    best = logits.max(axis=1) - NEAR * np.abs(logits).max()
    for image, (found, each) in enumerate(
        zip(shown.tolist(), logits >= best[:, None], strict=True)
    ):
        if not (0 <= found < len(each) and each[found]):
            return f"its last prediction for test image {image} is {found}, which its logits deny"
    return ""
