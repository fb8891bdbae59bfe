"""LeNet split over devices by each strategy, from scratch, in JAX.

python -m frameworks.jax.strategies --strategy pipeline --devices 2 --preset quick
"""

import sys
from pathlib import Path

if not __package__:  # run as a file, as an editor does
    sys.path.insert(0, str(Path(__file__).parents[2]))

if __name__ == "__main__":
    from common.training.cli import main

    raise SystemExit(main("jax", "strategies"))
