"""Judges ports of LeNet and ResNet-18: by their logits, and by steps of training."""

from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.distances import distance
from common.diagnose.mistakes import Update, mistake, scaled, wrong_logits
from common.judge.judgement import Cases, Setting, WrongError, require
from common.judge.readers import as_array, call
from common.models.initial import initial_weights
from common.models.nets import LENET, Shapes, resnet18_shapes, trainable

NETS: Final = {
    "lenet": ("scratch", LENET, (12, 11, 9)),
    "resnet18": ("concise", resnet18_shapes(64), (4, 3, 5)),
}
"""By net: its chapter, the shapes of its weights, and the numbers of examples of the steps."""

SINGLE, MIXED, FLIPPED = 2e-4, 1e-5, 5e-2
"""Distances that rounding explains; the last where it opens or shuts ReLUs, as in ResNet-18."""


def random_weights(net: str, dtype: str) -> Weights:
    """Weights of which none is 0: no ReLU's input is exactly 0."""
    random, weights = np.random.RandomState(5), initial_weights(NETS[net][1], 5, "float32")
    drawn = {k: 0.05 * random.standard_normal(values.shape) for k, values in weights.items()}
    return {k: (weights[k] + drawn[k]).astype("float32").astype(dtype) for k in weights}


def examples(count: int, dtype: str) -> tuple[Array, Array]:
    """Images without blank parts, and their classes."""
    random = np.random.RandomState(count)
    X = random.random_sample((count, 1, 28, 28)).astype("float32").astype(dtype)
    return X, random.randint(10, size=count)


def allowed(values: Array) -> float:
    """The distance that rounding explains: more for numbers that float32 can hold."""
    return SINGLE if np.array_equal(values, values.astype("float32")) else MIXED


def judge_model(candidate: Any, setting: Setting) -> Cases:
    """Judges `candidate(weights, X) -> logits`."""
    chapter, dtype = NETS[setting.net][0], setting.dtype or "float64"
    weights = random_weights(setting.net, dtype)
    for count in (1, 5):
        yield f"{count} image{'s' * (count > 1)}"
        X, _ = examples(count, dtype)
        handed = {name: setting.hand(values) for name, values in weights.items()}
        logits = as_array(call(candidate, handed, setting.hand(X)), "what it returns")
        text = f"the logits have shape {logits.shape}, where ({count}, 10) is right"
        require(logits.shape == (count, 10), text, "shape")
        expected = numpy_nets.logits(chapter, X, weights)
        off, _ = distance(logits, expected)
        if off > allowed(logits):
            require(np.isfinite(logits).all(), "the logits are NaN or infinite", "logits")
            text = wrong_logits(chapter, weights, X, logits, SINGLE)
            text = text or f"but for {off:.1e} of the largest one"
            raise WrongError(f"the logits are those of {setting.net} {text}", "logits")
    return f"the logits of {setting.net} are those of NumPy"


def judge_step(candidate: Any, setting: Setting) -> Cases:
    """Judges an object with `start(weights)`, `step(X, y, lr) -> loss` and `weights()`."""
    yield "the start"
    candidate = call(candidate) if isinstance(candidate, type) else candidate
    names = ("start", "step", "weights")
    start, step, weights = (call(getattr, candidate, name) for name in names)
    (chapter, shapes, sizes), dtype = NETS[setting.net], setting.dtype or "float64"
    initial = random_weights(setting.net, dtype)
    call(start, {name: setting.hand(values) for name, values in initial.items()})
    after = _weights(weights, shapes)
    for name, values in initial.items():
        text = f"{name} of weights() is not what start() was handed"
        require(distance(after[name], values)[0] < allowed(after[name]), text, "start")
    previous: Update | None = None
    for number, (count, lr) in enumerate(zip(sizes, (0.1, 0.05, 0.2), strict=True), 1):
        yield f"step {number}, of {count} examples"
        before, (X, y) = after, examples(count, dtype)
        loss = as_array(call(step, setting.hand(X), setting.hand(y), lr), "the loss")
        after = _weights(weights, shapes)
        changes = {k: before[k].astype("float64") - after[k] for k in filter(trainable, shapes)}
        applied = {name: change / lr for name, change in changes.items()}
        update = Update(chapter, X, y, before, applied)
        exact = update.exact()
        if wrong := [name for name in applied if not _agrees(update, exact, name, after[name], lr)]:
            which = ", ".join(wrong[:2]) + " and others" * (len(wrong) > 2)
            text = f"the gradient of {which} is wrong"
            raise WrongError(mistake(update, wrong, previous) or text, "gradient")
        previous = update
        require(loss.size == 1, f"the loss has shape {loss.shape}, not that of a number", "loss")
        text = (
            f"the weights are right, but the loss is {scaled(loss.item() / exact.loss, count, {})}"
        )
        off = abs(loss.item() - exact.loss) / exact.loss_scale
        require(off <= allowed(loss), text, "loss")
        for name, expected in exact.statistics.items():
            off, _ = distance(after[name] - before[name], expected - before[name])
            text = f"{name} is off by {off:.1e} of how far it moves"
            # A variance may be that of n - 1, as in PyTorch, which is a little larger.
            require(off < (5e-2 if name.endswith("var") else 1e-3), text, "statistics")
    return f"losses and weights of {setting.net} after each of 3 steps are those of one device"


def _weights(weights: Any, shapes: Shapes) -> Weights:
    values, arrays = call(weights), {}
    for name, shape in shapes.items():
        require(hasattr(values, "keys") and name in values, f"weights() has no {name}", "names")
        array = arrays[name] = as_array(values[name], name)
        text = f"{name} of weights() has shape {array.shape}, not {shape}"
        require(array.shape == shape, text, "names")
    return arrays


def _agrees(update: Update, exact: numpy_nets.Step, name: str, after: Array, lr: float) -> bool:
    """Whether rounding explains how far an update is from the gradient."""
    scale, limit, dtype = exact.scales[name], MIXED, "float64"
    if allowed(after) > MIXED:
        limit, dtype = FLIPPED if exact.statistics else SINGLE, "float32"
    limit += 2 * np.finfo(dtype).eps * np.abs(after).max() / (lr * scale)
    far, _ = distance(update.applied[name], exact.gradients[name], scale)
    return bool(far <= limit)
