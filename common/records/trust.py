"""Whether a record is what a run leaves that went well: whether it agrees with itself."""

from collections.abc import Iterator, Mapping

from common.base.arrays import Array, part
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
    kinds = [name.rpartition(" ")[2].lower() for name in names]  # a host may be called n1-highcpu
    if any(("cpu" in kind) != (config.device_kind == "cpu") for kind in kinds):
        yield f"ran on devices of the kind {config.device_kind}, and names {', '.join(names)}"


def _of_progress(record: Record) -> Iterator[str]:
    finished = len(record.epochs)
    least, most = (record.config.steps_before(finished + more) for more in (0, 1))
    if not least <= len(record.losses) <= most:
        yield _so_far(record)


def _so_far(record: Record) -> str:
    steps, epochs = record.config.number_of_steps(), record.config.number_of_epochs()
    return f"has {len(record.losses)} of {steps} losses and {len(record.epochs)} of {epochs} epochs"


def contradiction(record: Record, arrays: Mapping[str, Array]) -> str:
    """What a record says of the weights that its trace begins with, if these deny it; else empty.

    Missing tensors, and those of another shape or type, are found elsewhere.
    """
    first = part(arrays, "trace/weights/0/")
    first = {name: values for name, values in first.items() if values.dtype.kind == "f"}
    if first and digest(first) != record.initial_weights_sha256:
        return "its trace begins with other weights than its initial ones"
    return ""
