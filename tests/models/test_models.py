"""The canonical weights of both models: what they are called, and what they start from."""

import numpy as np
import pytest

from common.models.initial import initial_weights
from common.models.nets import resnet18_shapes, trainable


def test_resnet18_has_as_many_numbers_as_the_books() -> None:
    sizes = {name: np.prod(shape) for name, shape in resnet18_shapes(64).items()}
    assert sum(size for name, size in sizes.items() if trainable(name)) == 11_175_818
    assert sum(not trainable(name) for name in sizes) == 2 * (1 + 4 * 2 * 2)
    assert [name for name in sizes if "conv3.weight" in name] == [
        f"stage{stage}.block1.conv3.weight" for stage in (2, 3, 4)
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batch_norm_starts_as_the_identity(dtype: str) -> None:
    for name, values in initial_weights(resnet18_shapes(4), 0, dtype).items():
        assert values.dtype == np.dtype(dtype)
        if values.ndim > 1:
            assert 0.005 < values.std() < 0.02
        else:
            ones = name.endswith((".running_var", "bn1.weight", "bn2.weight"))
            assert (values == ones).all(), name
