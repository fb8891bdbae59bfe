"""The table and the picture of a folder of runs."""

import re
from pathlib import Path
from xml.etree import ElementTree

import agreement
import numpy as np
import pytest

from common.base.errors import RequestError, RunError
from common.report.plots import Line, Panel, plot
from common.summary import main


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


def test_what_is_no_complete_run_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "jax-scratch-1dev.json"
    agreement.edit(path, status="failed")
    main([str(runs)])
    assert "\nNot complete, and left out: jax-scratch-1dev.\n" in capsys.readouterr().out
    with pytest.raises(RequestError, match=f"there are no complete records in {runs}/empty"):
        main([f"{runs}/empty"])
    agreement.edit(path, status="complete")
    path.write_text(path.read_text().replace('"seconds": 2.0', '"seconds": 1.0'))
    with pytest.raises(RunError, match=r"jax-scratch-1dev\.json .*was changed after"):
        main([str(runs)])


def test_every_finite_point_of_a_line_is_drawn_and_the_limit() -> None:
    line = Line("jax", 1, np.arange(1, 7), np.array([1e-9, np.nan, np.inf, 0, 1e-3, 1e300]))
    panel = Panel("step", "a < b", [line], log=True, limits=[(2, 1e-6)])
    root = ElementTree.fromstring(plot([panel, Panel("step", "nothing", [])]))
    paths = [each.get("d", "") for each in root.iterfind(".//{*}path")]
    assert sum("L" in each for each in paths) == 1
    assert next(each for each in paths if "L" in each).count("L") == 2
    words = [each.text for each in root.iterfind(".//{*}text")]
    assert {"a < b", "limit", "1e0", "1e300", "jax, 1"} <= {*words}
