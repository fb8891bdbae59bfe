"""The weights that every framework starts from."""

import numpy as np

from common.base.arrays import Weights
from common.models.nets import Shapes


def initial_weights(shapes: Shapes, seed: int, dtype: str) -> Weights:
    """The book's initial weights: from N(0, 0.01²), biases 0; batch normalization: identity.

    They are rounded to float32 in either dtype, so that float64 and float32 runs start alike.
    """
    random = np.random.RandomState(seed)
    weights = {}
    for name, shape in shapes.items():
        if name.endswith(".weight") and len(shape) > 1:
            drawn = 0.01 * random.standard_normal(shape)
        else:
            ones = name.endswith((".weight", ".running_var"))
            drawn = np.ones(shape) if ones else np.zeros(shape)
        weights[name] = drawn.astype(np.float32).astype(dtype)
    return weights
