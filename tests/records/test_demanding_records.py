"""A small record that asks for much work or memory, or for odd arrays, is refused.

Each was found by `python -m fuzz`, or in what it reads.
"""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.base.arrays import Array, Weights
from common.base.errors import RunError
from common.compare.collect import load
from common.models.weights_file import digest
from common.records.record import Record
from common.records.store import read_record, seal, write_record
from common.records.trust import contradiction, distrust
from common.settings.config import Config
from fuzz import seeds

SCRATCH, _, CONCISE, _ = (Record.model_validate_json(each) for each in seeds.records())


def sealed(record: Record, config: dict[str, Any], **changes: Any) -> Record:
    """The record with another configuration and whatever else, sealed anew."""
    told = Config.model_validate(record.config.model_dump() | config)
    record = record.model_copy(update={"config": told, **changes})
    return record.model_copy(update={"sha256": seal(record)})


@contextmanager
def little_memory() -> Iterator[None]:
    """Fails if more than 4 MiB are taken meanwhile."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"epochs": 10**7}, "has 4 losses, of 20000000"),
        ({"epochs": 10**7, "train_examples": 1}, "its data is 3 images"),
        ({"epochs": None, "steps": 10**7}, "has 4 losses, of 10000000"),
    ],
)
def test_epochs_that_it_does_not_have_take_no_memory(config: dict[str, Any], why: str) -> None:
    with little_memory():
        assert why in distrust(sealed(SCRATCH, config))


def test_epochs_are_counted_before_they_are_listed() -> None:
    record = sealed(SCRATCH, {"epochs": 10**7}, losses=[])
    with little_memory():
        assert "losses, of" in distrust(record)
    one = sealed(SCRATCH, {"epochs": None, "steps": 4, "batch_size": 3}, epochs=[])
    assert distrust(one) == "has the figures of 0 epochs, of 4"


def test_more_devices_than_a_run_takes_are_refused_before_their_allreduce_is_planned() -> None:
    names = [f"cpu:{number}" for number in range(2000)]
    with little_memory():
        why = distrust(sealed(SCRATCH, {"devices": 2000}, devices=names))
    assert why == "ran on 2000 devices, and a run takes 64 at most"


def test_a_net_whose_weights_are_not_there_is_not_drawn_from_its_seed() -> None:
    record = sealed(
        CONCISE, {"init_weights": None, "options": {"width": 1024, "wrapper": "sharding"}}
    )
    record = sealed(record, {}, traffic=record.config.traffic())
    with little_memory():
        assert distrust(record) == ""
        assert contradiction(record, {}) == ""


def test_a_net_whose_weights_are_there_is_drawn_from_its_seed(tmp_path: Path) -> None:
    record = sealed(CONCISE, {"init_weights": None})
    arrays: Weights = {
        f"weights/{name}": np.zeros(shape) for name, shape in record.config.shapes().items()
    }
    path = write_record(tmp_path, record, arrays)
    with pytest.raises(RunError, match="its initial weights are not those of seed 5"):
        load(path, read_record(path))


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        (np.zeros(()), np.zeros(())),
        (np.zeros(0), np.zeros((2, 0))),
        (np.zeros(0), np.zeros(0)),
        (np.zeros(2), np.zeros(2)),
        (np.zeros((1, 2)), np.zeros((2, 1, 2))),
    ],
)
def test_labels_of_another_shape_are_left_to_others(labels: Array, predictions: Array) -> None:
    assert contradiction(SCRATCH, {"test/labels": labels, "test/predictions": predictions}) == ""


SIGNALLING = np.frombuffer(bytes.fromhex("010080ff") * 2, "<f4")
"""NaN of the kind that arithmetic tells of."""


def test_numbers_of_any_kind_are_compared_in_silence() -> None:
    record = SCRATCH.model_copy(update={"initial_weights_sha256": digest({"w": SIGNALLING})})
    told = contradiction(record, {"trace/weights/0/w": SIGNALLING})
    assert told == ""
    both = {"test/labels": SIGNALLING, "test/predictions": np.stack([SIGNALLING] * 2)}
    assert "and 0 of its predictions are right" in contradiction(SCRATCH, both)


def test_initial_weights_are_no_complex_numbers() -> None:
    other = {
        "trace/weights/0/w": np.ones(2, np.float32),
        "trace/weights/0/z": np.ones(2, np.complex64),
    }
    record = SCRATCH.model_copy(update={"initial_weights_sha256": digest({"w": np.ones(2)})})
    assert contradiction(record, other) == ""
    assert "other weights" in contradiction(record, {"trace/weights/0/w": np.zeros(2)})
