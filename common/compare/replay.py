"""Computes steps of a run again, each from the run's own weights, in NumPy and float64.

The exact result of a step from the run's own weights is known, even if rounding has driven the run
far from others. So each step may be off by the rounding of one step only, late in training too.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from typing import Final

import numpy as np
from rich.console import Console
from rich.progress import track

from common.base.arrays import Array, Weights, part
from common.base.machine import cores
from common.chapters.operations import training_operations
from common.compare import numpy_nets
from common.compare.checks import Run, allowed
from common.compare.distances import Distance, compare, distance
from common.compare.findings import Hidden
from common.compare.taken import (
    Taken,
    acceleration,
    decided,
    farthest,
    movement,
    scales_of,
    taken,
    weights_after,
)
from common.data.minibatches import pixels
from common.records.trace import traced_steps

KINDS = ("update", "velocity", "statistics", "loss", "logits")
"""What is compared of a step: how it moves each weight, what momentum keeps of it, running
statistics, its loss; and after the last one, the logits."""

MOST: Final = 4
"""Runs at a time."""

LARGE: Final = 10**10
"""Operations of a step from which on runs are computed one by one, for the memory.

Of 99 % of it, one pass took 0.75 GiB for LeNet and 0.37 to 0.72 for ResNet-18, measured.
"""


@dataclass(frozen=True)
class Replay:
    """What a run should have computed, from its own weights, and how far its steps are from it.

    `expected` holds the logits before training and the first gradient, and `scales` what
    distances of some of them are relative to. `gained` is what that gradient has from units that
    rounding has decided otherwise than float64 does. `steps` holds, by kind, the distances of all
    steps that were kept. `flipped` counts such units in all of them. `hidden` says of each what
    rounding hides of it; a step that was not compared has no distances of weights.
    """

    expected: Weights
    gained: Weights
    scales: Mapping[str, float]
    steps: Mapping[str, Sequence[Distance]]
    flipped: int
    hidden: Sequence[Hidden]


def replay(run: Run) -> Replay | None:
    """Computes again what a run has kept; None if its net is too large for that."""
    config, chapter = run.record.config, run.record.chapter
    numbers = traced_steps(config)
    if not numbers:
        return None
    probe, last = pixels(run.arrays["probe/images"], config.dtype), len(run.record.losses)
    before, after = (
        {f"logits/{when}": numpy_nets.logits(chapter, probe, weights_after(run, number))}
        for when, number in (("before", 0), ("after", last))
    )
    expected, gained = before, dict[str, Array]()
    steps: dict[str, list[Distance]] = {kind: [] for kind in KINDS}
    scales: dict[str, float] = {}
    most, flipped, hidden = allowed(run), 0, list[Hidden]()
    for number in numbers:
        step = taken(run, number)
        right = numpy_nets.step(chapter, step.X, step.y, step.before, step.shards)
        if number == 1:
            first = part(run.arrays, "gradients/")
            as_run = decided(step, first, {}, right, most["gradient"].limit)
            for name, values in as_run.gradients.items():
                expected[f"gradients/{name}"] = values
                if as_run.flipped:
                    gained[f"gradients/{name}"] = values - right.gradients[name]
            scales = {f"gradients/{name}": scale for name, scale in right.added.items()}
        limit = most["update"].limit
        moved, blur = movement(step, right.gradients)
        found = decided(step, moved, blur, right, limit)
        unseen = sum(
            int((blur[name] > limit * scale).sum()) for name, scale in scales_of(right).items()
        )
        entries = sum(values.size for values in right.gradients.values())
        hidden.append(Hidden(step=number, hidden=unseen, entries=entries, tried=found.tried))
        # What sticks out of rounding is wrong, however much else rounding hides.
        lost = not hidden[-1].compared and farthest(found.distances) <= limit
        update = [] if lost else found.distances
        flipped += found.flipped
        if step.velocity_after:
            velocity = compare(acceleration(step), found.gradients, "", right.added)
            steps["velocity"] += at_step(number, velocity)
        for kind, distances in {"update": update, **compared(step, right)}.items():
            steps[kind] += at_step(number, distances)
    steps["logits"] = at_step(last, compare(run.arrays, after, "logits/after"))
    return Replay(expected, gained, scales, steps, flipped, hidden)


def as_float64_decides(run: Run, replayed: Replay | None) -> Run:
    """The run, except for what units in doubt have added to its first gradient."""
    gained = replayed.gained if replayed else {}
    arrays = {name: run.arrays[name] - values for name, values in gained.items()}
    return replace(run, arrays={**run.arrays, **arrays})


def at_step(number: int, found: Sequence[Distance]) -> list[Distance]:
    """The distances, with the step that they are of."""
    return [replace(each, step=number) for each in found]


def compared(step: Taken, right: numpy_nets.Step) -> dict[str, list[Distance]]:
    """How far what a step did, beside moving weights, is from what is right, by kind."""
    kept = {name: step.after[name] for name in right.statistics}
    far, _ = distance(np.array([step.loss]), np.array([right.loss]), right.loss_scale)
    return {
        "statistics": compare(kept, right.statistics, "") if kept else [],
        "loss": [Distance("loss", far, "the loss")],
    }


def replays(runs: Sequence[Run], description: str) -> dict[str, Replay | None]:
    """What each run should have computed, by its name; the description stands beside a bar."""
    # Unlike an executor's, these threads do not hold up an interrupt.
    with ThreadPool(at_once(runs)) as pool:
        made = track(
            pool.imap(replay, runs),
            description,
            len(runs),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        return {run.name: each for run, each in zip(runs, made, strict=True)}


def at_once(runs: Sequence[Run]) -> int:
    """How many of the runs are computed again at a time."""
    configs = [run.record.config for run in runs]
    large = any(
        training_operations(config.options) * config.batch_size > LARGE for config in configs
    )
    # With NumPy's own threads for each product, these would wait for each other: 20 s on 2 cores,
    # where one after the other takes 18, and where these alone take 11.
    alone = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    return min(MOST, cores()) if alone and not large else 1
