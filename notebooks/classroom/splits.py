"""A few steps of a net that is split in some way, and what they moved and kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from common.base.arrays import Array, Weights
from common.chapters.splitting import BySplitting
from common.chapters.strategies import StrategiesOptions
from common.parallel.ledger import KEPT, MOVED, Event, Usage
from common.parallel.plans import Plan

COLUMN: Final = 10
"""How wide a number of bytes is printed."""


@dataclass(frozen=True)
class Steps:
    """What some steps came to: their losses, and the weights after the last one.

    A step should move and keep what is `predicted` by the plan; the last one did what is `counted`.
    """

    plan: Plan
    losses: list[float]
    weights: Weights
    predicted: Usage
    counted: Usage
    events: list[Event]

    def apart(self, other: "Steps") -> float:
        """The largest difference of a weight from that of other steps."""
        return max(float(abs(v - other.weights[k]).max()) for k, v in self.weights.items())


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

    Raises ValueError if so many devices cannot train so.
    """
    X, y = minibatch
    chosen = StrategiesOptions(**options)
    if refusal := chosen.refusal(len(devices)):
        raise ValueError(refusal)
    trainer: Any = chapter.trainer(weights, devices, chosen)
    losses = [float(trainer.train_batch(X, y, lr)) for _ in range(steps)]
    counted, events = trainer.usage(len(y))
    predicted = chosen.usage(len(devices), len(y), next(iter(weights.values())).itemsize)
    plan = chosen.plan(len(devices))
    return Steps(plan, losses, trainer.export(), predicted, counted, events)


def side_by_side(steps: Steps) -> str:
    """A table: what the plan says that each device sends and keeps, and what was counted."""
    devices = range(len(steps.counted.messages))
    wide = COLUMN * len(devices)
    names = "".join(f"{f'device {i}':>{COLUMN}}" for i in devices)
    lines = [
        f"{'bytes':<18}{'predicted':>{wide}} |{'counted':>{wide}}",
        f"{'':<18}{names} |{names}",
    ]
    for name, predicted, counted in rows(steps):
        if any([*predicted, *counted]):
            told = ["".join(f"{n:>{COLUMN},}" for n in each) for each in (predicted, counted)]
            lines.append(f"{name:<18}{' |'.join(told)}")
    return "\n".join(lines)


def rows(steps: Steps) -> Iterator[tuple[str, list[int], list[int]]]:
    """What is counted, and for each device: how much the plan says, and how much it was."""
    one, other = steps.predicted, steps.counted
    for kind in MOVED:
        yield f"sends {kind}", one.sent[kind], other.sent[kind]
    yield "messages", one.messages, other.messages
    for kind in KEPT:
        yield f"keeps {kind}", one.peak[kind], other.peak[kind]
    yield "live microbatches", one.live, other.live


def passes(events: Sequence[Event], device: int) -> str:
    """What a device did, in its order: `F2` is microbatch 2 forward, `B2` the same one back."""
    own = [each for each in events if each.device == device]
    return " ".join(f"{each.what[0].upper()}{each.microbatch}" for each in own)
