"""JAX."""

DISTRIBUTIONS = ("jax", "jaxlib")
