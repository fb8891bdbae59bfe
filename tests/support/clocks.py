"""Known costs, and the times that a clock would show of them."""

from collections.abc import Sequence

import numpy as np

from common.scaling.results import Costs, Line, Lines, Probe
from common.scaling.workloads import grid, trials


def line(fixed: float, per_entry: float) -> Lines:
    """The same line for vectors of any length."""
    same = Line(fixed=fixed, per_entry=per_entry)
    return Lines(short=same, medium=same, long=same)


def costs(message: Lines, addition: Lines, *cut: Lines) -> Costs:
    one, two, three, four = cut or [line(0, 0)] * 4
    return Costs(message=message, addition=addition, cut=(one, two, three, four))


HERE = costs(
    Lines(
        short=Line(fixed=1e-5, per_entry=1e-9),
        medium=Line(fixed=3e-5, per_entry=3e-10),
        long=Line(fixed=3e-5, per_entry=4e-10),
    ),
    line(4e-6, 6e-10),
    *(line(c * 1e-4, 5e-10 * (c > 1)) for c in (1, 2, 3, 4)),
)


def probes(known: Costs, sizes: Sequence[int], error: float = 0) -> list[Probe]:
    """The times that a clock would show, up to a relative error."""
    random, made = np.random.RandomState(0), []
    for entries in grid(sizes):
        for trial in trials(entries):
            each = known.message(entries) + trial.adds * known.addition(entries)
            taken = 2 * known.cut[trial.chunks - 1](entries) + trial.messages * each
            taken *= 1 + error * random.uniform(-1, 1)
            made.append(Probe(**trial._asdict(), seconds=taken))
    return made
