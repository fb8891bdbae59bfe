"""What JAX's own ways to split keep and move, and what they refuse."""

from collections.abc import Sequence
from math import prod
from typing import Any

import pytest
from momentum_steps import numbers
from scratch_steps import batches

from common.base.errors import RequestError, RunError
from common.chapters.strategies import StrategiesOptions
from common.models.nets import LENET

pytestmark = pytest.mark.only("jax")

NUMBERS = sum(map(prod, LENET.values()))  # 129,068
ALONG = 800 + 10 + 4050  # of an image, the numbers that tensor parallelism sums


def made(strategies: Any, devices: Sequence[Any], name: str, **others: Any) -> Any:
    options = StrategiesOptions(name, native=True, schedule="gpipe", **others)
    return strategies.replicate(numbers(options), devices, options)


# In `data`, the loss is a number more.
@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        ("data", "all-reduce", NUMBERS + 1),
        ("tensor", "all-reduce", 16 * ALONG),
        ("zero1", "all-gather", NUMBERS),
        ("zero3", "all-gather", 2 * NUMBERS - 10),  # the last bias is not needed on the way back
        ("pipeline", "send", 2 * 5 * 3380 * 4),  # 4 microbatches of 4, and a tick
    ],
)
def test_a_program_moves_what_its_layouts_ask_for(
    strategies: Any, all_devices: Sequence[Any], name: str, kind: str, count: int
) -> None:
    trainer = made(strategies, all_devices[:2], name, microbatches=4 if name == "pipeline" else 1)
    found = {each.kind: each.size for each in trainer.moved(*batches(1, 16, "float64")[0])}
    assert found[kind] == 8 * count


@pytest.mark.parametrize(
    ("name", "kept"), [("data", 1), ("zero1", 1), ("zero3", 1 / 3), ("tensor", 1 / 3)]
)
def test_a_device_keeps_its_part_of_the_weights(
    strategies: Any, all_devices: Sequence[Any], name: str, kept: float
) -> None:
    trainer = made(strategies, all_devices[:3], name)
    sizes = [t.addressable_shards[0].data.size for t in trainer.params.values()]
    assert sum(sizes) == pytest.approx(kept * NUMBERS, rel=0.03)


@pytest.mark.parametrize("schedule", ["1f1b", "naive"])
def test_another_order_of_a_pipeline_is_refused(
    strategies: Any, all_devices: Sequence[Any], schedule: str
) -> None:
    options = StrategiesOptions("pipeline", native=True, schedule=schedule)
    with pytest.raises(RequestError, match="ask for --schedule gpipe"):
        strategies.replicate(numbers(options), all_devices[:2], options)


def test_a_copy_that_has_other_bits_is_named(strategies: Any, all_devices: Sequence[Any]) -> None:
    import jax

    trainer = made(strategies, all_devices[:2], "tensor")
    bias = trainer.params["fc2.bias"]
    copies = [shard.data + number for number, shard in enumerate(bias.addressable_shards)]
    trainer.params["fc2.bias"] = jax.make_array_from_single_device_arrays(
        bias.shape, bias.sharding, copies
    )
    with pytest.raises(RunError, match=r"fc2\.bias on device 1"):
        strategies.export(trainer)
