"""LeNet split by TensorFlow's native parallelism: DTensor's layouts."""

from collections.abc import Mapping
from typing import Final

from common.trainers.strategies import MakeTrainer
from frameworks.strategies.layouts import LAYOUTS
from frameworks.tensorflow.native.program import OneProgram

STRATEGIES: Final[Mapping[str, MakeTrainer]] = dict.fromkeys(LAYOUTS, OneProgram)
