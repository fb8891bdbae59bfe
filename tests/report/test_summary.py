"""The table and the picture of a folder of runs."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from agreement import edit, make
from numpy_chapter import NumpyChapter

from common.base.errors import RequestError, RunError
from common.records.record import read_record
from common.report.plots import Line, Panel, plot
from common.summary import main


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with two runs, of which one took 2 seconds for each of its three epochs."""
    settings = {"steps": None, "epochs": 3, "batch_size": 4}
    for framework, devices in (("jax", 1), ("pytorch", 2)):
        make(tmp_path, framework, NumpyChapter(), devices, **settings)
    path = tmp_path / "jax-scratch-1dev.json"
    epochs = [epoch.model_dump() for epoch in read_record(path).epochs]
    for epoch, accuracy in zip(epochs, (0.25, 0.5, 0.75), strict=True):
        epoch |= {"test_accuracy": accuracy, "seconds": 2.0, "images_per_second": 20.0}
    edit(path, epochs=epochs, peak_memory=3 * 2**20)
    return tmp_path


def test_every_complete_run_has_a_row_and_a_line(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(runs), f"--picture={runs / 'a.svg'}"])
    _, _, first, second, _, source = capsys.readouterr().out.splitlines()
    assert first.startswith("| pytorch | 2 | ")
    assert second == "| jax | 1 | 0.625 | 0.500 | 2.0 | 20 | 3 MiB |"
    assert re.match(
        r"scratch, preset book, 40 synthetic images; .+, \d+ cores; \d{4}-\d\d-", source
    )
    words = [each.text for each in ElementTree.parse(runs / "a.svg").iterfind(".//{*}text")]
    assert {"jax, 1", "pytorch, 2", "test accuracy"} <= {*words}


def test_steps_of_another_setup_are_named_and_not_timed(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs / "jax-scratch-1dev.json"
    epochs = [epoch.model_dump() for epoch in read_record(path).epochs]
    epochs[0] |= {"seconds": 9.0, "images_per_second": 90.0}
    begun = {"started": "2030", "framework": "pytorch", "devices": 2}
    handed, same = begun | {"differences": ["framework pytorch there, jax here"]}, begun
    who = "trained in another setup (framework pytorch there, jax here)"
    for steps, row in (
        ((4, 25), f"| jax, steps 1 to 4 were {who} | 1 |  |  | 2.0 | 20 | 3 MiB |"),
        ((25, 28), f"| jax, steps 1 to 25 were {who} | 1 |  |  |  |  | 3 MiB |"),
    ):
        resumed = [
            whose | {"step": step} for whose, step in zip((handed, same), steps, strict=True)
        ]
        edit(path, epochs=epochs, resumed=resumed)
        main([str(runs), f"--picture={runs / 'a.svg'}"])
        assert row in capsys.readouterr().out.splitlines()
        assert "jax" not in (runs / "a.svg").read_text()


def test_what_is_no_complete_run_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "jax-scratch-1dev.json"
    edit(path, status="failed")
    main([str(runs)])
    assert "\nNot complete, and left out: jax-scratch-1dev.\n" in capsys.readouterr().out
    with pytest.raises(RequestError, match=f"there are no complete records in {runs}/empty"):
        main([f"{runs}/empty"])
    edit(path, status="complete")
    path.write_text(path.read_text().replace('"seconds": 2.0', '"seconds": 1.0'))
    with pytest.raises(RunError, match=r"jax-scratch-1dev\.json .*was changed after"):
        main([str(runs)])


def test_every_finite_point_of_a_line_is_drawn() -> None:
    line = Line("jax", 1, np.arange(1, 7), np.array([1e-9, np.nan, np.inf, 0, 1e-3, 1e300]))
    root = ElementTree.fromstring(plot([Panel("step", "a < b", [line]), Panel("step", "none", [])]))
    paths = [each.get("d", "") for each in root.iterfind(".//{*}path")]
    assert [each.count("L") for each in paths if "L" in each] == [3]
    words = [each.text for each in root.iterfind(".//{*}text")]
    assert {"a < b", "0", "1e+300", "jax, 1"} <= {*words}
