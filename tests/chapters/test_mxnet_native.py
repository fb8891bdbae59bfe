"""Where MXNet's own ways to split keep what, and what they move."""

from collections.abc import Sequence
from typing import Any

import pytest
from momentum_steps import numbers
from native_steps import by_star, told_of_moved
from scratch_steps import batches

from common.base.errors import RunError
from common.chapters.strategies import StrategiesOptions

pytestmark = pytest.mark.only("mxnet")


def made(strategies: Any, devices: Sequence[Any], name: str, **others: Any) -> Any:
    options = StrategiesOptions(name, native=True, schedule="naive", **others)
    return strategies.replicate(numbers(options), devices, options)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_stage_lies_on_its_device(
    strategies: Any, all_devices: Sequence[Any], count: int
) -> None:
    devices = all_devices[1 : 1 + count]  # none of them is where MXNet puts what it is not told
    trainer = made(strategies, devices, "pipeline", depth=1, microbatches=4)
    trainer.train_batch(*batches(1, 11, "float64")[0], 0.1, 0.9)
    for held in (trainer.params, trainer.grads, trainer.momenta):
        found = [{name.split(".")[0] for name in own} for own in held]
        assert found == list(map(set, trainer.plan.stages))
        for device, own in zip(devices, held, strict=True):
            assert {tensor.ctx for tensor in own.values()} == {device}
    assert sorted(size for _, size in trainer.executors) == [2, 3]
    for executor in trainer.executors.values():
        assert {tensor.ctx for tensor in executor.arg_arrays} == set(devices)
        assert executor.outputs[0].ctx == devices[-1]


@pytest.mark.parametrize(("name", "parts"), [("data", 1), ("pipeline", 4)])
def test_each_way_moves_what_the_page_says(
    strategies: Any, all_devices: Sequence[Any], name: str, parts: int
) -> None:
    trainer = made(strategies, all_devices[:2], name, microbatches=parts)
    found = trainer.moved(*batches(1, 12, "float64")[0])
    told = told_of_moved("mxnet")
    assert told.keys() == {"data", "pipeline"}
    sizes = {each.kind: each.size // 8 for each in found}
    assert (sizes, by_star(found, 2) // 8) == told[name]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_stages_send_what_the_plan_says(
    strategies: Any, all_devices: Sequence[Any], count: int
) -> None:
    options = StrategiesOptions("pipeline", native=True, schedule="naive", microbatches=4)
    trainer = strategies.replicate(numbers(options), all_devices[:count], options)
    found = trainer.moved(*batches(1, 11, "float64")[0])
    planned = options.usage(count, 11, 8).sent
    assert by_star(found, count) == sum(map(sum, planned.values()))


def test_a_copy_that_has_other_bits_is_named(strategies: Any, all_devices: Sequence[Any]) -> None:
    trainer = made(strategies, all_devices[:3], "data")
    trainer.params[2]["fc2.bias"] += 1
    with pytest.raises(RunError, match=r"fc2\.bias on device 2"):
        strategies.export(trainer)
