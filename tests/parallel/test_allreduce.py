"""Every allreduce, in the framework under test."""

from collections.abc import Sequence
from functools import partial
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scratch_steps import as_arrays

from common.backends.loading import primitives
from common.chapters.scratch import ALLREDUCES
from common.judge.judgement import TEXTS, in_framework, judge
from common.parallel.schedules import SCHEDULES

BOOK = """
def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += to(data[i], data[0].device)
    for i in range(1, len(data)):
        {writes} = to(data[0], data[i].device)
"""
"""As in the book, and as readers broke it."""


def summed(scratch: Any, algorithm: str, data: Sequence[Any]) -> list[Any]:
    """The sum on each device, by the listing, a schedule or natively."""
    if algorithm == "listing":
        return list(scratch.listing.allreduce(data))
    if 0 in tuple(data[0].shape) and algorithm == "native":
        return list(data)  # TensorFlow's ends the process
    if algorithm == "native":
        return list(scratch.collectives.native(data))
    return list(scratch.collectives.by_schedule(SCHEDULES[algorithm](len(data)), data))


@pytest.mark.parametrize("algorithm", ["listing", *ALLREDUCES])
def test_every_algorithm_gives_the_sum(
    scratch: Any, framework: str, all_devices: Sequence[Any], algorithm: str
) -> None:
    judgement = judge(
        "allreduce", partial(summed, scratch, algorithm), in_framework(framework, all_devices)
    )
    assert judgement.right, judgement.text


@pytest.mark.parametrize(
    ("k", "dtype"), [(1, "float32"), (2, "float64"), (3, "float32"), (5, "float64")]
)
@pytest.mark.parametrize("algorithm", ["listing", *ALLREDUCES])
def test_it_rounds_once_for_each_addition_and_keeps_the_terms(
    scratch: Any, framework: str, all_devices: Sequence[Any], algorithm: str, k: int, dtype: str
) -> None:
    place = primitives(framework).place
    for shape in ((), (1,), (4,), (3, 4, 5), (1001,)):  # the first ones leave chunks empty
        rows = np.random.RandomState(k).standard_normal((k, *shape)).astype(dtype)
        data = [
            place(np.array(row), device) for row, device in zip(rows, all_devices, strict=False)
        ]
        first, *_ = as_arrays(summed(scratch, algorithm, data))
        assert (first.dtype.name, first.shape) == (dtype, shape)
        exact = rows.astype("float64").sum(axis=0)
        bound = (k - 1) * np.finfo(dtype).eps * np.abs(rows.astype("float64")).sum(axis=0)
        assert (np.abs(first - exact) <= bound).all()
        assert all(np.array_equal(*both) for both in zip(as_arrays(data), rows, strict=True))


@pytest.mark.only("pytorch")
@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        ("data[i][:]", "right: every device gets the sum, with the same bits, over 1 to 4 devices"),
        ("data[i]", "wrong: at 2 devices, size 1, float64: device 1 has the values of 1 only"),
    ],
)
def test_the_books_allreduce_writes_into_arrays(
    framework: str, all_devices: Sequence[Any], writes: str, expected: str
) -> None:
    names: dict[str, Any] = {"to": primitives(framework).copy_to}
    exec(BOOK.format(writes=writes), names)
    judgement = judge("allreduce", names["allreduce"], in_framework(framework, all_devices[:4]))
    assert judgement.text.startswith(expected)


@pytest.mark.only("pytorch")
@pytest.mark.parametrize("kind", ["model", "step"])
def test_the_examples_of_help_are_right(kind: str) -> None:
    names: dict[str, Any] = {}
    for example in ("model", "step"):
        exec(dedent(TEXTS[example]["protocol"].partition("\n\n")[2]), names)
    candidate = SimpleNamespace(**names) if kind == "step" else names["model"]
    for dtype in ("float64", "float32"):
        judgement = judge(kind, candidate, in_framework("pytorch", ["cpu"], dtype=dtype))
        assert judgement.right, judgement.text


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
