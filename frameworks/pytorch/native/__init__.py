"""LeNet, split by PyTorch's native parallelism: one process for each device."""

from collections.abc import Mapping
from typing import Final

from common.trainers.strategies import MakeTrainer
from frameworks.pytorch.native import pipeline, tensor, zero

STRATEGIES: Final[Mapping[str, MakeTrainer]] = {
    "data": zero.Replicated,
    "pipeline": pipeline.Staged,
    "tensor": tensor.Sliced,
    "zero1": zero.Zero1,
    "zero2": zero.Zero2,
    "zero3": zero.Zero3,
}
