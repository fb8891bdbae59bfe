"""Runs with the right numbers that send or keep other tensors than planned fail the check of plans.

Wrong numbers are planted in `planted/`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agreement import failed, judge, make

from common.parallel.ledger import Kept
from common.parallel.plans import Plan
from frameworks.strategies import pipeline


def resent(real: Any, ops: Any, tensor: Any, *others: Any) -> Any:
    return real(ops, real(ops, tensor, *others), *others)


def as_gpipe(real: Any, plan: Plan, microbatches: int) -> Any:
    return real(replace(plan, schedule="gpipe"), microbatches)


def kept_on(real: Any, kept: Kept) -> None:
    if kept.kind != "weights":
        real(kept)


BUGS: dict[str, tuple[str, Any, str, Callable[..., Any]]] = {
    "a message sent twice": ("pipeline", pipeline, "send", resent),
    "GPipe in place of 1F1B": ("pipeline", Plan, "passes", as_gpipe),
    "gathered weights that stay": ("zero3", Kept, "clear", kept_on),
}
"""A strategy, and a function or method with its replacement."""


@pytest.mark.only("pytorch")
@pytest.mark.parametrize("name", BUGS)
def test_another_split_than_planned_is_red(
    strategies: Any, framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    strategy, where, function, wrong = BUGS[name]
    run = partial(make, tmp_path, framework, strategies, chapter="strategies")
    run = partial(run, batch_size=11, strategy=strategy, microbatches=3, steps=3)
    run(1)
    real = getattr(where, function)
    monkeypatch.setattr(where, function, lambda *args, **more: wrong(real, *args, **more))
    run(2)
    red = failed(judge(tmp_path, frameworks=[framework], chapters=["strategies"]))
    assert {(check, k) for check, _, k in red if k == 2} == {("plan", 2)}
