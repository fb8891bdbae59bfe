"""What JAX's own ways to split keep and move, and what they refuse."""

from collections.abc import Sequence
from math import prod
from typing import Any

import pytest
from momentum_steps import numbers
from native_steps import by_star, told_of_moved
from scratch_steps import batches

from common.base.errors import RunError
from common.chapters.strategies import STRATEGIES, StrategiesOptions
from common.models.nets import LENET

pytestmark = pytest.mark.only("jax")

NUMBERS = sum(map(prod, LENET.values()))  # 129,068


def made(strategies: Any, devices: Sequence[Any], name: str, **others: Any) -> Any:
    options = StrategiesOptions(name, native=True, schedule="gpipe", **others)
    return strategies.replicate(numbers(options), devices, options)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_program_moves_what_the_page_says(
    strategies: Any, all_devices: Sequence[Any], name: str
) -> None:
    parts = 4 if name == "pipeline" else 1
    trainer = made(strategies, all_devices[:2], name, microbatches=parts)
    found = trainer.moved(*batches(1, 12, "float64")[0])
    sizes = {each.kind: each.size // 8 for each in found}
    assert (sizes, by_star(found, 2) // 8) == told_of_moved("jax")[name]


@pytest.mark.parametrize(
    ("name", "kept"), [("data", 1), ("zero1", 1), ("zero3", 1 / 3), ("tensor", 1 / 3)]
)
def test_a_device_keeps_its_part_of_the_weights(
    strategies: Any, all_devices: Sequence[Any], name: str, kept: float
) -> None:
    trainer = made(strategies, all_devices[:3], name)
    sizes = [t.addressable_shards[0].data.size for t in trainer.params.values()]
    assert sum(sizes) == pytest.approx(kept * NUMBERS, rel=0.03)


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
