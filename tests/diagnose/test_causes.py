"""Which mistake fits what a step did, and that none fits what is no such mistake."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from common.base.arrays import Weights
from common.compare import numpy_nets
from common.diagnose.hints import loss_hint, statistics_hint
from common.diagnose.mistakes import Update, mistake, wrong_logits
from common.diagnose.suspects import Divergence, most_telling
from common.judge.nets import examples
from common.models.nets import LENET, Shapes, resnet18_shapes, trainable
from common.parallel.shards import shard_bounds

N = 11


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
STEPS: dict[str, Callable[[], Weights]] = {
    "the gradient is the right one × 3, the number of devices or stages": lambda: weighing(
        [3] * N, RIGHT
    ),
    "the gradient is the right one ÷ 2, the number of microbatches": lambda: weighing(
        [1 / 2] * N, RIGHT
    ),
    "the gradient is the right one × 7": lambda: weighing([7] * N, RIGHT),
    "the sum over 11 examples": lambda: weighing([11] * N, RIGHT),
    "the last minibatch weighed as a full one: 11 examples over 20": lambda: weighing(
        [11 / 20] * N, RIGHT
    ),
    "the mean of the means of 3 devices or stages, which": lambda: weighing(means(3), RIGHT),
    "the mean of the means of 2 microbatches, which": lambda: weighing(means(2), RIGHT),
    "the mean of the means of 4 shards, which": lambda: weighing(means(4), RIGHT),
    "of one of 3 devices or stages, example 8 and on": lambda: weighing(np.arange(N) < 8, RIGHT),
    "without the examples 4 and 7": lambda: weighing(~np.isin(np.arange(N), (4, 7)), RIGHT),
    "examples count 1 or 2 times": lambda: weighing(1 + (np.arange(N) == 4), RIGHT),
    "the weights before the last step: stale": lambda: OLD.exact().gradients,
    "the last minibatch: stale by a step": lambda: LAST.applied,
    "the optimizer's state was lost": lambda: {k: G[k] - RIGHT.carried[k] for k in G},
    "fc2.bias is lost, in the last 3 of 10": lambda: (
        G | {"fc2.bias": G["fc2.bias"] * (np.arange(10) < 7)}
    ),
    "gradient of fc2.bias is the right one × 3": lambda: G | {"fc2.bias": 3 * G["fc2.bias"]},
    "fc2.bias is not changed": lambda: G | {"fc2.bias": 0 * G["fc2.bias"]},
    "no weight is changed": lambda: weighing([0] * N, RIGHT),
    "2 blank images": lambda: {k: G[k] + 2 / N * BLANK[k] for k in G},
    "has 0.01 times the weight added": lambda: {k: G[k] + 0.01 * RIGHT.weights[k] for k in G},
    "": lambda: {k: G[k] + 1e-4 * np.random.RandomState(0).random_sample(G[k].shape) for k in G},
    "float32": lambda: G | {"fc1.weight": G["fc1.weight"].astype("float32")},
    "order": lambda: G | {"fc2.bias": G["fc2.bias"][::-1]},
}
NOTHING = ("", "float32", "order")


@pytest.mark.parametrize("text", STEPS)
def test_what_a_step_did_is_named_by_what_fits(text: str) -> None:
    update = replace(RIGHT, applied=STEPS[text]())
    wrong = [name for name in G if not np.array_equal(update.applied[name], G[name])]
    found = mistake(update, wrong, LAST)
    assert (found == "") if text in NOTHING else (text in found)


@pytest.mark.parametrize(("shards", "k", "text"), [(3, 1, "all devices"), (1, 3, "each of 3")])
def test_whose_statistics_fit_is_named(shards: int, k: int, text: str) -> None:
    right = replace(an_update(resnet18_shapes(2)), shards=shards)
    for applied, words in ((right.exact(k).gradients, text), (weighing(means(2), right), "means")):
        assert words in mistake(replace(right, applied=applied), [*applied], None)
    logits = numpy_nets.ResNet18(right.weights, shard_bounds(N, 3)).forward(right.X)
    found = wrong_logits("concise", right.weights, right.X, logits, 1e-8, 3)
    assert found.endswith("evaluation in training mode")


@pytest.mark.parametrize(
    ("share", "k", "factor", "text"),
    [(0.01, 1, 1.0, "is 0.01, not 0.1"), (0.1, 3, 1.0, "one of 3 devices"), (0.1, 1, 1.1, "")],
)
def test_running_statistics_are_named_but_not_an_unbiased_variance(
    share: float, k: int, factor: float, text: str
) -> None:
    right = an_update(resnet18_shapes(2))
    before = {name: v for name, v in right.weights.items() if not trainable(name)}
    after = {}
    for name, new in right.exact(k).statistics.items():
        batch = (new - 0.9 * before[name]) / 0.1 * (factor if "var" in name else 1)
        after[name] = (1 - share) * before[name] + share * batch
    step: Any = SimpleNamespace(before=before, after=after)
    found = statistics_hint(right, step, [*before])
    assert found.endswith(text)
    assert bool(found) == bool(text)


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
