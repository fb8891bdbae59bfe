"""LeNet split over devices in every way, from scratch, in TensorFlow.

python -m frameworks.tensorflow.strategies --strategy pipeline --devices 2 --preset quick
"""

from common.training.cli import main

raise SystemExit(main("tensorflow", "strategies"))
