"""The concise chapter, in the framework under test, against NumPy."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concise_steps
import numpy as np
import pytest
from concise_steps import RATES, Worker, everything, far, trained
from numpy_chapter import layers
from oracle import OneDevice

from common.base.arrays import Weights, part
from common.chapters.concise import BATCH_NORMS
from common.models.nets import layer_shapes, resnet18_shapes, trainable

Mode = tuple[int, str, str | None]
STEPS = concise_steps.batches("float64")
START = concise_steps.start("float64")

# Every mode means ten seconds of compiling, or more. The grid has one device, two and four.
MODES = [
    *((3, batch_norm, None) for batch_norm in BATCH_NORMS),
    *(
        pytest.param((3, batch_norm, wrapper), marks=pytest.mark.only(framework))
        for framework, wrapper in (("pytorch", "fsdp"), ("jax", "zero3"))
        for batch_norm in BATCH_NORMS
    ),
]


def one_device(batch_norm: str, k: int) -> OneDevice:
    """The same training in NumPy, before its first step."""
    return OneDevice("concise", START, split=concise_steps.split(batch_norm, k))


def farthest(found: Weights, expected: Weights) -> float:
    assert found.keys() == expected.keys()
    return max(far(found[name], expected[name]) for name in expected)


def require_trained(found: Weights, batch_norm: str, k: int) -> OneDevice:
    """Asserts that losses and weights are NumPy's; returns these."""
    right = one_device(batch_norm, k)
    np.testing.assert_allclose(found["losses"], right.steps(STEPS, RATES), rtol=1e-11)
    assert farthest(part(found, "weights/"), right.weights) < 1e-10
    return right


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
    folder, options = tmp_path_factory.mktemp("steps"), concise_steps.options(framework, *mode[1:])
    return Worker(everything, framework, all_devices[: mode[0]], options, folder).run(concise)


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

        right = OneDevice("concise", START, split=its_own_first)
        right.steps(STEPS, RATES)
        for name in (name for name in right.weights if not trainable(name)):
            assert far(own[name][device], right.weights[name]) < 1e-10, (name, device)


def test_gradient_is_that_of_the_whole_minibatch_and_changes_nothing(
    found: Weights, mode: Mode
) -> None:
    expected = one_device(mode[1], mode[0]).gradients(*STEPS[0])
    gradients = part(found, "gradients/")
    assert gradients.keys() == expected.keys()
    largest = max(np.abs(values).max() for values in expected.values())
    for name, values in expected.items():
        # What feeds a batch norm through its bias alone has gradient 0, but for rounding.
        assert np.abs(gradients[name] - values).max() < 1e-12 * largest, name
    for name, values in START.items():
        assert np.array_equal(found[f"untouched/{name}"], values), name


def test_steps_logits_and_layers_are_those_of_numpy(found: Weights, mode: Mode) -> None:
    X, _ = STEPS[0]
    right = require_trained(found, mode[1], mode[0])
    assert far(found["logits/before"], one_device(mode[1], mode[0]).logits(X)) < 1e-12
    assert far(found["logits/after"], right.logits(X)) < 1e-10
    assert far(found["logits/one"], right.logits(X[:1])) < 1e-10
    for when, weights in (("before", START), ("after", right.weights)):
        outputs = part(found, f"layers/{when}/")
        assert farthest(outputs, layers(X, weights)) < 1e-10
        assert outputs.keys() == layer_shapes(concise_steps.WIDTH).keys()


@pytest.mark.parametrize(
    ("wrapper", "work", "batch_norm"),
    [  # JAX's shard_map has synchronized statistics below
        pytest.param("shard_map", everything, "per-device", marks=pytest.mark.only("jax")),
        pytest.param("local", everything, "per-device", marks=pytest.mark.only("mxnet")),
        pytest.param("local", trained, "sync", marks=pytest.mark.only("mxnet")),
    ],
)
def test_other_wrappers_take_the_same_steps(
    framework: str,
    concise: Any,
    all_devices: Sequence[Any],
    tmp_path: Path,
    wrapper: str,
    work: Any,
    batch_norm: str,
) -> None:
    options = concise_steps.options(framework, batch_norm, wrapper)
    found = Worker(work, framework, all_devices[:3], options, tmp_path).run(concise)
    require_trained(found, batch_norm, 3)


@pytest.mark.only("jax")
def test_steps_with_fast_convolutions_are_those_of_numpy(
    concise: Any,
    all_devices: Sequence[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tests' nets are too narrow for them, so here every layer has one."""
    jax: Any = importlib.import_module("jax")
    monkeypatch.setattr("frameworks.jax.convolution.products_are_faster", lambda _: True)
    jax.clear_caches()
    options = concise_steps.options("jax", "sync", "shard_map")
    found = Worker(trained, "jax", all_devices[:3], options, tmp_path).run(concise)
    jax.clear_caches()
    require_trained(found, "sync", 3)
