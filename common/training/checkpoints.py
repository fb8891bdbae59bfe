"""Checkpoints: a record that says "running", with its tensors, and who may resume from it.

The tensors: `state/NAME`, what the chapter saves; `test/predictions`, the classes of the
test images after each epoch, and `test/logits` of the last one; `epoch/seconds`, of training,
and `epoch/minibatches`, the digest, of the epoch under way; and the trace of
`common.records.trace`.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from common.backends.interface import Process
from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.files import require_file, require_writable
from common.records.record import (
    Record,
    Resumption,
    files_of,
    read_record,
    read_tensors,
    source_digest,
    write_failure,
    write_record,
)
from common.training.reporter import Reporter


@dataclass(frozen=True)
class Files:
    """The flags of files and checkpoints, and `quiet`, by their names."""

    out: Path
    quiet: bool = False
    save_weights: Path | None = None
    checkpoint_dir: Path | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    resume_from: Path | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Takes them from settings. Raises RequestError if they do not go together."""
        files = cls(**{flag.name: settings[flag.name] for flag in fields(cls)})
        if files.resume_from is not None and files.resume_from.is_dir():
            what_to_do = "name a file in it, or resume with --checkpoint-dir and --resume"
            raise RequestError(f"--resume-from: {files.resume_from} is a folder: {what_to_do}")
        if files.checkpoint_dir is None and (files.resume or files.checkpoint_every):
            flag = "--resume" if files.resume else "--checkpoint-every"
            raise RequestError(f"{flag} needs --checkpoint-dir: say where checkpoints are")
        return files

    def folders(self) -> tuple[Path, Path]:
        return self.out, self.checkpoint_dir or self.out

    def require_output_paths(self, record: str = "") -> None:
        """Raises RequestError if outputs cannot be written; the name of `record` may be unknown."""
        for folder in self.folders():
            require_writable(folder)
        path, weights = self.out / record, self.save_weights
        written = [path, path.with_suffix(".safetensors")] if record else []
        for file in written:
            require_file(file, "--out")
        if weights is not None:
            require_file(weights, "--save-weights")
            if os.path.realpath(weights) in map(os.path.realpath, written):
                raise RequestError(f"--save-weights {weights} is a file of --out: name another one")


class Checkpoint(NamedTuple):
    """A checkpoint; `path` is its record's."""

    path: Path
    record: Record
    tensors: Weights


