"""Every mistake that the judge knows is named in its first line, and right code is right."""

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.diagnose.mistakes import LAYERS
from common.judge.judgement import TEXTS, Setting, judge
from common.judge.nets import NETS
from common.models.nets import resnet18_shapes
from common.parallel.shards import shard_bounds

ALLREDUCES = {
    """
    for i in range(1, len(data)):
        data[0] += data[i]
    for i in range(1, len(data)):
        data[i] = data[0].copy()
    """: "at 2 devices, size 1, float64: device 1 has the values of 1 only",
    "return [sum(data[:2]) for _ in data]": (
        "at 3 devices, size 1, float64: device 0 has the sum of 0 and 1 only; device 1 has the sum"
    ),
    "return [sum(data) / len(data) for _ in data]": "device 0 has 1/2 times the sum",
    "return [sum(data) + (len(data) - 1) * x for x in data]": "device 0 has the sum of 2 x 0 and 1",
    "return [sum(data)] * len(data)": "devices 0 and 1 share the memory of one array",
    "return [sum(data[i:] + data[:i]) for i in range(len(data))]": "differ in their last bits",
    "return [np.sum(data, axis=0).astype(float) for _ in data]": "float32: device 0 gets a sum of",
    "return [sum(data).astype('float32') for _ in data]": "float64: device 0 gets a sum of float32",
    "return [sum(data).ravel() for _ in data]": "device 0 gets an array of shape (15,), not (3, 5)",
    "return [sum(data) for _ in data[:1]]": "1 of 2 devices get an array",
    """
    total = data[0]
    for array in data[1:]:
        total += array
    return [total.copy() for _ in data]
    """: "only those of devices 0 are overwritten",
    """
    total, n = sum(data).ravel(), data[0].size // len(data) * len(data)
    total[n:] = 0
    return [total.reshape(data[0].shape).copy() for _ in data]
    """: "device 1 has 0 times the sum; of 8 entries, which 2 divides, it is right",
    "return [data[0].copy() if data[0].size < 2 else sum(data) for _ in data]": (
        "at 2 devices, size 1, float64: device 0 has the values of 0 only; device 1 has the values "
        "of 0 only"
    ),
    "return [sum(x.astype('float32') for x in data) + np.zeros(data[0].shape) for _ in data]": (
        "at 1 device, size 1, float64: the sums are only as exact as float32"
    ),
    "return [(data[0] + sum(np.float16(data[1:]))).astype(data[0].dtype) for _ in data]": (
        "at 2 devices, size 1, float64: the sums are only as exact as float16"
    ),
    "return [np.roll(sum(data), i) for i in range(len(data))]": "entries of the sum are in wrong",
}

SCHEDULES = {
    "return [[(i, 0, 0, True) for i in range(1, k)]]": "device 1 has the values of 1 only",
    "return [[(i, 0, 0, True) for i in range(1, k)], [(0, i, 0, True) for i in range(1, k)]]": (
        "at 2 devices: device 1 has the sum of 0 and 2 x 1 only"
    ),
    """
    inwards = [(i, 0, 0, True) for i in range(1, k)]
    return [inwards, [(0, i, 0, adds) for i in range(1, k) for adds in (True, False)]]
    """: "at 2 devices: a round stores a chunk that it adds to",
    """
    rounds = [[(i, (i + 1) % k, (i - n) % k, True) for i in range(k)] for n in range(k - 1)]
    return rounds + [[(i, (i + 1) % k, i, False) for i in range(k)]] * (k > 1)
    """: "device 0 has the values of 0 only in chunk 0; device 1 has the values of 0 only in chunk",
    "return [[(0, 0, 10**9, True)]]": "a round has (0, 0, 1000000000, True), where a number",
    TEXTS["schedule"]["protocol"].partition("k):")[2]: "receives 7 arrays (least: 1.75)",
}

PIPELINES = {
    'return [[("forward", i) for i in range(microbatches)]] * stages': "backward 0 0 times, not 1",
    'return [[("forward", 0)] * 2] * stages': "stage 0 has forward 0 2 times",
    TEXTS["pipeline"]["protocol"].partition("s):")[2]: "38% of the time (at least 38%) and keep 8",
    'return [[("backward", 0), ("forward", 0)]] * stages': "has backward 0 before forward 0",
    'return [[(d, i) for i in (0, 1) for d in "fb"]] * stages': "has forward 1 1 times",
    """
    naive = [(d, i) for i in range(microbatches) for d in ("forward", "backward")]
    gpipe = [(d, i) for d in ("forward", "backward") for i in range(microbatches)]
    return [naive, gpipe, gpipe, gpipe, gpipe, gpipe][:stages]
    """: "at 2 stages and 2 microbatches: these stages wait for each other for ever: stage 0 at "
    "backward 0, stage 1 at forward 1",
}

