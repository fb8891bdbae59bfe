"""Workers that train by the frameworks' native strategies, in as many processes as they need."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from native_traffic import by_star, traffic
from scratch_steps import MOST_DEVICES, batches, far, start

from common.backends.devices import DeviceRequest, Process
from common.backends.loading import backend
from common.base.arrays import Array, Weights
from common.chapters.strategies import SCHEDULES, STRATEGIES, StrategiesOptions
from common.models.weights_file import save_weights

STEPS: Sequence[tuple[Array, Array]] = [
    *batches(2, 11, "float64"),
    *(batches(1, n, "float64")[0] for n in (2, 1)),
]
"""The third leaves a device without an example, and the fourth a whole row of them."""

RATES = (0.1, 0.05, 0.2, 0.1)

CASES = {
    name: StrategiesOptions(name, native=True, schedule="gpipe", microbatches=4)
    for name in STRATEGIES
}
CASES |= {x: replace(CASES["pipeline"], schedule=x) for x in SCHEDULES if x != "gpipe"}


def cases(framework: str, devices: int) -> dict[str, StrategiesOptions]:
    """By name, the options that a framework supports: on three devices all, uneven.

    On four, some on a mesh; on one, some.
    """
    chosen = CASES | {"tensor, uneven": replace(CASES["tensor"], depth=1)}
    if devices == 1:
        chosen = {name: CASES[name] for name in ("data", "pipeline", "naive", "tensor", "zero3")}
    if devices == 4:
        chosen = {
            f"{name} on a mesh": replace(options, replicas=2)
            for name, options in CASES.items()
            if name not in ("data", "zero2", "1f1b")
        }
    return {name: options for name, options in chosen.items() if not options.no_native(framework)}


@dataclass(frozen=True)
class Worker:
    """Saves the arrays that `work` gives for each case; the first process does so."""

    work: Callable[[Any, Sequence[Any], StrategiesOptions], Weights]
    framework: str
    devices: int
    folder: Path

    def __call__(self, process: Process) -> None:
        chapter = backend(self.framework, "strategies")
        # The tests' own process keeps the devices and threads that it got first: `all_devices`.
        count, threads = (self.devices, 1) if process.count > 1 else (MOST_DEVICES, 2)
        local = chapter.devices(process, DeviceRequest(count, "cpu", threads)).local
        for name, options in cases(self.framework, self.devices).items():
            found = self.work(chapter, local[: self.devices], options)
            if process.rank == 0:
                save_weights(self.folder / f"{name}.safetensors", found)


def trained(chapter: Any, devices: Sequence[Any], options: StrategiesOptions) -> Weights:
    """Takes the steps; asserts that a run that is resumed before the last has the same bits."""
    weights, ((X, y), *others) = start("float64", options.shapes()), STEPS
    replicas = chapter.replicate(weights, devices, options)
    grads = chapter.gradients(X, y, replicas, devices, options)
    # The first step is one by hand.
    by_hand, one = StrategiesOptions(microbatches=1, depth=options.depth), devices[:1]
    single = chapter.replicate(weights, one, by_hand)
    losses = [float(chapter.train_batch(X, y, single, one, RATES[0], by_hand))]
    before = chapter.save(single)
    chapter.restore(before, replicas, devices)
    for step, lr in zip(others, RATES[1:], strict=True):
        before = chapter.save(replicas)
        losses.append(float(chapter.train_batch(*step, replicas, devices, lr, options)))
    after = chapter.save(replicas)
    chapter.restore(after, single, one)
    assert far(chapter.save(single), after) == 0
    again = chapter.replicate(weights, devices, options)
    chapter.predict(STEPS[-1][0], again, devices)  # it leaves nothing behind
    chapter.restore(before, again, devices)
    chapter.train_batch(*STEPS[-1], again, devices, RATES[-1], options)
    resumed = chapter.save(again)
    assert [name for name in after if resumed[name].tobytes() != after[name].tobytes()] == []
    return {
        **{f"gradients/{name}": values for name, values in grads.items()},
        **{f"after/{name}": values for name, values in after.items()},
        **{f"logits/{n}": chapter.predict(X[:n], replicas, devices) for n in (2, 7)},
        "losses": np.array(losses),
    }


def moved(chapter: Any, devices: Sequence[Any], options: StrategiesOptions) -> Weights:
    """Counts the elements that a step on 12 images moves, by kind, and as sent by a star."""
    if options.strategy != "pipeline":
        options = replace(options, microbatches=1)
    trainer = chapter.replicate(start("float64", options.shapes()), devices, options)
    sizes = traffic(chapter.framework, trainer, *batches(1, 12, "float64")[0])
    sizes["sent"] = by_star(sizes, 2)
    return {kind: np.array(float(size // 8)) for kind, size in sizes.items()}
