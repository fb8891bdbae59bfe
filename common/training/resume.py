"""From which checkpoint a run resumes, whether it may, and whether all processes do the same."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from common.backends.devices import Process
from common.base.errors import RequestError, RunError
from common.records.fingerprint import source_digest
from common.records.record import ANY, Record, Resumption, run_name
from common.records.store import read_record
from common.settings.files import Files
from common.training.checkpoints import Checkpoint, checkpoints_in, read_checkpoint
from common.training.reporter import Reporter

SHARED: Final = {
    "devices": "--devices and --device-kind",
    "data": "--dataset and --data-dir",
    "initial weights": "--init-weights",
    "checkpoint": "--checkpoint-dir",
}
"""The flags on which depends what all processes of a run must have alike."""


def choose_checkpoint(files: Files, record: Record, report: Reporter) -> Checkpoint | None:
    """The checkpoint that a run resumes from, if any; `record` is the run's own.

    Raises RequestError if there is one that it may not resume from, or that would be lost.
    """
    folder = files.checkpoint_dir
    there = checkpoints_in(folder, record.name()) if folder else []
    if there and not files.resume:
        raise RequestError(
            f"{there[0]} is there already: --resume continues from it; to start over, "
            "remove it or choose another --checkpoint-dir"
        )
    for path in there:
        try:
            found = read_checkpoint(path)
        except RunError as error:
            report.notice(str(error))
            continue
        require_alike(path, found.record, record, same_bits=True)
        return found
    if there:
        raise RequestError(f"no checkpoint in {folder} is whole: remove them to start over")
    if files.resume_from is not None:
        try:
            found = read_checkpoint(files.resume_from.with_suffix(".json"))
        except RunError as error:
            raise RequestError(f"--resume-from: {error}") from None
        require_alike(found.path, found.record, record, same_bits=False)
        return found
    if folder and files.resume:
        for path, theirs in _on_other_devices(folder, record):
            require_alike(path, theirs, record, same_bits=True)
        report.notice(f"no checkpoint of {record.name()} in {folder}: starting at step 1")
    return None


def resumed_record(record: Record, found: Checkpoint) -> Record:
    """The record of a run that resumes from a checkpoint."""
    theirs, config = found.record, record.config
    differences = list(_unlike(_rounding(theirs, record), _rounding(record, theirs)))
    if config.device_kind == "gpu" and not config.deterministic:
        differences.append("GPUs without --deterministic")
    again = Resumption(
        step=len(theirs.losses),
        started=theirs.started,
        framework=theirs.framework,
        devices=theirs.config.devices,
        differences=differences,
    )
    so_far = {"losses": theirs.losses, "epochs": theirs.epochs}
    return record.model_copy(update={"resumed": [*theirs.resumed, again], **so_far})


def resumption_notice(record: Record, found: Checkpoint) -> str:
    """What a run says that resumes."""
    last = record.resumed[-1]
    why = f"; from there it may round otherwise: {', '.join(last.differences)}"
    return f"resuming from {found.path}, after step {last.step:,}{why if last.differences else ''}"


def require_alike(path: Path, theirs: Record, ours: Record, *, same_bits: bool) -> None:
    """Raises RequestError unless a run may resume from the checkpoint of another one.

    It has to compute the same numbers; for the `same_bits`, also with the same setup.
    """
    for difference in _unlike(_numbers(theirs), _numbers(ours)):
        raise RequestError(
            f"{path} comes from a run that computes other numbers: {difference}; "
            "set it as it was, or start over"
        )
    for difference in _unlike(_setup(theirs, ours), _setup(ours, theirs)) if same_bits else ():
        raise RequestError(
            f"{path} comes from a run with another setup: {difference}; set it as it was, "
            "or choose another --checkpoint-dir, to start over or to --resume-from that file"
        )


def require_same(record: Record, found: Checkpoint | None, process: Process) -> None:
    """Raises RequestError unless all processes start from the same. All call it.

    Each has found its own: the devices, on which the setting may depend, the data and weights that
    it has read, and the checkpoint that it resumes from.
    """
    settled = {
        "devices": f"{record.config.devices} devices, {record.config.device_kind}",
        "data": f"{record.config.dataset} {record.data_sha256[:12]}",
        "initial weights": record.initial_weights_sha256[:12],
        "checkpoint": found.record.sha256[:12] if found else "none",
    }
    first, *others = process.gather(settled)
    for rank, theirs in enumerate(others, start=1):
        for name in settled:
            if theirs[name] != first[name]:
                where = f" on {process.hosts[rank]}" if process.hosts else ""
                raise RequestError(
                    f"process {rank}{where} does not have the {name} of the first one "
                    f"({theirs[name]}, not {first[name]}): all hosts need the same {SHARED[name]}"
                )


def _on_other_devices(folder: Path, record: Record) -> Iterator[tuple[Path, Record]]:
    """The newest checkpoint of each run on other devices that has steps left."""
    pattern = run_name(record.framework, record.chapter, ANY, record.config.options.way())
    files = folder.glob(f"{pattern}-step*.json")
    for name in sorted({path.name.rpartition("-step")[0] for path in files}):
        for newest in checkpoints_in(folder, name)[:1]:
            with suppress(RunError):  # what cannot be read cannot be resumed
                theirs = read_record(newest)
                if len(theirs.losses) < theirs.config.number_of_steps():
                    yield newest, theirs


def _unlike(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    for name in {**theirs, **ours}:
        there, here = (each.get(name, "not set") for each in (theirs, ours))
        if there != here:
            yield f"{name} {there} there, {here} here"


def _numbers(record: Record) -> dict[str, Any]:
    """What decides the numbers of a run."""
    known = record.source_sha256 == source_digest(record.framework)
    return {
        **record.config.numerics(),
        "data": record.data_sha256[:12],
        "initial weights": record.initial_weights_sha256[:12],
        "code": "current" if known else "stale",
    }


def _setup(record: Record, other: Record) -> dict[str, Any]:
    """What may change how a run rounds, as far as it is said of both, except for machines."""
    config = record.config
    apart = {*config.numerics(), "preset", "init_weights", "layers"}
    setup = {name: value for name, value in config.settings().items() if name not in apart}
    if config.devices == other.config.devices:  # those of a host share its threads
        hosts = Counter(name.rpartition(" ")[0] for name in record.devices)
        setup["devices by host"] = " + ".join(map(str, hosts.values()))
    if record.framework == other.framework:
        setup |= record.versions | record.environment
    return setup


def _rounding(record: Record, other: Record) -> dict[str, Any]:
    """What may change how a run rounds, as far as it is said of both."""
    parts = ("system", "processor", "gpus", "driver")
    return _setup(record, other) | {name: record.machine.get(name) for name in parts}