LAYER = """
k = len(devices)
W, b = np.array_split(params["weight"], k), params["bias"]
Xs = np.array_split(X, k, axis=1)
def backward(dY):
    dX = [dY @ w.T for w in W]
    return dX, {"weight": np.concatenate([x.T @ dY for x in Xs]), "bias": dY.sum(0)}
return devices.allreduce([x @ w for x, w in zip(Xs, W)])[0] + b, backward
"""

SPLITS = {
    ("[0] + b", "[0].astype('float16') + b"): "Y is off by",
    (
        "np.array_split",
        "(lambda a, k, axis=0: np.split(a.take(range(a.shape[axis] // k * k), axis), k, axis))",
    ): "at 2 devices, 5 examples, 7 inputs, 8 outputs: Y is off by",
    ("[0] + b", "[0] + k * b"): "Y has the bias 2 times",
    ("devices.allreduce([x @ w for x, w in zip(Xs, W)])[0]", "Xs[0] @ W[0]"): "Y has the part of "
    "device 1 0 times",
    ("dY.sum(0)", "k * dY.sum(0)"): "db has the gradient 2 times",
    ("dY.sum(0)", "0 * b"): "db is 0 everywhere",
    ("dX = [dY @ w.T for w in W]", 'dX = [dY @ params["weight"].T / k] * k'): "dX on device 0 is "
    "only a part",
    ("np.concatenate([x.T @ dY for x in Xs])", "[x.T @ dY for x in Xs][:1]"): "dW has shape (3, 6)",
    ("x.T @ dY for", "x.T @ dY * (x is Xs[0]) for"): "dW is 0 in some places, and right in the",
}


def verdict(kind: str, candidate: object, **asked: Any) -> str:
    """The first line; the others are there."""
    judgement = judge(kind, candidate, Setting(**asked))
    first, hint, untried = judgement.text.splitlines()
    assert (hint[:6], untried[:11]) == ("hint: ", "not tried: ")
    assert first.startswith(("right: ", "right, but ") if judgement.right else "wrong: ")
    return first


MISTAKES = {
    "allreduce(data)": ALLREDUCES,
    "schedule(k)": SCHEDULES,
    "pipeline(stages, microbatches)": PIPELINES,
    "layer(X, params, devices)": {LAYER.replace(*slip): text for slip, text in SPLITS.items()},
}


CASES = [(head, *mistake) for head, table in MISTAKES.items() for mistake in table.items()]


@pytest.mark.parametrize(("head", "body", "text"), CASES)
def test_the_first_line_names_a_mistake(head: str, body: str, text: str) -> None:
    names: dict[str, Any] = {"np": np}
    exec(f"def {head}:\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}", names)
    kind = head.partition("(")[0]
    assert text in verdict(kind, names[kind]).removeprefix("wrong: ")


class Descent:
    """A reader's training in NumPy, with places for mistakes."""

    chapter, devices, factor = "scratch", 1, 1.0

    def start(self, weights: Weights) -> None:
        self.w = weights
        self.last = {name: 0 * values for name, values in weights.items()}

    def weights(self) -> Weights:
        return self.w

    def exact(self, X: Array, y: Array) -> numpy_nets.Step:
        return numpy_nets.step(self.chapter, X, y, self.w, shard_bounds(len(X), self.devices))

    def gradient(self, X: Array, y: Array) -> Weights:
        return self.changed(self.exact(X, y).gradients)

    def changed(self, grads: Weights) -> Weights:
        return grads

    def step(self, X: Array, y: Array, lr: float) -> float:
        return self.train(X, y, lr, np.ones(len(y)))

    def train(self, X: Array, y: Array, lr: float, mask: Array) -> float:
        self.every = X, y, mask
        X, y = X[mask > 0], y[mask > 0]
        exact, grads = self.exact(X, y), self.gradient(X, y)
        steps = {name: self.w[name] - lr * grad for name, grad in grads.items()}
        new = {name: v.astype(self.w[name].dtype) for name, v in (steps | exact.statistics).items()}
        self.last, self.w = grads, self.w | new
        return self.factor * exact.loss


