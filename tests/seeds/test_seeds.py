"""The spread of accuracies over seeds and frameworks, and what it takes to state it."""

import json
import shutil
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import answer, edit, make
from numpy_chapter import NumpyChapter

from common.seeds import main, p_value
from common.terminal.command import status

ACCURACIES = {"pytorch": [0.80, 0.82, 0.84], "jax": [0.79, 0.84, 0.83]}
COMPARED = ["--frameworks", *ACCURACIES]
SETTINGS: Any = {"preset": "quick", "steps": None, "epochs": 1, "test_examples": 100}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("seeds")
    for framework, accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            path = make(made / str(seed), framework, NumpyChapter(), 1, **SETTINGS, seed=seed)
            answer(path, accuracy)
    return made


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 2), (4, 3)])
def test_the_p_value_is_that_of_counting(rows: int, columns: int) -> None:
    figures = np.random.RandomState(rows).standard_normal((rows, columns)).round(1)  # with ties
    tables = product(*(permutations(row) for row in figures.tolist()))
    as_far = [np.var(np.mean(t, axis=0)) >= np.var(figures.mean(axis=0)) - 1e-12 for t in tables]
    assert [*p_value(figures)] == [pytest.approx(np.mean(as_far)), len(as_far)]
    figures = np.add.outer(np.arange(5.0), [0, 0, 0, 9])  # one of four is off at each seed
    assert [*p_value(figures)] == [pytest.approx(0.25**4, abs=0.002), 20_000]


def test_the_figures_are_those_of_records(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(whole), *COMPARED])
    said = capsys.readouterr().out
    assert said.startswith(
        "scratch, preset quick, 40 synthetic images;\nseeds 0, 1, 2; accuracy on"
    )
    assert "| pytorch | 0.8200 | 0.0200 | 0.8000 | 0.8400 |\n" in said
    table = np.array(list(ACCURACIES.values()))
    over = [f"{table.var(axis=axis, ddof=1).mean() ** 0.5:.4f}" for axis in (1, 0)]
    assert f"over the seeds: {over[0]}; of the frameworks at one seed: {over[1]}." in said
    assert "p = 1 (8 permutations" in said


def test_what_cannot_be_compared_is_named(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "seeds"))

    def require_refused(why: str, *flags: str) -> None:
        assert status("seeds", lambda: main([str(folder), *COMPARED, *flags])) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), why in err) == ("", 1, True)

    require_refused("seed 3, pytorch: there is no", "--seeds=4")
    require_refused("not 3 seeds of scratch in", "--frameworks", "jax")
    for path in (folder / "2").glob("*.json"):
        edit(path, config=json.loads(path.read_text())["config"] | {"preset": "book"})
    require_refused("seeds 0 and 2 are of two settings")
    shutil.copytree(folder / "2", folder / "1", dirs_exist_ok=True)
    require_refused("seed 1, pytorch: seed is 2, and the suite asks for 1")
    edit(folder / "0/jax-scratch-1dev.json", source_sha256="0")
    require_refused("seed 0, jax: stale")
