"""Bugs of plans, and of numbers that `planted/` leaves out, turn checks of strategies red."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agreement import failed, judge, make

from common.parallel.ledger import Kept
from common.parallel.plans import Plan
from frameworks.strategies import data, pipeline, zero

pytestmark = pytest.mark.only("pytorch")

NUMBERS = {"gradient", "trajectory", "steps", "weights", "outcome", "devices"}
"""What a wrong gradient turns red."""


@dataclass(frozen=True)
class Bug:
    """A replacement for a function or method of a listing's module."""

    strategy: str
    where: Any
    name: str
    wrong: Callable[..., Any]
    red: set[str]


def last_alone(real: Any, ops: Any, grads: Any, totals: Any) -> None:
    grads.update(totals)


def reversed_(real: Any, ops: Any, tensors: Any, kind: str, group: Any) -> Any:
    return real(ops, tensors, kind, group)[::-1]


def resent(real: Any, ops: Any, tensor: Any, *others: Any) -> Any:
    return real(ops, real(ops, tensor, *others), *others)


def as_gpipe(real: Any, plan: Plan, microbatches: int) -> Any:
    return real(replace(plan, schedule="gpipe"), microbatches)


def kept_on(real: Any, kept: Kept) -> None:
    if kept.kind != "weights":
        real(kept)


BUGS = {
    "accumulated gradients lost": Bug("data", data, "accumulate", last_alone, NUMBERS),
    "slices in another order": Bug("zero2", zero, "reduce_scatter", reversed_, NUMBERS),
    "a message sent twice": Bug("pipeline", pipeline, "send", resent, {"plan"}),
    "GPipe in place of 1F1B": Bug("pipeline", Plan, "passes", as_gpipe, {"plan"}),
    "gathered weights that stay": Bug("zero3", Kept, "clear", kept_on, {"plan"}),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_turns_these_checks_red(
    strategies: Any, framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    bug = BUGS[name]
    run = partial(make, tmp_path, framework, strategies, chapter="strategies")
    run = partial(run, batch_size=11, strategy=bug.strategy, microbatches=3, steps=3)
    run(1)
    real, wrong = getattr(bug.where, bug.name), bug.wrong
    monkeypatch.setattr(bug.where, bug.name, lambda *args, **more: wrong(real, *args, **more))
    run(2)
    red = failed(judge(tmp_path, frameworks=[framework], chapters=["strategies"]))
    assert {(check, k) for check, _, k in red if k == 2} == {(check, 2) for check in bug.red}
