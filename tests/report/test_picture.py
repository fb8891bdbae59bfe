"""Pictures of runs; only the environment that draws collects this file."""

import os
import subprocess
import sys
from pathlib import Path

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
