"""Checkpoints: a record that says "running", its tensors beside it, and who may resume from it.

By name in the tensors: `state/NAME`, what the chapter saves; `test/predictions`, the class that
each finished epoch ends with for each test image; `epoch/seconds`, those of training in the epoch
under way, and `epoch/minibatches`, the digest of its minibatches; and the trace of
`common.records.trace`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

from common.backends.devices import Process
from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.files import require_file, require_writable
from common.records.fingerprint import source_digest
from common.records.record import Record, Resumption, files_of
from common.records.store import read_record, read_tensors, write_failure, write_record
from common.training.reporter import Reporter


@dataclass(frozen=True)
class Files:
    """The flags of files and checkpoints, by their names; with `quiet`, nothing is reported."""

    out: Path
    quiet: bool = False
    save_weights: Path | None = None
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    resume_from: Path | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Those among the settings. Raises RequestError if they do not go together."""
        files = cls(**{each.name: settings[each.name] for each in fields(cls)})
        if files.resume_from is not None and files.resume_from.is_dir():
            instead = "name a file in it, or resume with --checkpoint-dir and --resume"
            raise RequestError(f"--resume-from: {files.resume_from} is a folder: {instead}")
        if files.checkpoint_dir is None and (files.resume or files.checkpoint_every):
            flag = "--resume" if files.resume else "--checkpoint-every"
            raise RequestError(f"{flag} needs --checkpoint-dir: say where checkpoints are")
        return files

    def folders(self) -> tuple[Path, Path]:
        """The folder of the record, and that of the checkpoints; they may be one."""
        return self.out, self.checkpoint_dir or self.out

    def require_output_paths(self, record: str = "") -> None:
        """Raises RequestError if what the run leaves could not be written in the end.

        The name of the `record` depends on the number of devices, which may not be known yet.
        """
        for folder in self.folders():
            require_writable(folder)
        path, weights = self.out / record, self.save_weights
        written = [path, path.with_suffix(".safetensors")] if record else []
        for file in written:
            require_file(file, "--out")
        if weights is not None:
            require_file(weights, "--save-weights")
            if weights.resolve() in [file.resolve() for file in written]:
                raise RequestError(f"--save-weights {weights} is a file of --out: name another one")


class Checkpoint(NamedTuple):
    """A whole checkpoint: the path of its record, the record, and its tensors."""

    path: Path
    record: Record
    tensors: Weights


