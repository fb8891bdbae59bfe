"""Every allreduce, in the framework under test."""

from collections.abc import Sequence
from textwrap import dedent
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scratch_steps import as_arrays
from started import python

from common.backends.loading import primitives
from common.chapters.scratch import ALLREDUCES
from common.judge.judgement import TEXTS, in_framework, judge
from common.scaling.measure import Laboratory


def summed(scratch: Any, algorithm: str, data: Sequence[Any]) -> list[Any]:
    """The sum on each device, by the listing, a schedule or natively."""
    if algorithm == "listing":
        return list(scratch.listing.allreduce(data))
    return list(Laboratory(scratch, ()).allreduce(algorithm, data)())


@pytest.mark.parametrize(
    ("k", "dtype"), [(1, "float32"), (2, "float64"), (3, "float32"), (5, "float64")]
)
@pytest.mark.parametrize("algorithm", ["listing", *ALLREDUCES])
def test_every_algorithm_rounds_once_for_each_addition_and_keeps_the_terms(
    scratch: Any, framework: str, all_devices: Sequence[Any], algorithm: str, k: int, dtype: str
) -> None:
    place = primitives(framework).place
    for shape in ((), (1,), (4,), (3, 4, 5), (1001,)):  # the first ones leave chunks empty
        rows = np.random.RandomState(k).standard_normal((k, *shape)).astype(dtype)
        data = [
            place(np.array(row), device) for row, device in zip(rows, all_devices, strict=False)
        ]
        first, *others = as_arrays(summed(scratch, algorithm, data))
        assert all(first.tobytes() == other.tobytes() for other in others)
        assert (first.dtype.name, first.shape) == (dtype, shape)
        exact = rows.astype("float64").sum(axis=0)
        bound = (k - 1) * np.finfo(dtype).eps * np.abs(rows.astype("float64")).sum(axis=0)
        assert (np.abs(first - exact) <= bound).all()
        assert all(np.array_equal(*both) for both in zip(as_arrays(data), rows, strict=True))


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


GROUPS = """
import tensorflow as tf
from frameworks.tensorflow.collectives import native

two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
# TensorFlow counts its groups from 1.
how = {"group_size": 2, "group_key": 1, "instance_key": 10**6, "subdiv_offsets": [0]}

@tf.function
def reduce():
    for device in ("CPU:0", "CPU:1"):
        with tf.device(device):
            tf.raw_ops.CollectiveReduce(input=tf.ones(1), merge_op="Add", final_op="Id", **how)

reduce()
print(native([tf.ones(1)])[0].numpy())
"""


@pytest.mark.only("tensorflow")
def test_a_group_of_tensorflow_itself_has_another_key() -> None:
    """As one of DTensor's, in the same process."""
    done = python("-c", GROUPS)
    assert done.stdout.strip() == "[1.]", done.stderr
