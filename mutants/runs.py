"""The float64 suites of plain `nox` in one framework, until one is red.

python -m mutants.runs jax FOLDER
python -m mutants.runs jax FOLDER frameworks/jax/scratch.py "scratch float64"
"""

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

from common.backends.loading import preload, set_tf32
from common.base.arrays import Weights, part
from common.grid import work
from common.models.weights_file import load_arrays, save_weights
from common.records.fingerprint import ROOT
from common.report.text import describe
from planted.run import KNOWN, compared, failed_checks

PLAIN: Final = [
    name
    for name, suite in KNOWN.items()
    if suite.devices and suite.kind == "cpu" and suite.settings.get("dtype") == "float64"
]


def traced(file: Path, framework: str, *run: Any) -> None:
    """Does a run, and writes each line of the project that it executes."""
    seen, prefix = set(), f"{ROOT}/"

    def lines(frame: FrameType, event: str, argument: Any) -> Any:
        place = f"{frame.f_code.co_filename.removeprefix(prefix)}:{frame.f_lineno}\n"
        if place not in seen:
            seen.add(place)
            output.write(place)
        return lines

    # Forked processes are traced, too.
    fork = patch("frameworks.pytorch.hosts.START", "fork")
    with file.open("a", buffering=1) as output, fork if framework == "pytorch" else nullcontext():
        sys.settrace(lambda x, *_: lines if x.f_code.co_filename.startswith(prefix) else None)
        work(framework, *run)


def main(framework: str, folder: str, path: str = "", *names: str) -> int:
    """Prints the first failed check of suites with `path` changed. Returns 1, or 0 without any.

    Without a change, keeps lines and arrays. These are the right numbers later: other frameworks
    have them too, unless they share the changed code. Raises RunError if a run cannot be made.
    """
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}  # read on loading
    set_tf32(False)
    preload(framework, "common.training.run")
    file, right = Path(folder, "right.safetensors"), Weights()
    if path and not path.startswith(("common/", "frameworks/strategies/")):
        right = load_arrays(file)
    for name in names or [x for x in PLAIN if framework not in KNOWN[x].lacking]:
        suite = KNOWN[name]
        runs = {f"{suite.chapter} {suite.alone_in or suite.name}": (1,), name: suite.devices}
        if suite.repeats:
            runs[f"{suite.chapter} {suite.repeats}"] = suite.devices
        task = work if path else partial(traced, Path(folder, f"{name}.lines"))
        with patch("planted.run.work", task):
            results = compared("control", framework, runs)
        references = results[name].references
        if not path:
            for answer, found in references.items():
                right |= {f"{answer} {x}": values for x, values in found.arrays.items()}
        elif right:
            references = {
                answer: replace(found, arrays=part(right, f"{answer} "), runs=())
                for answer, found in references.items()
            }
            results = {k: replace(x, references=references) for k, x in results.items()}
        if failed := failed_checks(results, runs):
            print(describe(failed[0]))
            return 1
    if not path:
        save_weights(file, right)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
