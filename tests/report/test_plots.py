"""Line plots."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from common.report.plots import Line, Panel, plot
from common.summary import main


def test_every_finite_point_of_a_line_is_drawn_and_the_limit() -> None:
    line = Line("a < b", np.arange(1, 6), np.array([1e-9, np.nan, np.inf, 1e-3, 1e300]), 0)
    panel = Panel("step", "distance", [line], log=True, limit=(2, 1e-6))
    root = ElementTree.fromstring(plot([panel, Panel("step", "nothing", [])], "legend"))
    paths = [each.get("d", "") for each in root.iterfind(".//{*}path")]
    assert sum("L" in each for each in paths) == 1
    assert next(each for each in paths if "L" in each).count("L") == 2
    words = [each.text for each in root.iterfind(".//{*}text")]
    assert {"a < b", "limit", "1e0", "1e300", "distance"} <= {*words}


def test_the_picture_of_a_folder_has_every_run(runs: Path) -> None:
    main([str(runs), f"--picture={runs / 'a.svg'}"])
    words = [each.text for each in ElementTree.parse(runs / "a.svg").iterfind(".//{*}text")]
    assert {"jax, 1", "pytorch, 2", "test accuracy"} <= {*words}
