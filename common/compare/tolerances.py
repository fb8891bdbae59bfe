"""Every tolerance, with the measurement that it comes from beside it.

Distances are relative: the largest difference of any entry over the reference tensor's largest
entry. `measured` is the largest distance seen over all frameworks and 1 to 4 devices; a tolerance
leaves room for other processors and thread counts, which round in another order, and no more.
"""

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Tolerance:
    """How far apart results may be, how far they were measured to be, and how that came about."""

    limit: float
    measured: float
    origin: str = ""


Tolerances = dict[str, Tolerance]


def _measured(origin: str, tolerances: Tolerances) -> Tolerances:
    """The tolerances, each with `origin` before what is said of it alone."""
    return {
        name: replace(each, origin=f"{origin} {each.origin}".strip())
        for name, each in tolerances.items()
    }


_LENET: Final = (
    "Measured by plain `nox` on two cores, 2026-11-20, with the seeds 0 and 8, and 2026-11-21 on "
    "a processor without AVX-512: the largest of the three."
)

_STEP: Final = (
    "Measured step by step on two cores with AVX-512, 2026-11-23, over the runs of plain `nox`, "
    "the late steps of its presets included, with Fashion-MNIST and with the synthetic set, and "
    "over other settings on 1, 2, 3 and 8 devices."
)

FLOAT64: Final = _measured(
    _LENET,
    {
        "forward": Tolerance(1e-10, 1.3e-15),
        "gradient": Tolerance(1e-10, 4.4e-15),
        "trajectory": Tolerance(1e-10, 3.9e-16),
        "weights": Tolerance(1e-10, 1.9e-15),
        "outcome": Tolerance(1e-10, 7.2e-16),
    },
) | _measured(
    _STEP,
    {
        "update": Tolerance(1e-10, 8.3e-16),
        "loss": Tolerance(1e-10, 3.9e-16),
        "logits": Tolerance(1e-10, 1.4e-16),
    },
)

_UNIT_OF_LENET: Final = (
    "Not rounding alone: of the 35 million ReLU inputs of 20 steps, a few lie so close to zero "
    "that rounding decides their sign. One unit that flips moves fc1.bias by a hundredth of its "
    "gradient. With seed 8 none flips, but for MXNet, and the others stay at 2.6e-6. Each step "
    "from its own weights is held more closely."
)

_LOG_SOFTMAX: Final = (
    "That is MXNet late in training, whose log_softmax is off by 5e-6 at most, five times as much "
    "as NumPy's in single precision."
)

FLOAT32: Final = _measured(
    _LENET,
    {
        "forward": Tolerance(2e-6, 7.4e-7),
        "gradient": Tolerance(2e-5, 9.8e-6),
        "trajectory": Tolerance(5e-6, 1.4e-6),
        "weights": Tolerance(5e-2, 2.1e-2, _UNIT_OF_LENET),
        "outcome": Tolerance(1e-4, 3.2e-5),
    },
) | _measured(
    _STEP,
    {
        "update": Tolerance(1.5e-4, 5.2e-5, _LOG_SOFTMAX),
        "loss": Tolerance(5e-6, 9.2e-7),
        "logits": Tolerance(2e-6, 2.9e-7),
    },
)

_RESNET: Final = (
    "Measured by plain `nox` on two cores, 2026-11-21, in both modes of batch norm, with "
    "Fashion-MNIST and with the synthetic set: the larger of both."
)

CONCISE64: Final = _measured(
    _RESNET,
    {
        "forward": Tolerance(1e-10, 4.5e-16),
        "gradient": Tolerance(1e-10, 1.3e-13),
        "trajectory": Tolerance(1e-10, 7.6e-16),
        "weights": Tolerance(1e-10, 2.6e-12),
        "outcome": Tolerance(1e-10, 2.7e-15),
    },
) | _measured(
    _STEP,
    {
        "update": Tolerance(1e-10, 1.0e-13),
        "statistics": Tolerance(1e-10, 1.8e-15),
        "loss": Tolerance(1e-10, 2.0e-16),
        "logits": Tolerance(1e-10, 2.0e-16),
    },
)

