"""The transformer, split every way, in the framework under test, against NumPy on one device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.compare import numpy_nets
from common.compare.distances import distance
from common.compare.numpy_moe import MoE
from common.data.dataset import numbers
from common.data.sums import sums
from common.models.weights_file import initial_weights
from common.parallel.shards import shard_bounds
from common.settings.arguments import parser

GPT: Final = StrategiesOptions(net="gpt", microbatches=2, depth=1, clip=0.5)
MIXTURE: Final[dict[str, Any]] = {
    **{"net": "moe", "strategy": "expert", "balance": 0.5},
    **{"microbatches": 1, "depth": 2},
}
CASES: Final = (
    (3, {"strategy": "data"}),
    (3, {"strategy": "zero2"}),
    (4, {"strategy": "tensor", "replicas": 2}),
    (3, {"strategy": "context"}),
    (3, MIXTURE),
)
"""Suites have all strategies; here, some devices have no example in the last step."""

FURTHER: Final = (
    (4, {"strategy": "tensor", "replicas": 2, "sequence_parallel": True}),
    (4, {"strategy": "pipeline", "replicas": 2}),
    (4, {"strategy": "context", "replicas": 2}),
    (4, {"strategy": "context", "attention": "gather"}),
    (3, {"strategy": "context", "attention": "ulysses", "contiguous": True}),
    (3, {**MIXTURE, "strategy": "data"}),
    (4, {**MIXTURE, "replicas": 2, "capacity": 0.75}),
)
"""JAX has them in the grid only, as it compiles each for up to 12 s."""

NOT_JAX: Final = ("pytorch", "tensorflow", "mxnet")

RATES: Final = (0.003, 0.002, 0.001)
EXACT: Final = 1e-10
"""Adam divides a gradient that is 0 but for rounding, of the keys' biases, by 1e-8."""

TEXTS, LABELS, *_ = sums()


class AdamOnOneDevice:
    """Adam (Kingma and Ba, 2015), with the whole gradient clipped."""

    def __init__(self, weights: Mapping[str, Array], options: Any, shards: int = 1) -> None:
        self.weights, self.clip, self.steps = dict(weights), options.clip, 0
        self.shards, self.net = shards, options.net
        if self.net == "moe":
            how = {name: getattr(options, name) for name in ("top_k", "capacity", "balance")}
            self.net = partial(MoE, **how)
        self.m = {name: 0 * values for name, values in weights.items()}
        self.v = {name: 0 * values for name, values in weights.items()}

    def exact(self, X: Array, y: Array) -> numpy_nets.Step:
        """The loss of a minibatch, and its gradient; shards decide which tokens are dropped."""
        return numpy_nets.step(self.net, X, y, self.weights, shard_bounds(len(X), self.shards))

    def step(self, X: Array, y: Array, lr: float) -> float:
        right = self.exact(X, y)
        norm = np.sqrt(sum((grad**2).sum() for grad in right.gradients.values()))
        self.steps += 1
        for name, grad in right.gradients.items():
            grad = grad * min(1, self.clip / norm)
            self.m[name] = 0.9 * self.m[name] + 0.1 * grad
            self.v[name] = 0.999 * self.v[name] + 0.001 * grad**2
            m, v = self.m[name] / (1 - 0.9**self.steps), self.v[name] / (1 - 0.999**self.steps)
            self.weights[name] = self.weights[name] - lr * m / (np.sqrt(v) + 1e-8)
        return right.loss

    def saved(self) -> Weights:
        state = {f"momentum/{name}": values for name, values in self.m.items()}
        state |= {f"variance/{name}": values for name, values in self.v.items()}
        return {**self.weights, **state, "adam/steps": np.array([self.steps])}


def start(options: StrategiesOptions = GPT) -> Weights:
    """Weights of which none is 0 or 1, so that each is seen to count; larger ones round more."""
    random = np.random.RandomState(2)
    drawn = initial_weights(options.shapes(), 3, "float64")
    return {k: 3 * v + 0.03 * random.standard_normal(v.shape) for k, v in drawn.items()}


def batch(step: int, count: int = 7) -> tuple[Array, Array]:
    rows = slice(7 * step, 7 * step + count)
    return numbers(TEXTS[rows], LABELS[rows], "float64")


