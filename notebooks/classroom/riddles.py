"""Runs of a chapter with one thing wrong in one of them: the riddles of the chapter on parity.

It gives the riddles away: read it after you have solved them.
"""

import shutil
from pathlib import Path
from typing import Final

from notebooks.classroom import experiment

RIDDLES: Final = {
    1: ("concise", "float64-sync", "pytorch", "--layers", "momentum of the old"),
    2: ("scratch", "float64", "jax", "--steps=3", "sum not mean"),
}
"""By number: the suite, the framework whose run is made wrong if it is there, the flag of the
chapter's own runs, and the bug of `planted`."""


def plant(number: int, results: Path, init_weights: Path) -> Path:
    """Copies the runs of a suite and puts a wrong one in the place of one of them; the folder.

    `results` has the right runs, `init_weights` is the file that they started from.
    """
    chapter, suite_name, framework, flag, bug = RIDDLES[number]
    pythons = experiment.interpreters()
    framework = framework if framework in pythons else next(iter(pythons))
    folder = results / f"riddle-{number}"
    suite = experiment.suite_of(chapter, suite_name)
    shutil.copytree(results / suite.folder, folder / suite.folder, dirs_exist_ok=True)
    module = ["planted.run", bug, framework, chapter]
    flags = [flag, f"--init-weights={init_weights}"]
    command = experiment.command(pythons[framework], module, suite, folder, flags)
    print(experiment.run("one of them", command))
    return folder
