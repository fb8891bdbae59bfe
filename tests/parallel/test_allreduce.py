"""Every allreduce, in the framework under test: the sum, with the same bits on every device."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scratch_steps import as_arrays, place

from common.chapters.scratch import ALLREDUCES, ScratchOptions
from common.parallel.schedules import SCHEDULES, Schedule, execute


def summed(scratch: Any, algorithm: str, data: Sequence[Any]) -> list[Any]:
    """The sum of tensors on each device, by a schedule or by the framework's own means."""
    if algorithm == "native":
        return list(scratch.collectives.native(data))
    return list(scratch.collectives.by_schedule(SCHEDULES[algorithm](len(data)), data))


@pytest.mark.parametrize(
    ("k", "dtype"), [(1, "float32"), (2, "float64"), (3, "float32"), (5, "float64")]
)
@pytest.mark.parametrize("algorithm", ALLREDUCES)
def test_every_algorithm_gives_the_sum(
    scratch: Any, all_devices: Sequence[Any], algorithm: str, k: int, dtype: str
) -> None:
    for shape in ((), (1,), (4,), (3, 4, 5), (1001,)):  # the first ones leave chunks empty
        rows = np.random.RandomState(k).standard_normal((k, *shape)).astype(dtype)
        data = place(scratch.listing, all_devices[:k], rows)
        first, *others = as_arrays(summed(scratch, algorithm, data))
        assert (first.dtype.name, first.shape) == (dtype, shape)
        exact = rows.astype("float64").sum(axis=0)
        bound = (k - 1) * np.finfo(dtype).eps * np.abs(rows.astype("float64")).sum(axis=0)
        assert (np.abs(first - exact) <= bound).all()
        assert len(others) == k - 1
        assert all(first.tobytes() == other.tobytes() for other in others)
        for before, row in zip(as_arrays(data), rows, strict=True):
            assert np.array_equal(before, row)


def test_the_books_star_is_that_of_the_listing(scratch: Any, all_devices: Sequence[Any]) -> None:
    for algorithm in ALLREDUCES:
        chosen = scratch.allreduce(ScratchOptions(algorithm), all_devices[:3])
        assert (chosen is scratch.listing.allreduce) == (algorithm == "star")


@pytest.mark.only("tensorflow")
def test_tensorflow_adds_in_the_order_of_the_devices(
    scratch: Any, all_devices: Sequence[Any]
) -> None:
    import tensorflow as tf

    def sums(rows: Any) -> Any:
        shards = []
        for i, device in enumerate(all_devices[:4]):
            with tf.device(device):  # only the third one lies where a sum can be written
                shards.append(tf.sqrt(rows[i]) if i == 2 else rows[i])
        return scratch.listing.allreduce(shards)

    program: Any = tf.function(sums, autograph=False)
    a, b, c, d = rows = np.random.RandomState(4).uniform(1, 2, (4, 1000))
    expected = a + b + np.sqrt(c) + d
    assert all(found.tobytes() == expected.tobytes() for found in as_arrays(program(rows)))


def test_what_is_moved_is_what_the_record_tells(scratch: Any, all_devices: Sequence[Any]) -> None:
    for algorithm, k in product(SCHEDULES, (2, 3, 4, 5)):
        schedule, received = SCHEDULES[algorithm](k), [0] * k

        def watched(plan: Schedule, held: Any, receive: Any, *add: Any) -> None:
            def count(chunk: Any, target: int) -> Any:
                received[target] += chunk.shape[0]  # noqa: B023
                return receive(chunk, target)

            execute(plan, held, count, *add)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scratch.collectives, "execute", watched)
            rows = np.ones((k, 60), np.float32)
            summed(scratch, algorithm, place(scratch.listing, all_devices[:k], rows))
        assert received == [arrived for _, arrived in schedule.traffic(60)]
