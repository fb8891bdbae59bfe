"""The digest of weights: of their names, shapes and numbers."""

import numpy as np

from common.base.arrays import Weights
from common.models.weights_file import digest


def small(dtype: str = "float32") -> Weights:
    values = np.random.RandomState(0).standard_normal(16).astype(dtype)
    return {"weight": values[:12].reshape(3, 4), "bias": values[12:]}


def test_the_digest_is_of_the_numbers_not_of_their_dtype_or_order() -> None:
    single = small("float32")
    double = {name: single[name].astype(np.float64) for name in reversed(list(single))}
    assert digest(single) == digest(double)


def test_the_digest_sees_names_shapes_and_the_last_bit() -> None:
    weights = small()
    others = [
        {**weights, "weight": np.nextafter(weights["weight"], np.float32(9))},
        {**weights, "weight": weights["weight"].reshape(4, 3)},
        {"kernel": weights["weight"], "bias": weights["bias"]},
        {"weight": weights["weight"]},
    ]
    assert len({digest(each) for each in [weights, *others]}) == 5
