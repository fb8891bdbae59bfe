"""Tolerances: how far apart results may be, with the measurement that each comes from beside it.

Distances are relative: the largest difference of any entry over the reference tensor's largest
entry. `measured` is the largest distance seen over all frameworks and 1 to 4 devices; a tolerance
leaves room for other processors and thread counts, which round in another order, and no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from common.compare.numpy_layers import Pass


@dataclass(frozen=True)
class Tolerance:
    """How far apart results may be, how far they were measured to be, and how that came about."""

    limit: float
    measured: float
    origin: str = ""


Tolerances = dict[str, Tolerance]

Setting = tuple[str, str]
"""A preset and a data set."""


@dataclass(frozen=True)
class Criteria:
    """What a chapter's runs are compared with.

    `net` is the net in NumPy. `tolerances` are by dtype and quantity; a run fails if its dtype has
    none. Over the first `beginning` steps, training does not yet amplify rounding. Longer runs have
    larger minibatches: `long` has what is different for them, and `curve` is for the mean loss of
    their epochs.

    Accuracies are shares of the test set. At a constant rate, a run's is the mean of the later half
    of its epochs, at most three: a single epoch's swings by six points for rounding alone. Where
    the rate falls to 0, it is the last epoch's. A framework's is the mean of its runs. `spread` is
    how far apart frameworks may be, `floor` what every run has to reach.
    """

    net: type[Pass]
    tolerances: dict[str, Tolerances]
    beginning: int
    curve: Tolerance
    long: dict[str, Tolerances] = field(default_factory=dict)
    spread: Mapping[Setting, Tolerance] = field(default_factory=dict)
    floor: Mapping[Setting, Tolerance] = field(default_factory=dict)


def measured_by(origin: str, tolerances: Tolerances) -> Tolerances:
    """The tolerances, each with `origin` before what is said of it alone."""
    return {
        name: replace(each, origin=f"{origin} {each.origin}".strip())
        for name, each in tolerances.items()
    }


STEP_BY_STEP: Final = (
    "Measured step by step on two cores with AVX-512, 2026-11-23, over the runs of plain `nox`, "
    "the late steps of its presets included, with Fashion-MNIST and with the synthetic set, and "
    "over other settings on 1, 2, 3 and 8 devices."
)
"""How quantities of single steps were measured."""
