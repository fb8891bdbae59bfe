"""Pictures of runs; only the environment that draws collects this file."""

import os
import subprocess
import sys
from pathlib import Path

from common.summary import main


def test_the_picture_is_the_same_whatever_matplotlib_was_told(runs: Path) -> None:
    (runs / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\n")
    environment = {**os.environ, "MATPLOTLIBRC": str(runs), "MPLBACKEND": "nonsense"}
    command = [sys.executable, "-m", "common.summary", str(runs), f"--picture={runs / 'a.svg'}"]
    subprocess.run(command, env=environment, check=True, cwd=Path(__file__).parents[2])
    main([str(runs), "--picture", str(runs / "b.svg")])
    assert (runs / "a.svg").read_text() == (runs / "b.svg").read_text()
    assert "jax, 1" in (runs / "a.svg").read_text()
