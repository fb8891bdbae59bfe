"""Runs a chapter with one thing wrong in it: the riddles of the chapter on parity.

python -m notebooks.classroom.planted 1 jax concise --steps 2

It gives the riddles away: read it after you have solved them.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from common.base.arrays import Weights
from common.models.weights_file import load_arrays, save_weights
from notebooks.classroom.experiment import (
    Command,
    command,
    folder_of,
    interpreters,
    run_all,
    suite_flags,
)

SLOW: Final = 0.01
"""What of the running statistics each minibatch replaces, where the project says 0.1."""

FEW: Final = ("--steps=3",)
"""What the chapter asks of its own runs besides."""


@dataclass(frozen=True)
class Riddle:
    """A suite and other flags, the framework whose run is made wrong if it is there, and how."""

    chapter: str
    suite: str
    framework: str
    flags: tuple[str, ...] = ()
    patch: Callable[[str], None] | None = None
    change: Callable[[Weights], Weights] | None = None


def replace_little(framework: str) -> None:
    """Batch normalization takes the momentum for the share of the old, of which 0.99 stays."""
    from common.models import nets

    nets.MOMENTUM = SLOW  # type: ignore[misc]


def take_the_sum(framework: str) -> None:
    """The gradient of the summed loss in place of that of the mean; the loss stays right."""
    from common.backends.loading import import_backend

    chapter: Any = import_backend(framework, "scratch", 1)
    right = chapter.listing.shard_loss_and_grad

    def wrong(params: Any, X: Any, y: Any, examples: int) -> Any:
        loss, grad = right(params, X, y, examples)
        return loss, {name: each * examples for name, each in grad.items()}

    chapter.listing.shard_loss_and_grad = wrong


def channels_last(weights: Weights) -> Weights:
    """The rows of fc1 as a framework has them that flattens rows, columns, channels."""
    rows = weights["fc1.weight"].reshape(50, 4, 4, -1).transpose(1, 2, 0, 3)
    return {**weights, "fc1.weight": np.ascontiguousarray(rows).reshape(800, -1)}


RIDDLES: Final = {
    1: Riddle("concise", "float64-per-device", "pytorch", patch=replace_little),
    2: Riddle("scratch", "float64", "mxnet", FEW, change=channels_last),
    3: Riddle("scratch", "float64", "jax", FEW, patch=take_the_sum),
}
"""By number."""


def plant(number: int, results: Path, init_weights: Path) -> Path:
    """Copies the runs of a suite and puts a wrong one in the place of one of them; the folder.

    `results` has the right runs, `init_weights` is the file that they started from.
    """
    riddle, pythons = RIDDLES[number], interpreters()
    framework = riddle.framework if riddle.framework in pythons else next(iter(pythons))
    folder = results / f"riddle-{number}"
    below = folder_of(riddle.chapter, riddle.suite)
    shutil.copytree(results / below, folder / below, dirs_exist_ok=True)
    weights = init_weights
    if riddle.change:
        weights = folder / "weights.safetensors"
        save_weights(weights, riddle.change(load_arrays(init_weights)))
    flags = [*suite_flags(folder, riddle.chapter, riddle.suite), *riddle.flags]
    made = command(framework, pythons[framework], riddle.chapter, flags)
    wrong = ["-m", "notebooks.classroom.planted", str(number), framework, riddle.chapter, *flags]
    arguments = wrong if riddle.patch else made.arguments
    run_all([Command("one of them", made.python, [*arguments, f"--init-weights={weights}"])])
    return folder


def main(argv: Sequence[str]) -> int:
    """Runs a chapter with the riddle of this number in it: number, framework, chapter, flags."""
    number, framework, chapter, *flags = argv
    if patch := RIDDLES[int(number)].patch:
        patch(framework)
    from common.training.cli import main as run_chapter

    return run_chapter(framework, chapter, flags)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
