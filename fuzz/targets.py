"""The readers that hostile files are given to. Another one is an entry in `TARGETS`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from hypothesis.strategies import SearchStrategy, sampled_from

from common.base.errors import RequestError, RunError
from common.chapters.chapters import SPECS
from common.compare.checks import check_shapes
from common.compare.collect import load
from common.hosts.wire import Wire
from common.models.weights_file import load_arrays, load_weights, shape_in
from common.records.store import read_record, read_tensors
from common.report.speed import benchmark
from common.seeds.spread import read_spread
from common.seeds.text import markdown
from common.training.checkpoints import Checkpoint, Progress, require_whole
from common.training.resume import means, resumed
from fuzz import hostile, seeds
from fuzz.seeds import Files
from fuzz.watch import Watch

DISK: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is one: each input is a file."""

MEMORY: Final = 32 * 2**20
"""Bytes that any reader may take, besides a hundred for each byte of its files."""


@dataclass(frozen=True)
class Target:
    """A reader: `read` reads the `files` in a folder as a command does.

    `good` makes inputs that it accepts, `change` changes one. It may raise one of the `refusals`,
    and nothing else.
    """

    files: Sequence[str]
    read: Callable[[Path], object]
    good: Callable[[], list[Files]]
    change: Callable[[Files], SearchStrategy[Files]] = hostile.changed_lines
    refusals: tuple[type[Exception], ...] = ()

    def hostile(self) -> SearchStrategy[Files]:
        """Inputs that are changed."""
        return sampled_from(self.good()).flatmap(self.change)

    def check(self, content: Files, folder: Path, watch: Watch) -> str:
        """What the reader does wrong with an input; empty if nothing."""
        for name, part in zip(self.files, content, strict=True):
            (folder / name).write_bytes(part)
        memory = MEMORY + 100 * sum(map(len, content))
        return watch.see(lambda: self.read(folder), memory, self.refusals)


def read_weights(folder: Path) -> None:
    """Weights, as a comparison of two files reads them and as `--init-weights` does."""
    path = folder / "w.safetensors"
    with suppress(RequestError):
        shapes = {name: values.shape for name, values in load_arrays(path).items()}
        load_weights(path, shapes, "float32")
    shape_in(path, "conv1.bias")


def read_a_run(folder: Path) -> None:
    """A record and its tensors, as what compares runs reads them."""
    path = folder / "run.json"
    run = load(path, read_record(path))
    if run.record.chapter in SPECS:
        check_shapes(run)


def read_a_checkpoint(folder: Path) -> None:
    """A record and its tensors as a checkpoint; those that would be too large are added."""
    path = folder / "run.json"
    record = read_record(path)
    tensors = read_tensors(path, record)
    if record.chapter in SPECS:
        tensors = seeds.others(record.chapter) | tensors
    require_whole(path, record, tensors)
    found = Checkpoint(path, record, tensors)
    found.tell(Progress())
    list(means(record, record))
    resumed(record, found)


def read_seeds(folder: Path) -> None:
    """What many seeds gave, as the page shows it."""
    if spread := read_spread(folder):
        markdown(spread)


def read_messages(folder: Path) -> None:
    """Messages of another process until the connection is closed; each is an object."""
    content = BytesIO((folder / "messages").read_bytes())
    connection: Any = SimpleNamespace(recv=content.read)
    connection.setsockopt = connection.settimeout = lambda *_: None
    wire = Wire(connection)
    while not wire.closed:
        for message in wire.receive():
            message.get("rank")


RUN: Final = ("run.json", hostile.TENSORS)

TARGETS: Final = {
    "bench": Target(["bench.json"], benchmark, seeds.benches),
    "checkpoint": Target(
        RUN, read_a_checkpoint, seeds.checkpoints, hostile.changed_run, (RunError,)
    ),
    "messages": Target(["messages"], read_messages, seeds.messages),
    "run": Target(RUN, read_a_run, seeds.runs, hostile.changed_run, (RunError,)),
    "safetensors": Target(
        ["w.safetensors"],
        read_weights,
        seeds.weights,
        lambda files: hostile.changed_tensors(files[0]).map(lambda content: (content,)),
        (RequestError,),
    ),
    "seeds": Target(["seeds.json"], read_seeds, seeds.spreads, refusals=(RunError,)),
}
