"""Short runs of a framework, whose weights and checkpoints the others' tests find.

PYTHONPATH=. python tests/support/handover.py jax results/handover
"""

import sys
from pathlib import Path
from typing import Any

from common.base.machine import cores
from common.chapters.chapters import CHAPTERS
from common.grid import run_all
from common.terminal.command import status


def settings_of(framework: str, chapter: str, folder: Path) -> dict[str, Any]:
    """The settings of such a run, with all files in one folder."""
    data = {"dataset": "synthetic", "train_examples": 60, "test_examples": 20, "batch_size": 20}
    run = {"devices": 1, "device_kind": "cpu", "threads": 1, "dtype": "float64", "steps": 3}
    weights = folder / f"{framework}-{chapter}.safetensors"
    files = {"out": folder, "save_weights": weights, "checkpoint_dir": folder / "kept"}
    run |= {"width": 4} if chapter == "concise" else {}
    return data | run | files | {"checkpoint_every": 2, "quiet": True}


def main(framework: str, folder: str) -> int:
    """Runs all chapters. Returns 0, or the status of the first that failed."""
    todo = [(chapter, settings_of(framework, chapter, Path(folder))) for chapter in CHAPTERS]
    return status("handover", lambda: run_all(framework, todo, min(2, cores())))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
