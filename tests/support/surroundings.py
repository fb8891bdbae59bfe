"""Runs of a chapter with variables of the environment that a reader has long forgotten."""

import subprocess
from pathlib import Path
from typing import Final

from started import python

FLAGS: Final = (
    *("--devices=2", "--dataset=synthetic", "--train-examples=60", "--test-examples=20"),
    *("--batch-size=15", "--steps=2", "--dtype=float32", "--quiet"),
)


def ran(module: str, out: Path, *more: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """A short run of a chapter on two devices, in float32, once it has ended."""
    return python("-m", module, *FLAGS, f"--out={out}", *more, **variables)


def computed(out: Path) -> bytes:
    """All tensors that the one run in a folder has left, to the bit."""
    (path,) = out.glob("*.safetensors")
    return path.read_bytes()
