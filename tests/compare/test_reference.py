"""The reference: its gradients are those of its loss, and those that others derive by hand."""

import judge
import numpy as np
import pytest

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.scratch import LeNet
from common.data.minibatches import pixels
from common.data.synthetic import synthetic
from common.models.initial import initial_weights
from common.models.nets import LENET, resnet18_shapes, trainable
from common.parallel.shards import shard_bounds

IMAGES, LABELS, *_ = synthetic(12, 1)
X, Y = pixels(IMAGES, "float64"), LABELS


def start(chapter: str) -> Weights:
    """Weights of which none is 0 or 1, so that each is seen to count."""
    random = np.random.RandomState(1)
    drawn = initial_weights(LENET if chapter == "scratch" else resnet18_shapes(2), 0, "float64")
    return {
        name: 8 * values if values.ndim > 1 else np.abs(values + 0.1 * random.rand(*values.shape))
        for name, values in drawn.items()
    }


def far(found: Array, expected: Array) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_lenet_is_the_judges() -> None:
    found = numpy_nets.step("scratch", X, Y, start("scratch"), [(0, len(X))])
    loss, gradients = judge.loss_and_gradients(X, Y, start("scratch"))
    assert found.loss == pytest.approx(loss, rel=1e-13)
    assert found.gradients.keys() == gradients.keys()
    assert max(far(found.gradients[name], gradients[name]) for name in gradients) < 1e-12
    logits = numpy_nets.logits("scratch", X, start("scratch"))
    assert far(logits, judge.forward(X, start("scratch"))["logits"]) < 1e-12


def test_the_gradient_of_resnet_is_that_of_its_loss() -> None:
    weights, random = start("concise"), np.random.RandomState(2)
    bounds = shard_bounds(len(X), 3)
    right = numpy_nets.step("concise", X, Y, weights, bounds)
    assert right.gradients.keys() == {name for name in weights if trainable(name)}
    for name, gradient in right.gradients.items():
        along = random.standard_normal(gradient.shape)
        along /= np.abs(along).max()
        ends = []
        for side in (1e-6, -1e-6):
            moved = {**weights, name: weights[name] + side * along}
            logits, _ = numpy_nets.net_of("concise")(moved, bounds).forward(X)
            ends.append(numpy_nets.cross_entropy(logits, Y)[0])
        slope, scale = (ends[0] - ends[1]) / 2e-6, np.abs(gradient).sum() + 1e-3
        assert abs(slope - float((gradient * along).sum())) < 1e-4 * scale, name


def test_a_small_loss_of_large_logits_is_rounded_as_they_are() -> None:
    weights = start("scratch")
    weights["fc2.bias"] = np.where(np.arange(10) == 3, 50.0, 0.0)
    right = numpy_nets.step("scratch", X, np.full(len(X), 3), weights, [(0, len(X))])
    assert right.loss < 1e-6
    assert right.loss_scale > 40
    weights = initial_weights(LENET, 0, "float64")
    right = numpy_nets.step("scratch", X, Y, weights, [(0, len(X))])
    assert right.loss_scale == right.loss == pytest.approx(np.log(10), rel=1e-3)


def test_a_convolution_whose_gradient_cancels_is_rounded_as_what_it_adds_up() -> None:
    found = numpy_nets.step("concise", X, Y, start("concise"), [(0, len(X))])
    scales = {name: found.added[name] for name in found.gradients if "conv" in name}
    assert len(scales) == 40
    assert all(scale >= np.abs(found.gradients[name]).max() for name, scale in scales.items())
    name = "stage1.block1.conv1.weight"
    assert scales[name] > 1.5 * np.abs(found.gradients[name]).max()


def test_statistics_move_towards_those_of_the_first_shard() -> None:
    weights = start("concise")
    halves = numpy_nets.step("concise", X, Y, weights, [(0, 6), (6, 12)]).statistics
    first = numpy_nets.step("concise", X[:6], Y[:6], weights, [(0, 6)]).statistics
    whole = numpy_nets.step("concise", X, Y, weights, [(0, 12)]).statistics
    assert halves.keys() == {name for name in weights if not trainable(name)}
    for name, values in halves.items():
        assert np.allclose(values, first[name], rtol=0, atol=1e-15)
    assert any(far(values, whole[name]) > 1e-3 for name, values in halves.items())
    unmoved = numpy_nets.step("concise", X, Y, weights | whole, [(0, 12)]).statistics
    for name, values in whole.items():  # a tenth of the way, and then a tenth of what is left
        assert np.allclose(unmoved[name] - values, 0.9 * (values - weights[name]), atol=1e-12)


def test_a_unit_next_to_zero_is_in_doubt_and_its_flip_is_known() -> None:
    weights = {name: values.astype(np.float32) for name, values in start("scratch").items()}
    single = X.astype(np.float32)
    exact = LeNet(numpy_nets.doubled(weights))
    exact.forward(single.astype(np.float64))
    unit = int(np.abs(exact.relu_inputs[2][0]).argmin())
    input_of_unit = exact.relu_inputs[2][0, unit]
    weights["fc1.bias"][unit] -= np.float32(input_of_unit)  # now it is 0 but for rounding
    right = numpy_nets.step("scratch", single, Y, weights, [(0, len(X))])
    flips = numpy_nets.flips("scratch", single, Y, weights, [(0, len(X))])
    moved = [flip for flip in flips if np.abs(flip["fc1.bias"][unit]) > 0]
    assert moved
    opened = {
        name: reference_inputs > 0
        for name, reference_inputs in zip(("z1", "z2", "z3"), inputs(single, weights), strict=True)
    }
    opened["z3"][0, unit] ^= True
    _, expected = judge.loss_and_gradients(
        single.astype(np.float64), Y, numpy_nets.doubled(weights), opened
    )
    nearest = min(
        far(right.gradients["fc1.bias"] + flip["fc1.bias"], expected["fc1.bias"]) for flip in moved
    )
    assert nearest < 1e-12


def inputs(X: Array, weights: Weights) -> list[Array]:
    """The inputs of LeNet's ReLU units, in double precision."""
    net = LeNet(numpy_nets.doubled(weights))
    net.forward(X.astype(np.float64))
    return net.relu_inputs
