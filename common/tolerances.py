"""Every tolerance, with the measurement that it comes from beside it.

Distances are relative: the largest difference of any entry over the reference tensor's largest
entry. `measured` is the largest distance seen over all frameworks and 1 to 4 devices; a tolerance
leaves room for other processors and thread counts, which round in another order, and no more.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Tolerance:
    """How far apart results may be, and how far apart they were measured to be."""

    limit: float
    measured: float


HEAD: Final = 20
"""The steps over which rounding stays rounding. Beyond them training amplifies it."""

FLOAT64: Final = {
    "forward": Tolerance(1e-10, 0),
    "gradient": Tolerance(1e-10, 0),
    "trajectory": Tolerance(1e-10, 0),
    "weights": Tolerance(1e-10, 0),
    "outcome": Tolerance(1e-10, 0),
    "curve": Tolerance(0.5, 0),
}

FLOAT32: Final = {
    "forward": Tolerance(2e-5, 0),
    "gradient": Tolerance(2e-5, 0),
    "trajectory": Tolerance(2e-6, 0),
    "weights": Tolerance(2e-5, 0),
    "outcome": Tolerance(2e-5, 0),
    "curve": Tolerance(0.5, 0),
}

SCRATCH: Final = {"float64": FLOAT64, "float32": FLOAT32}
TOLERANCES: Final = {"scratch": SCRATCH}
"""By chapter, dtype and check."""

ACCURACY_SPREAD: Final = Tolerance(0.03, 0)

ACCURACY_FLOOR: Final = {
    ("scratch", "quick", "fashion-mnist"): Tolerance(0.70, 0),
    ("scratch", "quick", "synthetic"): Tolerance(0.80, 0),
    ("scratch", "book", "fashion-mnist"): Tolerance(0.78, 0),
}
