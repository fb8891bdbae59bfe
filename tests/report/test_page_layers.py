"""The report on runs that kept what their layers make."""

from pathlib import Path

import pytest
from concise_records import make_runs
from markup import shown
from numpy_concise import NumpyConcise, WrongEpsilon

from common.models.nets import layer_shapes


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of two frameworks that agree."""
    folder = tmp_path_factory.mktemp("right")
    make_runs(folder, NumpyConcise(), "jax", "mxnet")
    return folder


def test_layers_that_agree_are_all_shown(right: Path) -> None:
    page = shown(right, frameworks=["jax", "mxnet"])
    assert page.articles == []
    assert "#layers" in page.values("href")
    for name in layer_shapes(1):
        assert f"{name}, before" in page.text
    assert "✗" not in page.text[page.text.index("Layer by layer") :]


def test_the_culprit_is_named_with_its_layer(right: Path) -> None:
    make_runs(right, WrongEpsilon(), "tensorflow")
    page = shown(right, frameworks=["jax", "mxnet", "tensorflow"])
    (article,) = page.articles
    assert "tensorflow: stage3.block1.bn2, before step 1" in article
    assert "tensorflow on 1 diverges at stage3.block1.bn2, before training" in article
    assert "--layers" not in article


def test_without_layers_the_page_says_how_to_get_them(tmp_path: Path) -> None:
    make_runs(tmp_path, NumpyConcise(), "jax", "mxnet", layers=False)
    make_runs(tmp_path, WrongEpsilon(), "tensorflow", layers=False)
    page = shown(tmp_path, frameworks=["jax", "mxnet", "tensorflow"])
    (article,) = page.articles
    assert "make these runs again with --layers" in article
    assert "#layers" not in page.values("href")
