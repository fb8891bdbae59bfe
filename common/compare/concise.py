"""What runs of ResNet-18 are compared with: the net in NumPy, and tolerances."""

from typing import Final

from common.base.arrays import Array
from common.compare.numpy_layers import Layer, Pass, composed
from common.compare.tolerances import STEP_BY_STEP, Criteria, Tolerance, measured_by
from common.models.nets import BLOCKS, STAGES


class ResNet18(Pass):
    """The book's ResNet-18, of any width."""

    def forward(self, X: Array) -> Layer:
        """The logits (n, 10) of images, and the way back from their gradient."""
        out, back = self.chain(X, ("conv", "conv1", 1, 1), ("norm", "bn1"), ("relu",))
        backs = [back]
        for stage in STAGES:
            for block in BLOCKS:
                stride = 2 if stage > 1 and block == 1 else 1
                out, back = self.residual(out, f"stage{stage}.block{block}", stride)
                backs.append(back)
        out, back = self.chain(out, ("mean_pool",), ("dense", "fc"))
        return out, composed([*backs, back])

    def residual(self, X: Array, name: str, stride: int) -> Layer:
        """Two convolutions and a shortcut around them."""
        out, back_out = self.chain(
            X,
            ("conv", f"{name}.conv1", stride, 1),
            ("norm", f"{name}.bn1"),
            ("relu",),
            ("conv", f"{name}.conv2", 1, 1),
            ("norm", f"{name}.bn2"),
        )
        widened = f"{name}.conv3.weight" in self.weights
        shortcut, back_shortcut = self.conv(X, f"{name}.conv3", stride) if widened else (X, None)
        out, back_relu = self.relu(out + shortcut)

        def backward(d: Array) -> Array:
            d = back_relu(d)
            return back_out(d) + (back_shortcut(d) if back_shortcut else d)

        return out, backward


_RESNET: Final = (
    "Measured by plain `nox` on two cores, 2026-11-21, in both modes of batch norm, with "
    "Fashion-MNIST and with the synthetic set: the larger of both."
)

FLOAT64: Final = measured_by(
    _RESNET,
    {
        "forward": Tolerance(1e-10, 4.5e-16),
        "gradient": Tolerance(1e-10, 1.3e-13),
        "trajectory": Tolerance(1e-10, 7.6e-16),
        "weights": Tolerance(1e-10, 2.6e-12),
        "outcome": Tolerance(1e-10, 2.7e-15),
        "layers": Tolerance(1e-10, 1.4e-15),
        "layers_after": Tolerance(1e-10, 2.7e-14),
    },
) | measured_by(
    STEP_BY_STEP,
    {
        "update": Tolerance(1e-10, 1.0e-13),
        "statistics": Tolerance(1e-10, 1.8e-15),
        "loss": Tolerance(1e-10, 2.0e-16),
        "logits": Tolerance(1e-10, 2.0e-16),
    },
)

_UNIT_OF_RESNET: Final = (
    "Rounding alone leaves 7e-4. In the second step it decides one or two ReLU units, and one such "
    "unit moves the bias of a batch norm by a tenth of what the bias has learned until then. The "
    "limit for each step from its own weights is closer."
)

FLOAT32: Final = measured_by(
    _RESNET,
    {
        "forward": Tolerance(1e-6, 3.6e-7),
        "gradient": Tolerance(2e-4, 7.5e-5),
        "trajectory": Tolerance(5e-6, 1.1e-6),
        "weights": Tolerance(3e-1, 1.2e-1, _UNIT_OF_RESNET),
        "outcome": Tolerance(5e-5, 1.9e-5),
        "layers": Tolerance(3e-6, 9.1e-7),
    },
) | measured_by(
    STEP_BY_STEP,
    {
        "update": Tolerance(1e-4, 4.9e-5),
        "statistics": Tolerance(1e-5, 3.0e-6),
        "loss": Tolerance(5e-6, 1.0e-6),
        "logits": Tolerance(2e-6, 5.0e-7),
    },
)

LONG: Final = measured_by(
    "In a longer run with more images, a ReLU unit or two of the first step is decided by "
    "rounding, and the second loss shows it.",
    {"trajectory": Tolerance(3e-5, 6.9e-6)},
)

_EARLY: Final = (
    "In 240 steps the net has left its first plateau, and rounding decides how early: 8 runs, mean "
    "loss of each of 3 epochs, relative to the largest."
)

_CHANCE: Final = (
    "240 steps are enough for an accuracy that a net without learning does not reach, seven times "
    "that of guessing. More steps would narrow the spread by rounding (0.02 after 825), at three "
    "times the cost; each step from its own weights is compared far more closely."
)

CRITERIA: Final = Criteria(
    net=ResNet18,
    tolerances={"float64": FLOAT64, "float32": FLOAT32},
    beginning=2,
    curve=Tolerance(0.15, 7.9e-2, _EARLY),
    long={"float32": LONG},
    spread={
        ("quick", "fashion-mnist"): Tolerance(0.10, 0.052, _CHANCE),
        ("quick", "synthetic"): Tolerance(0.10, 0.015),
    },
    floor={
        ("quick", "fashion-mnist"): Tolerance(0.60, 0.702),
        ("quick", "synthetic"): Tolerance(0.65, 0.820),
    },
)
