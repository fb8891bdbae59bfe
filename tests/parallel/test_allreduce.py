"""Every allreduce, in the framework under test: the sum, with the same bits on every device."""

from collections.abc import Sequence
from importlib import import_module
from itertools import product
from typing import Any

import judge
import numpy as np
import pytest
from scratch_steps import RATES, as_arrays, batches, far, place, start

from common.chapters.scratch import ScratchOptions
from common.parallel.schedules import SCHEDULES, Schedule, execute

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


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_takes_the_judges_steps(
    scratch: Any, all_devices: Sequence[Any], algorithm: str, k: int
) -> None:
    devices, steps = all_devices[:k], batches(3, 35, "float64")
    replicas = scratch.replicate(start("float64"), devices, ScratchOptions())
    _, expected = judge.loss_and_gradients(*steps[0], start("float64"))
    found = scratch.gradients(*steps[0], replicas, devices, ScratchOptions(algorithm))
    assert far(found, expected) < 1e-12
    for (X, y), lr in zip(steps, RATES, strict=False):
        scratch.train_batch(X, y, replicas, devices, lr, ScratchOptions(algorithm))
    _, expected = judge.sgd(start("float64"), steps, RATES[:3])
    assert far(scratch.export(replicas), expected) < 1e-12  # which checks that all are the same


def test_what_is_moved_is_what_the_record_tells(
    scratch: Any, collectives: Any, all_devices: Sequence[Any]
) -> None:
    for algorithm, k in product(SCHEDULES, (2, 3, 4, 5)):
        schedule, received = SCHEDULES[algorithm](k), [0] * k

        def watched(plan: Schedule, held: Any, receive: Any, *add: Any) -> None:
            def count(chunk: Any, target: int) -> Any:
                received[target] += chunk.shape[0]  # noqa: B023
                return receive(chunk, target)

            execute(plan, held, count, *add)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(collectives, "execute", watched)
            rows = np.ones((k, 60), np.float32)
            data = [{"w": row} for row in place(scratch, all_devices[:k], rows)]
            collectives.allreduce_by(algorithm, data)
        assert received == [arrived for _, arrived in schedule.traffic(60)]
