"""LeNet split by JAX's native parallelism: shardings, `shard_map`, `ppermute`."""

from collections.abc import Mapping
from typing import Final

from common.trainers.strategies import MakeTrainer
from frameworks.jax.native.pipeline import Pipeline
from frameworks.jax.native.program import OneProgram
from frameworks.strategies.layouts import LAYOUTS

STRATEGIES: Final[Mapping[str, MakeTrainer]] = {
    **dict.fromkeys(LAYOUTS, OneProgram),
    "pipeline": Pipeline,
}
