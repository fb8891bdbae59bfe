"""The canonical weights of both models: what they are called, and what they start from."""

import numpy as np
import pytest

from common.chapters.concise import ConciseOptions
from common.chapters.operations import training_operations
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


def test_resnet_takes_what_its_convolutions_do() -> None:
    width, first = 3, 2 * 28 * 28 * 3 * 9
    blocks = 4 * 28 * 28 * width * width * 9
    for stage, side in ((1, 14), (2, 7), (3, 4)):
        channels = width * 2**stage
        blocks += side * side * channels * (channels // 2 * 9 + 3 * channels * 9 + channels // 2)
    dense = 2 * 10 * width * 8
    assert training_operations(ConciseOptions(width)) == 2 * first + 3 * (2 * blocks + dense)