@dataclass
class Checkpoints:
    """Where a run leaves checkpoints, how often, and as whose: `record` is the run's.

    `every` so many steps; None: at the end of each epoch. Only a run's first process `writes`.
    `last` is the newest one: at first that from which it resumes, if any.
    """

    folder: Path
    every: int | None
    record: Record
    writes: bool
    last: Path | None

    def due(self, step: int, *, ends: bool) -> bool:
        """Whether one is written after a step; `ends`: which has ended an epoch."""
        return ends if self.every is None else step % self.every == 0

    def write(self, tensors: Weights) -> None:
        """Writes a checkpoint, and removes all but this and the last one. Raises RunError.

        Should the disk lose this one, there is another. A run that has resumed and stops before
        its next step has nothing new to write.
        """
        name = self.record.name()
        path = self.folder / f"{name}-step{len(self.record.losses)}.json"
        if not self.writes or path == self.last:
            return
        write_record(path, self.record, tensors)
        kept = {self.last and self.last.stem, path.stem}
        files, self.last = files_of(name), path
        with write_failure(path):
            # A record goes before its tensors, so that it never stands without them.
            for file in sorted(self.folder.iterdir(), key=lambda file: file.suffix):
                match = files.fullmatch(file.name)
                if match and match[1] and file.stem not in kept:
                    file.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint whose record is at `path`. Raises RunError that says why it is none."""
    record = read_record(path)
    if record.status != "running":
        raise RunError(f"{path} is no checkpoint to resume from: the run is {record.status}")
    return Checkpoint(path, record, read_tensors(path, record))


def checkpoints_in(folder: Path, name: str) -> list[Path]:
    """The checkpoints of a run of this name in a folder, by their steps, the newest first."""
    names = files_of(name)
    found = [(names.fullmatch(path.name), path) for path in folder.glob("*-step*.json")]
    steps = {int(match[1]): path for match, path in found if match}
    return [steps[step] for step in sorted(steps, reverse=True)]


def choose_checkpoint(files: Files, record: Record, report: Reporter) -> Checkpoint | None:
    """The newest whole checkpoint of the run's name, else the one that a flag names, if any.

    `record` is the run's own. Raises RequestError if there is one that cannot be read or computes
    other numbers, or that would be lost.
    """
    folder = files.checkpoint_dir
    paths = checkpoints_in(folder, record.name()) if folder else []
    if paths and not files.resume:
        raise RequestError(
            f"{paths[0]} is there already: --resume continues from it; to start over, "
            "remove it or choose another --checkpoint-dir"
        )
    if not paths and files.resume_from:
        paths = [files.resume_from.with_suffix(".json")]
    damaged = []
    for path in paths:
        try:
            found = read_checkpoint(path)
        except RunError as error:
            damaged.append(str(error))
            continue
        for line in damaged:
            report.notice(line)
        for difference in _unlike(_numbers(found.record), _numbers(record)):
            raise RequestError(
                f"{path} comes from a run that computes other numbers: {difference}; "
                "set it as it was, or start over"
            )
        return found
    if damaged:
        raise RequestError(f"there is no checkpoint to resume from: {'; '.join(damaged)}")
    if files.resume:
        report.notice(f"no checkpoint of {record.name()} in {folder}: starting at step 1")
    return None


def resumed(record: Record, found: Checkpoint, report: Reporter) -> Record:
    """The record of a run that resumes from a checkpoint; says from which one."""
    theirs, config = found.record, record.config
    same_framework = theirs.config.framework == config.framework
    setups = [_setup(each, packages=same_framework) for each in (theirs, record)]
    differences = list(_unlike(*setups))
    if config.device_kind == "gpu" and not config.deterministic:
        differences.append("GPUs without --deterministic")
    again = Resumption(
        step=len(theirs.losses),
        started=theirs.started,
        framework=theirs.framework,
        devices=theirs.config.devices,
        differences=differences,
    )
    why = f"; from there it may round otherwise: {', '.join(differences)}" if differences else ""
    report.notice(f"resuming from {found.path}, after step {again.step:,}{why}")
    so_far = {"losses": theirs.losses, "epochs": theirs.epochs}
    return record.model_copy(update={"resumed": [*theirs.resumed, again], **so_far})


def require_alike(record: Record, found: Checkpoint | None, process: Process) -> None:
    """Raises RequestError unless all processes start from the same. All call it.

    Each has found its own devices, on which the setting may depend, data, weights and checkpoint.
    """
    config = record.config
    starts = {
        "--devices and --device-kind": f"{config.devices} devices, {config.device_kind}",
        "--dataset and --data-dir": f"the data {config.dataset} {record.data_sha256[:12]}",
        "--init-weights": f"the initial weights {record.initial_weights_sha256[:12]}",
        "--checkpoint-dir": f"the checkpoint {found.record.sha256[:12] if found else 'none'}",
    }
    first, *others = process.gather(starts)
    for rank, theirs in enumerate(others, start=1):
        for flags, value in theirs.items():
            if value != first[flags]:
                where = f" on {process.hosts[rank]}" if process.hosts else ""
                raise RequestError(
                    f"process {rank}{where} has {value}, and the first one {first[flags]}: "
                    f"all hosts need the same {flags}"
                )


def _unlike(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for name in {**theirs, **ours}:
        there, here = (setup.get(name, "not set") for setup in (theirs, ours))
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


def _setup(record: Record, *, packages: bool) -> dict[str, Any]:
    """What may change how a run rounds; packages are compared within a framework."""
    config, machine = record.config, record.machine
    apart = {*config.numerics(), "preset", "init_weights", "layers"}
    setup = {name: value for name, value in config.settings().items() if name not in apart}
    # The devices of a host share its threads.
    hosts = Counter(name.rpartition(" ")[0] for name in record.devices)
    setup["devices"] = " + ".join(map(str, hosts.values()))
    if packages:
        setup |= record.versions | record.environment
    return setup | {k: machine.get(k) for k in ("system", "processor", "gpus", "driver")}
