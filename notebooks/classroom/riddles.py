"""Runs of a chapter with one thing wrong in one of them: the riddles of the chapter on parity.

It gives the riddles away: read it after you have solved them.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from common.base.arrays import Weights
from common.models.weights_file import load_arrays, save_weights
from notebooks.classroom import experiment

FEW: Final = ("--steps=3",)
"""What the chapter asks of its own runs besides."""


@dataclass(frozen=True)
class Riddle:
    """A suite and other flags, and the framework whose run is made wrong if it is there.

    Either a `bug` of `planted` is in the run, or there is a `change` of the initial weights.
    """

    chapter: str
    suite: str
    framework: str
    flags: tuple[str, ...] = ()
    bug: str = ""
    change: Callable[[Weights], Weights] | None = None


def channels_last(weights: Weights) -> Weights:
    """The rows of fc1 as a framework has them that flattens rows, columns, channels."""
    rows = weights["fc1.weight"].reshape(50, 4, 4, -1).transpose(1, 2, 0, 3)
    return {**weights, "fc1.weight": np.ascontiguousarray(rows).reshape(800, -1)}


TWO: Final = (*FEW, "--devices=2")

RIDDLES: Final = {
    1: Riddle("concise", "float64-sync", "pytorch", ("--layers",), bug="momentum of the old"),
    2: Riddle("scratch", "float64", "mxnet", FEW, change=channels_last),
    3: Riddle("scratch", "float64", "jax", FEW, bug="sum not mean"),
    4: Riddle("scratch", "float64", "tensorflow", TWO, bug="divided twice"),
}
"""By number; the last one has all frameworks on two devices."""


def plant(number: int, results: Path, init_weights: Path) -> Path:
    """Copies the runs of a suite and puts a wrong one in the place of one of them; the folder.

    `results` has the right runs, `init_weights` is the file that they started from.
    """
    riddle, pythons = RIDDLES[number], experiment.interpreters()
    framework = riddle.framework if riddle.framework in pythons else next(iter(pythons))
    folder, weights = results / f"riddle-{number}", init_weights
    suite = experiment.suite_of(riddle.chapter, riddle.suite)
    shutil.copytree(results / suite.folder, folder / suite.folder, dirs_exist_ok=True)
    if riddle.change:
        weights = folder / "weights.safetensors"
        save_weights(weights, riddle.change(load_arrays(init_weights)))
    flags = [*riddle.flags, f"--init-weights={weights}"]
    modules = {name: [f"frameworks.{name}.{riddle.chapter}"] for name in pythons}
    if riddle.bug:
        modules[framework] = ["planted.run", riddle.bug, framework, riddle.chapter]
    chosen = [framework] if riddle.flags != TWO else pythons
    commands = [
        experiment.command(pythons[name], modules[name], suite, folder, flags) for name in chosen
    ]
    experiment.run_all(["one of them"] * len(commands), commands)
    return folder
