"""What of a run is compared, and how strictly."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare.limits import LIMITS, Tolerance, Tolerances
from common.compare.planned import suite_of
from common.records.record import Record
from common.records.trace import expected_arrays, traced_steps


@dataclass(frozen=True)
class Run:
    """A record that can be trusted, with its tensors and, as `losses`, the loss of every step."""

    record: Record
    arrays: Weights

    @property
    def name(self) -> str:
        """What its files are called: no other run of its folder has that name."""
        return self.record.name()

    @property
    def devices(self) -> int:
        """The number of devices it ran on."""
        return self.record.config.devices

    @property
    def shards(self) -> int | None:
        """How many shards are normalized each for itself: see `Config.shards`."""
        return self.record.config.shards()


NUMERICAL: Final = {
    "forward": "logits/before",
    "gradient": "gradients/",
    "trajectory": "losses",
    "weights": "weights/",
    "outcome": "logits/after",
}
"""What each numerical check compares: the arrays whose names start so."""

LAYERS: Final = {"layers": "layers/before/", "layers_after": "layers/after/"}
"""The same for the outputs of layers, of runs with `--layers`."""

ENDS: Final = ("weights", "outcome", "layers_after")
"""Checks that long runs do not have: training amplifies rounding with every step."""


def check_shapes(run: Run) -> tuple[str, str]:
    """The first array without the expected name, shape and type, and why; or nothing."""
    expected = expected_arrays(run.record)
    found = {name: (array.shape, str(array.dtype)) for name, array in run.arrays.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            there, due = (
                f"{each[1]} {each[0]}" if each else "missing"
                for each in (found.get(name), expected.get(name))
            )
            return name, f"{name} is {there}, expected {due}"
    return "", ""


def allowed(run: Run) -> Tolerances:
    """How far each quantity of a run may be off, by name; empty where its dtype has no limits."""
    limits, dtype = LIMITS[run.record.chapter], run.record.config.dtype
    most = limits.tolerances.get(dtype, {})
    if not most or not is_long(run):
        return most
    return {k: v for k, v in (most | limits.long.get(dtype, {})).items() if k not in ENDS}


def numerical_checks(run: Run) -> dict[str, tuple[str, Tolerance]]:
    """The prefix and tolerance of each numerical check that runs of one setting allow."""
    limits = allowed(run)
    return {name: (k, limits[name]) for name, k in NUMERICAL.items() if name in limits}


def beginning(run: Run) -> int:
    """The number of steps over which rounding stays rounding, in runs such as this one.

    In float32 that is known only of the suites; else the first step is certain.
    """
    config = run.record.config
    known = config.dtype == "float64" or suite_of(config) is not None or not traced_steps(config)
    return LIMITS[run.record.chapter].beginning if known else 1


def is_long(run: Run) -> bool:
    """Whether the run is so long that its steps have amplified rounding."""
    return len(run.record.losses) > beginning(run)


def head(run: Run, arrays: Mapping[str, Array]) -> Weights:
    """The arrays, with the losses of only the run's beginning."""
    return {**arrays, "losses": arrays.get("losses", np.empty(0))[: beginning(run)]}


def curve(run: Run, losses: Array) -> Weights:
    """The mean loss of each epoch of a run (epochs,), of `losses` (steps,)."""
    ends = np.cumsum([epoch.steps for epoch in run.record.epochs])
    return {"losses by epoch": np.array([part.mean() for part in np.split(losses, ends[:-1])])}


def accuracy(record: Record) -> float:
    """The accuracy a run ends with; at a constant rate, of the later half of its epochs, at most 3.

    At the book's learning rate a single epoch's figure swings by several points.
    """
    settled = record.config.lr_decay == "linear"
    last = 1 if settled else min(3, math.ceil(len(record.epochs) / 2))
    return sum(epoch.test_accuracy for epoch in record.epochs[-last:]) / last
