"""LeNet split over devices in every way, from scratch, in PyTorch.

python -m frameworks.pytorch.strategies --strategy pipeline --devices 2 --preset quick
"""

from common.training.cli import main

raise SystemExit(main("pytorch", "strategies"))
