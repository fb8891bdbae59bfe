"""Records as files: written whole, read with care."""

import hashlib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.files import require_regular, sha256, write_text
from common.models.weights_file import load_arrays, save_weights
from common.records.record import SCHEMA, Record, TensorFile

Model = TypeVar("Model", bound=BaseModel)


def write_record(folder: Path, record: Record, tensors: Weights | None = None) -> Path:
    """Writes the tensors first and then the record that vouches for them, each atomically."""
    path = folder / record.file_name()
    if tensors is not None:
        beside = path.with_suffix(".safetensors")
        save_weights(beside, tensors)
        named = TensorFile(file=beside.name, sha256=sha256(beside))
        record = record.model_copy(update={"tensors": named})
    record = record.model_copy(update={"sha256": seal(record)})
    text = record.model_dump_json(by_alias=True, indent=2) + "\n"
    write_text(path, text)
    return path


def seal(record: Record) -> str:
    """The SHA-256 over everything else that a record says: it tells if one was changed later.

    Whoever changes a record on purpose can seal it again; this is for files that were mixed up.
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
        require_regular(beside)
        if sha256(beside) != record.tensors.sha256:
            raise RunError(f"{beside} is not the file that {path.name} describes")
        return load_arrays(beside)
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        raise RunError(f"{beside} cannot be read: {error}") from None
    except RequestError as error:
        raise RunError(str(error)) from None
