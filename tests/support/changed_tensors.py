"""Changes one tensor of a record's, at random."""

import json
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
from agreement import reseal
from safetensors.numpy import load_file, save_file

from common.base.arrays import Array
from common.base.files import sha256
from common.compare import numpy_nets
from common.compare.checks import Run, allowed
from common.compare.distances import largest
from common.compare.taken import taken
from common.pairs.runs import read_run
from common.records.trace import traced_steps

WAYS: Final = ("entry", "entry", "entry", "nan", "dtype", "turned", "gone", "more", "swap")

ROUNDING: Final = "less than rounding does to a sum that nearly cancels"


def another(path: Path, random: Random) -> tuple[str, str, str]:
    """Changes, adds or removes a tensor beside the record at `path`.

    Returns its name, what was done, and why that says the same as before; empty if it does not.
    """
    beside = path.with_suffix(".safetensors")
    tensors = load_file(beside)
    name, how, same = random.choice(sorted(tensors)), random.choice(WAYS), ""
    values = tensors[name].copy()
    if how == "entry":
        off = 1 if values.dtype == np.uint8 else 0.01 * (largest(values) or 1.0)
        values.flat[random.randrange(values.size)] += off
        same = ROUNDING * is_rounding(path, name, off)
    elif how == "nan" and values.dtype.kind == "f":
        values.flat[0] = np.nan
    elif how == "dtype":
        values = values.astype(np.float16)
    elif how == "swap":
        other = random.choice([k for k in tensors if not np.array_equal(tensors[k], values)])
        values = tensors[other].copy()
        how = f"{how} with {other}"
    else:
        values = values.reshape(-1, 1)
    write(beside, {**tensors, f"{name}.more" if how == "more" else name: values}, how, name)
    return name, how, same


def write(beside: Path, tensors: dict[str, Array], how: str, name: str) -> None:
    """Writes the tensors, all but `name` if it is to go; other folders may share the old file."""
    kept = {
        key: np.ascontiguousarray(values)
        for key, values in tensors.items()
        if (key, how) != (name, "gone")
    }
    beside.unlink()
    save_file(kept, beside)


def is_rounding(path: Path, name: str, off: float) -> bool:
    """Whether rounding alone may move an entry so far, of a first gradient or of weights in a step.

    What is added up in its gradient says so, not the sum, which may be a thousandth of it.
    """
    part, _, parameter = name.rpartition("/")
    if part not in {"gradients", "weights"} and not part.startswith("trace/weights/"):
        return False
    run = read_run(path)
    if part == "gradients":
        return off <= most(run, "gradient", 1, parameter)
    at = len(run.record.losses) if part == "weights" else int(part.removeprefix("trace/weights/"))
    steps = {at, at + 1} & set(traced_steps(run.record.config))
    return bool(steps) and all(off <= most(run, "update", step, parameter) for step in steps)


def most(run: Run, kind: str, number: int, parameter: str) -> float:
    """How far rounding may move a gradient that nearly cancels, or its weight in a step; else 0."""
    step = taken(run, number)
    right = numpy_nets.step(step.chapter, step.X, step.y, step.before, step.shards)
    rate = step.lr if kind == "update" else 1
    return rate * allowed(run)[kind].limit * right.added.get(parameter, 0.0)


def vouch(path: Path) -> bool:
    """Makes a record vouch for the tensors beside it, and seals it."""
    content = json.loads(path.read_text())
    beside = path.with_suffix(".safetensors")
    content["tensors"] = {"file": beside.name, "sha256": sha256(beside)}
    path.unlink()  # other folders may share the file
    path.write_text(json.dumps(content))
    return reseal(path)
