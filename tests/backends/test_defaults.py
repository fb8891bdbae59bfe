"""What a page says that frameworks take for granted is what they take."""

from pathlib import Path
from typing import Any

import pytest

from common.backends.frameworks import FRAMEWORKS

PAGE = Path(__file__).parents[2] / "docs/defaults.md"


def batch_norm(framework: str) -> tuple[float, float]:
    """Momentum and epsilon, as the framework has them without being told."""
    layer: Any
    if framework == "pytorch":
        from torch.nn import BatchNorm2d

        layer = BatchNorm2d(1)
        return layer.momentum, layer.eps
    if framework == "mxnet":
        from mxnet.gluon.nn import BatchNorm as GluonBatchNorm

        own = GluonBatchNorm()._kwargs
        return own["momentum"], own["eps"]
    if framework == "tensorflow":
        from keras.layers import BatchNormalization

        layer = BatchNormalization()
    else:
        from flax.nnx import BatchNorm, Rngs

        layer = BatchNorm(1, rngs=Rngs(0))
    return layer.momentum, layer.epsilon


@pytest.mark.usefixtures("all_devices")  # which JAX has to know before it makes a layer
def test_the_page_has_the_defaults_of_batch_norm(framework: str) -> None:
    own, lines = [], PAGE.read_text(encoding="utf-8").splitlines()
    for title in ("momentum", "epsilon"):
        (line,) = (each for each in lines if f"norm: {title}" in each)
        own.append(float(line.split(" | ")[1 + FRAMEWORKS.index(framework)].split(",")[0]))
    assert tuple(own) == pytest.approx(batch_norm(framework))
