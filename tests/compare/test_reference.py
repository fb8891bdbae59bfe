"""The nets in NumPy against finite differences."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.numpy_gpt import MoE
from common.compare.numpy_nets import LeNet
from common.compare.numpy_pass import Unit
from common.compare.recorded_steps import explaining
from common.data.dataset import numbers, pixels
from common.data.sums import sums
from common.data.synthetic import synthetic
from common.models.nets import LENET, resnet18_shapes, trainable
from common.models.weights_file import initial_weights
from common.parallel.nets import Experts, gpt
from common.parallel.shards import shard_bounds

IMAGES, LABELS, *_ = synthetic(12, 1)
X, Y = pixels(IMAGES, "float64"), LABELS
TOKENS, NEXT, *_ = sums()
TEXTS, ANSWERS = numbers(TOKENS[:12], NEXT[:12], "float64")


def start(chapter: str) -> Weights:
    """Weights of which none is 0 or 1, so that each is seen to count."""
    random = np.random.RandomState(1)
    shapes = {"scratch": LENET, "concise": resnet18_shapes(2), "gpt": gpt(2).shapes}
    shapes["moe"] = gpt(2, Experts()).shapes
    drawn = initial_weights(shapes[chapter], 0, "float64")
    return {
        name: 8 * values if values.ndim > 1 else np.abs(values + 0.1 * random.rand(*values.shape))
        for name, values in drawn.items()
    }


def far(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize(
    ("chapter", "shards"),
    [("scratch", 1), ("concise", 3), ("gpt", 1), ("moe", 3)],
)
def test_the_gradient_is_that_of_the_loss(chapter: str, shards: int) -> None:
    weights, random = start(chapter), np.random.RandomState(2)
    examples, labels = (TEXTS, ANSWERS) if chapter in ("gpt", "moe") else (X, Y)
    net = partial(MoE, capacity=0.8, balance=0.5) if chapter == "moe" else chapter
    bounds = shard_bounds(len(examples), shards)
    right = numpy_nets.step(net, examples, labels, weights, bounds)
    assert right.gradients.keys() == {name for name in weights if trainable(name)}
    for name, gradient in right.gradients.items():
        along = random.standard_normal(gradient.shape)
        along /= np.abs(along).max()
        sides = ({**weights, name: weights[name] + side * along} for side in (1e-8, -1e-8))
        ends = [numpy_nets.step(net, examples, labels, x, bounds).loss for x in sides]
        slope, scale = (ends[0] - ends[1]) / 2e-8, np.linalg.norm(gradient) + 1e-2
        assert abs(slope - float((gradient * along).sum())) < 1e-5 * scale, name


def test_a_small_loss_of_large_logits_is_rounded_as_they_are() -> None:
    weights = start("scratch")
    weights["fc2.bias"] = np.where(np.arange(10) == 3, 50.0, 0.0)
    right = numpy_nets.step("scratch", X, np.full(len(X), 3), weights, [(0, len(X))])
    assert right.loss < 1e-6
    assert right.loss_scale > 40
    weights = initial_weights(LENET, 0, "float64")
    right = numpy_nets.step("scratch", X, Y, weights, [(0, len(X))])
    assert right.loss_scale == right.loss == pytest.approx(np.log(10), rel=1e-3)


def test_a_unit_next_to_zero_is_in_doubt_and_its_flip_is_known() -> None:
    weights, single = in_dtype(start("scratch"), np.float32), X.astype(np.float32)
    # Nearer still are thousands of units over blank parts, which have the bias, computed exactly.
    single[:, :, :12], weights["conv1.bias"][3] = 0, 1e-12
    net = LeNet(in_dtype(weights, np.float64))
    net.forward(single.astype(np.float64))
    unit = int(np.abs(net.relu_inputs[2][0]).argmin())
    weights["fc1.bias"][unit] -= np.float32(net.relu_inputs[2][0, unit])  # 0 but for rounding
    bounds = [(0, len(X))]
    doubt = numpy_nets.Doubt("scratch", single, Y, weights, bounds)
    gained_by = [doubt.gain([each])["fc1.bias"] for each in doubt.units]
    moved = [flip for flip in gained_by if np.abs(flip[unit]) > 0]
    sides = []
    for side in (-1e-7, 1e-7):  # shut and open
        wide = in_dtype(weights, np.float64)
        wide["fc1.bias"][unit] += side
        sides.append(numpy_nets.step("scratch", single, Y, wide, bounds).gradients["fc1.bias"])
    gained = sides[1] - sides[0]
    assert min(min(far(flip, gained), far(-flip, gained)) for flip in moved) < 1e-4


def test_two_units_change_more_together_than_each_by_itself() -> None:
    """The lower one's gradient comes through the upper one."""
    weights = initial_weights(LENET, seed=3, dtype="float64")
    doubt = numpy_nets.Doubt("scratch", X, Y, weights, [(0, len(X))])
    pair: list[Unit] = [(0, (0, 6, 5, 5)), (2, (0, 0))]
    each, both = [doubt.gain([unit]) for unit in pair], doubt.gain(pair)
    beside = {name: both[name] - each[0][name] - each[1][name] for name in both}
    scale = np.abs(both["conv1.bias"]).max()
    assert np.abs(beside["conv1.bias"]).max() > 1e-3 * scale
    assert not beside["fc2.weight"].any()

    def together(units: Sequence[Unit]) -> Array:
        return doubt.gain(units)["conv1.bias"].ravel()

    tried = {unit: together([unit]) for unit in pair}
    off = together(pair)
    chosen, gained = explaining(off, np.zeros_like(off), tried, 1e-9 * scale, together)
    assert ({*chosen}, gained.tolist()) == ({*pair}, off.tolist())


def in_dtype(weights: Weights, dtype: type) -> Weights:
    """The weights in another precision."""
    return {name: values.astype(dtype) for name, values in weights.items()}
