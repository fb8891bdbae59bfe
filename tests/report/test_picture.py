"""Pictures of runs and of clusters; only the environment that draws collects this file."""

import os
import subprocess
import sys
from pathlib import Path

from common.scaling.plot import draw
from common.scaling.results import Constant, Constants
from common.summary import main


def test_the_picture_is_the_same_for_the_same_records(runs: Path) -> None:
    pictures = []
    for name in ("a.svg", "b.svg"):
        main([str(runs), "--picture", str(runs / name)])
        pictures.append((runs / name).read_text())
    assert pictures[0] == pictures[1]
    assert "<svg" in pictures[0]
    assert "jax, 1" in pictures[0]


def test_what_matplotlib_was_told_elsewhere_changes_no_picture(runs: Path, tmp_path: Path) -> None:
    told = tmp_path / "matplotlibrc"
    told.write_text("text.usetex: True\nfont.size: 40\naxes.facecolor: blue\n")
    environment = {**os.environ, "MATPLOTLIBRC": str(told), "MPLBACKEND": "nonsense"}
    there = runs / "told.svg"
    command = [sys.executable, "-m", "common.summary", str(runs), f"--picture={there}"]
    subprocess.run(command, env=environment, check=True, cwd=Path(__file__).parents[2])
    main([str(runs), "--picture", str(runs / "here.svg")])
    assert there.read_text() == (runs / "here.svg").read_text()


def test_the_winners_are_drawn_the_same_for_the_same_constants(tmp_path: Path) -> None:
    constants = Constants(
        latency=Constant(value=1e-5, source="given"),
        bandwidth=Constant(value=1e10, source="measured: a copy"),
        addition=Constant(value=1e11, source="given"),
        rate=Constant(value=1e12, source="given"),
    )
    pictures = []
    for name in ("a.svg", "b.svg"):
        draw(constants, tmp_path / name)
        pictures.append((tmp_path / name).read_text())
    assert pictures[0] == pictures[1]
    for text in (
        "HT: halving, tree",
        "R: ring, sharded",
        "10.0 GB/s (measured)",
        "ResNet-18",
        "SIMULATED",
        "size of the vector",
    ):
        assert text in pictures[0]