class Masked(Descent):
    """A mean over the examples that count."""

    def step(self, X: Array, y: Array, lr: float, mask: Array) -> float:  # type: ignore[override]
        return self.train(X, y, lr, mask)


def over_shards(
    k: int, share: Callable[[int, int], float], change: Callable[..., Weights] = Descent.changed
) -> dict[str, Any]:
    """The sum over k shards of the means of what counts; a shard without is left out."""

    def gradient(self: Descent, *_: Array) -> Weights:
        total = {name: 0 * values for name, values in self.w.items()}
        for X, y, mask in zip(*(np.array_split(x, k) for x in self.every), strict=True):
            grads = self.exact(X[mask > 0], y[mask > 0]).gradients if mask.any() else {}
            for name, grad in change(self, grads).items():
                weight = share(int(mask.sum()), int(self.every[2].sum()))
                total[name] = total[name] + weight * grad
        return total

    return {"gradient": gradient}


def in_float32(*parts: str) -> dict[str, Any]:
    """Gradients of which some have been numbers of float32."""

    def changed(_: Descent, grads: Weights) -> Weights:
        return grads | {k: v.astype("f") for k, v in grads.items() if k.startswith(parts)}

    return {"changed": changed}


def times_decay(rate: float) -> dict[str, Any]:
    return {"changed": lambda self, grads: {k: grads[k] + rate * self.w[k] for k in grads}}


def by_norm(norm: Callable[[Weights], float]) -> Callable[..., Weights]:
    def changed(_: Descent, grads: Weights) -> Weights:
        return {name: grad * min(1, 2 / norm(grads)) for name, grad in grads.items()}

    return changed


def length(grads: Weights, **times: float) -> float:
    """The global norm, with some kinds of arrays counted several times."""
    sums = [times.get(k.rpartition(".")[2], 1) * (grad**2).sum() for k, grad in grads.items()]
    return float(np.sum(sums) ** 0.5)


STEPS: dict[str, dict[str, Any]] = {
    "right: losses and weights of lenet": {},
    "step 2, of 11 examples: the gradient is the mean of the means of 2": over_shards(
        2, lambda n, every: 1 / 2
    ),
    "the gradient has 0.9 times the last update added: momentum": {
        "changed": lambda self, grads: {k: grads[k] + 0.9 * self.last[k] for k in grads}
    },
    "conv1.weight of weights() is not what start() was handed": {
        "weights": lambda self: {name: 2 * values for name, values in self.w.items()}
    },
    "the loss is that of the sum over 12 examples": {"factor": 12},
    "the gradient of fc1.weight has 1e-06 times the weight added": times_decay(1e-6),
    "the gradient has 1e-08 times the weight added": times_decay(1e-8),
    "the gradient is the right one × (1 + 1e-06)": {
        "changed": lambda self, grads: {k: (1 + 1e-6) * v for k, v in grads.items()}
    },
    "right, but conv1 is only as exact as float32: losses": in_float32("conv1"),
    "right, but conv2 and fc1 are only as exact as float32": in_float32("conv2", "fc1"),
    "right, but every gradient is only as exact as float32": in_float32(""),
    "right, but every weight is only as exact as float32": {
        "start": lambda self, w: Descent.start(self, {k: v.astype("f") for k, v in w.items()})
    },
    "right, but the rate is only as exact as float32": {
        "step": lambda self, X, y, lr: Descent.step(self, X, y, float(np.float32(lr)))
    },
    "right, but the loss is only as exact as float32": {
        "step": lambda self, X, y, lr: np.float32(Descent.step(self, X, y, lr))
    },
    "has no conv1.weight, but module.conv1.weight, as a wrapped net has": {
        "weights": lambda self: {f"module.{name}": values for name, values in self.w.items()}
    },
    "is clipped to the norm 0.25: judge it with --clip 0.25": {
        "changed": lambda self, grads: {k: v * 0.25 / length(grads) for k, v in grads.items()}
    },
}

