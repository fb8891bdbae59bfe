"""Records as files, with tensors beside them: written atomically, verified when read.

The digest in the record shows if either file was changed, cut off or replaced by accident.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mode

from pydantic import ValidationError
from safetensors import SafetensorError

from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.base.files import require_regular, write_text
from common.models.weights_file import load_arrays, save_weights
from common.records.record import SCHEMA, Record, source_digest


def write_record(path: Path, record: Record, tensors: Weights | None = None) -> Path:
    """Writes the tensors, if any, then the record with the digest of both, atomically.

    A record without tensors, as a run writes first, removes those of an earlier run: a
    complete record has its own tensors even if the process is killed. Raises RunError.
    """
    with write_failure(path):
        if tensors is not None:
            save_weights(tensors_of(path), tensors)
        sha256 = digest(path, record, tensors=tensors is not None)
        signed = record.model_copy(update={"sha256": sha256})
        write_text(path, signed.model_dump_json(by_alias=True, indent=2) + "\n")
        if tensors is None:
            Path(os.path.realpath(tensors_of(path))).unlink(missing_ok=True)
    return path


def tensors_of(path: Path) -> Path:
    return path.with_suffix(".safetensors")


def digest(path: Path, record: Record, *, tensors: bool) -> str:
    """The SHA-256 over a record without its digest, and the tensors beside it, if any."""
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
        why = f"{'.'.join(map(str, first['loc']))} {first['msg']}"
        raise RunError(f"{path} is not a record of schema {SCHEMA}: {why}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}") from None


def read_tensors(path: Path, record: Record) -> Weights:
    """The tensors of the record at `path`. Raises RunError if either was changed."""
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


def require_complete(path: Path, record: Record) -> None:
    if record.status != "complete":
        failed = f"the run failed: {record.failure.message}" if record.failure else ""
        raise RunError(f"{failed or f'the run is {record.status}, not complete'} ({path})")


def require_own(path: Path, record: Record) -> None:
    """Raises RunError if the record has another name, or comes from other code or setups."""
    if record.file_name() != path.name:
        raise RunError(f"it is the record of {record.name()} ({path})")
    if record.source_sha256 != source_digest(record.framework):
        raise RunError(f"stale, as the code has changed since: run it again ({path})")
    if others := record.another_setup():
        raise RunError(f"no result of its own: {others}; run it from step 1 ({path})")


def made_elsewhere(record: Record, others: Iterable[Record]) -> str:
    """How most records of its framework were made otherwise; empty if they were not."""
    if record.cluster:  # its processes may have been on any machine
        return ""
    peers = [peer for peer in others if peer.framework == record.framework and not peer.cluster]
    for name, value in _setup(record).items():
        common = mode(_setup(peer).get(name) for peer in peers)
        if value != common:
            return f"made elsewhere: {name} is {value}, and {common} in others of its framework"
    return ""


def _setup(record: Record) -> dict[str, str | int]:
    """The processor, the Python and the packages that a run was made with."""
    machine = {name: record.machine.get(name, "") for name in ("processor", "python")}
    return machine | record.versions
