"""Judges ports of the nets by their logits; weights and examples for all kinds."""

from typing import Any, Final

import numpy as np

from common.base.arrays import Array, Weights
from common.compare import numpy_nets
from common.compare.distances import distance
from common.data.dataset import numbers
from common.data.sums import sums
from common.diagnose.mistakes import wrong_logits
from common.judge.judgement import Cases, Setting, WrongError, require
from common.judge.readers import as_array, call
from common.models.nets import LENET, resnet18_shapes
from common.models.weights_file import initial_weights
from common.parallel.nets import gpt

NETS: Final = {
    "lenet": ("scratch", LENET, (12, 11, 9)),
    "resnet18": ("concise", resnet18_shapes(64), (4, 3, 5)),
    "gpt": ("gpt", gpt(2).shapes, (7, 5, 3)),
}
"""By net: its chapter, the shapes of its weights, and the numbers of examples of the steps."""

SINGLE, MIXED, FLIPPED = 2e-4, 1e-5, 5e-2
"""Distances that rounding explains; the last where it opens or shuts ReLUs, as in ResNet-18."""


def random_weights(net: str, dtype: str) -> Weights:
    """Weights of which none is 0: no ReLU's input is exactly 0."""
    random, weights = np.random.RandomState(5), initial_weights(NETS[net][1], 5, "float32")
    drawn = {k: 0.05 * random.standard_normal(values.shape) for k, values in weights.items()}
    return {k: (weights[k] + drawn[k]).astype("float32").astype(dtype) for k in weights}


def examples(count: int, dtype: str, net: str = "lenet") -> tuple[Array, Array]:
    """Images without blank parts, and their classes; or texts, and labels of which -1 is none."""
    if net == "gpt":
        texts, labels, *_ = sums()
        return numbers(texts[10 * count :][:count], labels[10 * count :][:count], dtype)
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
        yield f"{count} {'text' if setting.net == 'gpt' else 'image'}{'s' * (count > 1)}"
        X, _ = examples(count, dtype, setting.net)
        handed = {name: setting.hand(values) for name, values in weights.items()}
        logits = as_array(call(candidate, handed, setting.hand(X)), "what it returns")
        expected = numpy_nets.logits(chapter, X, weights)
        text = f"the logits have shape {logits.shape}, where {expected.shape} is right"
        require(logits.shape == expected.shape, text, "shape")
        off, _ = distance(logits, expected)
        if off > allowed(logits):
            require(np.isfinite(logits).all(), "the logits are NaN or infinite", "logits")
            text = "" if X.ndim == 2 else wrong_logits(chapter, weights, X, logits, SINGLE)
            text = text or f"but for {off:.1e} of the largest one"
            raise WrongError(f"the logits are those of {setting.net} {text}", "logits")
    return f"the logits of {setting.net} are those of NumPy"
