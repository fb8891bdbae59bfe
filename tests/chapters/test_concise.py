"""The concise chapter, in the framework under test, against the judge."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concise_steps
import numpy as np
import numpy_concise
import pytest
import resnet_judge
from concise_steps import RATES, Steps, Trained, far, part

from common.base.arrays import Weights
from common.models.nets import layer_shapes, resnet18_shapes, trainable

# Every mode means ten seconds of compiling, or more. Plain `nox` has two devices, the grid four.
MODES = [(1, "per-device"), (3, "per-device"), (3, "sync")]


def farthest(found: Weights, expected: Weights) -> float:
    assert found.keys() == expected.keys()
    return max(far(found[name], expected[name]) for name in expected)


@pytest.fixture(scope="session", params=MODES, ids=lambda mode: f"{mode[0]}-{mode[1]}")
def mode(request: pytest.FixtureRequest) -> tuple[int, str]:
    """The number of devices, and what batch normalization sees."""
    found: tuple[int, str] = request.param
    return found


@pytest.fixture(scope="session")
def found(
    framework: str,
    concise: Any,
    all_devices: Sequence[Any],
    mode: tuple[int, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Weights:
    """What the backend computed in float64."""
    k, batch_norm = mode
    folder = tmp_path_factory.mktemp("steps")
    return Steps(framework, all_devices[:k], batch_norm, "float64", folder).run(concise)


def test_logits_are_those_of_the_running_statistics(found: Weights) -> None:
    X, _ = concise_steps.batches("float64")[0]
    expected = resnet_judge.logits(X, concise_steps.start("float64"))
    assert far(found["logits/before"], expected) < 1e-12


def test_restored_replicas_are_those_that_were_saved(found: Weights, mode: tuple[int, str]) -> None:
    k, batch_norm = mode
    for before, after in (("saved", "restored"), ("on", "resumed")):
        ours, theirs = part(found, f"{before}/"), part(found, f"{after}/")
        assert ours.keys() == theirs.keys() == resnet18_shapes(concise_steps.WIDTH).keys()
        assert [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()] == []
    statistics = part(found, "on/")["bn1.running_mean"]
    assert statistics.shape == (k, concise_steps.WIDTH)
    assert len({row.tobytes() for row in statistics}) == (k if batch_norm == "per-device" else 1)


def test_running_statistics_are_those_of_the_devices_own_shards(
    found: Weights, mode: tuple[int, str]
) -> None:
    split, own = concise_steps.split(mode[1], mode[0]), part(found, "own/")
    for device in range(min(2, mode[0])):  # the third one has no example in one step

        def its_own_first(n: int, place: int = device) -> list[tuple[int, int]]:
            return split(n)[place:] + split(n)[:place]

        steps = concise_steps.start("float64"), concise_steps.batches("float64"), RATES
        _, expected = resnet_judge.sgd(*steps, its_own_first)
        for name in (name for name in expected if not trainable(name)):
            assert far(own[name][device], expected[name]) < 1e-10, (name, device)


def test_gradient_is_that_of_the_whole_minibatch(found: Weights, mode: tuple[int, str]) -> None:
    X, y = concise_steps.batches("float64")[0]
    shards = concise_steps.split(mode[1], mode[0])(len(X))
    _, expected, _ = resnet_judge.loss_and_gradients(X, y, concise_steps.start("float64"), shards)
    gradients = part(found, "gradients/")
    assert gradients.keys() == expected.keys()
    largest = max(np.abs(values).max() for values in expected.values())
    for name, values in expected.items():
        # What feeds a batch norm through its bias alone has gradient 0, but for rounding.
        assert np.abs(gradients[name] - values).max() < 1e-12 * largest, name


def test_gradients_change_nothing(found: Weights) -> None:
    for name, values in concise_steps.start("float64").items():
        assert np.array_equal(found[f"untouched/{name}"], values), name


def test_steps_are_those_of_the_judge(found: Weights, mode: tuple[int, str]) -> None:
    steps = concise_steps.batches("float64")
    split = concise_steps.split(mode[1], mode[0])
    losses, expected = resnet_judge.sgd(concise_steps.start("float64"), steps, RATES, split)
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-11)
    assert farthest(part(found, "weights/"), expected) < 1e-10
    X = steps[0][0]
    assert far(found["logits/after"], resnet_judge.logits(X, expected)) < 1e-10
    assert far(found["logits/one"], resnet_judge.logits(X[:1], expected)) < 1e-10


def test_layers_are_those_of_the_judge(found: Weights, mode: tuple[int, str]) -> None:
    steps, start = concise_steps.batches("float64"), concise_steps.start("float64")
    split = concise_steps.split(mode[1], mode[0])
    _, trained = resnet_judge.sgd(start, steps, RATES, split)
    for when, weights in (("before", start), ("after", trained)):
        layers = part(found, f"layers/{when}/")
        assert farthest(layers, numpy_concise.layers(steps[0][0], weights)) < 1e-10
        assert layers.keys() == layer_shapes(concise_steps.WIDTH).keys()


@pytest.mark.parametrize(
    "wrapper",
    [
        pytest.param("shard_map", marks=pytest.mark.only("jax")),
        pytest.param("local", marks=pytest.mark.only("mxnet")),
    ],
)
@pytest.mark.parametrize(("worker", "batch_norm"), [(Steps, "per-device"), (Trained, "sync")])
def test_other_wrappers_take_the_same_steps(
    framework: str,
    concise: Any,
    all_devices: Sequence[Any],
    tmp_path: Path,
    wrapper: str,
    worker: type[Trained],
    batch_norm: str,
) -> None:
    steps = worker(framework, all_devices[:3], batch_norm, "float64", tmp_path, wrapper)
    found = steps.run(concise)
    minibatches, split = concise_steps.batches("float64"), concise_steps.split(batch_norm, 3)
    losses, expected = resnet_judge.sgd(concise_steps.start("float64"), minibatches, RATES, split)
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-11)
    assert farthest(part(found, "weights/"), expected) < 1e-10


def test_float32_differs_by_rounding(
    framework: str, concise: Any, all_devices: Sequence[Any], tmp_path: Path
) -> None:
    found = Steps(framework, all_devices[:2], "sync", "float32", tmp_path).run(concise)
    X, y = concise_steps.batches("float64")[0]
    weights, gradients = part(found, "weights/"), part(found, "gradients/")
    assert {values.dtype for values in weights.values()} == {np.dtype("float32")}
    start, split = concise_steps.start("float64"), concise_steps.split("sync", 2)
    assert far(found["logits/before"], resnet_judge.logits(X, start)) < 2e-5
    _, expected, _ = resnet_judge.loss_and_gradients(X, y, start, split(len(X)))
    largest = max(np.abs(values).max() for values in expected.values())
    for name, values in expected.items():  # measured: at most 8.7e-6
        assert np.abs(gradients[name] - values).max() < 5e-5 * largest, name
    _, trained = resnet_judge.sgd(start, concise_steps.batches("float64"), RATES, split)
    for name in (name for name in trained if "running" in name):  # measured: at most 4.2e-5
        assert far(weights[name], trained[name]) < 2e-4, name
