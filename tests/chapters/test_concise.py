"""The concise chapter, in the framework under test, against NumPy."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concise_steps
import numpy as np
import pytest
from concise_steps import RATES, WIDTH, far
from numpy_chapter import layers
from oracle import OneDevice
from workers import Worker

from common.base.arrays import Weights, part
from common.chapters.concise import BATCH_NORMS, ConciseOptions
from common.models.nets import layer_shapes, resnet18_shapes, trainable
from common.parallel.shards import shard_bounds

STEPS = concise_steps.batches("float64")
START = concise_steps.start("float64")
STEEP = {**START, "fc.weight": 100 * START["fc.weight"]}
"""Weights at which the gradient has a norm of some hundreds."""
DEVICES = 3

MODES = {
    "pytorch": ("ddp per-device", "fsdp sync"),
    "tensorflow": ("mirrored per-device",),
    "jax": ("sharding per-device", "zero3 sync"),
    "mxnet": ("device per-device",),
}
"""Wrappers, each with one of the ways to normalize."""

OTHERS = {"jax": "shard_map", "mxnet": "local"}
"""Wrappers of which only the steps are compared."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", MODES.get(metafunc.config.getoption("--framework"), ()))


def options_of(framework: str, mode: str) -> ConciseOptions:
    wrapper, batch_norm = mode.split()
    return concise_steps.options(framework, batch_norm, wrapper)


def trained(chapter: Any, devices: Sequence[Any], options: ConciseOptions) -> Weights:
    """Takes the steps: their losses, and the weights after them."""
    trainer = chapter.trainer(START, devices, options)
    return losses_of(trainer) | under("weights", trainer.export())


def losses_of(trainer: Any) -> Weights:
    """Takes the steps; returns their losses."""
    steps = zip(STEPS, RATES, strict=True)
    losses = [trainer.train_batch(*step, lr) for step, lr in steps]
    trainer.chapter.synchronize(trainer.replicas)
    return {"losses": np.array([float(loss) for loss in losses])}


def everything(chapter: Any, devices: Sequence[Any], options: ConciseOptions) -> Weights:
    """Takes the steps, and computes all other results around them."""
    (X, y), _, last = STEPS
    trainer = chapter.trainer(START, devices, options)
    arrays = {
        "logits/before": trainer.predict(X),
        **under("layers/before", trainer.activations(X)),
        **under("gradients", trainer.gradients(X, y)),
        **under("untouched", trainer.export()),
        **losses_of(trainer),
        # `export` may give all devices the first one's statistics, so it comes later.
        **under("own", trainer.save()),
        "logits/after": trainer.predict(X),
        **under("layers/after", trainer.activations(X)),
        "logits/one": trainer.predict(X[:1]),
        **under("weights", trainer.export()),
        "elements": np.array([elements(trainer.replicas, options.wrapper)]),
    }
    restored = chapter.trainer(START, devices, options)
    # Like a resumed run: PyTorch's DDP sums differently in its first pass.
    restored.gradients(*last)
    saved = trainer.save()
    restored.restore(saved)
    arrays |= under("saved", saved) | under("restored", restored.save())
    for when, chosen in (("on", trainer), ("resumed", restored)):
        chosen.train_batch(*last, RATES[0])
        arrays |= under(when, chosen.save())
    steep = chapter.trainer(STEEP, devices, options)
    steep.train_batch(X, y, RATES[0])
    return arrays | under("steep", steep.export())


def elements(replicas: Any, wrapper: str) -> int:
    """The elements of the weights on the first device, if the wrapper shards them."""
    if wrapper == "fsdp":
        return sum(weight.to_local().numel() for weight in replicas.net.parameters())
    if wrapper != "zero3":
        return 0
    leaves = importlib.import_module("jax").tree.leaves(replicas.params)
    return sum(leaf.addressable_shards[0].data.size for leaf in leaves)


def under(prefix: str, arrays: Weights) -> Weights:
    """The same arrays, with a prefix in their names."""
    return {f"{prefix}/{name}": values for name, values in arrays.items()}


@pytest.fixture(scope="session")
def computed(framework: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Weights]:
    """The backend's results in float64, by mode."""
    cases = {mode: (everything, options_of(framework, mode)) for mode in MODES[framework]}
    folder = tmp_path_factory.mktemp("steps")
    return Worker(framework, "concise", DEVICES, cases, folder).run()


@pytest.fixture
def arrays(computed: dict[str, Weights], mode: str) -> Weights:
    return computed[mode]


