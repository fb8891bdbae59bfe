"""What a run leaves: a record, with its tensors in the `.safetensors` file beside it.

Both are written atomically, and verified when read: the digest in the record shows if either was
changed, cut off or replaced by accident.
"""

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, chain
from pathlib import Path
from statistics import mode
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError

from common.base.arrays import Weights
from common.base.errors import RequestError, RunError, reason
from common.base.files import require_regular, write_text
from common.models.weights_file import load_arrays, save_weights
from common.parallel.ledger import Event, Usage
from common.settings.config import Config, Count

SCHEMA: Final = 9

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = (
    *("base", "data", "models", "parallel", "backends"),
    *("chapters", "trainers", "settings", "records", "training"),
)
"""The rooms of `common/` that decide a run's numbers."""


class Strict(BaseModel):
    """A part of a record, without unknown fields or NaN, which JSON lacks."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_by_name=True)


class Epoch(Strict):
    """One epoch, counted from 1. Seconds are of training, without evaluation.

    `minibatches_sha256` covers the images and labels of its minibatches, in order.
    """

    epoch: Count
    steps: Count
    minibatches_sha256: str = ""
    test_accuracy: float = Field(ge=0, le=1)
    seconds: float = Field(ge=0)
    images_per_second: float = Field(ge=0)


class Failure(Strict):
    """Why a run failed, and where, as far as that is known."""

    message: str
    step: Count | None = None
    tensor: str = ""
    device: int | None = None
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The error that ended a run, without the paths of a machine."""
        text = "".join(traceback.format_exception(error))
        text = text.replace(str(ROOT), ".").replace(sys.prefix, "...")
        failure = cls(message=reason(error), traceback=text)
        if isinstance(error, RunError):
            failure.step, failure.tensor, failure.device = error.step, error.tensor, error.device
        return failure


class Resumption(Strict):
    """A resumption after `step` of a run that `started` then.

    `differences` are those of the two setups. With any, the steps until then are no result of
    the record's setup.
    """

    step: Count
    started: str
    framework: str
    devices: Count
    differences: list[str] = []


class Cluster(Strict):
    """What has joined processes that a launcher has started, and the host of each of them."""

    engine: str
    hosts: list[str] = Field(min_length=2)


class Split(Strict):
    """Traffic and memory of the first step, also of a resumed run, and the devices' passes."""

    counted: Usage
    events: list[Event]


class Record(Strict):
    """A run; sizes are in bytes, times in seconds.

    `environment` has the variables that may change rounding. `data_sha256` covers images and
    labels, `sha256` the record and, once the run is complete, the file of tensors beside it.
    """

    schema_version: Literal[9] = Field(default=SCHEMA, alias="schema")
    framework: str
    chapter: str
    status: Literal["running", "complete", "failed", "interrupted"]
    failure: Failure | None = None
    command: list[str]
    started: str
    resumed: list[Resumption] = []
    machine: dict[str, str | int]
    versions: dict[str, str]
    environment: dict[str, str] = {}
    source_sha256: str
    devices: list[str]
    config: Config
    data_sha256: str
    initial_weights_sha256: str
    losses: list[float] = []
    epochs: list[Epoch] = []
    peak_memory: int | None = Field(default=None, ge=0, lt=2**63)
    split: Split | None = None
    cluster: Cluster | None = None
    sha256: str = ""

    def name(self) -> str:
        """The name of the run's files, without suffix."""
        return name_of(self.config).removesuffix(".json")

    def timed_epochs(self) -> list[Epoch]:
        """The epochs that were trained in the record's setup from their first step."""
        before = accumulate((epoch.steps for epoch in self.epochs), initial=0)
        foreign = self._of_another_setup()[0]
        return [epoch for epoch, done in zip(self.epochs, before, strict=False) if done >= foreign]

    def another_setup(self) -> str:
        """Which steps were trained in another setup, and which; empty if none were."""
        step, differences = self._of_another_setup()
        return f"steps 1 to {step:,} were trained in another setup ({differences})" if step else ""

    def _of_another_setup(self) -> tuple[int, str]:
        others = [each for each in self.resumed if each.differences]
        differences = dict.fromkeys(chain(*(each.differences for each in others)))
        return max((each.step for each in others), default=0), ", ".join(differences)


def record_name(framework: str, chapter: str, devices: int | str, way: str) -> str:
    """The file name of a run's record; `way` is `Options.way`."""
    return "-".join(filter(None, (framework, chapter, way, f"{devices}dev.json")))


def name_of(config: Config) -> str:
    """The file name of the record of a run."""
    return record_name(config.framework, config.chapter, config.devices, config.options.way())


def files_of(name: str) -> re.Pattern[str]:
    """Matches the files of a run; the first group is a checkpoint's step."""
    return re.compile(rf"{re.escape(name)}(?:-step(\d+))?\.(?:json|safetensors)")


def source_digest(framework: str) -> str:
    """The SHA-256 over the code that decides a run's numbers."""
    state = hashlib.sha256()
    for path in sources(framework):
        state.update(path.relative_to(ROOT).as_posix().encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def sources(framework: str) -> list[Path]:
    """The files that decide the numbers of a framework's runs."""
    rooms = [ROOT / "common" / room for room in ROOMS]
    backends = ROOT / "frameworks"
    folders = [*rooms, backends / "strategies", backends / framework]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return [*paths, *sorted(backends.glob("*.py"))]


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
    if name_of(record.config) != path.name:
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
