"""The pictures of the report: losses, and their distance from the reference."""

import base64
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Final

import numpy as np

from common.backends.frameworks import FRAMEWORKS
from common.base.arrays import Array
from common.compare.checks import Run, head
from common.report.drawing import new_figure

DASHES: Final = ("-", "--", ":", "-.")
"""Line styles, by the number of devices."""

MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
"""Markers, by framework: colour is never all that tells runs apart."""

NO_DISTANCE: Final = {"float64": 1e-17, "float32": 1e-9}
"""What is drawn for a distance of 0, which a log axis does not have: less than rounding."""

HUGE: Final = 1e30
"""What is larger is not drawn: axes cannot hold every number that a record can."""


def losses(runs: Sequence[Run], expected: Mapping[int | None, Array], limit: float | None) -> str:
    """The URI of a picture: the loss of every step and, below, its distance from the expected one.

    `expected` has the losses (steps,) that runs are compared with, by their number of shards;
    `limit` is what a distance may be, as long as it is compared.
    """
    # Text stays text: a glyph drawn as a path takes more room than all the lines. Of a long line,
    # what moves it by less than a pixel is left out.
    style = {"svg_fonttype": "none", "font_size": 11, "path_simplify_threshold": 1}
    figure = new_figure(7, 5, **style)
    above, below = figure.subplots(2, 1, sharex=True)
    for run in runs:
        found = run.arrays["losses"]
        _draw(above, found, run)
        reference = expected.get(run.shards)
        if reference is not None and reference.shape == found.shape:
            with np.errstate(all="ignore"):
                far = np.abs(found - reference) / (np.abs(reference).max() or 1.0)
            least = NO_DISTANCE[run.record.config.dtype]
            _draw(below, np.maximum(far, least), run)
    if runs and limit is not None:
        compared = len(head(runs[0], runs[0].arrays)["losses"])
        below.plot([1, compared], [limit, limit], color="black", linewidth=2)
        below.annotate("limit", (1, limit), (2, -11), textcoords="offset points", fontsize="small")
    above.set(ylabel="training loss")
    below.set(xlabel="step", ylabel="relative distance", yscale="log")
    handles, labels = above.get_legend_handles_labels()
    style = {"loc": "outside lower center", "fontsize": "small", "title_fontsize": "small"}
    columns = len({label.partition(",")[0] for label in labels}) or 1
    figure.legend(handles, labels, ncols=columns, title="framework, devices", **style)
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    # As an image that is part of the page, nothing in it can run, or reach out.
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def _draw(axes: Any, values: Array, run: Run) -> None:
    """Draws one line of a run, a value (n,) for each step or epoch."""
    values = np.where(np.abs(values) < HUGE, values, np.nan)
    framework = FRAMEWORKS.index(run.record.framework) % len(MARKERS)
    spacing = max(1, len(values) // 6)
    axes.grid(alpha=0.3)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.plot(
        np.arange(len(values)) + 1,
        values,
        color=f"C{framework}",
        linestyle=DASHES[(run.devices - 1) % len(DASHES)],
        linewidth=1,
        marker=MARKERS[framework],
        markersize=4,
        fillstyle="none",
        # Lines lie on top of each other: the markers take turns.
        markevery=((framework + len(FRAMEWORKS) * run.devices) * spacing // 16 % spacing, spacing),
        label=f"{run.record.framework}, {run.devices}",
    )
