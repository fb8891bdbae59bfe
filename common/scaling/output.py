"""What comes of a measurement: tables, a file, and a picture."""

import argparse
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from common.base.files import write_text
from common.scaling.results import Constant, Constants, Measured, Scaling
from common.scaling.simulate import as_measured, simulate
from common.scaling.tables import show


def finish(
    flags: argparse.Namespace,
    by_flags: Mapping[str, Constant],
    measured: Measured,
    otherwise: Constants | None = None,
) -> None:
    """Simulates the cluster of what was measured, or another; prints, writes and draws all."""
    cluster = (otherwise or as_measured(measured)).model_copy(update=by_flags)
    path = flags.out / "scaling.json"
    scaling = Scaling(measured=measured, constants=cluster, simulated=simulate(cluster))
    if not flags.quiet:
        show(scaling)
    write_text(path, scaling.model_dump_json(by_alias=True, indent=2) + "\n")
    print(f"written: {path}")
    draw(scaling, path)


def draw(scaling: Scaling, path: Path) -> None:
    """Draws the picture beside `path`, or says how to get it."""
    if find_spec("matplotlib") is None:
        again = f"python -m common.scaling --quiet --measured {path}"
        print(f"no picture: Matplotlib is not installed here; where it is, `{again}` draws it")
        return
    from common.scaling import plot

    picture = path.with_suffix(".svg")
    plot.draw(scaling.constants, picture)
    print(f"written: {picture}")
