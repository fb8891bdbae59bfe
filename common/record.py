"""What a run leaves behind: a JSON record, and the tensors it names in `.safetensors`."""

import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common.config import Config, Count
from common.errors import RequestError, RunError
from common.files import sha256, write_text
from common.interface import Weights
from common.weights import load_arrays, save_weights

SCHEMA: Final = 2
ROOT: Final = Path(__file__).resolve().parent.parent


class Strict(BaseModel):
    """A part of a record: no unknown fields, and no NaN, which JSON does not have."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_by_name=True)


class Epoch(Strict):
    """One epoch, counted from 1. Seconds are of training alone, read after synchronizing."""

    epoch: Count
    steps: Count
    test_accuracy: float = Field(ge=0, le=1)
    seconds: float = Field(ge=0)
    images_per_second: float = Field(ge=0)


class DataUsed(Strict):
    """The data that a run really used, and the SHA-256 over its images and labels."""

    name: str
    sha256: str
    train_examples: Count
    test_examples: Count


class Traffic(Strict):
    """What the devices send and receive in one allreduce of the gradient, in bytes, each."""

    rounds: int
    sent: list[int]
    received: list[int]


class TensorFile(Strict):
    """The file beside the record that holds its tensors."""

    file: str
    sha256: str


class Record(Strict):
    """Everything that is known of one run. Sizes are in bytes, times in seconds.

    `sha256` is that of the rest: see `seal`.
    """

    schema_version: Literal[2] = Field(default=SCHEMA, alias="schema")
    framework: str
    chapter: str
    status: Literal["running", "complete", "failed"]
    failure: str | None = None
    command: list[str]
    started: str
    machine: dict[str, str | int]
    versions: dict[str, str]
    source_sha256: str
    devices: list[str]
    config: Config
    data: DataUsed
    initial_weights_sha256: str
    losses: list[float] = []
    epochs: list[Epoch] = []
    peak_memory: int | None = Field(default=None, ge=0, lt=2**63)
    traffic: Traffic | None = None
    tensors: TensorFile | None = None
    sha256: str = ""

    def file_name(self) -> str:
        """The record's name in its folder."""
        return record_name(self.framework, self.chapter, self.config.devices)


def record_name(framework: str, chapter: str, devices: int) -> str:
    """The name of a run's record in its folder."""
    return f"{framework}-{chapter}-{devices}dev.json"


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
    try:
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
    """The tensors of the record at `path`. Raises RunError if they are not those it names."""
    if record.tensors is None:
        raise RunError(f"{path} names no tensors")
    # A record may come from elsewhere: only a file beside it is read, wherever it points.
    beside = path.parent / Path(record.tensors.file).name
    try:
        if sha256(beside) != record.tensors.sha256:
            raise RunError(f"{beside} is not the file that {path.name} describes")
        return load_arrays(beside)
    except (OSError, ValueError) as error:  # the latter: a name that no file can have
        raise RunError(f"{beside} cannot be read: {error}") from None
    except RequestError as error:
        raise RunError(str(error)) from None


def source_digest(framework: str) -> str:
    """The SHA-256 over the code that decides a run's numbers: a record of other code is stale."""
    state = hashlib.sha256()
    for folder in (ROOT / "common", ROOT / "frameworks" / framework):
        for path in sorted(folder.glob("*.py")):
            state.update(path.relative_to(ROOT).as_posix().encode())
            state.update(path.read_bytes())
    return state.hexdigest()


def versions(distributions: tuple[str, ...]) -> dict[str, str]:
    """The installed version of each distribution; "none" where it is not installed."""
    found: dict[str, Any] = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found
