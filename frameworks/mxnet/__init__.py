"""The chapters in MXNet. Importing this package does not load MXNet."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mxnet as mx

    from common.interface import Scratch
    from frameworks.mxnet import scratch

    # The type checker proves that the chapter keeps the promises of the interface.
    proof: Scratch[mx.Context, mx.np.ndarray] = scratch

DISTRIBUTIONS = ("mxnet",)
"""The packages whose versions a record names."""
