"""Pipelines: in which order the stages of a net pass the microbatches of a minibatch.

A run carries out an order, and `simulate` predicts when each pass begins and ends.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple


class Pass(NamedTuple):
    """One microbatch through one stage, by its `kind`, one of `UNITS`.

    A backward pass has two halves: the gradient of the input (B), and of the weights (W).
    """

    stage: int
    microbatch: int
    kind: str

    @property
    def forward(self) -> bool:
        return self.kind == "forward"

    def name(self) -> str:
        return f"{self.kind} {self.microbatch}"


UNITS: Final = {"forward": 1.0, "backward": 2.0, "input": 1.0, "weights": 1.0}
"""The kinds of passes, and how long they usually take."""


Order = Sequence[Sequence[Pass]]
"""The passes of each device, in order; a device has one stage."""


IN_FLIGHT: Final[dict[str, Callable[[int, int], int]]] = {
    "naive": lambda stages, microbatches: 1,
    "gpipe": lambda stages, microbatches: microbatches,
    "1f1b": lambda stages, microbatches: stages,
    "zb1": lambda stages, microbatches: stages,
}
"""The most microbatches in flight, given the stages from this one to the last.

In "zb1", as many as there are stages before this one also wait for their weights' half.
"""


def order(schedule: str, stages: int, microbatches: int) -> Order:
    """The passes of each stage: forward while fewer than `IN_FLIGHT` are, else backward.

    GPipe is by Huang et al. (2019), 1F1B by Narayanan et al. (2019), but all passes end
    before the update (Narayanan et al., 2021). ZB-H1 (Qi et al., 2023) halves the backward pass.
    """
    most = [IN_FLIGHT[schedule](stages - stage, microbatches) for stage in range(stages)]
    halves = schedule == "zb1"
    return [list(_passes(stage, most[stage], microbatches, halves)) for stage in range(stages)]


def _passes(stage: int, most: int, microbatches: int, halves: bool) -> Iterator[Pass]:
    """The passes of a stage with at most `most` microbatches in flight.

    In `halves`, the weights' half of the backward pass is `stage` microbatches late.
    """
    for i in range(1 - most, microbatches + stage * halves):
        if i + most - 1 < microbatches:
            yield Pass(stage, i + most - 1, "forward")
        if 0 <= i < microbatches:
            yield Pass(stage, i, "input" if halves else "backward")
        if halves and 0 <= i - stage < microbatches:
            yield Pass(stage, i - stage, "weights")


class TimedPass(NamedTuple):
    """A pass, and when it begins and ends."""

    done: Pass
    begin: float
    end: float


def needed(step: Pass, stages: int) -> list[Pass]:
    if step.forward:
        return [step._replace(stage=step.stage - 1)] if step.stage else []
    if step.kind == "weights":
        return [step._replace(kind="input")]
    after = [step._replace(stage=step.stage + 1)] if step.stage + 1 < stages else []
    return [step._replace(kind="forward"), *after]


def simulate(
    order: Order, seconds: Callable[[Pass], float] = lambda step: UNITS[step.kind]
) -> list[TimedPass]:
    """When each pass begins and ends if messages take no time, the earliest first.

    Each comes after those that it needs. Raises ValueError if stages wait for ever.
    """
    ends: dict[Pass, float] = {}
    events = []
    waiting = [list(reversed(passes)) for passes in order]
    free = [0.0] * len(order)
    while any(waiting):
        ready = [
            device
            for device, passes in enumerate(waiting)
            if passes and ends.keys() >= {*needed(passes[-1], len(order))}
        ]
        if not ready:
            heads = [f"stage {x[-1].stage} at {x[-1].name()}" for x in waiting if x]
            raise ValueError(f"these stages wait for each other for ever: {', '.join(heads)}")
        for device in ready:
            step = waiting[device].pop()
            begin = max([free[device], *map(ends.__getitem__, needed(step, len(order)))])
            free[device] = ends[step] = begin + seconds(step)
            events.append(TimedPass(step, begin, ends[step]))
    return sorted(events, key=lambda event: (event.begin, event.done))


def bubble(events: Sequence[TimedPass], devices: int) -> float:
    """The share of all devices' time in which they wait, between 0 and 1."""
    busy = sum(event.end - event.begin for event in events)
    return 1 - busy / (devices * max(event.end for event in events))


def most_live(passes: Sequence[Pass], size: Callable[[int], int] = lambda _: 1) -> int:
    """The most microbatches in flight: passed forward, not yet back with all gradients.

    With the `size` of each, the most examples.
    """
    signs = {"forward": 1, "input": 0}
    changes = (signs.get(kind, -1) * size(i) for _, i, kind in passes)
    return max(accumulate(changes, initial=0))
