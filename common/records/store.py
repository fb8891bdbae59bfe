"""Records as files: each is written atomically, with its tensors beside it, and verified when read.

One digest, in the record, covers both files: whoever reads them sees if one was changed, cut off
or replaced since. It is for accidents: a record that is changed on purpose can get a new digest.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError
from safetensors import SafetensorError

from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.files import require_regular, write_text
from common.models.weights_file import load_arrays, save_weights
from common.records.record import SCHEMA, Record


def write_record(path: Path, record: Record, tensors: Weights | None = None) -> Path:
    """Writes the tensors, if any, and then the record with the digest of both, each atomically.

    A run's first record says that it runs, and takes the place of an earlier one and its tensors.
    So whenever the process is killed, a record that says "complete" has its own tensors. Raises
    RunError if a file cannot be written.
    """
    with write_failure(path):
        if tensors is not None:
            save_weights(tensors_of(path), tensors)
        signed = record.model_copy(
            update={"sha256": digest(path, record, tensors=tensors is not None)}
        )
        write_text(path, signed.model_dump_json(by_alias=True, indent=2) + "\n")
        if tensors is None:
            Path(os.path.realpath(tensors_of(path))).unlink(missing_ok=True)
    return path


def tensors_of(path: Path) -> Path:
    """The file of tensors beside the record at `path`."""
    return path.with_suffix(".safetensors")


def digest(path: Path, record: Record, *, tensors: bool) -> str:
    """The SHA-256 over a record, except for its digest, and the tensors beside `path`, if any."""
    state = hashlib.sha256(record.model_dump_json(exclude={"sha256"}).encode())
    if tensors:
        with tensors_of(path).open("rb") as stream:
            hashlib.file_digest(stream, lambda: state)
    return state.hexdigest()


@contextmanager
def write_failure(path: Path) -> Iterator[None]:
    """Raises RunError in the place of an error that prevents writing `path`."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise RunError(f"cannot write {path}: {error}") from None


def read_record(path: Path) -> Record:
    """A record, without its tensors: see `read_tensors`. Raises RunError if it is none."""
    try:
        require_regular(path)
        return Record.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RunError(
            f"{path} is not a record of schema {SCHEMA}: {where} {first['msg']}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None


def read_tensors(path: Path, record: Record) -> Weights:
    """The tensors of the record at `path`. Raises RunError unless both are as they were written."""
    tensors = tensors_of(path)
    try:
        require_regular(tensors)
        if digest(path, record, tensors=True) != record.sha256:
            raise RunError(f"{path} or {tensors.name} was changed after it was written")
        return load_arrays(tensors)
    except OSError as error:
        raise RunError(f"{tensors} cannot be read: {error}") from None
    except RequestError as error:
        raise RunError(str(error)) from None