@dataclass
class Checkpoints:
    """Writes checkpoints `every` so many steps; `last` is the newest, or that it resumes from."""

    folder: Path
    every: int
    record: Record
    last: Path | None

    def write(self, tensors: Weights) -> None:
        """Writes a checkpoint, and removes all but this and the last one. Raises RunError."""
        name = self.record.name()
        path = self.folder / f"{name}-step{len(self.record.losses)}.json"
        if path == self.last:  # it has resumed there, and made no step
            return
        write_record(path, self.record, tensors)
        kept = {self.last and self.last.stem, path.stem}
        self.last = path
        files = files_of(name)
        with write_failure(path):
            # A record goes before its tensors: it is never without them.
            for file in sorted(self.folder.iterdir(), key=lambda file: file.suffix):
                match = files.fullmatch(file.name)
                if match and match[1] and file.stem not in kept:
                    file.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint whose record is at `path`. Raises RunError if it is none."""
    record = read_record(path)
    if record.status != "running":
        raise RunError(f"{path} is no checkpoint to resume from: the run is {record.status}")
    return Checkpoint(path, record, read_tensors(path, record))


def checkpoints_in(folder: Path, name: str) -> list[Path]:
    """The checkpoints of a run of this name in a folder, the newest first."""
    names, paths = files_of(name), {}
    for path in folder.glob("*-step*.json"):
        if match := names.fullmatch(path.name):
            paths[int(match[1])] = path
    return [paths[step] for step in sorted(paths, reverse=True)]


def choose_checkpoint(files: Files, record: Record, report: Reporter) -> Checkpoint | None:
    """The newest intact checkpoint of the run's name, else that of `--resume-from`, if any.

    Raises RequestError if it cannot be read, computes other numbers, or would be lost.
    """
    folder = files.checkpoint_dir
    paths = checkpoints_in(folder, record.name()) if folder else []
    if paths and not files.resume:
        how = "to start over, remove it or choose another --checkpoint-dir"
        raise RequestError(f"{paths[0]} is there already: --resume continues from it; {how}")
    if not paths and files.resume_from:
        paths = [files.resume_from.with_suffix(".json")]
    damaged = []
    for path in paths:
        try:
            checkpoint = read_checkpoint(path)
        except RunError as error:
            damaged.append(str(error))
            continue
        for line in damaged:
            report.notice(line)
        for difference in _differences(_numbers(checkpoint.record), _numbers(record)):
            what = f"{path} comes from a run that computes other numbers: {difference}"
            raise RequestError(f"{what}; set it as it was, or start over")
        return checkpoint
    if damaged:
        raise RequestError(f"there is no checkpoint to resume from: {'; '.join(damaged)}")
    if files.resume:
        report.notice(f"no checkpoint of {record.name()} in {folder}: starting at step 1")
    return None


def resumed(record: Record, found: Checkpoint, report: Reporter) -> Record:
    """The record of a run that resumes from a checkpoint; reports which one.

    Where nothing is left to do, that is the checkpoint's record. Raises RequestError if it is
    of another setup.
    """
    earlier, config = found.record, record.config
    packages = earlier.config.framework == config.framework
    differences = list(_differences(_setup(earlier, packages), _setup(record, packages)))
    if len(earlier.losses) == config.number_of_steps():
        done = f"nothing is left to do: {found.path} has all {config.number_of_steps():,} steps"
        if differences:
            advice = "to train here, start over"
            raise RequestError(
                f"{done}, trained in another setup: {', '.join(differences)}; {advice}"
            )
        report.notice(done)
        return earlier
    resumption = Resumption(
        step=len(earlier.losses),
        started=earlier.started,
        framework=earlier.framework,
        devices=earlier.config.devices,
        differences=differences,
    )
    reasons = list(differences)
    if config.device_kind == "gpu" and not config.deterministic:
        reasons.append("GPUs without --deterministic")
    why = f"; from there it may round otherwise: {', '.join(reasons)}" if reasons else ""
    report.notice(f"resuming from {found.path}, after step {resumption.step:,}{why}")
    return record.model_copy(update={"resumed": [*earlier.resumed, resumption]})


def require_alike(record: Record, found: Checkpoint | None, process: Process) -> None:
    """Raises RequestError unless all processes, each of which calls it, start alike."""
    starts = {
        "flags": record.config.settings(),
        "variables that may change rounding": record.environment,
        "code": record.source_sha256,
        "packages": record.versions,
        "data": record.data_sha256,
        "initial weights": record.initial_weights_sha256,
        "checkpoint": found.record.sha256 if found else "",
    }
    parts = {part: sha256(repr(start).encode()).hexdigest()[:12] for part, start in starts.items()}
    first, *others = process.gather(parts)
    for rank, digests in enumerate(others, start=1):
        for part, value in digests.items():
            if value != first[part]:
                what = f"process {rank} has other {part} than the first one"
                raise RequestError(f"{what}: start all processes alike")


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for name in {**theirs, **ours}:
        there = theirs.get(name, "not set")
        here = ours.get(name, "not set")
        if there != here:
            yield f"{name} {there} there, {here} here"


def _numbers(record: Record) -> dict[str, Any]:
    known = record.source_sha256 == source_digest(record.framework)
    return {
        **record.config.numerics(),
        "data": record.data_sha256[:12],
        "initial weights": record.initial_weights_sha256[:12],
        "code": "current" if known else "stale",
    }


def _setup(record: Record, packages: bool) -> dict[str, Any]:
    """What may change how a run rounds; packages are compared within a framework."""
    config, machine = record.config, record.machine
    others = {*config.numerics(), "preset", "init_weights", "layers"}
    setup = {name: value for name, value in config.settings().items() if name not in others}
    # The devices of a host share its threads.
    hosts = Counter(name.rpartition(" ")[0] for name in record.devices)
    setup["devices"] = " + ".join(map(str, hosts.values()))
    if packages:
        setup |= record.versions | record.environment
    return setup | {k: machine.get(k) for k in ("system", "processor", "gpus", "driver")}