def one_device(mode: str, first: int = 0, weights: Weights = START) -> OneDevice:
    """The same training in NumPy, before its first step; its first shard is that of `first`."""

    def split(n: int) -> list[tuple[int, int]]:
        shards = shard_bounds(n, DEVICES if "per-device" in mode else 1)
        return shards[first:] + shards[:first]

    return OneDevice("concise", weights, split=split)


def largest_distance(computed: Weights, expected: Weights) -> float:
    assert computed.keys() == expected.keys()
    return max(far(computed[name], expected[name]) for name in expected)


def require_trained(arrays: Weights, mode: str) -> OneDevice:
    """Asserts that losses and weights are NumPy's; returns these."""
    right = one_device(mode)
    np.testing.assert_allclose(arrays["losses"], right.steps(STEPS, RATES), rtol=1e-11)
    assert largest_distance(part(arrays, "weights/"), right.weights) < 1e-10
    return right


def test_steps_logits_and_layers_are_those_of_numpy(arrays: Weights, mode: str) -> None:
    X, _ = STEPS[0]
    right = require_trained(arrays, mode)
    assert far(arrays["logits/before"], one_device(mode).logits(X)) < 1e-12
    assert far(arrays["logits/after"], right.logits(X)) < 1e-10
    assert far(arrays["logits/one"], right.logits(X[:1])) < 1e-10
    for when, weights in (("before", START), ("after", right.weights)):
        outputs = part(arrays, f"layers/{when}/")
        assert largest_distance(outputs, layers(X, weights)) < 1e-10
        assert outputs.keys() == layer_shapes(WIDTH).keys()


def test_weights_are_sharded_where_the_wrapper_says_so(arrays: Weights, mode: str) -> None:
    whole = sum(values.size for name, values in START.items() if trainable(name))
    most = 0.4 * whole if mode.startswith(("fsdp", "zero3")) else 0
    assert most / 2 <= arrays["elements"] <= most


def test_a_large_gradient_is_not_clipped(arrays: Weights, mode: str) -> None:
    right = one_device(mode, weights=STEEP)
    gradients = right.gradients(*STEPS[0])
    assert sum((grad**2).sum() for grad in gradients.values()) > 100**2
    right.step(*STEPS[0], RATES[0])
    assert largest_distance(part(arrays, "steep/"), right.weights) < 1e-10


def test_restored_replicas_are_those_that_were_saved(arrays: Weights, mode: str) -> None:
    for before, after in (("saved", "restored"), ("on", "resumed")):
        ours, theirs = part(arrays, f"{before}/"), part(arrays, f"{after}/")
        assert ours.keys() == theirs.keys() == resnet18_shapes(WIDTH).keys()
        assert [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()] == []
    statistics = part(arrays, "on/")["bn1.running_mean"]
    assert statistics.shape == (DEVICES, WIDTH)
    different = DEVICES if "per-device" in mode else 1
    assert len({row.tobytes() for row in statistics}) == different


def test_a_checkpoint_has_what_numpy_computes_and_each_device_s_running_statistics(
    arrays: Weights, mode: str
) -> None:
    """Any framework resumes from it. Running statistics are those of the second device."""
    right, saved = one_device(mode, 1), part(arrays, "own/")
    right.steps(STEPS, RATES)
    for name, values in right.weights.items():
        assert far(saved[name] if trainable(name) else saved[name][1], values) < 1e-10, name


def test_gradient_is_that_of_the_whole_minibatch_and_changes_nothing(
    arrays: Weights, mode: str
) -> None:
    expected = one_device(mode).gradients(*STEPS[0])
    gradients = part(arrays, "gradients/")
    assert gradients.keys() == expected.keys()
    largest = max(np.abs(values).max() for values in expected.values())
    for name, values in expected.items():
        # A bias before a batch norm has gradient 0, but for rounding.
        assert np.abs(gradients[name] - values).max() < 1e-12 * largest, name
    for name, values in START.items():
        assert np.array_equal(arrays[f"untouched/{name}"], values), name


@pytest.mark.only(*OTHERS)
@pytest.mark.parametrize("batch_norm", BATCH_NORMS)
def test_other_wrappers_take_the_same_steps(
    framework: str, tmp_path: Path, batch_norm: str
) -> None:
    mode = f"{OTHERS[framework]} {batch_norm}"
    cases = {mode: (trained, options_of(framework, mode))}
    arrays = Worker(framework, "concise", DEVICES, cases, tmp_path).run()
    require_trained(arrays[mode], mode)
