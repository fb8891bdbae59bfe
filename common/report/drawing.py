"""Figures that are the same for the same numbers, whatever Matplotlib has been told elsewhere."""

import os
from pathlib import Path
from typing import Any

from common.base.files import write_atomically


def new_figure(width: float, height: float, **style: Any) -> Any:
    """An empty figure, in inches; `style` has settings of Matplotlib, with "_" for their "."."""
    os.environ["MPLBACKEND"] = "svg"  # Matplotlib does not load with one that there is not
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcdefaults()  # a file of the user's may ask for LaTeX, or for other sizes and colours
    settings: dict[Any, Any] = {name.replace("_", ".", 1): value for name, value in style.items()}
    mpl.rcParams.update(settings | {"svg.hashsalt": "parity"})  # and no random names
    return Figure(figsize=(width, height), layout="constrained")


def save_svg(figure: Any, path: Path) -> None:
    """Writes a figure whole or not at all; the same one gives the same bytes, without a date."""
    write_atomically(path, lambda file: figure.savefig(file, format="svg", metadata={"Date": None}))
