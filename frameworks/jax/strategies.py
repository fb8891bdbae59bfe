"""LeNet split over devices by each strategy, from scratch, in JAX.

python -m frameworks.jax.strategies --strategy pipeline --devices 2 --preset quick
"""

if __name__ == "__main__":
    from common.training.cli import main

    raise SystemExit(main("jax", "strategies"))
