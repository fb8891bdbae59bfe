"""The spread of accuracies over seeds and frameworks, and what it takes to state it."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import answer, edit, make
from numpy_chapter import NumpyChapter

from common.backends.frameworks import FRAMEWORKS
from common.grid import seed_commands
from common.seeds.__main__ import main
from common.seeds.spread import Spread, read_spread, spread_in
from common.terminal.command import status

ACCURACIES = {
    "pytorch": [0.80, 0.82, 0.84],
    "tensorflow": [0.81, 0.82, 0.83],
    "jax": [0.79, 0.83, 0.84],
    "mxnet": [0.80, 0.81, 0.85],
}


def place(folder: Path, seed: int, framework: str) -> Path:
    return folder / str(seed) / f"{framework}-scratch-1dev.json"


def put(path: Path, framework: str, seed: int, accuracy: float, **settings: Any) -> None:
    """A record of a run with a seed, that has reached this accuracy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, Any] = {"seed": seed, "preset": "quick", "steps": None, "epochs": 1}
    chosen |= {"init_weights": None, "test_examples": 300, "batch_size": 40, **settings}
    answer(make(path.parent, framework, NumpyChapter(), 1, **chosen), accuracy)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("seeds")
    for framework, accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            put(place(made, seed, framework), framework, seed, accuracy)
    return made


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "seeds"))


def spread(folder: Path, frameworks: Sequence[str] = FRAMEWORKS) -> Spread:
    return spread_in(folder, chapter="scratch", frameworks=frameworks)


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    capsys.readouterr()
    assert status("seeds", lambda: main([str(folder), *flags])) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert not (folder / "seeds.json").exists()
    return said.err


def test_the_figures_are_those_of_the_records(folder: Path) -> None:
    found = spread(folder)
    assert (found.chapter, found.preset, found.data) == ("scratch", "quick", "synthetic")
    assert found.seeds == [0, 1, 2]
    assert {each.framework: each.accuracies for each in found.frameworks} == ACCURACIES
    first = found.frameworks[0]
    assert [first.mean, first.deviation] == pytest.approx([0.82, 0.02])
    assert (first.least, first.most) == (0.80, 0.84)
    last = found.differences[-1]
    assert (last.first, last.second) == ("jax", "mxnet")
    assert last.mean == pytest.approx(0)
    assert last.deviation == pytest.approx(0.0173205, rel=1e-5)
    assert last.error == pytest.approx(0.01)
    table = np.array(list(ACCURACIES.values()))
    assert found.over_seeds == pytest.approx(table.var(axis=1, ddof=1).mean() ** 0.5)
    assert found.over_frameworks == pytest.approx(table.var(axis=0, ddof=1).mean() ** 0.5)
    assert found.test.p_value > 0.5


def test_a_framework_that_is_off_is_found(folder: Path) -> None:
    for seed in range(3):
        put(place(folder, seed, "jax"), "jax", seed, 0.7 + 0.02 * seed)
    found = spread(folder)
    assert found.test.p_value < 0.07  # a fourth, squared, is what three seeds can tell
    assert found.over_frameworks > 2 * found.over_seeds


def test_it_is_printed_and_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_spread(folder) is None
    main([str(folder), "--seeds=3"])
    said = " ".join(capsys.readouterr().out.split())
    found = read_spread(folder)
    assert found is not None
    assert found.model_dump(exclude={"created"}) == spread(folder).model_dump(exclude={"created"})
    pasted = (folder / "seeds.md").read_text()
    assert "| pytorch | 0.8200 | 0.0200 | 0.8000 | 0.8400 |\n" in pasted
    assert "| jax - mxnet | +0.0000 | 0.0173 | 0.0100 |\n" in pasted
    for text in (said, pasted):
        assert "null hypothesis: which framework ran makes no difference" in text
        assert "statistic: the variance of the frameworks' mean accuracies" in text
        assert f"p = {found.test.p_value:.3g} (all 576 permutations" in text
        assert "it cannot be below 0.0017" in text
        assert "A small p speaks against the null hypothesis" in text
        assert "standard deviation of one framework over the seeds: 0.0218" in text


def test_some_frameworks_and_seeds_will_do(folder: Path) -> None:
    shutil.rmtree(folder / "0")
    place(folder, 2, "mxnet").unlink()
    found = spread(folder, ["jax", "pytorch"])
    assert found.seeds == [1, 2]
    assert [each.framework for each in found.frameworks] == ["jax", "pytorch"]
    assert found.test.smallest == 0.5


def test_what_is_missing_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no" in refused(folder, capsys, "--seeds=4")
    place(folder, 1, "jax").unlink()
    said = refused(folder, capsys)
    assert f"seed 1, jax: there is no {place(folder, 1, 'jax')}; `nox -s seeds`" in said
    assert "not 0 seeds of concise in" in refused(folder, capsys, "--chapter=concise")
    assert "and 1 frameworks: `nox -s seeds`" in refused(folder, capsys, "--frameworks", "jax")
    assert "not 1 seeds of scratch in" in refused(folder, capsys, "--seeds=1")
    assert "there is no" in refused(folder, capsys, "--devices=2")
    assert "not 0 seeds" in refused(folder / "nowhere", capsys)


def test_a_run_that_cannot_be_trusted_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(place(folder, 1, "mxnet"), source_sha256="0")
    said = refused(folder, capsys)
    assert "seed 1, mxnet: stale" in said


def test_a_run_with_another_seed_than_its_folders_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(place(folder, 1, "jax"), "jax", 2, 0.8)
    assert "seed 1, jax: seed is 2, and the suite asks for 1" in refused(folder, capsys)


def test_seeds_of_another_setting_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for framework in FRAMEWORKS:
        put(place(folder, 2, framework), framework, 2, 0.8, preset="book")
    said = refused(folder, capsys)
    assert "for seed 0 and book for seed 2: run `nox -s seeds` again" in said


def test_the_runs_are_the_quick_preset_with_each_seed() -> None:
    runs = seed_commands(Path("r"), "concise", 3)
    assert {chapter for chapter, _ in runs} == {"concise"}
    for seed, (_, flags) in enumerate(runs):
        assert {"--preset=quick", "--devices=1", f"--seed={seed}", f"--out=r/{seed}"} <= set(flags)
