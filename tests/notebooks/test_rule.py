"""The rule that the chapter prints leads to plans about as fast as the fastest ones."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from common.base.errors import RunError
from common.scaling.choose import choose
from common.scaling.scenario import Scenario
from common.scaling.steps import CARDS
from notebooks.classroom.rule import Rated, best, case_of
from notebooks.drawing.steps import EXAMPLE

SIZES = {1: 24, 3: 32, 7: 32, 13: 40, 30: 48, 70: 80}
"""Layers by billions of parameters."""

HARDWARE = (("a100", "nvlink"), ("h100", "nvlink4"), ("a100", "pcie"), ("rtx4090", "host"))

SLOWER = {"pcie": (4, 1.24), "host": (4, 1.21)}
"""How many plans take over 10 % longer than the fastest, and at most how long, by link."""


def scenarios(card: str, link: str) -> Iterator[Scenario]:
    """One node of 2 to 8 devices, and 4 nodes of 4, with 1 to 8 sequences a device."""
    one = product((2, 4, 8), (1,), ("infiniband",), SIZES, (1, 2, 4, 8))
    four = product((4,), (4,), ("200e-6,100e9", "30e-6,12.5e9", "30e-6,3.125e9"), (3, 13, 30), (1,))
    for n, nodes, port, billions, count in (*one, *four):
        sizes = {"parameters": billions * 10**9, "layers": SIZES[billions]}
        devices = {"devices": n * nodes, "node": n, "examples": n * nodes * count * 2048}
        links = {"card": card, "link": link, "between": port}
        yield replace(EXAMPLE, **sizes, **devices, **links)  # type: ignore[arg-type]


def planned(scenario: Scenario, plan: Rated) -> Scenario:
    """The scenario of a plan; replicas of stages shard their optimizer state, by ZeRO-1."""
    rest = scenario.devices // (plan.t * plan.p)
    strategy = "zero3" if rest == scenario.devices else "zero1" if rest > 1 else "data"
    how = {"tensor": plan.t, "pipeline": plan.p, "shards": rest, "chunks": plan.chunks}
    nodes = max(1, scenario.devices // scenario.node)
    how |= {"microbatches": plan.microbatches, "spread": 1 < nodes == plan.p}
    return replace(scenario, strategy=strategy, recompute=plan.recompute, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(("card", "link"), HARDWARE)
def test_the_rule_is_nearly_as_fast_as_the_search(card: str, link: str) -> None:
    memory, slower, found = CARDS[card]["memory"], [], 0
    for scenario in scenarios(card, link):
        try:
            chosen = choose(scenario, memory)[0][1].step
        except RunError:  # nothing fits
            continue
        plan = planned(scenario, best(case_of(scenario)))
        assert max(plan.kept()) < 1.05 * memory, plan
        found += 1
        if plan.seconds().step > 1.1 * chosen:
            slower.append((plan.seconds().step / chosen, scenario, plan))
    many, most = SLOWER.get(link, (0, 1.1))
    assert len(slower) == many, slower
    assert all(ratio < most for ratio, *_ in slower)
    assert found == (30 if link == "host" else 57)  # 201 in all
