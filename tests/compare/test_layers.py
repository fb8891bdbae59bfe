"""Layer by layer: the report names the first layer in which a framework diverges."""

import shutil
from pathlib import Path

import pytest
from agreement import make_runs
from numpy_chapter import NumpyConcise, WrongEpsilon, WrongMomentum

from common.backends.frameworks import FRAMEWORKS
from common.models.nets import layer_shapes
from common.parity import main

RIGHT = NumpyConcise()


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of four frameworks that agree."""
    folder = tmp_path_factory.mktemp("right")
    make_runs(folder, RIGHT)
    return folder


@pytest.fixture
def folder(right: Path, tmp_path: Path) -> Path:
    """The same, to be spoilt."""
    copy: Path = shutil.copytree(right, tmp_path / "results")
    return copy


def said(folder: Path, capsys: pytest.CaptureFixture[str], status: int) -> str:
    """What the comparison prints, layers included."""
    capsys.readouterr()
    assert main([str(folder), "--layers"]) == status
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_right_frameworks_diverge_nowhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = said(folder, capsys, 0)
    agreed = "pytorch, tensorflow, jax and mxnet agree before and after training"
    assert f"no layer diverges: {agreed}" in printed
    assert "concise, float64-sync, on 1, 2 devices, layer by layer" in printed
    for name in layer_shapes(1):
        for when in ("before", "after"):
            (line,) = (line for line in printed.splitlines() if f"│ {name}, {when} " in line)
            assert line.count("✓") == len(FRAMEWORKS)


@pytest.mark.parametrize(
    ("bug", "where"),
    [
        (WrongEpsilon, "stage3.block1.bn2, before training"),
        (WrongMomentum, "bn1, after training"),
    ],
)
def test_the_first_layer_that_is_wrong_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], bug: type[NumpyConcise], where: str
) -> None:
    make_runs(folder, bug(), "jax")
    printed = said(folder, capsys, 1)
    for devices in (1, 2):
        assert f"jax on {devices} diverges at {where}: " in printed
    assert printed.count(" diverges at ") == 2


def test_float32_is_compared_with_float64_where_that_has_its_layers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # All agree on what is wrong, so that only the exact answer can tell.
    make_runs(folder, WrongEpsilon(), "jax", "mxnet", dtype="float32")
    printed = said(folder, capsys, 1)
    assert printed.count(" diverges at stage3.block1.bn2, before training") == 4


def test_without_exact_layers_the_runs_are_compared_with_their_median(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_runs(tmp_path, RIGHT, "jax", "mxnet", dtype="float32")
    make_runs(tmp_path, WrongEpsilon(), "tensorflow", dtype="float32")
    printed = said(tmp_path, capsys, 1)
    assert printed.count("tensorflow on 2 diverges at stage3.block1.bn2, before training") == 1
    assert printed.count(" diverges at ") == 2
