"""The numerical parity checks: what of a run is compared, with what, and how strictly."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import BaseModel

from common.interface import Array, Weights
from common.models import layer_shapes, shapes_of, trainable
from common.printable import Printable
from common.record import Record
from common.tolerances import ACCURACY_FLOOR, LONG, TOLERANCES, Tolerance
from common.training import LAYERS_PROBE, PROBE, number_of_steps


@dataclass(frozen=True)
class Run:
    """A record that can be trusted, with its tensors and, as `losses`, the loss of every step."""

    record: Record
    arrays: Weights

    @property
    def devices(self) -> int:
        """The number of devices it ran on."""
        return self.record.config.devices

    @property
    def shards(self) -> int | None:
        """What keeps its answer from being that of other runs: see `Config.shards`."""
        return self.record.config.shards()


class Check(BaseModel):
    """One check of one run. `where` is the array, entry or step that is worst."""

    suite: str
    chapter: str
    check: str
    framework: str
    devices: int
    passed: bool
    distance: float | None = None
    tolerance: float | None = None
    where: Printable = ""
    note: Printable = ""
    parted: list[Printable] = []
    """Every array that is too far off, in the net's order."""


NUMERICAL: Final = {
    "forward": "logits/before",
    "gradient": "gradients/",
    "trajectory": "losses",
    "weights": "weights/",
    "outcome": "logits/after",
}
"""What each numerical check compares: the arrays whose names start so."""


def expected_shapes(record: Record) -> dict[str, tuple[int, ...]]:
    """The name and shape of every array that a run must leave."""
    config = record.config
    probe = (min(PROBE, config.test_examples), 10)
    shapes: dict[str, tuple[int, ...]] = {"logits/before": probe, "logits/after": probe}
    if config.layers and config.width:
        images = min(LAYERS_PROBE, config.test_examples)
        for name, shape in layer_shapes(config.width).items():
            shapes |= {f"layers/{when}/{name}": (images, *shape) for when in ("before", "after")}
    for name, shape in shapes_of(record.chapter, config.width).items():
        shapes[f"weights/{name}"] = shape
        if trainable(name):
            shapes[f"gradients/{name}"] = shape
    shapes["losses"] = (number_of_steps(config),)
    return shapes


def check_shapes(run: Run) -> tuple[bool, str]:
    """Whether the arrays have exactly the expected names and shapes; if not, which has not."""
    expected = expected_shapes(run.record)
    found = {name: array.shape for name, array in run.arrays.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            return False, f"{name} is {found.get(name)}, expected {expected.get(name)}"
        if run.arrays[name].dtype.kind != "f":
            return False, f"{name} holds {run.arrays[name].dtype}, which are no real numbers"
    return True, ""


def reference(runs: Sequence[Run]) -> Weights:
    """The entry-wise median of the runs: one that is wrong cannot move it far, and stands out."""
    medians: Weights = {}
    shapes = {name: each for run in runs for name, each in expected_shapes(run.record).items()}
    for name, shape in shapes.items():
        sound = [
            run.arrays[name].astype(np.float64)
            for run in runs
            if name in run.arrays
            and run.arrays[name].shape == shape
            and np.isfinite(run.arrays[name]).all()
        ]
        if sound:
            medians[name] = np.median(sound, axis=0)
    return medians


def numerical_checks(run: Run) -> dict[str, tuple[str, Tolerance]]:
    """The prefix and tolerance of each numerical check that a run of this length allows.

    Training makes more of rounding with every step, so a long run is held to its beginning, its
    accuracy and the course of its losses, not to its weights.
    """
    chapter, dtype = run.record.chapter, run.record.config.dtype
    limits = TOLERANCES[chapter].get(dtype)
    if limits is None:
        return {}
    if is_long(run):
        beginnings = ("forward", "gradient", "trajectory")
        return {name: (NUMERICAL[name], LONG[chapter][dtype][name]) for name in beginnings}
    tolerances = limits[min(most for most in limits if len(run.record.losses) <= most)]
    return {name: (prefix, tolerances[name]) for name, prefix in NUMERICAL.items()}


def beginning(run: Run) -> int:
    """The steps from the first on over which rounding stays rounding, in runs such as this one."""
    return max(TOLERANCES[run.record.chapter][run.record.config.dtype])


def is_long(run: Run) -> bool:
    """Whether the run goes on where rounding has been amplified."""
    return len(run.record.losses) > beginning(run)


def head(run: Run, arrays: Mapping[str, Array]) -> Weights:
    """The arrays, with the losses of the run's beginning alone."""
    return {**arrays, "losses": arrays["losses"][: beginning(run)]}


def epoch_means(losses: Array, steps: Sequence[int]) -> Array:
    """The mean loss of each epoch (epochs,), from that of every step."""
    ends = np.cumsum(steps)
    return np.array([part.mean() for part in np.split(losses, ends[:-1])])


def accuracy(record: Record) -> float:
    """The accuracy a run ends with; at a constant rate, of the later half of its epochs, at most 3.

    At the book's learning rate a single epoch's figure swings by several points.
    """
    settled = record.config.lr_decay == "linear"
    last = 1 if settled else min(3, math.ceil(len(record.epochs) / 2))
    return sum(epoch.test_accuracy for epoch in record.epochs[-last:]) / last


def accuracy_floor(record: Record) -> Tolerance | None:
    """The accuracy that a run of this preset has to reach; None where it proves nothing."""
    if record.config.steps is not None:
        return None
    return ACCURACY_FLOOR.get(setting(record))


def setting(record: Record) -> tuple[str, str, str]:
    """Where tolerances of accuracies stand: chapter, preset and data set."""
    return record.chapter, record.config.preset, record.data.name
