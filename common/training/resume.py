"""From which checkpoint a run resumes, and whether it may."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.base.errors import RequestError, RunError
from common.records.fingerprint import source_digest
from common.records.record import ANY, Record, Resumption, run_name
from common.records.store import read_record
from common.settings.config import Config
from common.settings.request import Request
from common.training.checkpoints import Checkpoint, checkpoints_in, read_checkpoint
from common.training.reporter import Reporter


def require_flags(request: Request) -> None:
    """Raises RequestError if the flags of checkpoints do not go together."""
    if request.resume_from is not None and request.resume_from.is_dir():
        instead = "name a file in it, or resume with --checkpoint-dir and --resume"
        raise RequestError(f"--resume-from: {request.resume_from} is a folder: {instead}")
    if request.checkpoint_dir is None:
        for flag in ("resume", "checkpoint_every"):
            if getattr(request, flag):
                name = flag.replace("_", "-")
                raise RequestError(f"--{name} needs --checkpoint-dir: say where checkpoints are")


def chosen(request: Request, record: Record, report: Reporter) -> Checkpoint | None:
    """The checkpoint that a run resumes from, if any; `record` is the run's own.

    Raises RequestError if there is one that it may not resume from, or that would be lost.
    """
    folder = request.checkpoint_dir
    there = checkpoints_in(folder, record.name()) if folder else []
    if there and not request.resume:
        raise RequestError(
            f"{there[0]} is there already: --resume continues from it; to start over, "
            "remove it or choose another --checkpoint-dir"
        )
    if there:
        found = _newest_whole(there, report)
        _require_same(found, record)
        return found
    if request.resume_from is not None:
        found = _given(request.resume_from)
        _require_same_numbers(found, record)
        return found
    if folder and request.resume:
        _require_no_other(folder, record)
        report.notice(f"no checkpoint of {record.name()} in {folder}: starting at step 1")
    return None


def resumed(record: Record, found: Checkpoint) -> Record:
    """The record of a run that resumes from a checkpoint."""
    theirs = found.record
    again = Resumption(
        step=len(theirs.losses),
        started=theirs.started,
        framework=theirs.framework,
        devices=theirs.config.devices,
        differences=list(means(theirs, record)),
    )
    so_far = {"losses": theirs.losses, "epochs": theirs.epochs}
    return record.model_copy(update={"resumed": [*theirs.resumed, again], **so_far})


def resumption(record: Record, found: Checkpoint) -> str:
    """What a run says that resumes."""
    last = record.resumed[-1]
    why = f"; from there it may round otherwise: {', '.join(last.differences)}"
    return f"resuming from {found.path}, after step {last.step:,}{why if last.differences else ''}"


def _newest_whole(there: list[Path], report: Reporter) -> Checkpoint:
    for path in there:
        try:
            return read_checkpoint(path)
        except RunError as error:
            report.notice(str(error))
    raise RequestError(f"no checkpoint in {there[0].parent} is whole: remove them to start over")


def _require_no_other(folder: Path, record: Record) -> None:
    """Raises RequestError if a run on other devices could resume there, and would be forgotten."""
    way = record.config.options.way()
    files = folder.glob(f"{run_name(record.framework, record.chapter, ANY, way)}-step*.json")
    for name in sorted({path.name.rpartition("-step")[0] for path in files}):
        for newest in checkpoints_in(folder, name)[:1]:
            with suppress(RunError):  # what cannot be read cannot be resumed
                theirs = read_record(newest)
                if len(theirs.losses) < theirs.config.number_of_steps():
                    count = theirs.config.devices
                    raise RequestError(
                        f"{newest} comes from a run on other devices: {count} there, "
                        f"{record.config.devices} here; --devices {count} or --resume-from that "
                        "file resumes from it; to start over, choose another --checkpoint-dir"
                    )


def _given(path: Path) -> Checkpoint:
    """The checkpoint of --resume-from: its record, or the tensors beside it."""
    try:
        return read_checkpoint(path.with_suffix(".json"))
    except RunError as error:
        raise RequestError(f"--resume-from: {error}") from None


def _require_same(found: Checkpoint, record: Record) -> None:
    """Raises RequestError unless the run may end with the same bits as one never stopped."""
    _require_same_numbers(found, record)
    for difference in means(found.record, record, machine=False):
        raise RequestError(
            f"{found.path} was written with another setup: {difference}; with the old one --resume "
            "ends with the same bits, and --resume-from that file, with another --checkpoint-dir, "
            "with the same numbers to rounding"
        )


def _require_same_numbers(found: Checkpoint, record: Record) -> None:
    """Raises RequestError if something decides numbers that is another than in the checkpoint."""
    for difference in _decisive(found.record, record):
        raise RequestError(
            f"{found.path} comes from a run that computes other numbers: {difference}; "
            "set it as it was, or start over"
        )


def _decisive(theirs: Record, ours: Record) -> Iterator[str]:
    if theirs.chapter != ours.chapter:
        yield f"chapter {theirs.chapter} there, {ours.chapter} here"
        return
    yield from _unlike(theirs.config.numerics(), ours.config.numerics())
    yield from _unlike(
        {"data": theirs.data.sha256[:12], "initial weights": theirs.initial_weights_sha256[:12]},
        {"data": ours.data.sha256[:12], "initial weights": ours.initial_weights_sha256[:12]},
    )
    if theirs.source_sha256 != source_digest(theirs.framework):
        yield "the code has changed since"


def means(theirs: Record, ours: Record, *, machine: bool = True) -> Iterator[str]:
    """How two runs compute differently; without `machine`, their machines do not count."""
    yield from _unlike(_means(theirs.config), _means(ours.config))
    if theirs.config.devices == ours.config.devices:
        yield from _unlike(*({"devices by host": _by_host(each)} for each in (theirs, ours)))
    if theirs.framework == ours.framework:
        yield from _unlike(theirs.versions, ours.versions)
        unset = dict.fromkeys({**theirs.environment, **ours.environment}, "not set")
        yield from _unlike(unset | theirs.environment, unset | ours.environment)
    if machine:
        for part in ("system", "processor", "gpus", "driver"):
            yield from _unlike({part: theirs.machine.get(part)}, {part: ours.machine.get(part)})
        if ours.config.device_kind == "gpu" and not ours.config.deterministic:
            yield "GPUs without --deterministic"


def _by_host(record: Record) -> str:
    """How many devices each host has: they share its threads, and the engine adds over hosts."""
    hosts = Counter(name.rpartition(" ")[0] for name in record.devices)
    return " + ".join(map(str, hosts.values()))


def _means(config: Config) -> dict[str, Any]:
    """The settings that may change how a run rounds, and nothing else."""
    named = ("preset", "init_weights", "layers")
    numerics = config.numerics()
    return {k: v for k, v in config.settings().items() if k not in numerics and k not in named}


def _unlike(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    for name in {**theirs, **ours}:
        if theirs.get(name) != ours.get(name):
            yield f"{name} {theirs.get(name)} there, {ours.get(name)} here"
