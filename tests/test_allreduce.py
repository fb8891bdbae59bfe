"""Every allreduce, in the framework under test: the sum, with the same bits on every device."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from test_book_examples import place
from test_scratch import as_arrays

from common.schedules import SCHEDULES

ALGORITHMS = [*SCHEDULES, "native"]


@pytest.fixture(scope="session")
def collectives(framework: str, all_devices: Sequence[Any]) -> Any:
    return import_module(f"frameworks.{framework}.collectives")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", range(1, 6))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_the_sum(
    scratch: Any, collectives: Any, all_devices: Sequence[Any], algorithm: str, k: int, dtype: str
) -> None:
    for size in (1, 4, 60, 1001):
        rows = np.random.RandomState(size).standard_normal((k, size)).astype(dtype)
        data = [{"w": row} for row in place(scratch, all_devices[:k], rows)]
        summed = collectives.allreduce_by(algorithm, data)
        first, *others = as_arrays([each["w"] for each in summed])
        assert first.dtype == dtype
        exact = rows.astype("float64").sum(axis=0)
        bound = (k - 1) * np.finfo(dtype).eps * np.abs(rows.astype("float64")).sum(axis=0)
        assert (np.abs(first - exact) <= bound).all()
        assert all(first.tobytes() == other.tobytes() for other in others)
        for before, row in zip(as_arrays([each["w"] for each in data]), rows, strict=True):
            assert np.array_equal(before, row)
