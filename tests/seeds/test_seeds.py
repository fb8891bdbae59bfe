"""The spread of accuracies over seeds and frameworks."""

import json
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
COMPARED = ["--seeds=3", "--frameworks", *ACCURACIES]
SETTINGS: Any = {"preset": "quick", "steps": None, "epochs": 1, "test_examples": 100}


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (5, 2), (4, 3)])
def test_the_p_value_is_that_of_counting(rows: int, columns: int) -> None:
    figures = np.random.RandomState(rows).standard_normal((rows, columns)).round(1)  # with ties
    tables = product(*(permutations(row) for row in figures.tolist()))
    as_far = [np.var(np.mean(t, axis=0)) >= np.var(figures.mean(axis=0)) - 1e-12 for t in tables]
    assert [*p_value(figures)] == [pytest.approx(np.mean(as_far)), len(as_far)]
    figures = np.add.outer(np.arange(5.0), [0, 0, 0, 9])  # one of four is off
    assert [*p_value(figures)] == [pytest.approx(0.25**4, abs=0.002), 20_000]


def test_figures_are_those_of_records_of_one_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for framework, accuracies in ACCURACIES.items():
        for seed, accuracy in enumerate(accuracies):
            path = make(tmp_path / str(seed), framework, NumpyChapter(), 1, **SETTINGS, seed=seed)
            answer(path, accuracy)
    main([str(tmp_path), *COMPARED])
    said = capsys.readouterr().out
    assert "scratch, preset quick, 40 synthetic images; seeds 0 to 2; accuracy on 100" in said
    assert "| pytorch | 0.8200 | 0.0200 | 0.8000 | 0.8400 |\n" in said
    table = np.array(list(ACCURACIES.values()))
    over = [f"{table.var(axis=axis, ddof=1).mean() ** 0.5:.4f}" for axis in (1, 0)]
    assert f"over the seeds: {over[0]}; of the\nframeworks at one seed: {over[1]}." in said
    assert "p = 1 (8 permutations" in said

    def require_refused(why: str, *flags: str) -> None:
        assert status("seeds", lambda: main([str(tmp_path), *COMPARED, *flags])) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), why in err) == ("", 1, True)

    require_refused("seed 3, pytorch: there is no", "--seeds=4")
    require_refused("a spread needs two frameworks", "--frameworks", "jax")
    for path in (tmp_path / "2").glob("*.json"):
        edit(path, config=json.loads(path.read_text())["config"] | {"lr": 0.06})
    require_refused("the seeds are of several settings")
    edit(tmp_path / "0/jax-scratch-1dev.json", source_sha256="0")
    require_refused("seed 0, jax: stale")
