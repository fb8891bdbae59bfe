"""Every native strategy of a framework, against NumPy on one device, the page and the plan."""

import importlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import native_steps
import numpy as np
import pytest
from native_steps import CASES, RATES, STEPS, Worker, cases
from native_traffic import by_star, traffic
from oracle import OneDevice
from safetensors.numpy import load_file
from scratch_steps import MOMENTUM, batches, far, start

from common.backends.devices import DeviceRequest
from common.backends.frameworks import NATIVE, NO_NATIVE
from common.base.arrays import part
from common.base.errors import RequestError, RunError
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions
from common.models.nets import LENET

LIMIT = 1e-12
NUMBERS = sum(map(prod, LENET.values()))  # 129,068
PAGE = Path(__file__).parents[2] / "docs/splitting.md"


@pytest.mark.parametrize("devices", [1, 3, 4])
def test_it_does_what_one_device_does_and_resumes_to_the_same_bits(
    framework: str, strategies: Any, devices: int, tmp_path: Path
) -> None:
    worker = Worker(native_steps.trained, framework, devices, tmp_path)
    strategies.launch(worker, DeviceRequest(devices, "cpu", 1), CASES["data"])
    for name, options in cases(framework, devices).items():
        found = load_file(tmp_path / f"{name}.safetensors")
        right = OneDevice("strategies", start("float64", options.shapes()), MOMENTUM)
        assert far(part(found, "gradients/"), right.gradients(*STEPS[0])) < LIMIT
        np.testing.assert_allclose(found["losses"], right.steps(STEPS, RATES), rtol=LIMIT)
        velocity = {f"momentum/{name}": values for name, values in right.velocity.items()}
        assert far(part(found, "after/"), {**right.weights, **velocity}) < LIMIT
        for n, logits in part(found, "logits/").items():
            exact = right.logits(STEPS[0][0][: int(n)])
            np.testing.assert_allclose(logits, exact, rtol=0, atol=LIMIT)


def test_what_a_framework_lacks_is_refused_in_a_line(framework: str, strategies: Any) -> None:
    two = DeviceRequest(2, "cpu", 1)
    for lacking, why in NO_NATIVE[framework].items():
        order = lacking if lacking in SCHEDULES else "gpipe"
        strategy = lacking if lacking in STRATEGIES else "pipeline"
        options = StrategiesOptions(strategy, native=True, schedule=order)
        with pytest.raises(RequestError, match=f"^--native --strategy {options.strategy}: {why}$"):
            strategies.launch(print, two, options)
    if framework == "pytorch":
        options = StrategiesOptions("pipeline", microbatches=1, native=True)
        with pytest.raises(RequestError, match="as there are stages, 2, or more"):
            strategies.launch(print, two, options)


def test_a_step_moves_what_the_page_says(framework: str, strategies: Any, tmp_path: Path) -> None:
    worker = Worker(native_steps.moved, framework, 2, tmp_path)
    strategies.launch(worker, DeviceRequest(2, "cpu", 1), CASES["data"])
    _, page = PAGE.read_text(encoding="utf-8").split("Tests count the native traffic")
    headings, _, *lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = {cells[0].strip(" |`"): cells for cells in lines[: len(NATIVE)]}
    column = [heading.lower() for heading in headings].index(framework)
    for name, options in cases(framework, 2).items():
        if name in STRATEGIES or framework == "mxnet":
            sizes, sent = (each.strip(" |") for each in rows[options.strategy][column : column + 2])
            told = dict(each.rsplit(" ", 1) for each in [f"sent {sent}", *sizes.split(", ")])
            expected = {k: float(v.replace(",", "")) for k, v in told.items()}
            assert load_file(tmp_path / f"{name}.safetensors") == expected, name
    assert {name for name, cells in rows.items() if cells[column] == "none"} == (
        set(NATIVE) - {options.strategy for options in cases(framework, 2).values()}
    )


def made(strategies: Any, devices: Sequence[Any], name: str, **others: Any) -> Any:
    options = StrategiesOptions(name, native=True, **others)
    return strategies.replicate(start("float64", options.shapes()), devices, options)


def parts(framework: str, tensor: Any) -> list[Any]:
    """What each device has of a tensor."""
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
    trainer = made(strategies, all_devices[:3], name)
    trainer.train_batch(*batches(1, 11, "float64")[0], 0.1, 0.9)
    for kept, share in ((trainer.params, weights), (trainer.momenta, velocities)):
        tensors = [parts(framework, tensor) for tensor in kept.values()]
        for number, device in enumerate(all_devices[:3]):
            assert all(str(each[number].device).endswith(str(device)) for each in tensors)
            size = sum(prod(each[number].shape) for each in tensors)
            assert size == pytest.approx(share * NUMBERS, rel=0.03)


@pytest.mark.only("jax", "tensorflow", "mxnet")
def test_a_copy_that_has_other_bits_is_named(
    framework: str, strategies: Any, all_devices: Sequence[Any]
) -> None:
    params = (trainer := made(strategies, all_devices[:2], "data")).params
    if framework == "mxnet":
        params[1]["fc2.bias"] += 1
    else:
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
        strategies.export(trainer)


@pytest.mark.only("mxnet")
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_stage_lies_on_its_device_and_sends_what_the_plan_says(
    strategies: Any, all_devices: Sequence[Any], count: int
) -> None:
    devices = all_devices[1 : 1 + count]  # none of them is where MXNet puts what it is not told
    chosen: dict[str, Any] = {"schedule": "naive", "depth": 1, "microbatches": 4}
    trainer = made(strategies, devices, "pipeline", **chosen)
    X, y = batches(1, 11, "float64")[0]
    trainer.train_batch(X, y, 0.1, 0.9)
    for held in (trainer.params, trainer.grads, trainer.momenta):
        found = [{name.split(".")[0] for name in own} for own in held]
        assert found == list(map(set, trainer.plan.stages))
        for device, own in zip(devices, held, strict=True):
            assert {tensor.ctx for tensor in own.values()} == {device}
    assert sorted(size for _, size in trainer.executors) == [2, 3]
    for executor in trainer.executors.values():
        assert {tensor.ctx for tensor in executor.arg_arrays} == set(devices)
        assert executor.outputs[0].ctx == devices[-1]
    planned = StrategiesOptions("pipeline", **chosen).usage(count, 11, 8).sent
    sent = by_star(traffic("mxnet", trainer, X, y), count)
    assert sent == sum(map(sum, planned.values()))
