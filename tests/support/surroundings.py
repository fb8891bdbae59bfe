"""Runs of a chapter with variables of the environment that a reader has long forgotten."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from started import SECONDS

ROOT: Final = Path(__file__).parents[2]

FLAGS: Final = (
    *("--devices=2", "--dataset=synthetic", "--train-examples=60", "--test-examples=20"),
    *("--batch-size=15", "--steps=2", "--dtype=float32", "--quiet"),
)


def ran(module: str, out: Path, *more: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A short run of a chapter on two devices, in float32, once it has ended."""
    return subprocess.run(
        [sys.executable, "-m", module, *FLAGS, f"--out={out}", *more],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def computed(out: Path) -> bytes:
    """All tensors that the one run in a folder has left, to the bit."""
    (path,) = out.glob("*.safetensors")
    return path.read_bytes()