_UNIT_OF_RESNET: Final = (
    "Rounding alone leaves 7e-4. In the second step a ReLU unit or two is decided by it, and one "
    "such unit moves the bias of a batch norm by a tenth of what it has learned until then. Each "
    "step from its own weights is held more closely."
)

CONCISE32: Final = _measured(
    _RESNET,
    {
        "forward": Tolerance(1e-6, 3.6e-7),
        "gradient": Tolerance(2e-4, 7.5e-5),
        "trajectory": Tolerance(5e-6, 1.1e-6),
        "weights": Tolerance(3e-1, 1.2e-1, _UNIT_OF_RESNET),
        "outcome": Tolerance(5e-5, 1.9e-5),
    },
) | _measured(
    _STEP,
    {
        "update": Tolerance(1e-4, 4.9e-5),
        "statistics": Tolerance(1e-5, 3.0e-6),
        "loss": Tolerance(5e-6, 1.0e-6),
        "logits": Tolerance(2e-6, 5.0e-7),
    },
)

TOLERANCES: Final[dict[str, dict[str, Tolerances]]] = {
    "scratch": {"float64": FLOAT64, "float32": FLOAT32},
    "concise": {"float64": CONCISE64, "float32": CONCISE32},
}
"""By chapter and dtype. Runs of a dtype without tolerances fail."""

BEGINNING: Final = {"scratch": 20, "concise": 2}
"""By chapter: the steps from the first one on over which rounding stays rounding."""

LONG: Final[dict[str, dict[str, Tolerances]]] = {
    "scratch": {},
    "concise": {
        "float32": _measured(
            "In a longer run with more images, a ReLU unit or two of the first step is decided by "
            "rounding, and the second loss tells of it.",
            {"trajectory": Tolerance(3e-5, 6.9e-6)},
        )
    },
}
"""What is different for runs that go on: their minibatches are larger."""

_PLATEAU: Final = (
    "Rounding decides when a run of ResNet-18 leaves its first plateau, and the first epoch's mean "
    "tells of it; with Fashion-MNIST the runs are within 2.6e-2 from the second epoch on."
)

LAYERS: Final = _measured(
    "Measured with the quick preset on 1 and 2 devices, 2026-11-22, on a processor without "
    "AVX-512: the farthest of 38 layers.",
    {"float64": Tolerance(1e-10, 1.4e-15), "float32": Tolerance(3e-6, 9.1e-7)},
)
"""By dtype: what each layer of ResNet-18 makes of images before training."""

CURVE: Final = {
    "scratch": Tolerance(0.1, 1.2e-2),
    "concise": Tolerance(0.1, 6.7e-2, _PLATEAU),
}
"""By chapter: the mean loss of an epoch, where rounding has been amplified: see `LONG`."""

# Accuracies are shares of the test set: at a constant rate the mean of the later half of a run's
# epochs, at most three, as a single epoch's figure swings by six points for rounding alone; where
# the rate falls to 0, the last epoch's. A framework's is the mean of its runs.
ACCURACY_SPREAD: Final = {
    ("scratch", "quick", "fashion-mnist"): Tolerance(0.05, 0.006),
    ("scratch", "quick", "synthetic"): Tolerance(0.05, 0.011),
    ("scratch", "book", "fashion-mnist"): Tolerance(0.03, 0.007),
    ("concise", "quick", "fashion-mnist"): Tolerance(0.03, 0.020),
    ("concise", "quick", "synthetic"): Tolerance(0.06, 0.003),
}
"""By chapter, preset and data set: how far apart the frameworks may be."""

ACCURACY_FLOOR: Final = {
    ("scratch", "quick", "fashion-mnist"): Tolerance(0.70, 0.766),
    ("scratch", "quick", "synthetic"): Tolerance(0.80, 0.876),
    ("scratch", "book", "fashion-mnist"): Tolerance(0.78, 0.815),
    ("concise", "quick", "fashion-mnist"): Tolerance(0.80, 0.838),
    ("concise", "quick", "synthetic"): Tolerance(0.80, 0.975),
}
"""The same for every run."""
