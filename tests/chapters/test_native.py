"""What native strategies refuse, and what their devices keep."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scratch_steps import batches, start
from workers import Worker

from common.backends.frameworks import NO_NATIVE
from common.backends.interface import DeviceRequest
from common.base.arrays import Weights
from common.base.errors import RequestError, RunError
from common.chapters.strategies import SCHEDULES, StrategiesOptions
from common.models.nets import LENET
from common.parallel.strategies import OF_ANY_NET
from common.settings.arguments import all_settings
from common.settings.config import Config
from frameworks.strategies.layouts import LAYOUTS

NUMBERS = sum(map(prod, LENET.values()))  # 129,068


def test_what_a_framework_lacks_is_refused_in_a_line(framework: str, strategies: Any) -> None:
    of_none = {"data": "there are no native versions in mxnet"}
    for lacking, why in NO_NATIVE.get(framework, of_none).items():
        strategy = lacking if lacking in OF_ANY_NET else "pipeline"
        order = {"schedule": lacking if lacking in SCHEDULES else "gpipe"}
        flags = {"strategy": strategy, "native": True} | (order if strategy == "pipeline" else {})
        with pytest.raises(RequestError, match=f"^--native --strategy {strategy}: {why}$"):
            Config.of(all_settings(framework, "strategies", flags), 2, "cpu")
    if framework == "pytorch":
        options = StrategiesOptions("pipeline", microbatches=1, native=True)
        with pytest.raises(RequestError, match="as there are stages, 2, or more"):
            strategies.launch(print, DeviceRequest(2, "cpu", 1), options)


def make_trainer(strategies: Any, devices: Sequence[Any], name: str, **others: Any) -> Any:
    options = StrategiesOptions(name, native=True, **others)
    return strategies.trainer(start("float64", options.shapes()), devices, options)


def parts(framework: str, tensor: Any) -> list[Any]:
    """The part of a tensor on each device."""
    if framework == "tensorflow":
        dtensor: Any = importlib.import_module("tensorflow.experimental.dtensor")
        return list(dtensor.unpack(tensor))
    return [shard.data for shard in tensor.addressable_shards]


@pytest.mark.only("jax", "tensorflow")
@pytest.mark.parametrize(
    ("name", "weights", "velocities"),
    [("data", 1, 1), ("zero1", 1, 1 / 3), ("zero3", 1 / 3, 1 / 3), ("tensor", 1 / 3, 1 / 3)],
)
def test_a_device_keeps_its_part(
    framework: str,
    strategies: Any,
    all_devices: Sequence[Any],
    name: str,
    weights: float,
    velocities: float,
) -> None:
    trainer = make_trainer(strategies, all_devices[:3], name)
    trainer.train_batch(*batches(1, 11, "float64")[0], 0.1)
    for kept, share in ((trainer.params, weights), (trainer.momenta, velocities)):
        tensors = [parts(framework, tensor) for tensor in kept.values()]
        for number, device in enumerate(all_devices[:3]):
            assert all(str(shards[number].device).endswith(str(device)) for shards in tensors)
            size = sum(prod(shards[number].shape) for shards in tensors)
            assert size == pytest.approx(share * NUMBERS, rel=0.03)


def keeping_all(
    framework: str, chapter: Any, devices: Sequence[Any], options: StrategiesOptions
) -> Weights:
    """Asserts that ZeRO-3 says so if it keeps whole weights."""
    weights = start("float64", options.shapes())
    if framework == "pytorch":
        wrong: Any = patch("frameworks.pytorch.native.zero.Zero3.reshard", False)
    else:
        whole = {**LAYOUTS, "zero3": replace(LAYOUTS["zero3"], weights="whole")}
        wrong = patch(f"frameworks.{framework}.native.program.LAYOUTS", whole)
    with wrong, pytest.raises(RunError, match="keeps 129,068 of 129,068 weights, by the plan"):
        chapter.trainer(weights, devices, options).train_batch(*batches(1, 11, "float64")[0], 0.1)
    return {"asserted": np.ones(1)}


@pytest.mark.only("pytorch", "jax", "tensorflow")
def test_zero3_that_keeps_whole_weights_is_no_run(framework: str, tmp_path: Path) -> None:
    case = partial(keeping_all, framework), StrategiesOptions("zero3", native=True)
    assert Worker(framework, "strategies", 2, {"zero3": case}, tmp_path).run()["zero3"]


@pytest.mark.only("jax", "tensorflow")
def test_a_copy_that_has_other_bits_is_named(
    framework: str, strategies: Any, all_devices: Sequence[Any]
) -> None:
    params = (trainer := make_trainer(strategies, all_devices[:2], "data")).params
    bias = params["fc2.bias"]
    copies = [copy + number for number, copy in enumerate(parts(framework, bias))]
    if framework == "jax":
        jax: Any = importlib.import_module("jax")
        pack = jax.make_array_from_single_device_arrays
        params["fc2.bias"] = pack(bias.shape, bias.sharding, copies)
    else:
        dtensor: Any = importlib.import_module("tensorflow.experimental.dtensor")
        params["fc2.bias"] = dtensor.pack(copies, dtensor.fetch_layout(bias))
    with pytest.raises(RunError, match=r"fc2\.bias on device 1"):
        trainer.export()
