"""What runs of one dense layer are compared with."""

from common.base.arrays import Array
from common.compare.numpy_layers import Layer, Pass
from common.compare.tolerances import Criteria, Tolerance


class OneLayer(Pass):
    """The net in NumPy."""

    def forward(self, X: Array) -> Layer:
        """The logits (n, 10) of images, and the way back from their gradient."""
        return self.chain(X, ("flatten",), ("dense", "fc"))


OF_RUNS = ("forward", "gradient", "trajectory", "weights", "outcome")
OF_STEPS = ("update", "velocity", "loss", "logits")

CRITERIA = Criteria(
    net=OneLayer,
    tolerances={"float64": dict.fromkeys((*OF_RUNS, *OF_STEPS), Tolerance(1e-12, 1e-15))},
    beginning=20,
    curve=Tolerance(0.1, 0.01),
)