MASKED: dict[str, dict[str, Any]] = {
    "right: losses and weights of lenet": {},
    "right: losses": over_shards(3, lambda counted, every: counted / every),
    "the mean of the means of 3 shards, which differ in how many examples the mask leaves": (
        over_shards(3, lambda counted, every: 1 / 3)
    ),
    "that of all examples, without the mask": {
        "gradient": lambda self, X, y: self.exact(*self.every[:2]).gradients
    },
    "divided by 12 examples, though the mask leaves 7": {
        "changed": lambda self, grads: {k: 7 / 12 * grad for k, grad in grads.items()}
    },
    "has 0.5 times the weight added": times_decay(0.5),
}

NORMS: dict[str, Callable[..., Weights]] = {
    "those of one device, clipped in step 1 and 3": by_norm(length),
    "clipped in step 1 and 3": by_norm(lambda grads: length(grads) + 1e-6),
    "is not clipped": lambda self, grads: grads,
    "each array by its own": lambda self, grads: {
        k: by_norm(length)(self, {k: grads[k]})[k] for k in grads
    },
    "at step 2, of 11 examples: the gradient is scaled to a norm that": lambda self, grads: {
        k: grad * 2 / length(grads) for k, grad in grads.items()
    },
    "counts 3 replicas": by_norm(lambda grads: 3**0.5 * length(grads)),
    "counts 4 replicas, or is of the sum over 2 devices": by_norm(lambda grads: 2 * length(grads)),
    "counts conv1.bias, conv2.bias, fc1.bias and fc2.bias 2 times": by_norm(
        lambda grads: length(grads, bias=2)
    ),
    "lacks conv1.bias, conv2.bias, fc1.bias and fc2.bias": by_norm(
        lambda grads: length(grads, bias=0)
    ),
    "by the norm × 0.77": by_norm(lambda grads: 0.77 * length(grads)),
}

CLIPPED = {text: {"changed": change} for text, change in NORMS.items()} | {
    "is clipped by local norms: each of 2 devices clips its shard's mean": over_shards(
        2, lambda n, every: 1 / 2, by_norm(length)
    )
}

ENTRIES = {"changed": lambda self, grads: {k: v.clip(-0.01, 0.01) for k, v in grads.items()}}

OF_TOKENS: dict[str, dict[str, Any]] = {
    "right: ": {"chapter": "gpt"},
    "wrong: at step 1, of 7 examples: the gradient of ": {
        "chapter": "gpt",
        "exact": lambda self, X, y: Descent.exact(self, X, np.where(y < 0, 12, y)),
    },
}

READERS: list[tuple[type[Descent], dict[str, Any], dict[str, dict[str, Any]]]] = [
    (Descent, {}, STEPS),
    (Masked, {}, MASKED),
    (Descent, {"clip": 2.0}, CLIPPED),
    (Descent, {"clip": 0.01}, {"entry by entry": ENTRIES}),
    (Descent, {"dtype": "float32"}, {"right: ": {}}),
    (Descent, {"net": "gpt"}, OF_TOKENS),
]
"""What a reader's training derives from, what is asked for, and the verdicts on its methods."""


@pytest.mark.parametrize(
    ("base", "asked", "text", "methods"),
    [(base, asked, *each) for base, asked, table in READERS for each in table.items()],
)
def test_a_step_is_told_by_what_fits(
    base: type[Descent], asked: dict[str, Any], text: str, methods: dict[str, Any]
) -> None:
    assert text in verdict("step", type("Reader", (base,), methods), **asked)


def test_logits_of_the_transformer_are_judged() -> None:
    logits = verdict("model", lambda w, X: numpy_nets.logits("gpt", X, w), net="gpt")
    assert logits.startswith("right: ")


def test_statistics_of_one_device_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NETS, "resnet18", ("concise", resnet18_shapes(2), (8, 5, 7)))  # narrow
    for devices, text in (
        (1, "right: "),
        (2, "statistics of one device: each of 2 normalizes by its own"),
    ):
        reader = type("Reader", (Descent,), {"chapter": "concise", "devices": devices})
        assert text in verdict("step", reader, net="resnet18")


PORTS = LAYERS | {
    "are those of NumPy": ("tape", []),
    "the logits are NaN or infinite": ("relu", lambda X: X * np.nan),
    "lenet but for": ("relu", lambda X: np.maximum(X, 1e-4 * X)),
}


@pytest.mark.parametrize("text", PORTS)
def test_a_wrong_port_is_told_by_what_fits(text: str) -> None:
    def model(weights: Weights, X: Array) -> Array:
        net = numpy_nets.LeNet(weights)
        setattr(net, *PORTS[text])
        return net.forward(X)

    assert text in verdict("model", model)
