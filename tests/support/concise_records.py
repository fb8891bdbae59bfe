"""Folders of records of the concise chapter."""

from pathlib import Path
from typing import Any

from agreement import make
from numpy_concise import NumpyConcise

from common.backends.frameworks import FRAMEWORKS

SETTINGS: dict[str, Any] = {
    "chapter": "concise",
    "width": 1,
    "batch_size": 5,
    "steps": 2,
}


def make_runs(
    folder: Path, chapter: NumpyConcise, *frameworks: str, dtype: str = "float64", **settings: Any
) -> None:
    """Records on 1 and 2 devices; they have their layers, and synchronized batch norm."""
    chosen = {**SETTINGS, "batch_norm": "sync", "dtype": dtype, "layers": True, **settings}
    for framework in frameworks or FRAMEWORKS:
        for devices in (1, 2):
            make(folder / f"{dtype}-{chosen['batch_norm']}", framework, chapter, devices, **chosen)


def fill(
    folder: Path,
    batch_norm: str,
    dtype: str = "float64",
    steps: int = 2,
    **chapters: NumpyConcise,
) -> None:
    """Records of all frameworks without layers; `chapters` names those that are not right."""
    settings = {"batch_norm": batch_norm, "steps": steps, "layers": False}
    for framework in FRAMEWORKS:
        chapter = chapters.get(framework, NumpyConcise())
        make_runs(folder, chapter, framework, dtype=dtype, **settings)
