"""Steps by a strategy, and the bytes sent and kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    steps: int = 3,
    lr: float = 0.05,
    **options: Any,
) -> Steps:
    """Trains on one minibatch, `steps` times; `options` are those of the chapter.

    Raises ValueError if the strategy does not work on these devices.
    """
    X, y = minibatch
    chosen = StrategiesOptions(**options)
    if refusal := chosen.refusal(len(devices)):
        raise ValueError(refusal)
    trainer: Any = chapter.trainer(weights, devices, chosen)
    losses = [float(trainer.train_batch(X, y, lr)) for _ in range(steps)]
    counted, events = trainer.usage(len(y))
    predicted = chosen.usage(len(devices), len(y), next(iter(weights.values())).itemsize)
    return Steps(losses, trainer.export(), predicted, counted, events)


def side_by_side(steps: Steps) -> str:
    """A table of what each device sends and keeps: as predicted by the plan, and as counted."""
    devices = range(len(steps.counted.messages))
    wide = COLUMN * len(devices)
    names = "".join(f"{f'device {i}':>{COLUMN}}" for i in devices)
    lines = [
        f"{'bytes':<18}{'predicted':>{wide}} |{'counted':>{wide}}",
        f"{'':<18}{names} |{names}",
    ]
    for name, predicted, counted in rows(steps):
        if any([*predicted, *counted]):
            columns = ["".join(f"{n:>{COLUMN},}" for n in row) for row in (predicted, counted)]
            lines.append(f"{name:<18}{' |'.join(columns)}")
    return "\n".join(lines)


def rows(steps: Steps) -> Iterator[tuple[str, list[int], list[int]]]:
    """The name of each row, then for each device its predicted and its counted figure."""
    predicted, counted = steps.predicted, steps.counted
    for kind in MOVED:
        yield f"sends {kind}", predicted.sent[kind], counted.sent[kind]
    yield "messages", predicted.messages, counted.messages
    for kind in KEPT:
        yield f"keeps {kind}", predicted.peak[kind], counted.peak[kind]
    yield "in flight", predicted.live, counted.live


def passes(events: Sequence[Event], device: int) -> str:
    """The passes of a device in order: `F2` is the forward pass of microbatch 2, `B2` backward.

    `I2` and `W2` are the halves of a backward pass, of the input and of the weights.
    """
    local = [event for event in events if event.device == device]
    return " ".join(f"{event.what[0].upper()}{event.microbatch}" for event in local)
