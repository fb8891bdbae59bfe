"""The readers that hostile files are given to. A further one is a line in `TARGETS`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from common.base.errors import RequestError, RunError
from common.chapters.chapters import SPECS
from common.compare.checks import check_shapes
from common.compare.collect import load
from common.data.idx import read_idx
from common.models.weights_file import load_arrays, load_weights, shape_in
from common.records.checkpoint import require_whole
from common.records.store import read_record, read_tensors
from common.records.trust import distrust
from common.report.speed import benchmark
from common.training.checkpoints import Checkpoint
from common.training.progress import Progress
from common.training.resume import means, resumed
from fuzz import formats, seeds, trees
from fuzz.parts import parted
from fuzz.watch import CONSTANT, Refusals, Watch

Mutate = Callable[[bytes, Random], bytes]


@dataclass(frozen=True)
class Target:
    """A reader. An input is one of the `files`, or several of them joined.

    `read` reads them in a folder as a command does. `seeds` makes valid inputs, `mutate` changes
    one. Besides a constant, a reader may take `multiple` bytes of memory for each byte of its file.
    It may raise one of the `refusals`, and nothing else.
    """

    name: str
    files: Sequence[str]
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    mutate: Mutate
    multiple: int = 100
    refusals: Refusals = (RunError,)


def check(target: Target, content: bytes, folder: Path, watch: Watch) -> str:
    """What the reader does wrong with an input; empty if nothing."""
    for name, part in zip(target.files, parted(content, len(target.files)), strict=True):
        (folder / name).write_bytes(part)
    memory = CONSTANT + target.multiple * len(content)
    return watch.see(lambda: target.read(folder), memory, target.refusals)


def read_labels_and_images(folder: Path) -> None:
    """A file as labels, and as images."""
    for dimensions in (1, 3):
        with suppress(RequestError):
            read_idx(folder / "idx", dimensions)


def read_weights(folder: Path) -> None:
    """Weights, as a comparison of two files reads them and as `--init-weights` does."""
    path = folder / "w.safetensors"
    with suppress(RequestError):
        shapes = {name: values.shape for name, values in load_arrays(path).items()}
        load_weights(path, shapes, "float32")
    shape_in(path, "conv1.bias")


def read_a_record(folder: Path) -> None:
    """A record alone."""
    distrust(read_record(folder / "run.json"))


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


TARGETS: Final = {
    each.name: each
    for each in (
        # Deflate makes at most 1,032 bytes of one; while they are put together, there are two.
        Target(
            "idx",
            ["idx"],
            read_labels_and_images,
            lambda: [*seeds.idx(1), *seeds.idx(3)],
            formats.idx,
            multiple=3000,
            refusals=(),
        ),
        Target(
            "safetensors",
            ["w.safetensors"],
            read_weights,
            seeds.weights,
            formats.safetensors,
            refusals=(RequestError,),
        ),
        Target("record", ["run.json"], read_a_record, seeds.records, formats.record),
        Target("run", ["run.json", formats.TENSORS], read_a_run, seeds.runs, formats.run),
        Target(
            "checkpoint",
            ["run.json", formats.TENSORS],
            read_a_checkpoint,
            seeds.checkpoints,
            formats.run,
        ),
        Target("bench", ["bench.json"], benchmark, seeds.benches, trees.change, refusals=()),
    )
}
"""By name."""
