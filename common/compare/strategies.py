"""What runs of the chapter of strategies are compared with: LeNet in NumPy, and tolerances."""

from dataclasses import replace
from typing import Final

from common.compare import scratch
from common.compare.tolerances import Tolerance

FLOAT64: Final = scratch.FLOAT64 | {"velocity": Tolerance(1e-10, 2e-15)}

FLOAT32: Final = scratch.FLOAT32 | {"velocity": Tolerance(1.5e-4, 1e-5)}

CRITERIA: Final = replace(
    scratch.CRITERIA, tolerances={"float64": FLOAT64, "float32": FLOAT32}, spread={}, floor={}
)
