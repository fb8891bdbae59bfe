"""What runs of LeNet are compared with: the net in NumPy, and tolerances."""

from typing import Final

from common.base.arrays import Array
from common.compare.numpy_layers import Layer, Pass
from common.compare.tolerances import STEP_BY_STEP, Criteria, Tolerance, measured_by


class LeNet(Pass):
    """The book's LeNet; with as many hidden layers more as there are weights of."""

    def forward(self, X: Array) -> Layer:
        """The logits (n, 10) of images, and the way back from their gradient."""
        hidden = [k.removesuffix(".weight") for k in self.weights if k.startswith("hidden")]
        more = (
            each for k in hidden if not k.endswith(".bias") for each in (("dense", k), ("relu",))
        )
        return self.chain(
            X,
            ("conv", "conv1"),
            ("relu",),
            ("pool",),
            ("conv", "conv2"),
            ("relu",),
            ("pool",),
            ("flatten",),
            ("dense", "fc1"),
            ("relu",),
            *more,
            ("dense", "fc2"),
        )


_LENET: Final = (
    "Measured by plain `nox` on two cores, 2026-11-20, with the seeds 0 and 8, and 2026-11-21 on "
    "a processor without AVX-512: the largest of the three."
)

FLOAT64: Final = measured_by(
    _LENET,
    {
        "forward": Tolerance(1e-10, 1.3e-15),
        "gradient": Tolerance(1e-10, 4.4e-15),
        "trajectory": Tolerance(1e-10, 3.9e-16),
        "weights": Tolerance(1e-10, 1.9e-15),
        "outcome": Tolerance(1e-10, 7.2e-16),
    },
) | measured_by(
    STEP_BY_STEP,
    {
        "update": Tolerance(1e-10, 8.3e-16),
        "loss": Tolerance(1e-10, 3.9e-16),
        "logits": Tolerance(1e-10, 1.4e-16),
    },
)

_UNIT_OF_LENET: Final = (
    "Not rounding alone: of the 35 million ReLU inputs of 20 steps, a few lie so close to zero "
    "that rounding decides their sign. One unit that flips moves fc1.bias by a hundredth of its "
    "gradient. With seed 8 a unit flips in MXNet alone; the others stay at 2.6e-6. The limit for "
    "each step from its own weights is closer."
)

_LOG_SOFTMAX: Final = (
    "The largest is MXNet's, late in training: its log_softmax is off by 5e-6 at most, five times "
    "as much as NumPy's in single precision."
)

FLOAT32: Final = measured_by(
    _LENET,
    {
        "forward": Tolerance(2e-6, 7.4e-7),
        "gradient": Tolerance(2e-5, 9.8e-6),
        "trajectory": Tolerance(5e-6, 1.4e-6),
        "weights": Tolerance(5e-2, 2.1e-2, _UNIT_OF_LENET),
        "outcome": Tolerance(1e-4, 3.2e-5),
    },
) | measured_by(
    STEP_BY_STEP,
    {
        "update": Tolerance(1.5e-4, 5.2e-5, _LOG_SOFTMAX),
        "loss": Tolerance(5e-6, 9.2e-7),
        "logits": Tolerance(2e-6, 2.9e-7),
    },
)

CRITERIA: Final = Criteria(
    net=LeNet,
    tolerances={"float64": FLOAT64, "float32": FLOAT32},
    beginning=20,
    curve=Tolerance(0.1, 1.2e-2),
    spread={
        ("quick", "fashion-mnist"): Tolerance(0.05, 0.006),
        ("quick", "synthetic"): Tolerance(0.05, 0.011),
        ("book", "fashion-mnist"): Tolerance(0.03, 0.007),
    },
    floor={
        ("quick", "fashion-mnist"): Tolerance(0.70, 0.766),
        ("quick", "synthetic"): Tolerance(0.80, 0.876),
        ("book", "fashion-mnist"): Tolerance(0.78, 0.815),
    },
)
