"""LeNet split over devices in every way, from scratch, in JAX.

python -m frameworks.jax.strategies --strategy pipeline --devices 2 --preset quick
"""

from common.training.cli import main

raise SystemExit(main("jax", "strategies"))
