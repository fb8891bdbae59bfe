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


def fill(
    folder: Path,
    batch_norm: str,
    dtype: str = "float64",
    steps: int = 2,
    **chapters: NumpyConcise,
) -> None:
    """Records of all frameworks on 1 and 2 devices; `chapters` names those that are not right."""
    for framework in FRAMEWORKS:
        for devices in (1, 2):
            chapter = chapters.get(framework, NumpyConcise())
            settings = {**SETTINGS, "batch_norm": batch_norm, "dtype": dtype, "steps": steps}
            make(folder / f"{dtype}-{batch_norm}", framework, chapter, devices, **settings)


def make_runs(
    folder: Path, chapter: NumpyConcise, *frameworks: str, dtype: str = "float64", **settings: Any
) -> None:
    """Records on 1 and 2 devices that have their layers."""
    place = folder / f"{dtype}-sync"
    for framework in frameworks or FRAMEWORKS:
        for devices in (1, 2):
            chosen = {**SETTINGS, "batch_norm": "sync", "dtype": dtype, "layers": True, **settings}
            make(place, framework, chapter, devices, **chosen)
