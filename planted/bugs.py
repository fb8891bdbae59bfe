"""All bugs by name, in the order of the table; some also in float32, which has rules of its own."""

from dataclasses import replace
from importlib import import_module
from typing import Final

from planted.bug import PLANTS, Bug

for name in ("concise", "strategies", "transformer", "native", "scratch"):
    import_module(f"planted.{name}")  # which adds its own

CONTROL: Final = Bug("control", "Make no mistake", "")
FLOAT32: Final = (
    *("all items on each device", "mean of shard means wrapped", "parameter left out"),
    *("syncbn ignores sizes", "grad of a psum", "momentum of the old", "mean of shard means"),
    *("divided twice", "no all reduce", "first replicas loss", "transfers lose 1"),
    *("last minibatch as a full one", "sum not mean", "one weight not reduced"),
)
"""Bugs that are also planted in float32 runs."""


def in_float32(bug: Bug) -> Bug:
    """The same bug in the float32 suites."""
    runs = {suite.replace("float64", "float32"): devices for suite, devices in bug.runs.items()}
    return replace(bug, name=f"{bug.name}, float32", runs=runs)


_ROUNDED: Final = [in_float32(bug) for bug in PLANTS if bug.name in FLOAT32]
BUGS: Final[dict[str, Bug]] = {bug.name: bug for bug in (CONTROL, *PLANTS, *_ROUNDED)}
