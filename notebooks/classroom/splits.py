"""Steps by a strategy, and the bytes sent and kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from common.base.arrays import Array, Weights
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import KEPT, MOVED, Event, Usage
from common.trainers.strategies import BySplitting
from notebooks.drawing.steps import compare as compare

COLUMN: Final = 10
"""How wide a number of bytes is printed."""


@dataclass(frozen=True)
class Steps:
    """The losses of some steps, and the weights after the last one.

    `predicted` is the plan's usage of a step, `counted` the usage of the last step.
    """

    losses: list[float]
    weights: Weights
    predicted: Usage
    counted: Usage
    events: list[Event]

    def difference(self, reference: "Steps") -> float:
        """The largest difference of any weight from the reference's."""
        return max(float(abs(v - reference.weights[k]).max()) for k, v in self.weights.items())


def take_steps(
    chapter: BySplitting,
    devices: Sequence[Any],
    weights: Mapping[str, Array],
    minibatch: tuple[Array, Array],
    *,
    lr: float = 0.05,
    **options: Any,
) -> Steps:
    """Trains on one minibatch, three times; `options` are those of the chapter.

    Raises ValueError if the strategy does not work on these devices.
    """
    X, y = minibatch
    chosen = StrategiesOptions(**options)
    if refusal := chosen.refusal(len(devices)):
        raise ValueError(refusal)
    trainer: Any = chapter.trainer(weights, devices, chosen)
    losses = [float(trainer.train_batch(X, y, lr)) for _ in range(3)]
    counted, events = trainer.usage(len(y))
    predicted = chosen.usage(len(devices), len(y), next(iter(weights.values())).itemsize)
    return Steps(losses, trainer.export(), predicted, counted, events)


def side_by_side(steps: Steps) -> str:
    """A table of what each device sends and keeps: as predicted by the plan, and as counted."""
    usages = steps.predicted, steps.counted
    rows = [(f"sends {kind}", [usage.sent[kind] for usage in usages]) for kind in MOVED]
    rows.append(("messages", [usage.messages for usage in usages]))
    rows += [(f"keeps {kind}", [usage.peak[kind] for usage in usages]) for kind in KEPT]
    rows.append(("in flight", [usage.live for usage in usages]))
    devices = range(len(steps.counted.messages))
    wide = COLUMN * len(devices)
    names = "".join(f"{f'device {i}':>{COLUMN}}" for i in devices)
    lines = [f"{'bytes':<18}{'predicted':>{wide}} |{'counted':>{wide}}"]
    lines.append(f"{'':<18}{names} |{names}")
    for name, pair in rows:
        if any(chain(*pair)):
            columns = ["".join(f"{n:>{COLUMN},}" for n in figures) for figures in pair]
            lines.append(f"{name:<18}{' |'.join(columns)}")
    return "\n".join(lines)


def passes(events: Sequence[Event], device: int) -> str:
    """The passes of a device in order: `F2` is the forward pass of microbatch 2, `B2` backward.

    `I2` and `W2` are the halves of a backward pass, of the input and of the weights.
    """
    local = [event for event in events if event.device == device]
    return " ".join(f"{event.what[0].upper()}{event.microbatch}" for event in local)
