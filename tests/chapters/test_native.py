"""Every native strategy of a framework, against NumPy on one device."""

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
from oracle import OneDevice
from scratch_steps import MOMENTUM, batches, far, start
from workers import Worker

from common.backends.frameworks import NO_NATIVE
from common.backends.interface import DeviceRequest
from common.base.arrays import Array, Weights, part
from common.base.errors import RequestError, RunError
from common.chapters.strategies import SCHEDULES, StrategiesOptions
from common.models.nets import LENET
from common.parallel.strategies import OF_ANY_NET
from common.settings.arguments import all_settings
from common.settings.config import Config
from frameworks.strategies.layouts import LAYOUTS

STEPS: list[tuple[Array, Array]] = batches(2, 11, "float64")
STEPS += [(100 * X, y) for X, y in batches(1, 1, "float64")]
"""The last one leaves devices without an example, and a whole row of a mesh.

Its pixels are so large that clipping would change its gradient.
"""

RATES = (0.1, 0.05, 0.2)
LIMIT = 1e-12
NUMBERS = sum(map(prod, LENET.values()))  # 129,068

CASES = {
    name: StrategiesOptions(name, native=True, schedule="gpipe", microbatches=4)
    for name in OF_ANY_NET
}
CASES |= {x: replace(CASES["pipeline"], schedule=x) for x in SCHEDULES if x != "gpipe"}
ON_THREE = CASES | {"tensor, uneven": replace(CASES["tensor"], depth=1)}
ON_FOUR = {
    f"{name} on a mesh": replace(CASES[name], replicas=2)
    for name in ("pipeline", "naive", "tensor", "zero3")
}
CHOSEN = {1: {x: CASES[x] for x in ("pipeline", "naive", "zero3")}, 3: ON_THREE, 4: ON_FOUR}
"""What a framework does not support is left out."""


def trained(chapter: Any, devices: Sequence[Any], options: StrategiesOptions) -> Weights:
    """Asserts that a run that is resumed before the last has the same bits."""
    weights, ((X, y), *others) = start("float64", options.shapes()), STEPS
    trainer = chapter.trainer(weights, devices, options)
    grads = trainer.gradients(X, y)
    # The first step is one by hand.
    by_hand = StrategiesOptions(microbatches=1, depth=options.depth)
    single = chapter.trainer(weights, devices[:1], by_hand)
    losses = [float(single.train_batch(X, y, RATES[0]))]
    trainer.restore(single.save())
    for step, lr in zip(others, RATES[1:], strict=True):
        before = trainer.save()
        losses.append(float(trainer.train_batch(*step, lr)))
    after = trainer.save()
    single.restore(after)
    assert far(single.save(), after) == 0
    again = chapter.trainer(weights, devices, options)
    again.predict(STEPS[-1][0])  # it must not change the state
    again.restore(before)
    again.train_batch(*STEPS[-1], RATES[-1])
    resumed = again.save()
    assert [name for name in after if resumed[name].tobytes() != after[name].tobytes()] == []
    return {
        **{f"gradients/{name}": values for name, values in grads.items()},
        **{f"after/{name}": values for name, values in after.items()},
        "logits": trainer.predict(X[:2]),  # of which the third device has none
        "losses": np.array(losses),
    }


@pytest.mark.only("pytorch", "jax", "tensorflow")
@pytest.mark.parametrize("devices", CHOSEN)
def test_it_does_what_one_device_does_and_resumes_to_the_same_bits(
    framework: str, devices: int, tmp_path: Path
) -> None:
    chosen = {name: x for name, x in CHOSEN[devices].items() if not x.no_native(framework)}
    cases = {name: (trained, options) for name, options in chosen.items()}
    for name, arrays in Worker(framework, "strategies", devices, cases, tmp_path).run().items():
        options = chosen[name]
        right = OneDevice("strategies", start("float64", options.shapes()), MOMENTUM)
        assert far(part(arrays, "gradients/"), right.gradients(*STEPS[0])) < LIMIT
        np.testing.assert_allclose(arrays["losses"], right.steps(STEPS, RATES), rtol=LIMIT)
        velocity = {f"momentum/{name}": values for name, values in right.velocity.items()}
        assert far(part(arrays, "after/"), {**right.weights, **velocity}) < LIMIT
        exact = right.logits(STEPS[0][0][:2])
        assert np.abs(arrays["logits"] - exact).max() < LIMIT * np.abs(exact).max()


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
        chapter.trainer(weights, devices, options).train_batch(*STEPS[0], 0.1)
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
