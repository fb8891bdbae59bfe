"""The weights that a run of the concise chapter is given, and the width that they set."""

from pathlib import Path

import numpy as np
import pytest

from common.base.arrays import Weights
from common.base.errors import RequestError
from common.models.initial import initial_weights
from common.models.nets import LENET, resnet18_shapes
from common.models.weights_file import save_weights
from common.settings.request import Request
from common.training.run import given_weights

RESNET = initial_weights(resnet18_shapes(4), 0, "float32")


def request(path: Path, width: int | None = None) -> Request:
    return Request.from_settings("jax", "concise", init_weights=path, width=width)


def test_the_weights_set_the_width_that_no_flag_has_set(tmp_path: Path) -> None:
    save_weights(tmp_path / "w", RESNET)
    wanted, given = given_weights(request(tmp_path / "w"))
    assert given is not None
    assert given.keys() == RESNET.keys()
    assert wanted.options.shapes() == resnet18_shapes(4)


@pytest.mark.parametrize(
    ("weights", "width", "complaint"),
    [
        (RESNET, 8, r"conv1\.weight in .+ has shape \(4, 1, 3, 3\), expected \(8, 1, 3, 3\)"),
        (initial_weights(LENET, 0, "float32"), None, r"bn1\.bias is missing .+ and 102 more$"),
        ({"fc.bias": np.zeros(10)}, None, "cannot read weights from"),
    ],
    ids=["another width", "another net", "nothing to tell the width"],
)
def test_weights_that_do_not_fit_are_refused_in_a_line_of_their_own(
    tmp_path: Path, weights: Weights, width: int | None, complaint: str
) -> None:
    save_weights(tmp_path / "w", weights)
    with pytest.raises(RequestError, match=complaint) as refusal:
        given_weights(request(tmp_path / "w", width))
    assert len(str(refusal.value)) < 400
