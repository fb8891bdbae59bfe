"""What TensorFlow's own ways to split keep and move, and what they refuse."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from momentum_steps import numbers
from native_steps import by_star, told_of_moved
from scratch_steps import batches

from common.base.errors import RunError
from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.models.nets import LENET

pytestmark = pytest.mark.only("tensorflow")

NUMBERS = sum(map(prod, LENET.values()))  # 129,068
WAYS = [name for name in STRATEGIES if name != "pipeline"]


def made(strategies: Any, devices: Sequence[Any], name: str, **others: Any) -> Any:
    options = StrategiesOptions(name, native=True, **others)
    return strategies.replicate(numbers(options), devices, options)


@pytest.mark.parametrize("name", WAYS)
def test_programs_move_what_the_page_says(
    strategies: Any, all_devices: Sequence[Any], name: str
) -> None:
    trainer = made(strategies, all_devices[:2], name)
    before = trainer.weights()
    found = trainer.moved(*batches(1, 12, "float64")[0])
    sizes = {each.kind: each.size // 8 for each in found}
    told = told_of_moved("tensorflow")[name]
    assert (sizes, by_star(found, 2) // 8) == told
    assert all(np.array_equal(trainer.weights()[key], before[key]) for key in before)


def test_each_microbatch_moves_as_much(strategies: Any, all_devices: Sequence[Any]) -> None:
    once, thrice = (
        made(strategies, all_devices[:2], "data", microbatches=count).moved(
            *batches(1, 12, "float64")[0]
        )
        for count in (1, 3)
    )
    assert thrice[0].size == 3 * once[0].size


@pytest.mark.parametrize(
    ("name", "weights", "velocities"),
    [("data", 1, 1), ("zero1", 1, 1 / 3), ("zero3", 1 / 3, 1 / 3), ("tensor", 1 / 3, 1 / 3)],
)
def test_a_device_keeps_its_part(
    strategies: Any, all_devices: Sequence[Any], name: str, weights: float, velocities: float
) -> None:
    from tensorflow.experimental import dtensor

    trainer = made(strategies, all_devices[:3], name)
    trainer.train_batch(*batches(1, 11, "float64")[0], 0.1, 0.9)
    for kept, share in ((trainer.params, weights), (trainer.momenta, velocities)):
        parts = [dtensor.unpack(tensor) for tensor in kept.values()]
        for number, device in enumerate(all_devices[:3]):
            assert all(each[number].device.endswith(device) for each in parts)
            size = sum(int(np.prod(each[number].shape)) for each in parts)
            assert size == pytest.approx(share * NUMBERS, rel=0.03)


def test_a_copy_that_has_other_bits_is_named(strategies: Any, all_devices: Sequence[Any]) -> None:
    from tensorflow.experimental import dtensor

    trainer = made(strategies, all_devices[:2], "tensor")
    bias = trainer.params["fc2.bias"]
    copies = [copy + number for number, copy in enumerate(dtensor.unpack(bias))]
    trainer.params["fc2.bias"] = dtensor.pack(copies, dtensor.fetch_layout(bias))
    with pytest.raises(RunError, match=r"fc2\.bias on device 1"):
        strategies.export(trainer)
