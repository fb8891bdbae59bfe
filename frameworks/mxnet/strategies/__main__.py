"""LeNet split over devices in every way, from scratch, in MXNet.

python -m frameworks.mxnet.strategies --strategy pipeline --devices 2 --preset quick
"""

from common.training.cli import main

raise SystemExit(main("mxnet", "strategies"))
