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

# Measured by plain `nox` on two cores, 2026-11-20, with the seeds 0 and 8: the larger of both.
FLOAT64: Final = {
    "forward": Tolerance(1e-10, 1.3e-15),
    "gradient": Tolerance(1e-10, 3.1e-15),
    "trajectory": Tolerance(1e-10, 3.9e-16),
    "weights": Tolerance(1e-10, 1.9e-15),
    "outcome": Tolerance(1e-10, 7.2e-16),
}

FLOAT32: Final = {
    "forward": Tolerance(2e-6, 7.4e-7),
    "gradient": Tolerance(2e-5, 9.8e-6),
    "trajectory": Tolerance(5e-6, 1.4e-6),
    # Not rounding alone: of the 35 million ReLU inputs of these steps, a few lie so close to zero
    # that rounding decides their sign. One unit that flips moves fc1.bias by a hundredth of its
    # gradient. With seed 8 none flips, but for MXNet, and the others stay at 2.6e-6;
    # `tests/test_rounding.py` shows it for all where none can flip.
    "weights": Tolerance(5e-2, 2.1e-2),
    "outcome": Tolerance(1e-4, 3.2e-5),
}

SCRATCH: Final = {"float64": FLOAT64, "float32": FLOAT32}

# Measured by plain `nox` on two cores, 2026-11-21: 4 steps of 30 Fashion-MNIST images at lr 0.02,
# in both modes of batch norm. From small weights each step multiplies rounding: ten steps at this
# rate leave 1.4e-7 of the weights, four 1.8e-11.
CONCISE64: Final = {
    "forward": Tolerance(1e-10, 4.6e-16),
    "gradient": Tolerance(1e-10, 4.4e-13),
    "trajectory": Tolerance(1e-10, 4.0e-14),
    "weights": Tolerance(1e-9, 1.8e-11),
    "outcome": Tolerance(1e-10, 1.8e-12),
}

CONCISE: Final = {"float64": CONCISE64}
TOLERANCES: Final = {"scratch": SCRATCH, "concise": CONCISE}
"""By chapter, dtype and check; runs of a dtype without tolerances fail."""

CURVE: Final = Tolerance(0.1, 1.6e-2)
"""The mean loss of an epoch, where rounding has been amplified: see `HEAD`."""

# Accuracies are shares of the test set: the quick preset's the mean of its last two epochs, the
# book's of its last three. A single epoch's figure swings by six points for rounding alone.
ACCURACY_SPREAD: Final = {
    ("scratch", "quick"): Tolerance(0.05, 0.021),
    ("scratch", "book"): Tolerance(0.03, 0.007),
}
"""By chapter and preset."""

ACCURACY_FLOOR: Final = {
    ("scratch", "quick", "fashion-mnist"): Tolerance(0.70, 0.757),
    ("scratch", "quick", "synthetic"): Tolerance(0.80, 0.867),
    ("scratch", "book", "fashion-mnist"): Tolerance(0.78, 0.815),
}
"""By chapter, preset and data set."""
