"""The picture of a suite: losses, and their distance from the reference."""

import base64
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.compare.checks import Run, head
from common.report.plots import Line, Panel, plot

NO_DISTANCE: Final = {"float64": 1e-17, "float32": 1e-9}
"""What is drawn for a distance of 0, which a logarithmic axis lacks: less than rounding."""


def losses(runs: Sequence[Run], expected: Mapping[str, Array], limit: float | None) -> str:
    """The URI of a picture: the loss of every step and, below, its distance from the expected one.

    `expected` has the losses (steps,) that runs are compared with, by name; `limit` is that of a
    distance, as long as it is compared.
    """
    every, distances = [], []
    for run in runs:
        found, reference = run.arrays["losses"], expected.get(run.name)
        every.append(line(run, found))
        if reference is not None and reference.shape == found.shape:
            with np.errstate(all="ignore"):
                far = np.abs(found - reference) / (np.abs(reference).max() or 1.0)
            distances.append(line(run, np.maximum(far, NO_DISTANCE[run.record.config.dtype])))
    end = None if limit is None else (len(head(runs[0], runs[0].arrays)["losses"]), limit)
    panels = [
        Panel("step", "training loss", every),
        Panel("step", "relative distance", distances, log=True, limit=end),
    ]
    # An image within the page can run nothing, and fetch nothing.
    picture = plot(panels, "framework, devices").encode()
    return "data:image/svg+xml;base64," + base64.b64encode(picture).decode()


def line(run: Run, values: Array) -> Line:
    """A value (n,) for each of the first steps of a run."""
    name = run.record.framework
    steps = np.arange(1, len(values) + 1)
    return Line(f"{name}, {run.devices}", steps, values, FRAMEWORKS.index(name), run.devices - 1)
