"""The concise chapter, in the framework under test, against NumPy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concise_steps
import numpy as np
import numpy_concise
import oracle
import pytest
from concise_steps import RATES, Steps, Trained, far

from common.base.arrays import Weights, part
from common.chapters.concise import BATCH_NORMS
from common.models.nets import layer_shapes, resnet18_shapes, trainable

Mode = tuple[int, str, str | None]

# Every mode means ten seconds of compiling, or more. The grid has one device, two and four.
MODES = [
    *((3, batch_norm, None) for batch_norm in BATCH_NORMS),
    *(
        pytest.param((3, batch_norm, wrapper), marks=pytest.mark.only(framework))
        for framework, wrapper in (("pytorch", "fsdp"), ("jax", "zero3"))
        for batch_norm in BATCH_NORMS
    ),
]


def farthest(found: Weights, expected: Weights) -> float:
    assert found.keys() == expected.keys()
    return max(far(found[name], expected[name]) for name in expected)


@pytest.fixture(
    scope="session", params=MODES, ids=lambda mode: "-".join(map(str, filter(None, mode)))
)
def mode(request: pytest.FixtureRequest) -> Mode:
    """The number of devices, what batch normalization sees, and the wrapper if not the default."""
    found: Mode = request.param
    return found


@pytest.fixture(scope="session")
def found(
    framework: str,
    concise: Any,
    all_devices: Sequence[Any],
    mode: Mode,
    tmp_path_factory: pytest.TempPathFactory,
) -> Weights:
    """What the backend computed in float64."""
    k, batch_norm, wrapper = mode
    folder = tmp_path_factory.mktemp("steps")
    return Steps(framework, all_devices[:k], batch_norm, "float64", folder, wrapper).run(concise)


@pytest.fixture(scope="session")
def judged(mode: Mode) -> tuple[list[float], Weights]:
    """The losses, and the weights after the last step, as NumPy computes them."""
    start, steps = concise_steps.start("float64"), concise_steps.batches("float64")
    return oracle.sgd("concise", start, steps, RATES, concise_steps.split(mode[1], mode[0]))


def test_logits_are_those_of_the_running_statistics(found: Weights) -> None:
    X, _ = concise_steps.batches("float64")[0]
    expected = oracle.logits("concise", X, concise_steps.start("float64"))
    assert far(found["logits/before"], expected) < 1e-12


def test_restored_replicas_are_those_that_were_saved(found: Weights, mode: Mode) -> None:
    k, batch_norm, _ = mode
    for before, after in (("saved", "restored"), ("on", "resumed")):
        ours, theirs = part(found, f"{before}/"), part(found, f"{after}/")
        assert ours.keys() == theirs.keys() == resnet18_shapes(concise_steps.WIDTH).keys()
        assert [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()] == []
    statistics = part(found, "on/")["bn1.running_mean"]
    assert statistics.shape == (k, concise_steps.WIDTH)
    assert len({row.tobytes() for row in statistics}) == (k if batch_norm == "per-device" else 1)


def test_running_statistics_are_those_of_the_devices_own_shards(found: Weights, mode: Mode) -> None:
    split, own = concise_steps.split(mode[1], mode[0]), part(found, "own/")
    for device in range(min(2, mode[0])):  # the third one has no example in one step

        def its_own_first(n: int, place: int = device) -> list[tuple[int, int]]:
            return split(n)[place:] + split(n)[:place]

        steps = concise_steps.start("float64"), concise_steps.batches("float64"), RATES
        _, expected = oracle.sgd("concise", *steps, its_own_first)
        for name in (name for name in expected if not trainable(name)):
            assert far(own[name][device], expected[name]) < 1e-10, (name, device)


def test_gradient_is_that_of_the_whole_minibatch(found: Weights, mode: Mode) -> None:
    X, y = concise_steps.batches("float64")[0]
    shards = concise_steps.split(mode[1], mode[0])(len(X))
    start = concise_steps.start("float64")
    _, expected, _ = oracle.loss_and_gradients("concise", X, y, start, shards)
    gradients = part(found, "gradients/")
    assert gradients.keys() == expected.keys()
    largest = max(np.abs(values).max() for values in expected.values())
    for name, values in expected.items():
        # What feeds a batch norm through its bias alone has gradient 0, but for rounding.
        assert np.abs(gradients[name] - values).max() < 1e-12 * largest, name


def test_gradients_change_nothing(found: Weights) -> None:
    for name, values in concise_steps.start("float64").items():
        assert np.array_equal(found[f"untouched/{name}"], values), name


def test_steps_are_those_of_numpy(found: Weights, judged: tuple[list[float], Weights]) -> None:
    losses, expected = judged
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-11)
    assert farthest(part(found, "weights/"), expected) < 1e-10
    X, _ = concise_steps.batches("float64")[0]
    assert far(found["logits/after"], oracle.logits("concise", X, expected)) < 1e-10
    assert far(found["logits/one"], oracle.logits("concise", X[:1], expected)) < 1e-10


def test_layers_are_those_of_numpy(found: Weights, judged: tuple[list[float], Weights]) -> None:
    X, _ = concise_steps.batches("float64")[0]
    for when, weights in (("before", concise_steps.start("float64")), ("after", judged[1])):
        layers = part(found, f"layers/{when}/")
        assert farthest(layers, numpy_concise.layers(X, weights)) < 1e-10
        assert layers.keys() == layer_shapes(concise_steps.WIDTH).keys()


@pytest.mark.parametrize(
    ("wrapper", "worker", "batch_norm"),
    [  # JAX's shard_map has synchronized statistics in test_convolution.py
        pytest.param("shard_map", Steps, "per-device", marks=pytest.mark.only("jax")),
        pytest.param("local", Steps, "per-device", marks=pytest.mark.only("mxnet")),
        pytest.param("local", Trained, "sync", marks=pytest.mark.only("mxnet")),
    ],
)
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
    start = concise_steps.start("float64")
    losses, expected = oracle.sgd("concise", start, minibatches, RATES, split)
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-11)
    assert farthest(part(found, "weights/"), expected) < 1e-10