def far(ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
    assert ours.keys() == theirs.keys()
    return max(distance(ours[name], theirs[name])[0] for name in theirs)


@pytest.mark.parametrize(
    ("devices", "how"),
    [*CASES, *(pytest.param(*case, marks=pytest.mark.only(*NOT_JAX)) for case in FURTHER)],
)
def test_devices_do_what_one_does_and_send_and_keep_what_the_plan_says(
    strategies: Any, all_devices: Sequence[Any], devices: int, how: Mapping[str, Any]
) -> None:
    options = replace(GPT, **how)
    weights = start(options)
    trainer = strategies.trainer(weights, all_devices[:devices], options)
    right = AdamOnOneDevice(weights, options, options.shards(devices) or 1)
    X, y = batch(0)
    assert far(trainer.gradients(X, y), right.exact(X, y).gradients) < EXACT
    for step, lr in enumerate(RATES):
        X, y = batch(step, 7 if step < 2 else 1)
        loss = trainer.train_batch(X, y, lr)
        assert float(loss) == pytest.approx(right.step(X, y, lr), rel=EXACT)
        counted, _ = trainer.usage(len(y))
        assert counted == options.usage(devices, len(y), 8)
    assert far(trainer.save(), right.saved()) < EXACT
    logits = numpy_nets.logits(right.net, X, right.weights)
    np.testing.assert_allclose(trainer.predict(X), logits, rtol=0, atol=EXACT)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (GPT, ("data", "context", "zero3", "tensor", "pipeline")),
        (replace(GPT, **MIXTURE), ("data", "expert", "data")),
    ],
)
def test_what_one_strategy_has_saved_every_other_one_resumes(
    strategies: Any, all_devices: Sequence[Any], options: Any, names: Sequence[str]
) -> None:
    """With the moments, which other devices had, and the number of steps."""
    saved = start(options)
    right = AdamOnOneDevice(saved, options)
    for step, name in enumerate(names):
        devices = all_devices[: 3 - step % 2]
        trainer = strategies.trainer(start(options), devices, replace(options, strategy=name))
        trainer.restore(saved)
        trainer.train_batch(*batch(step), RATES[0])
        right.step(*batch(step), RATES[0])
        saved = trainer.save()
        assert far(saved, right.saved()) < EXACT, name


@pytest.mark.parametrize(
    ("options", "devices", "why"),
    [
        (replace(GPT, strategy="tensor"), 4, "4 devices cannot share the 3 heads"),
        (replace(GPT, strategy="pipeline"), 4, "needs as many stages"),
        (replace(GPT, strategy="context"), 10, "10 devices cannot share the 9 tokens"),
        (replace(GPT, strategy="context", attention="ulysses"), 2, "2 devices do not divide 3"),
        (replace(GPT, strategy="context", net="lenet", clip=0.0), 2, "images are no sequences"),
        (replace(GPT, sequence_parallel=True), 2, "means nothing for --strategy data"),
        (replace(GPT, depth=0), 1, "--net gpt needs a block"),
        (replace(GPT, momentum=0.5), 1, "--momentum means nothing for --net gpt"),
        (replace(GPT, net="lenet"), 1, "--clip means nothing for --net lenet"),
        (replace(GPT, strategy="expert"), 2, "--strategy expert is for --net moe"),
        (replace(GPT, capacity=1.0), 2, "--capacity means nothing for --net gpt"),
        (replace(GPT, top_k=1), 2, "--top-k means nothing for --net gpt"),
        (replace(GPT, **MIXTURE), 5, "5 devices cannot share the 4 experts"),
        (replace(GPT, **MIXTURE | {"depth": 1}), 1, "--net moe has experts in every second block"),
        (replace(GPT, **MIXTURE | {"microbatches": 2}), 1, "--microbatches means nothing"),
        (replace(GPT, **MIXTURE | {"strategy": "tensor"}), 2, "--net moe is for --strategy data"),
        (replace(GPT, **MIXTURE | {"momentum": 0.5}), 2, "--momentum means nothing for --net moe"),
    ],
)
def test_what_cannot_be_split_is_refused(options: Any, devices: int, why: str) -> None:
    assert why in options.refusal(devices)


def test_a_capacity_and_a_norm_may_be_above_1() -> None:
    given = ["--net=moe", "--strategy=expert", "--capacity=1.25", "--clip=2"]
    read = vars(parser("mxnet", "strategies").parse_args(given))
    assert (read["capacity"], read["clip"]) == (1.25, 2)
