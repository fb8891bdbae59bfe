"""Records as files: written whole, read with care."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError

from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.files import require_regular, sha256, write_text
from common.models.weights_file import load_arrays, save_weights
from common.records.record import SCHEMA, Record, TensorFile

Model = TypeVar("Model", bound=BaseModel)

ENDS: Final = {
    "running": "is running, or was killed",
    "failed": "failed",
    "interrupted": "was interrupted",
    "complete": "is complete",
}
"""What became of a run, by the status of its record."""


def write_record(folder: Path, record: Record, tensors: Weights | None = None) -> Path:
    """Writes a record under its run's name; one that is not complete goes beside one that is."""
    path = folder / record.file_name()
    beside = unfinished(path)
    if record.status != "complete" and is_complete(path):
        return write_record_as(beside, record, tensors)
    write_record_as(path, record, tensors)
    beside.unlink(missing_ok=True)
    return path


def write_record_as(path: Path, record: Record, tensors: Weights | None = None) -> Path:
    """Writes the tensors first and then the record that vouches for them, each atomically.

    If the process is killed meanwhile, the record is the old or the new one, with its own tensors.
    """
    if tensors is None:
        _write(path, record)
        return path
    recover(path)
    beside = tensors_of(path)
    try:
        save_weights(_new(beside), tensors)
        named = TensorFile(file=beside.name, sha256=sha256(_new(beside)))
        _write(path, record.model_copy(update={"tensors": named}))
    finally:
        recover(path)
    return path


def tensors_of(path: Path) -> Path:
    """Where the tensors of the record at `path` go."""
    return path.with_suffix(".safetensors")


def unfinished(path: Path) -> Path:
    """Where a record goes that is not complete, if a complete one is at `path`."""
    return path.with_suffix(".unfinished.json")


def overtaken(path: Path) -> str:
    """What became of a later run that a complete record at `path` is not of; empty if none was."""
    beside = unfinished(path)
    if not beside.exists():
        return ""
    try:
        later = read_record(beside)
        became = f"{ENDS[later.status]}{f', as {later.failure.message}' if later.failure else ''}"
    except RunError:
        became = "has left a record that cannot be read"
    return f"a later run of it {became}: run it again, or remove {beside}"


def is_complete(path: Path) -> bool:
    """Whether a record is there that says so."""
    try:
        return read_record(path).status == "complete"
    except RunError:
        return False


def _write(path: Path, record: Record) -> None:
    record = record.model_copy(update={"sha256": seal(record)})
    write_text(path, record.model_dump_json(by_alias=True, indent=2) + "\n")


def _new(beside: Path) -> Path:
    """Where tensors wait until the record names them; links are followed."""
    return Path(os.path.realpath(beside)).with_suffix(".new.safetensors")


def recover(path: Path) -> None:
    """Puts tensors that wait in their place, if the record at `path` names them."""
    beside = tensors_of(path)
    new = _new(beside)
    if new.is_file():
        with suppress(RunError):
            named = read_record(path).tensors
            if named and sha256(new) == named.sha256:
                new.replace(os.path.realpath(beside))
        new.unlink(missing_ok=True)


@contextmanager
def write_failure(path: Path) -> Iterator[None]:
    """Turns what prevents that `path` is written into a RunError that says so."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise RunError(f"cannot write {path}: {error}") from None


def seal(record: Record) -> str:
    """The SHA-256 over everything else that a record says: it tells if one was changed later.

    It is for files that were mixed up: a record that is changed on purpose can be sealed again.
    """
    return hashlib.sha256(record.model_dump_json(exclude={"sha256"}).encode()).hexdigest()


def read_record(path: Path) -> Record:
    """A record from its file. Raises RunError that says what is wrong with it."""
    return read_json(Record, path, f"a record of schema {SCHEMA}")


def read_json(kind: type[Model], path: Path, what: str) -> Model:
    """The model that a file holds. Raises RunError that says why it is not `what`."""
    try:
        require_regular(path)
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunError(f"{path} is not {what}: {where} {first['msg']}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None


def read_tensors(path: Path, record: Record) -> Weights:
    """The tensors of the record at `path`. Raises RunError if they are not those it names."""
    if record.tensors is None:
        raise RunError(f"{path} names no tensors")
    # A record may come from elsewhere: only a file beside it is read, wherever it points.
    beside = path.parent / Path(record.tensors.file).name
    try:
        # They wait if the process was killed after both writes; there may be no earlier ones.
        there = [each for each in (beside, _new(beside)) if each.exists()]
        for each in there or [beside]:
            require_regular(each)
            if sha256(each) == record.tensors.sha256:
                return load_arrays(each)
        raise RunError(f"{beside} is not the file that {path.name} describes")
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        raise RunError(f"{beside} cannot be read: {error}") from None
    except RequestError as error:
        raise RunError(str(error)) from None
