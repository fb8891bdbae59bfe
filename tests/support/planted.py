"""Mistakes that people make with checkpoints and records, each planted in the real code."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy_concise import Net, NumpyConcise

from common.base import files
from common.base.arrays import Weights
from common.data.minibatches import Batch
from common.models.nets import trainable
from common.training.loop import Training, first_minibatches


class WithoutStatistics(NumpyConcise):
    """Its checkpoints hold the weights that are trained, and running statistics of a new net."""

    def save(self, net: Net) -> Weights:
        saved = super().save(net)
        return {
            name: values if trainable(name) else np.zeros_like(values) + name.endswith("var")
            for name, values in saved.items()
        }


class WithoutAnyStatistics(NumpyConcise):
    """Its checkpoints hold the weights that are trained, and nothing else."""

    def save(self, net: Net) -> Weights:
        return {name: values for name, values in super().save(net).items() if trainable(name)}


def in_place(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file where it is to lie, as most people do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    vars(files)["_finish"](path, path)


def plant_writing_in_place(patch: pytest.MonkeyPatch) -> None:
    """Files are written where they are to lie."""
    patch.setattr(files, "write_atomically", in_place)
    patch.setattr("common.models.weights_file.write_atomically", in_place)


def plant_a_forgotten_place(patch: pytest.MonkeyPatch) -> None:
    """A run that goes on begins with the first minibatches of its epoch again."""

    def again(self: Training, epoch: int, skip: int, steps: int) -> Iterator[Batch]:
        return islice(first_minibatches(self.config, self.data, epoch), steps - skip)

    patch.setattr(Training, "_minibatches", again)


def plant_a_forgotten_epoch(patch: pytest.MonkeyPatch) -> None:
    """A run that goes on counts its epochs from the first again: it shuffles as that one did."""

    def first(self: Training, epoch: int, skip: int, steps: int) -> Iterator[Batch]:
        begun = self.checkpoints.record.resumed if self.checkpoints else []
        return islice(first_minibatches(self.config, self.data, 0 if begun else epoch, skip), steps)

    patch.setattr(Training, "_minibatches", first)


def plant_a_replaced_record(patch: pytest.MonkeyPatch) -> None:
    """A record that is not complete takes the place of one that is."""
    patch.setattr("common.records.store.is_complete", lambda path: False)


def plant_no_second_name(patch: pytest.MonkeyPatch) -> None:
    """The tensors of a good record have one name alone while others are written."""
    patch.setattr("common.records.store.second_name", lambda path, name: None)
