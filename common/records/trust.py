"""Why a record is not compared: it is partial, copied, stale, or made elsewhere."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from common.base.errors import RunError
from common.records.fingerprint import source_digest
from common.records.record import Record


def require_complete(path: Path, record: Record) -> None:
    """Raises RunError that says what became of the run, unless it is complete."""
    if record.status != "complete":
        failed = f"the run failed: {record.failure.message}" if record.failure else ""
        raise RunError(f"{failed or f'the run is {record.status}, not complete'} ({path})")


def require_own(path: Path, record: Record) -> None:
    """Raises RunError if the record is one of another name, or of other code than is here."""
    if record.file_name() != path.name:
        raise RunError(f"it is the record of {record.name()} ({path})")
    if record.source_sha256 != source_digest(record.framework):
        raise RunError(f"stale, as the code has changed since: run it again ({path})")


def made_elsewhere(record: Record, others: Iterable[Record]) -> str:
    """How most records of its framework were made otherwise than this one; empty if they were not.

    Runs over hosts may have been on any machine.
    """
    own = [each for each in others if each.framework == record.framework and not each.cluster]
    for name, value in _setup(record).items() if not record.cluster else ():
        (common, _), *_ = Counter(_setup(each).get(name) for each in own).most_common()
        if value != common:
            return f"made elsewhere: {name} is {value}, and {common} in others of its framework"
    return ""


def _setup(record: Record) -> dict[str, str | int]:
    """The processor, the Python and the packages that a run was made with."""
    return {
        name: record.machine.get(name, "") for name in ("processor", "python")
    } | record.versions
