"""The chapters in JAX. Importing this package does not load JAX."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax

    from common.interface import Scratch
    from frameworks.jax import scratch

    # The type checker proves that the chapter keeps the promises of the interface.
    proof: Scratch[jax.Device, jax.Array] = scratch

DISTRIBUTIONS = ("jax", "jaxlib")
"""The packages whose versions a record names."""
