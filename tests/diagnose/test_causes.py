"""Which mistake fits what a step did, and that none fits what is no such mistake."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.diagnose.hints import loss_hint, statistics_hint
from common.diagnose.mistakes import Update, mistake, weighted, wrong_logits
from common.diagnose.suspects import Divergence, most_telling
from common.judge.nets import examples
from common.models.nets import LENET, Shapes, resnet18_shapes, trainable
from common.parallel.shards import shard_bounds

N = 11
SIDES = {"bn1.ru": 28, "stage1": 28, "stage2": 14, "stage3": 7, "stage4": 4}
"""The pixels along a side of what batch normalization gets, by the beginning of its name."""


def an_update(shapes: Shapes, seed: int = 0) -> Update:
    """The right update of a step with momentum; a factor of 3 may be of devices or of stages."""
    random = np.random.RandomState(seed)
    weights = {name: 0.1 * random.standard_normal(shape) for name, shape in shapes.items()}
    weights |= {name: abs(values) + 1 for name, values in weights.items() if "var" in name}
    X, y = examples(N + seed, "float64")
    counts = {"devices": 3, "microbatches": 2, "stages": 3}
    chapter = "scratch" if shapes is LENET else "concise"
    update = Update(chapter, X[:N], y[:N], weights, {}, counts=counts, full=20, rounding=1e-8)
    grads = update.exact().gradients
    carried = {name: random.standard_normal(grad.shape) for name, grad in grads.items()}
    return replace(update, applied=grads, carried=carried if shapes is LENET else {})


def weighing(weights: Any, update: Update) -> Weights:
    """The gradient if examples count so often."""
    bounds = shard_bounds(N, update.shards)
    net = numpy_nets.NETS[update.chapter](update.weights, bounds)
    _, d = numpy_nets.cross_entropy(net.forward(update.X), update.y)
    net.backward(d * np.asarray(weights)[:, None])
    return net.gradients


def means(k: int) -> list[float]:
    """How often examples count in the mean of the means of k shards."""
    return [N / k / (b - a) for a, b in shard_bounds(N, k) for _ in range(a, b)]


LAST, RIGHT = an_update(LENET, 1), an_update(LENET)
OLD, G = replace(RIGHT, weights=LAST.weights), RIGHT.applied
BLANK = replace(RIGHT, X=0 * RIGHT.X[:1], y=0 * RIGHT.y[:1]).exact().gradients
COUNTED: dict[str, Any] = {
    "the gradient is the right one × 3, the number of devices or stages": [3] * N,
    "the gradient is the right one ÷ 2, the number of microbatches": [1 / 2] * N,
    "the sum over 11 examples": [11] * N,
    "the last minibatch weighed as a full one: 11 examples over 20": [11 / 20] * N,
    "the mean of the means of 3 devices or stages, which": means(3),
    "the mean of the means of 4 shards, which": means(4),
    "of one of 3 devices or stages, example 8 and on": np.arange(N) < 8,
    "without example 4": np.arange(N) != 4,
    "without examples 4 and 7": ~np.isin(np.arange(N), (4, 7)),
    "examples count 1 or 2 times": 1 + (np.arange(N) == 4),
    "no weight is changed": [0] * N,
    "that of the sum over 11 examples divided by 10": [1.1] * N,
}
"""What is said if examples count so often."""

MISREAD = replace(RIGHT, y=np.where(RIGHT.y == 3, 5, RIGHT.y))
ODD = {k: G[k] + 1e-4 * np.random.RandomState(0).random_sample(G[k].shape) for k in G}
STEPS: dict[str, Weights] = {
    **{text: weighing(weights, RIGHT) for text, weights in COUNTED.items()},
    "the weights before the last step: stale": OLD.exact().gradients,
    "the last minibatch: stale by a step": LAST.applied,
    "the optimizer's state was lost": {k: G[k] - RIGHT.carried[k] for k in G},
    "fc2.bias is lost, in the last 3 of 10": {"fc2.bias": G["fc2.bias"] * (np.arange(10) < 7)},
    "gradient of fc2.bias is the right one × 3": {"fc2.bias": 3 * G["fc2.bias"]},
    "fc2.bias is not changed": {"fc2.bias": 0 * G["fc2.bias"]},
    "2 blank images": {k: G[k] + 2 / N * BLANK[k] for k in G},
    "is that of class 3 read as class 5": MISREAD.exact().gradients,
    "has 0.01 times the weight added": {k: G[k] + 0.01 * RIGHT.weights[k] for k in G},
    "": ODD,
    "float32": {"fc1.weight": G["fc1.weight"].astype("float32")},
    "order": {"fc2.bias": G["fc2.bias"][::-1]},
}
"""What is said of an update in which these arrays are wrong."""

NOTHING = ("", "float32", "order")


@pytest.mark.parametrize("text", STEPS)
def test_what_a_step_did_is_named_by_what_fits(text: str) -> None:
    update = replace(RIGHT, applied=G | STEPS[text])
    wrong = [name for name in G if not np.array_equal(update.applied[name], G[name])]
    found = mistake(update, wrong, LAST)
    assert (found == "") if text in NOTHING else (text in found)


@pytest.mark.parametrize(
    ("times", "used", "text"),
    [
        (2, 5, "5 and on and divided by the number of the others or with 2 times the others"),
        (2, 6, "of one of 2 devices, example 6 and on and with 2 times the others"),
        (11 / 6, 6, "example 6 and on and divided by the number of the others"),
        (1.5, 6, "example 6 and on and with 1.5 times the others"),
        (3, 4, "of 2 of 3 stages, example 4 and on and with 3 times the others"),
    ],
)
def test_what_the_others_count_where_some_are_missing_is_told(
    times: float, used: int, text: str
) -> None:
    n = 10 if used == 5 else N
    found = weighted(times * (np.arange(n) < used), {"devices": 2, "stages": 3})
    assert found.removesuffix(", as if all had the same shard").endswith(text)


@pytest.mark.parametrize(
    ("grad", "carried", "text"),
    [
        (1.9, 0.9, "the update is that of Nesterov's momentum: 1 + 0.9 times the gradient"),
        (1.0, 8 / 9, "the update is that of momentum 0.8, not 0.9"),
        (0.7, 0.7, "the update is the right one at the rate of step 3"),
        (3.0, 3.0, "the update is the right one × 3, the number of devices or stages"),
        (1.9, 1.0, "the gradient is the right one × 1.9"),
        (1 + 3e-6, 1 + 3e-6, "the update is the right one × (1 + 3e-06)"),
        (0.7, 0.2, ""),
    ],
)
def test_a_wrong_rate_or_momentum_is_named(grad: float, carried: float, text: str) -> None:
    applied = {k: grad * G[k] + (carried - 1) * RIGHT.carried[k] for k in G}
    update = replace(RIGHT, applied=applied, momentum=0.9, rates={1: 1.5, 3: 0.7})
    assert mistake(update, [*G], None) == text
    # In the first step, nothing is carried.
    first = replace(update, carried={}, applied={k: 1.9 * G[k] for k in G})
    assert "Nesterov" in mistake(replace(first, kind="update"), [*G], None)
    assert mistake(first, [*G], None) == "the gradient is the right one × 1.9"


def test_whose_statistics_fit_is_named() -> None:
    right = replace(an_update(resnet18_shapes(2)), shards=3)
    for applied, words in (
        (right.exact(1).gradients, "all devices"),
        (weighing(means(2), right), "means"),
    ):
        assert words in mistake(replace(right, applied=applied), [*applied], None)
    logits = numpy_nets.ResNet18(right.weights, shard_bounds(N, 3)).forward(right.X)
    found = wrong_logits("concise", right.weights, right.X, logits, 1e-8, 3)
    assert found.endswith("evaluation in training mode")


@pytest.mark.parametrize(
    ("share", "k", "factor", "text"),
    [
        (0.01, 1, 1.0, "is 0.01, not 0.1"),
        (0.1, 3, 1.0, "one of 3 devices"),
        (0.1, 1, 1.0, ""),
        (0.1, 1, 1.03, ""),
        (0.1, 1, 1 + 1 / (N * 1000**2), ""),  # no image has so many pixels
        (0.1, 1, 0.0, "running variances are those of n - 1 pixels, not of n"),
    ],
)
def test_running_statistics_are_named_by_what_fits(
    share: float, k: int, factor: float, text: str
) -> None:
    right = an_update(resnet18_shapes(2))
    before = {name: v for name, v in right.weights.items() if not trainable(name)}
    after = {}
    for name, new in right.exact(k).statistics.items():
        n = N * SIDES[name[:6]] ** 2
        batch = (new - 0.9 * before[name]) / 0.1 * ((factor or n / (n - 1)) if "var" in name else 1)
        after[name] = (1 - share) * before[name] + share * batch
    step: Any = SimpleNamespace(before=before, after=after)
    found = statistics_hint(right, step, [k for k in before if factor == 1 or "var" in k])
    assert found.endswith(text)
    assert bool(found) == bool(text)


class LatePooling(numpy_nets.LeNet):
    def pool(self, X: Array) -> Array:
        return super().pool(np.pad(X, ONE_MORE)[:, :, 1:, 1:])


class PaddedAtTheEnd(numpy_nets.ResNet18):
    def conv(self, X: Array, name: str, stride: int = 1, padding: int = 0) -> Array:
        late = padding and stride == 2 and X.shape[2] % 2 == 0
        return super().conv(np.pad(X, ONE_MORE) if late else X, name, stride, padding * (not late))


ONE_MORE = [(0, 0), (0, 0), (0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("net", "brightness", "text"),
    [
        (LatePooling, 1, "with windows of means that begin a pixel late"),
        (PaddedAtTheEnd, 1, "with windows of strided convolutions that begin a pixel late"),
        (numpy_nets.LeNet, 255, "of pixels from 0 to 255"),
        (numpy_nets.ResNet18, 255, "of pixels from 0 to 255"),
        (numpy_nets.ResNet18, 254, ""),
    ],
)
def test_windows_and_pixels_of_logits_are_named(net: Any, brightness: int, text: str) -> None:
    update = an_update(LENET if issubclass(net, numpy_nets.LeNet) else resnet18_shapes(2))
    logits = net(update.weights).forward(brightness * update.X)
    assert wrong_logits(update.chapter, update.weights, update.X, logits, 1e-8) == text


def test_a_loss_is_named_by_what_fits() -> None:
    first, exact = replace(RIGHT, X=RIGHT.X[:4], y=RIGHT.y[:4]).exact().loss, RIGHT.exact()
    for loss, text in (
        (first, "the loss is that of the first of 3 devices or stages only"),
        (exact.loss + np.log(2), "the loss is that of a softmax over the logits of 2 microbatches"),
        (1.01 * exact.loss, ""),
    ):
        step: Any = SimpleNamespace(loss=loss, right=exact)
        assert loss_hint(RIGHT, step, 1e-8) == text


def test_a_wrong_step_tells_more_than_what_differs_from_it() -> None:
    def diverged(name: str) -> Divergence:
        failed = SimpleNamespace(check=name, passed=False)
        return Divergence(Any, SimpleNamespace(checks=lambda entry: [failed]), 0, name)  # type: ignore[arg-type]

    group = [diverged(name) for name in ("weights", "weights", "outcome", "steps")]
    assert [each.what for each in most_telling(group)] == ["steps", "weights", "weights"]
