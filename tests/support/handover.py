"""Short runs of a framework, whose weights and checkpoints the others' tests find.

PYTHONPATH=. python tests/support/handover.py jax results/handover
"""

import sys
from pathlib import Path

from common.base.machine import cores
from common.chapters.chapters import CHAPTERS
from common.grid import run_all
from common.terminal.command import status


def flags(framework: str, chapter: str, folder: Path) -> list[str]:
    """The flags of such a run, which leaves all in one folder."""
    data = "--dataset=synthetic --train-examples=60 --test-examples=20 --batch-size=20"
    run = "--devices=1 --device-kind=cpu --threads=1 --dtype=float64 --steps=3 --quiet"
    weights = folder / f"{framework}-{chapter}.safetensors"
    files = [f"--out={folder}", f"--save-weights={weights}", f"--checkpoint-dir={folder / 'kept'}"]
    narrow = ["--width=4"] if chapter == "concise" else []
    return [*data.split(), *run.split(), *narrow, "--checkpoint-every=2", *files]


def main(framework: str, folder: str) -> int:
    """Runs both chapters. Returns 0, or the status of the first that failed."""
    todo = [(chapter, flags(framework, chapter, Path(folder))) for chapter in CHAPTERS]
    return status("handover", lambda: run_all(framework, todo, min(2, cores())))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
